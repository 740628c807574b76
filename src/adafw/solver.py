"""The state of a run, and the one loop of the library."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, cast

import numpy as np

from adafw.algorithm import Algorithm
from adafw.arrays import NotFinite, all_finite
from adafw.constraints.base import Constraint
from adafw.constraints.counted import CountedSet
from adafw.objectives.base import FiniteSum, Unavailable
from adafw.random import IndexSource, Words, freeze, thaw
from adafw.typing import Array, Plain, StateDict

_FORMAT = 4  # of a saved state; raise it when a field changes its meaning


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
    objective, the set and the algorithm it belongs to. `workspace` is what the path that ran last
    keeps for itself: no one else reads it, and a state without it goes on to rounding error.
    `search` is that of the learning rate, if it is "auto".
    """

    x: Array
    t: int = 0
    gradient: StateDict = field(default_factory=dict)
    step: StateDict = field(default_factory=dict)
    workspace: StateDict = field(default_factory=dict)
    search: StateDict = field(default_factory=dict)
    rng: Words | IndexSource | None = None
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
            workspace=_copied(self.workspace),
            search=_copied(self.search),
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
        flat: StateDict = {"format": _FORMAT}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, dict):
                flat.update({f"{f.name}.{key}": part for key, part in value.items()})
            else:
                flat[f.name] = value
        return {key: np.asarray(value) for key, value in flat.items()}

    @classmethod
    def from_arrays(cls, flat: Mapping[str, Any]) -> "State":
        """The inverse of `to_arrays`."""
        if "format" not in flat or int(flat["format"]) > _FORMAT:
            raise ValueError("this is not a saved state of adafw, or one of a newer version.")
        if int(flat["format"]) < _FORMAT:
            raise ValueError(
                "this state was saved by an earlier version of adafw, which kept other things in "
                "it, and cannot go on; start anew with its x as x0."
            )
        values: StateDict = {"gradient": {}, "step": {}, "workspace": {}, "search": {}}
        for key, value in flat.items():
            owner, _, name = key.partition(".")
            part = np.asarray(value)
            plain = part if part.ndim else part.item()
            if name:
                values[owner][name] = plain
            elif owner != "format":
                values[owner] = plain
        whole = set(values) == {f.name for f in fields(cls)} and isinstance(values["torn"], bool)
        if not whole or not isinstance(values["rng"], np.ndarray):
            raise ValueError("this is only a part of a saved state of adafw.")
        rows = np.asarray(values["records"])
        if rows.dtype.kind != "f" or (rows.size and rows.ndim != 2):
            raise ValueError("this is a saved state of adafw with a damaged trace.")
        values["records"] = [tuple(row) for row in rows.tolist()]
        return cls(**values)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state to a .npz file, without pickle; an old file survives any failure."""
        from adafw.io.arrays import write_npz

        write_npz(path, self.to_arrays())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "State":
        """Reads what `save` wrote; anything else is refused in one sentence."""
        from adafw.io.arrays import TooLarge, read_npz
        from adafw.io.damage import DAMAGE, is_damage

        known = {"format", *(f.name for f in fields(cls))}
        try:
            arrays = read_npz(path, lambda name: name.partition(".")[0] in known, packed=False)
            if "format" not in arrays:
                raise ValueError
        except TooLarge:
            raise
        except DAMAGE as error:
            if not is_damage(error):
                raise
            raise ValueError(
                f"{path} must be a saved state of adafw, got something else or a damaged one."
            ) from None
        try:
            return cls.from_arrays(arrays)
        except ValueError as error:
            raise ValueError(f"{path} cannot be used: {error}") from None
        except (KeyError, TypeError, OverflowError):
            raise ValueError(f"{path} must be a saved state of adafw, got a damaged one.") from None


def describe_problem(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm
) -> dict[str, Plain]:
    """What a state belongs to."""
    return {
        "objective": f.describe(),
        "set": constraint.describe(),
        "algorithm": algorithm.describe(),
    }


def described(state: State) -> dict[str, Plain]:
    """What the state says that it belongs to."""
    try:
        parts = json.loads(state.problem)
        return {name: parts[name] for name in ("objective", "set", "algorithm")}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(
            "state must say which problem it belongs to, got a damaged one; start anew."
        ) from None


def start(
    f: FiniteSum, constraint: Constraint, algorithm: Algorithm, x: Array,
    source: Words | IndexSource,
) -> State:  # fmt: skip
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
    # Exact gradients draw nothing, and need no generator made of words.
    rng = cast(IndexSource, s.rng) if algorithm.gradient.exact else thaw(s.rng)
    source: Words | IndexSource = rng
    counted = CountedSet(constraint)
    s.torn = True
    last_x: Array | None = None
    begun: tuple[Words | IndexSource, int, int] = (source, 0, 0)
    halfway = False
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # told by the status, not by warnings
            for _ in range(n):
                if f.remote:
                    begun, halfway = (freeze(rng), counted.lmo_calls, counted.projections), False
                point = algorithm.step.query(s.x, s.t, s.step)
                g, s.gradient = algorithm.gradient.update(f, point, s.t, s.gradient, rng)  # line 2
                if not all_finite(g):
                    raise Diverged(last_x)
                last_x, halfway = s.x, True
                s.x, s.step = algorithm.step.update(f, counted, s.x, g, s.t, s.step)  # 3 on
                s.gradient_evaluations += algorithm.gradient.spent(s.t, f.n_terms, s.gradient)
                s.t += 1
                if stop():
                    break
        s.torn = False
    except NotFinite:  # an overflow on the way: a metric, a subproblem's gradient
        raise Diverged(last_x) from None
    except Unavailable:
        # Gradient estimators and steps change their states after the last thing they ask of f: of
        # this iteration nothing has happened but its draw and its counts, which are taken back.
        # Unless the estimate was there already, and its estimator remembers it.
        s.torn = halfway and bool(s.gradient)
        source, counted.lmo_calls, counted.projections = begun
        raise
    finally:
        s.rng = freeze(source)
        s.lmo_calls += counted.lmo_calls
        s.projections += counted.projections
    return s


class FastPath(Protocol):
    """Code that does what `run` does for the problems it knows, faster.

    To add one: a kernel, a class with these members in a file of fused/, a line in its registry
    (docs/add_a_fast_path.md).
    """

    @property
    def name(self) -> str:
        """What `minimize(path=...)` calls it; of several, the first that fits is taken."""

    def fits(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        """Whether it knows all three. Exact types only: a subclass may do anything."""

    def pays(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm) -> bool:
        """Whether it is the fastest known for a problem that it fits."""

    def prepare(self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State) -> None:
        """What is not part of the algorithm, before its clock runs: compilation above all."""

    def run(
        self, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, s: State, n: int,
        stop: Callable[[], bool],
    ) -> State:  # fmt: skip
        """n iterations in place, or fewer if `stop`, asked now and then, says so.

        What `run` would leave in `gradient` and `step`, keys, shapes and dtypes included, must
        stand there in the end; whatever else the next call needs goes to `workspace`. How the
        iterations are cut into calls must change no bit.
        """


def _copied(state: StateDict) -> StateDict:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in state.items()}
