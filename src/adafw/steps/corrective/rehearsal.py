"""Two iterations on a few rows before the clock runs: no kernel is compiled while it does."""

import contextlib

import numpy as np

from adafw.constraints.base import Constraint
from adafw.objectives import LinearModel, MatrixModel, WithIntercept
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Predicting, model_of
from adafw.steps.corrective.base import AnyCorrector
from adafw.steps.corrective.nearly import forms_matrix, tell
from adafw.steps.corrective.sampled import Sampled
from adafw.typing import Array

_ROWS = 8
#: Kinds of data, of a corrector each, that were rehearsed in this process.
_DONE: set[tuple[object, ...]] = set()


def rehearse(corrector: AnyCorrector, f: FiniteSum, constraint: Constraint, x: Array) -> None:
    """Lets `corrector` improve x for the first rows of f, once for each kind of data."""
    if not isinstance(f, Predicting) or f.rows.remote:
        return  # others' code is not ours to compile; workers compile theirs
    kind = _kind(corrector, f)
    if kind in _DONE or (few := _few(f)) is None:
        return
    _DONE.add(kind)
    # Of so few rows anything may come; what is wrong with all of them the run will say.
    with np.errstate(all="ignore"), contextlib.suppress(ArithmeticError, ValueError):
        if isinstance(few, LinearModel):
            few.rows.curve(np.ones(few.n_terms, few.dtype), few.gradient(x))
        state = corrector.init(x)
        for _ in range(2):
            x, state = corrector.improve(few, constraint.bare, x, few.gradient(x), 1, state)
        if tell(f.rows):  # what some of many rows tell, which all of few do not need
            rows, n = f.rows.few(np.arange(_ROWS)), f.rows.shape[1]
            part = rows.some_moments(1, np.ones(_ROWS), np.ones(n), True)
            Sampled(part + np.eye(n)).nearest(np.ones(n), -np.ones(n), np.ones(n))


def _kind(corrector: AnyCorrector, f: Predicting) -> tuple[object, ...]:
    """What decides which kernels are compiled for which types."""
    model = f if isinstance(f, MatrixModel) else model_of(f)
    forms = (forms_matrix(f.rows), tell(f.rows), model.term_weights.size > 0, f.dtype, type(f))
    return (type(corrector), f.rows.kind, type(model.loss), *forms)


def _few(f: Predicting) -> FiniteSum | None:
    """The same model of a few rows, one of each class or end of the targets among them."""
    model = f if isinstance(f, MatrixModel) else model_of(f)
    y = model.y if model.y.ndim == 1 else model.y[:, 0]
    classes = range(model.n_outputs if isinstance(model, MatrixModel) and model.y.ndim == 1 else 0)
    firsts = (int((y == k).argmax()) for k in classes)
    rows = np.unique([int(y.argmin()), int(y.argmax()), *firsts, *range(min(_ROWS, f.n_terms))])
    weights = None if model.sample_weight is None else np.ones(rows.size)
    try:
        if isinstance(model, MatrixModel):
            return MatrixModel(
                model.rows.few(rows), model.y[rows], model.loss, weights,
                n_outputs=model.n_outputs, intercept=model.has_intercept,
            )  # fmt: skip
        few = LinearModel(model.rows.few(rows), model.y[rows], model.loss, weights)
        return WithIntercept(few) if isinstance(f, WithIntercept) else few
    except ValueError:  # no best intercept: labels of one kind
        return None
