"""The state of a run, and the one loop of the library."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from adafw.algorithms import Algorithm
from adafw.arrays import NotFinite, all_finite
from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.io.atomic import replacing
from adafw.objectives.base import FiniteSum
from adafw.random import freeze, thaw
from adafw.typing import Array, Plain

_FORMAT = 1  # of a saved state; raise it when a field changes its meaning


class Diverged(Exception):
    """Something in an iteration is not finite; `last_x` is the iterate before the state's x."""

    def __init__(self, last_x: Array | None) -> None:
        super().__init__("a value or gradient is not finite")
        self.last_x = last_x


@dataclass
class State:
    """Everything a run needs to go on: plain arrays and numbers, nothing else.

    `gradient` and `step` are the states of the two parts of the algorithm, `rng` the words of the
    random generator, `records` the rows of the trace so far, `problem` a description of the
    objective, the set and the algorithm it belongs to.
    """

    x: Array
    t: int = 0
    gradient: dict[str, Any] = field(default_factory=dict)
    step: dict[str, Any] = field(default_factory=dict)
    rng: Any = None
    gradient_evaluations: int = 0
    lmo_calls: int = 0
    projections: int = 0
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    records: list[tuple[float, ...]] = field(default_factory=list)
    problem: str = ""
    torn: bool = False

    def copy(self) -> "State":
        """A state that shares nothing with this one."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values.update(
            x=self.x.copy(),
            gradient=_copied(self.gradient),
            step=_copied(self.step),
            rng=self.rng.copy() if isinstance(self.rng, np.ndarray) else self.rng,
            records=list(self.records),
        )
        return State(**values)

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Everything as a flat dict of arrays, as `numpy.savez` takes it."""
        if not isinstance(self.rng, np.ndarray):
            raise TypeError(
                f"a state whose indices come from a {type(self.rng).__name__} cannot be saved; "
                "give an integer or a numpy Generator as seed."
            )
        flat: dict[str, Any] = {"format": _FORMAT}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, dict):
                flat.update({f"{f.name}.{key}": part for key, part in value.items()})
            else:
                flat[f.name] = value
        return {key: np.asarray(value) for key, value in flat.items()}

    @classmethod
    def from_arrays(cls, flat: dict[str, Any]) -> "State":
        """The inverse of `to_arrays`."""
        if "format" not in flat or int(flat["format"]) > _FORMAT:
            raise ValueError("this is not a saved state of adafw, or one of a newer version.")
        values: dict[str, Any] = {"gradient": {}, "step": {}}
        for key, value in flat.items():
            owner, _, name = key.partition(".")
            part = np.asarray(value)
            plain = part if part.ndim else part.item()
            if name:
                values[owner][name] = plain
            elif owner != "format":
                values[owner] = plain
        values["records"] = [tuple(row) for row in np.asarray(values["records"]).tolist()]
        return cls(**values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state to a .npz file, without pickle; an old file survives any failure."""
        with replacing(path) as partial, open(partial, "wb") as file:
            np.savez(file, **self.to_arrays())  # type: ignore[arg-type]

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "State":
        """Reads what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            return cls.from_arrays(dict(file))


def describe_problem(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm
) -> dict[str, Plain]:
    """What a state belongs to."""
    return {
        "objective": f.describe(),
        "set": constraint.describe(),
        "algorithm": algorithm.describe(),
    }


def start(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm, x: Array, source: Any
) -> State:
    """The state before the first iteration, at x."""
    return State(
        x=x,
        gradient=algorithm.gradient.init(f, x),
        step=algorithm.step.init(x),
        rng=freeze(source),
        problem=json.dumps(describe_problem(f, constraint, algorithm)),
    )


def run(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
    stop: Callable[[], bool] = lambda: False,
) -> State:  # fmt: skip
    """n iterations of Template 1 or Template 3, in place: the one loop of the library.

    `stop` is asked after each of them, and ends the run early if it says so.
    """
    rng = thaw(s.rng)
    counted = CountedSet(constraint)
    s.torn = True
    last_x = None
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # told by the status, not by warnings
            for _ in range(n):
                point = algorithm.step.query(s.x, s.t, s.step)
                g, s.gradient = algorithm.gradient.update(f, point, s.t, s.gradient, rng)  # line 2
                if not all_finite(g):
                    raise Diverged(last_x)
                last_x = s.x
                s.x, s.step = algorithm.step.update(f, counted, s.x, g, s.t, s.step)  # 3 on
                s.gradient_evaluations += algorithm.gradient.spent(s.t, f.n_terms, s.gradient)
                s.t += 1
                if stop():
                    break
        s.torn = False
    except NotFinite:  # an overflow on the way: a metric, a subproblem's gradient
        raise Diverged(last_x) from None
    finally:
        s.rng = freeze(rng)
        s.lmo_calls += counted.lmo_calls
        s.projections += counted.projections
    return s


def _copied(state: dict[str, Any]) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in state.items()}
