"""What there is of several fits, on disk, so that they survive being killed in the middle."""

import math
import os
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.fitting.linear import Fit, Resume
from adafw.fitting.storage import read_arrays, write_arrays
from adafw.recorder import Trace
from adafw.solver import State
from adafw.typing import Json, JsonTable, Plain

#: Of the file. Format 1, of adafw 0.1, held one unfinished fit and no notice of the radius.
FORMAT = 2
_KIND = "adafw checkpoint"
_NUMBERS = (
    "intercept", "value", "gap", "lower_bound", "violation", "n_iter", "status", "algorithm",
    "learning_rate", "radius_matters",
)  # fmt: skip


class Checkpoint:
    """Fits that are finished, and where the others are, each by its number; safe among threads.

    Parameters
    ----------
    path : of the file; None writes nothing.
    identity : the data and all that changes the iterates; a file of another one is refused.
    every_seconds : between two writes for the same fit.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        identity: dict[str, Plain] | None = None,
        every_seconds: float = 10.0,
    ) -> None:
        self.path, self.identity, self.every_seconds = path, identity or {}, every_seconds
        self.finished: dict[int, Fit] = {}
        self.current: dict[int, Resume] = {}
        self._lock = threading.Lock()
        self._written: dict[int, float] = {}

    def begin(self, k: int) -> Resume | None:
        """Where fit k is to go on from; its time to the first write begins."""
        self._written[k] = time.monotonic()
        return self.current.get(k)

    def keep(self, k: int, now: Resume, always: bool = False) -> None:
        """Notes where fit k is, and writes that, if it is time to."""
        due = time.monotonic() - self._written.get(k, -math.inf) >= self.every_seconds
        if self.path is None or not (due or always):
            return
        with self._lock:
            # A copy: the run goes on, and another fit may write this one later.
            self.current[k] = replace(now, state=now.state.copy())
            self._save()
        self._written[k] = time.monotonic()

    def finish(self, k: int, fit: Fit) -> None:
        """Notes that fit k is done."""
        with self._lock:
            self.finished[k] = fit
            self.current.pop(k, None)
            self._save()

    def load(self) -> None:
        """Reads what is there; a missing file is an empty one."""
        if self.path is None or not os.path.exists(self.path):
            return
        header, arrays = read_arrays(
            self.path, _KIND, FORMAT, known=r"(fit|state)\d+\..*", oldest=FORMAT
        )
        then = header.get("identity")
        if then != self.identity:
            known = then if isinstance(then, dict) else {}
            changed = [k for k in self.identity if known.get(k) != self.identity[k]]
            raise ValueError(
                f"{self.path} belongs to another fit: {', '.join(changed)} differ; give the same "
                "data and options, or leave out --resume."
            )
        try:
            self._take(header, arrays)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
            self.finished, self.current = {}, {}
            raise ValueError(
                f"{self.path} must be a whole checkpoint of adafw, got a damaged one; leave out "
                "--resume to start anew."
            ) from None

    def _take(self, header: dict[str, Json], arrays: dict[str, NDArray[Any]]) -> None:
        """Finished fits and states from the parts of a file; anything may be wrong with them."""
        for k, numbers in header["fits"].items():
            coef = arrays[f"fit{k}.coef"]
            if coef.ndim not in (1, 2) or coef.dtype.kind != "f" or not np.isfinite(coef).all():
                raise ValueError
            # A file may hold anything: what is missing or of another type is told here.
            plain = {n: v for n, v in numbers.items() if n != "intercept"}
            if set(numbers) != set(_NUMBERS) or any(
                isinstance(number, list | dict) for number in plain.values()
            ):
                raise ValueError
            if coef.ndim == 2:
                numbers["intercept"] = np.array(numbers["intercept"], dtype=float)
            if np.shape(numbers["intercept"]) != coef.shape[1:]:
                raise ValueError
            rows = [tuple(row) for row in arrays[f"fit{k}.records"].tolist()]
            known: JsonTable = {n: math.nan if v is None else v for n, v in numbers.items()}
            self.finished[int(k)] = Fit(coef=coef, trace=Trace(rows), **known)
        for k, numbers in header["current"].items():
            start = f"state{k}."
            flat = {n.removeprefix(start): a for n, a in arrays.items() if n.startswith(start)}
            rate = numbers["learning_rate"]
            self.current[int(k)] = Resume(
                State.from_arrays(flat),
                math.nan if rate is None else float(rate),
                _restored(numbers["batch_intercept"]),
            )

    def _save(self) -> None:
        """Writes the file whole or not at all."""
        if self.path is None:
            return
        header: dict[str, Plain] = {
            "identity": self.identity,
            "fits": {
                str(k): {n: _number(getattr(fit, n)) for n in _NUMBERS}
                for k, fit in self.finished.items()
            },
            "current": {
                str(k): {
                    "learning_rate": _number(now.learning_rate),
                    "batch_intercept": _number(now.batch_intercept),
                }
                for k, now in self.current.items()
            },
        }
        arrays: dict[str, NDArray[Any]] = {}
        for k, fit in self.finished.items():
            arrays[f"fit{k}.coef"] = fit.coef
            arrays[f"fit{k}.records"] = np.array([tuple(record) for record in fit.trace])
        for k, now in self.current.items():
            flat = now.state.to_arrays()
            arrays.update({f"state{k}.{name}": part for name, part in flat.items()})
        write_arrays(self.path, _KIND, FORMAT, header, arrays)


def _restored(value: Json) -> Json:
    """A number, or one an output."""
    return np.array(value, dtype=float) if isinstance(value, list) else float(value)


def _number(value: Json) -> Plain:
    if isinstance(value, np.ndarray):
        return [float(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
