"""What the classifier and the regressor share: settings, fitting, streaming, what is reported."""

import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from adafw.fitting import (
    Deadline,
    Design,
    Fit,
    Fitted,
    LinearPredictor,
    Notice,
    Plan,
    Settings,
    Targets,
    fit_targets,
)
from adafw.fitting.live import Live
from adafw.fitting.radii import Problem
from adafw.fitting.settings import help_of
from adafw.losses import AnyLoss, Loss, Task
from adafw.names import LOSSES, VECTOR_SETS, Named, loss_class, losses_for
from adafw.recorder import Trace
from adafw.sklearn import far
from adafw.sklearn.plain import is_plain
from adafw.sklearn.refusals import in_one_sentence
from adafw.sklearn.stream import Stream
from adafw.sklearn.typing import (
    AlgorithmLike,
    LossLike,
    PerRow,
    RandomState,
    SetLike,
    SklearnObject,
)
from adafw.typing import Array, MatrixLike

#: Parameters that only estimators have.
OWN = {
    "warm_start": "start from the coefficients of the last fit",
    "random_state": "seed of the batches",
    "verbose": "above 0, show a live line on standard error",
}
#: Parameters that only models with a search for the radius have.
SEARCH = {
    "radii": "how many radii to try, from no effect to where the set stops binding, both found; or "
    "the radii themselves",
    "cv": "folds, as scikit-learn takes them: None for 5, a number, a splitter or pairs of rows",
    "scoring": "None for accuracy or R^2, a name or a function of scikit-learn; sample weights are "
    "handed on to all but functions",
    "rule": '"best", the radius of the best mean score, or "one_se", the smallest one within one '
    "standard error of it",
}
#: Columns of a docstring.
_WIDTH = 100


def _drawn(state: RandomState) -> int:
    """A seed from what scikit-learn takes for one."""
    return int(check_random_state(state).randint(2**31 - 1))


@lru_cache(maxsize=256)
def _seed(state: int) -> int:
    """The same for a number: making a generator takes as long as a small fit's gradient."""
    return _drawn(state)


class FrankWolfeBase(BaseEstimator):  # type: ignore[misc]
    """Settings and the fitted attributes that every model has."""

    loss: LossLike
    constraint: SetLike
    radius: float
    constraint_params: Mapping[str, object] | None
    algorithm: AlgorithmLike
    learning_rate: float | Literal["auto"]
    fit_intercept: bool
    warm_start: bool
    tol: float
    max_epochs: float
    max_seconds: float | None
    n_jobs: int | None
    verbose: int
    random_state: RandomState
    loss_: AnyLoss
    trace_: Trace | list[Trace | None] | None
    coef_: NDArray[Any]
    intercept_: NDArray[Any]
    _stream: list[Stream] | None

    def _keep(self, given: Mapping[str, object]) -> None:
        """The arguments of a constructor, as they are: scikit-learn copies estimators by them."""
        self.__dict__.update({k: v for k, v in given.items() if k not in ("self", "__class__")})

    def _settings(self) -> Settings:
        state = self.random_state
        seed = _seed(state) if type(state) is int else _drawn(state)
        given = {f.name: vars(self)[f.name] for f in fields(Settings) if f.name in vars(self)}
        return Settings(**given, seed=seed)

    def _validated(
        self, X: MatrixLike, y: PerRow, *, reset: bool = True, **checks: Any
    ) -> tuple[MatrixLike, NDArray[Any]]:
        if far.is_dask(X):
            return far.validated(self, X, y, numeric=checks.get("y_numeric", False), reset=reset)
        if reset and is_plain(X, y):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
            return X, np.asarray(y)
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], **checks}
        with in_one_sentence():
            return validate_data(self, X, y, reset=reset, **options)

    def _fit_problem(self, problem: Problem, deadline: Deadline, callers: int = 1) -> None:
        """One linear fit for each target, and the attributes that tell of them.

        `callers`: functions of ours between this one and the user, whom warnings point at.
        """
        design, targets = problem.part()
        n = design.rows.shape[1]
        plan = targets.plan(problem.settings, n)
        previous = getattr(self, "coef_", None) if self.warm_start else None
        starts: list[Array | None] = [None] * len(targets)
        if previous is not None and np.atleast_2d(previous).shape == (targets.scores, n):
            starts = list(targets.points(np.atleast_2d(previous)))
        live = Live(plan.settings.tol, len(targets), self.verbose > 0, design.rows.status)
        try:
            fitted = fit_targets(
                design, targets, plan, starts=starts, deadline=deadline, watch=live
            )
        finally:
            live.close()
        if fitted.interrupted:  # searches and pipelines must stop, too
            raise KeyboardInterrupt
        self._keep_fitted(fitted)
        for notice in fitted.notices:
            _warn(notice, 3 + callers)

    def _keep_fitted(self, fitted: Fitted) -> None:
        """The attributes that tell of fits."""
        self.loss_ = fitted.predictor.loss
        self._report(fitted.fits)
        self._set_coefficients(fitted.predictor.coef, fitted.predictor.intercept)

    def _problem(self, X: MatrixLike, y: PerRow, sample_weight: PerRow | None) -> Problem:
        """Everything checked, as the core takes it; sets classes_, n_features_in_ and names."""
        raise NotImplementedError

    def _path_of_search(self, X: MatrixLike, y: PerRow) -> object:
        """The `RadiusPath` of the radii that were searched, fitted to all data."""
        raise TypeError(
            "estimator must be a FrankWolfeClassifierCV or FrankWolfeRegressorCV, got "
            f"{type(self).__name__}; draw others by from_path(radius_path(X, y))."
        )

    def _report(self, fits: tuple[Fit, ...]) -> None:
        def each(name: str) -> Any:
            values = [getattr(fit, name) for fit in fits]
            return values[0] if len(fits) == 1 else np.array(values)

        self.gap_ = each("gap")
        self.value_ = each("value")
        self.lower_bound_ = each("lower_bound")
        self.violation_ = each("violation")
        self.n_iter_ = each("n_iter")
        self.learning_rate_ = each("learning_rate")
        self.status_ = fits[0].status if len(fits) == 1 else [fit.status for fit in fits]
        self.algorithm_ = fits[0].algorithm
        self.trace_ = fits[0].trace if len(fits) == 1 else [fit.trace for fit in fits]
        self._stream = None

    def _set_coefficients(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        raise NotImplementedError

    def _partial_fit_targets(self, design: Design, targets: Targets, plan: Plan) -> None:
        """One pass over the rows given, from where the last call ended."""
        streams = getattr(self, "_stream", None)
        if streams is None:
            previous = getattr(self, "coef_", None)
            starts: list[Any] = [(None, 0.0)] * len(targets)
            if previous is not None:
                b = np.atleast_1d(self.intercept_).astype(float)
                points = targets.points(np.atleast_2d(previous))
                starts = list(zip(points, [b] if targets.outputs else b.tolist(), strict=True))
            streams = [
                Stream.begin(design, y, plan, coef, b)
                for y, (coef, b) in zip(targets.vectors, starts, strict=True)
            ]
        streams = [
            stream.advance(design, y, plan)
            for stream, y in zip(streams, targets.vectors, strict=True)
        ]
        self._stream = streams
        self.loss_ = plan.loss
        self.learning_rate_ = streams[0].learning_rate
        self.n_iter_ = streams[0].t
        # What was seen before is gone: no gap can be measured, and none is claimed.
        self.gap_ = self.value_ = self.lower_bound_ = float("nan")
        self.violation_ = max(plan.constraint.violation(s.coef) for s in streams)
        self.status_, self.algorithm_, self.trace_ = (
            "streaming",
            str(streams[0].algorithm),
            None,
        )
        if targets.outputs:
            coef, b = streams[0].coef.T, np.asarray(streams[0].intercept)
        else:
            coef = np.array([s.coef for s in streams])
            b = np.array([s.intercept for s in streams])
        self._set_coefficients(coef, b)

    def _features(self, X: MatrixLike) -> MatrixLike:
        """Checked features to predict from."""
        if far.is_dask(X):
            return far.DaskBlocks(X, self.n_features_in_)
        with in_one_sentence():
            return validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
            )

    @property
    def _predictor(self) -> LinearPredictor:
        check_is_fitted(self)
        return LinearPredictor(
            np.atleast_2d(self.coef_),
            np.atleast_1d(self.intercept_),
            getattr(self, "classes_", None),
            self.loss_,
        )

    def __sklearn_tags__(self) -> SklearnObject:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


Estimator = TypeVar("Estimator", bound=type[FrankWolfeBase])


def documented(task: Task) -> Callable[[Estimator], Estimator]:
    """Puts what the parameters of the constructor are, from the one list of them, into a docstring.

    The line "{parameters}" gives way to one entry a parameter.
    """

    def listed(names: Iterable[Named[Any]]) -> str:
        return "; ".join(f'"{entry.name}", {entry.help}' for entry in names)

    texts = {
        **OWN,
        **SEARCH,
        "loss": f"{listed(losses_for(task))}; or one of `adafw.losses`",
        "constraint": f"the set of the coefficients: {listed(VECTOR_SETS)}; or a set of `adafw`",
        "class_weight": 'None, "balanced" (by rarity) or {class: weight}',
    }

    def write(estimator: Estimator) -> Estimator:
        lines = []
        for name in inspect.signature(estimator.__init__).parameters:
            if name != "self":
                text = f"{name} : {texts.get(name) or help_of(name)}."
                lines += textwrap.wrap(
                    text, _WIDTH, initial_indent="    ", subsequent_indent="        "
                )
        if estimator.__doc__:  # there is none under python -OO
            estimator.__doc__ = estimator.__doc__.replace("    {parameters}", "\n".join(lines))
        return estimator

    return write


def declared(loss: LossLike) -> type[Loss]:
    """The class of a loss, or of its name; of what is neither, `Loss`, which declares nothing."""
    return loss_class(loss) if isinstance(loss, Loss) or loss in LOSSES else Loss


def weights_of(sample_weight: PerRow | None, X: MatrixLike) -> NDArray[Any] | None:
    """Checked sample weights, None if there are none."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must not be 0 in every entry.")
    return np.asarray(weight)


def warn_unfinished(text: str) -> None:
    """A fit that stopped before its tolerance."""
    warnings.warn(text, ConvergenceWarning, stacklevel=3)


def _warn(notice: Notice, stacklevel: int) -> None:
    """As scikit-learn's users expect it."""
    category = UserWarning if notice.kind == "no effect" else ConvergenceWarning
    warnings.warn(notice.text, category, stacklevel=stacklevel)
