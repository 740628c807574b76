"""Where a run begins: at a point of the set, or where a state says; checked before any work."""

import json
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from adafw import integrity, solver
from adafw.algorithm import Algorithm
from adafw.arrays import floating
from adafw.constraints.base import Constraint
from adafw.objectives.base import FiniteSum
from adafw.recorder import Record, Recorder, as_record
from adafw.solver import State
from adafw.typing import Array, Json


def start_point(f: FiniteSum, constraint: Constraint, x0: ArrayLike | None) -> Array:
    """A copy of x0, or the set's own start, of the objective's shape and dtype, inside the set."""
    known = constraint.shape if f.shape is None else f.shape
    if x0 is None:
        if known is None:
            raise ValueError(
                f"x0 must be given: neither {f!r} nor {constraint!r} knows the shape of x."
            )
        x0 = constraint.start(known, f.dtype)
    point = floating(x0, "x0")
    dtype = f.dtype if f.shape is not None else point.dtype
    x = np.array(point, dtype=np.float32 if dtype == np.float32 else np.float64, order="C")
    if x.ndim == 0:
        raise ValueError("x0 must have at least one dimension, got a number.")
    if known is not None and x.shape != known:
        raise ValueError(f"x0 must have shape {known}, got {x.shape}.")
    if constraint.shape is not None and x.shape != constraint.shape:
        raise ValueError(
            f"the objective has points of shape {x.shape}, the set {constraint!r} of shape "
            f"{constraint.shape}."
        )
    if not np.isfinite(x).all():
        raise ValueError("x0 must be finite, got NaN or infinity.")
    if not constraint.contains(x):
        raise ValueError(
            f"x0 must lie in {constraint!r}: it is outside by {constraint.violation(x):.3g} of its "
            "size; project it first, or leave x0 out."
        )
    return x


def resumed(
    state: object, f: FiniteSum, constraint: Constraint, algorithm: Algorithm, given: Sequence[str]
) -> State:
    """A copy of the state, refused if it belongs to another problem.

    `given` are names of what the state brings itself, and a user gave all the same.
    """
    if not isinstance(state, State):
        raise TypeError(f"state must be the state of a Result, got {type(state).__name__}.")
    for name in given:
        raise ValueError(f"{name} must be left out when state is given: it comes from the state.")
    if state.torn:
        raise ValueError(
            "this state was left in the middle of an iteration and cannot go on; start anew with "
            "x0=state.x."
        )
    then = solver.described(state)
    now = json.loads(json.dumps(solver.describe_problem(f, constraint, algorithm)))
    for part, description in now.items():
        if then[part] != description:
            raise ValueError(
                f"state belongs to another {part}: it was {_brief(then[part])}, now it is "
                f"{_brief(description)}; start anew with x0=state.x."
            )
    known = constraint.shape if f.shape is None else f.shape
    start = None if known is None else start_point(f, constraint, None)
    integrity.check_state(state, f, algorithm, start)
    _check_record(state, f, constraint)
    return state.copy()


def _check_record(state: State, f: FiniteSum, constraint: Constraint) -> None:
    """Refuses functions of a user's that give another value or gap at x than the last record."""
    rows = np.array(state.records)
    if rows.size and (
        rows.shape[1:] != (len(Record._fields),)
        or not (np.diff(rows[:, 0]) > 0).all()
        or not 0 <= rows[0, 0] <= rows[-1, 0] <= state.t
    ):
        raise integrity.Damaged("records", f"a trace up to iteration {state.t}", "another")
    if unrecorded(state):
        return
    then = as_record(state.records[-1])
    again = state.copy()
    now = Recorder(f, constraint, None).measure(again)
    gaps = rows[:, Record._fields.index("gap")]
    # Of gradients that came down from far, digits are lost that belong to the first ones.
    far = 1e-10 * float(np.max(gaps[np.isfinite(gaps)], initial=0.0))
    scale = float(np.nansum(np.abs([then.value, then.gap])))
    for name, was, is_now in (("objective", then.value, now.value), ("set", then.gap, now.gap)):
        # Another path or machine sums in another order; float32 data leave no more digits than
        # that.
        if not abs(was - is_now) <= 1e-6 * scale + far and not math.isnan(was):
            raise ValueError(
                f"state belongs to another {name}: at its x it recorded {was:.9g}, now it is "
                f"{is_now:.9g}; start anew with x0=state.x."
            )


def _brief(description: Json) -> str:
    text = json.dumps(description)
    return text if len(text) <= 160 else text[:157] + "..."


def unrecorded(s: State) -> bool:
    """Whether the last record is of another iteration, or of less work."""
    return not at_last(s) or s.records[-1][2] != s.gradient_evaluations


def at_last(s: State) -> bool:
    """Whether the last record is of this iteration."""
    return bool(s.records) and s.records[-1][0] == s.t
