"""Several linear fits, one after the other, that survive being killed in the middle."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.fitting.linear import Fit, Progress, Resume, Settings, fit_linear
from adafw.fitting.model import read_arrays, write_arrays
from adafw.recorder import Record, Trace
from adafw.solver import State
from adafw.typing import Plain

FORMAT = 1
_KIND = "adafw checkpoint"
_NUMBERS = (
    "intercept", "value", "gap", "lower_bound", "violation", "n_iter", "status", "algorithm",
    "learning_rate",
)  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """Fits that are finished, and where the next one is."""

    problem: Plain
    finished: list[Fit] = field(default_factory=list)
    current: Resume | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file whole or not at all."""
        header: dict[str, Plain] = {
            "problem": self.problem,
            "fits": [{n: _plain(getattr(fit, n)) for n in _NUMBERS} for fit in self.finished],
        }
        arrays: dict[str, NDArray[Any]] = {}
        for k, fit in enumerate(self.finished):
            arrays[f"fit{k}.coef"] = fit.coef
            arrays[f"fit{k}.records"] = np.array([tuple(record) for record in fit.trace])
        if self.current is not None:
            header["learning_rate"] = _plain(self.current.learning_rate)
            header["batch_intercept"] = self.current.batch_intercept
            flat = self.current.state.to_arrays()
            arrays.update({f"state.{name}": part for name, part in flat.items()})
        write_arrays(path, _KIND, FORMAT, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], problem: Plain) -> "Checkpoint":
        """Reads what `save` wrote; a checkpoint of another problem is refused."""
        header, arrays = read_arrays(path, _KIND, FORMAT)
        if header.get("problem") != problem:
            then = header.get("problem")
            changed = [
                k for k in problem if not isinstance(then, dict) or then.get(k) != problem[k]
            ]
            raise ValueError(
                f"{path} belongs to another fit: {', '.join(changed)} differ; give the same data "
                "and options, or leave out --resume."
            )
        finished = []
        for k, numbers in enumerate(header["fits"]):
            rows = [tuple(row) for row in arrays[f"fit{k}.records"].tolist()]
            known: dict[str, Any] = {n: math.nan if v is None else v for n, v in numbers.items()}
            finished.append(Fit(coef=arrays[f"fit{k}.coef"], trace=Trace(rows), **known))
        flat = {n.removeprefix("state."): a for n, a in arrays.items() if n.startswith("state.")}
        current = None
        if flat:
            rate = header["learning_rate"]
            current = Resume(
                State.from_arrays(flat),
                math.nan if rate is None else rate,
                header["batch_intercept"],
            )
        return cls(problem, finished, current)


@dataclass
class Run:
    """Fits target after target, with a time limit over all and a checkpoint now and then.

    `watch(k, state, record, progress)` is called at every record of fit k.
    """

    settings: Settings
    path: str | os.PathLike[str] | None = None
    every_seconds: float = 10.0
    time_limit: float | None = None
    watch: Callable[[int, State, Record, Progress], None] | None = None

    def fit(
        self,
        A: Any,
        targets: list[NDArray[Any]],
        weights: NDArray[Any] | None,
        checkpoint: Checkpoint,
    ) -> list[Fit]:
        """All fits; after an interruption or the time limit, the rest stay at their start."""
        began = self._saved = time.monotonic()
        fits, resume = list(checkpoint.finished), checkpoint.current
        for k in range(len(fits), len(targets)):
            left = None
            if self.time_limit is not None:
                left = max(0.0, self.time_limit - (time.monotonic() - began))
            done = replace(checkpoint, finished=list(fits), current=None)
            fit = self._one(k, A, targets[k], weights, done, resume, left)
            resume = None
            if fit.status in ("interrupted", "max_seconds"):
                assert fit.state is not None
                if self.path is not None:
                    now = Resume(fit.state, fit.learning_rate, fit.batch_intercept)
                    replace(done, current=now).save(self.path)
                fits.append(fit)
                return fits + [self._untouched(A, y, weights) for y in targets[k + 1 :]]
            fits.append(fit)
            if self.path is not None:
                replace(done, finished=list(fits)).save(self.path)
        return fits

    def _one(
        self,
        k: int,
        A: Any,
        y: NDArray[Any],
        weights: NDArray[Any] | None,
        done: Checkpoint,
        resume: Resume | None,
        left: float | None,
    ) -> Fit:
        def watch(s: State, record: Record, progress: Progress) -> bool:
            if self.watch is not None:
                self.watch(k, s, record, progress)
            if self.path is not None and time.monotonic() - self._saved >= self.every_seconds:
                now = Resume(s, progress.learning_rate, progress.batch_intercept)
                replace(done, current=now).save(self.path)
                self._saved = time.monotonic()
            return left is not None and time.monotonic() - start >= left

        start = time.monotonic()
        used = 0.0 if resume is None else resume.state.wall_seconds
        settings = replace(self.settings, max_seconds=None if left is None else used + left)
        fit = fit_linear(A, y, settings, sample_weight=weights, resume=resume, watch=watch)
        return replace(fit, status="max_seconds") if fit.status == "callback" else fit

    def _untouched(self, A: Any, y: NDArray[Any], weights: NDArray[Any] | None) -> Fit:
        """The start point with its value and gap: what there is of a fit that never ran."""
        settings = replace(
            self.settings, algorithm="FW", learning_rate="auto", max_seconds=0.0, max_epochs=1.0
        )
        return replace(fit_linear(A, y, settings, sample_weight=weights), status="not started")


def _plain(value: Any) -> Plain:
    return None if isinstance(value, float) and math.isnan(value) else value
