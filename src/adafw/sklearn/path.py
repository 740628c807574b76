"""Models along a range of radii, and radii translated into penalties."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from adafw import checks
from adafw.fitting import Deadline, Design, Targets
from adafw.fitting.radii import approximate, check_sized
from adafw.fitting.targets import looks_like_classes
from adafw.sklearn.base import declared
from adafw.sklearn.classifiers import FrankWolfeClassifier
from adafw.sklearn.displays import RadiusPathDisplay
from adafw.sklearn.regressors import FrankWolfeRegressor
from adafw.sklearn.typing import PerRow, SklearnObject
from adafw.typing import MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from adafw.sklearn.displays import Panels


#: A model that there is a path of.
LinearEstimator: TypeAlias = FrankWolfeClassifier | FrankWolfeRegressor


@dataclass(frozen=True, eq=False)
class RadiusPath:
    """One model a radius, from small to large.

    `coefs` (radii, n_features), or (radii, classes, n_features) for more than two classes;
    `intercepts`, `values`, `gaps`, `nonzeros` and `scores` (of held-out data, else of the
    training data) one entry a radius; `models` the fitted models themselves. With `eps`, `uppers`
    are the radii up to which each model stays within `bound` of the best one; else None.
    """

    radii: NDArray[Any]
    coefs: NDArray[Any] = field(repr=False)
    intercepts: NDArray[Any] = field(repr=False)
    values: NDArray[Any] = field(repr=False)
    gaps: NDArray[Any] = field(repr=False)
    nonzeros: NDArray[Any] = field(repr=False)
    scores: NDArray[Any] = field(repr=False)
    models: tuple[LinearEstimator, ...] = field(repr=False)
    held_out: bool = False
    uppers: NDArray[Any] | None = field(default=None, repr=False)
    bound: float = math.nan

    def at(self, radius: float) -> LinearEstimator:
        """The model that is proven to be within `bound` of the best one of this radius."""
        if self.uppers is None:
            raise ValueError("only a path of radius_path(eps=...) knows models between its radii.")
        k = int(np.searchsorted(self.radii, radius, side="right")) - 1
        if k < 0 or not radius <= self.uppers[k]:
            low, high = self.radii[0], self.uppers[-1]
            raise ValueError(f"radius must be between {low:g} and {high:g}, got {radius:g}.")
        return self.models[k]

    @property
    def best(self) -> LinearEstimator:
        """The model of the best score; of equals, that of the smallest radius."""
        return self.models[int(np.argmax(self.scores))]

    def plot(self, axes: "Axes | Panels | None" = None) -> NDArray[np.object_]:
        """Coefficients, then score, against the radius, as `RadiusPathDisplay`; the two axes."""
        display = RadiusPathDisplay.from_path(self, ax=axes)
        return np.array([display.ax_, display.score_ax_])


def radius_path(
    X: MatrixLike,
    y: PerRow,
    *,
    radii: Sequence[float] | NDArray[Any] | None = None,
    eps: float | None = None,
    estimator: SklearnObject = None,
    sample_weight: PerRow | None = None,
    X_test: MatrixLike = None,
    y_test: PerRow | None = None,
) -> RadiusPath:
    """Fits a model for each radius, from small to large, each started from the one before.

    Parameters
    ----------
    radii : sizes of the set; None means 10 of them, from 0.1 to 100.
    eps : fits only as many models as cover all radii: each, at every radius up to that of the
        next, is proven to be within `bound`, eps times the objective without features, of the best
        one. `radii` then are the two ends of the range; None means from where 0 is no longer good
        enough to where ten times the radius would not matter.
    estimator : a `FrankWolfeClassifier` or `FrankWolfeRegressor` with a named constraint, whose
        settings are taken over; None takes a
        classifier if y is text, of two kinds, or whole numbers of at most 20 kinds.
    X_test, y_test : data to score on; None scores on X and y.
    """
    if eps is not None:
        return _proven_path(X, y, eps, radii, estimator, sample_weight, X_test, y_test)
    sizes = _sizes(np.geomspace(0.1, 100, 10) if radii is None else radii)
    estimator = _estimator(estimator, y)
    test = (X, y) if X_test is None else (X_test, y_test)
    models: list[LinearEstimator] = []
    model = clone(estimator).set_params(warm_start=True)
    for radius in sizes:
        model.set_params(radius=float(radius)).fit(X, y, sample_weight=sample_weight)
        models.append(_copy(model))
    return _path(models, test, X_test is not None)


def _sizes(radii: ArrayLike, from_zero: bool = False) -> NDArray[np.float64]:
    """From small to large; the smallest may be 0 where it only begins a range."""
    try:
        sizes = np.sort(np.asarray(radii, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"radii must be numbers > 0, got {radii!r}.") from None
    least = math.nextafter(0, 1) if not from_zero else 0.0
    if sizes.ndim != 1 or not sizes.size or not (np.isfinite(sizes).all() and sizes[0] >= least):
        raise ValueError("radii must be numbers > 0, at least one.")
    return sizes


def _path(
    models: list[LinearEstimator],
    test: tuple[MatrixLike, PerRow | None],
    held_out: bool,
    **more: Any,
) -> RadiusPath:
    coefs = np.array([m.coef_ for m in models])
    if is_classifier(models[0]) and len(models[0].classes_) == 2:
        coefs = coefs[:, 0]
    return RadiusPath(
        radii=np.array([m.radius for m in models]),
        coefs=coefs,
        intercepts=np.array([m.intercept_ for m in models]),
        values=np.array([m.value_ for m in models]),
        gaps=np.array([m.gap_ for m in models]),
        nonzeros=np.array([_nonzeros(m.coef_, m.radius) for m in models]),
        scores=np.array([m.score(*test) for m in models]),
        models=tuple(models),
        held_out=held_out,
        **more,
    )


def _estimator(estimator: SklearnObject, y: PerRow) -> LinearEstimator:
    """What was given, if its radius can change, or what fits the targets."""
    if estimator is None:
        return FrankWolfeClassifier() if looks_like_classes(y) else FrankWolfeRegressor()
    check_sized(estimator.constraint)
    return estimator


def _proven_path(
    X: MatrixLike,
    y: PerRow,
    eps: float,
    radii: ArrayLike | None,
    estimator: SklearnObject,
    weight: PerRow | None,
    X_test: MatrixLike,
    y_test: PerRow | None,
) -> RadiusPath:
    checks.real(eps, "eps", 0, above=True)
    low, high = 0.0, math.inf
    if radii is not None:
        low, high = _sizes(radii, from_zero=True)[[0, -1]]
    model = clone(_estimator(estimator, y))
    problem = model._problem(X, y, weight)
    knots, bound = approximate(problem, eps, low, high, Deadline(model.max_seconds))
    if not knots:
        raise ValueError(
            f"no radius from {low:g} to {high:g} needs a model for eps={eps:g}: coefficients of 0 "
            "are good enough, or a limit came first; lower eps, or raise the limits."
        )
    if knots[-1].upper < min(high, 10 * knots[-1].radius):
        warnings.warn(
            f"the path ends at radius {knots[-1].upper:g}: a limit came before the tolerance; "
            "raise max_epochs, max_seconds or eps.", ConvergenceWarning, stacklevel=3,
        )  # fmt: skip
    models = []
    for knot in knots:
        one = _copy(model).set_params(radius=knot.radius)
        one._keep_fitted(knot.fitted)
        models.append(one)
    return _path(
        models, (X, y) if X_test is None else (X_test, y_test), X_test is not None,
        uppers=np.array([knot.upper for knot in knots]), bound=bound,
    )  # fmt: skip


def matching_penalty(
    X: MatrixLike, y: PerRow, radius: float, *, loss: str = "logistic", **settings: Any
) -> float:
    """The C for which min ||x||_1 + C sum_i l_i(x) has the solution of ||x||_1 <= radius.

    C = 1 / (m ||g||_inf), g being the gradient of the mean loss at the constrained solution: where
    the constraint holds with equality, ||g||_inf is its multiplier. inf if the radius has no
    effect. This C is that of LogisticRegression and LinearSVC (loss="squared_hinge") with an l1
    penalty; Lasso's alpha is 1 / (2 m C) for loss="squared". `settings` as in the estimators.
    """
    checks.real(radius, "radius", 0, above=True)
    return _penalty(_fitted(X, y, radius, loss, settings, None), X, y, settings)


def matching_radius(
    X: MatrixLike,
    y: PerRow,
    C: float,
    *,
    loss: str = "logistic",
    rtol: float = 1e-6,
    **settings: Any,
) -> float:
    """The l1 norm of the solution of min ||x||_1 + C sum_i l_i(x), to a relative `rtol`.

    The inverse of `matching_penalty`, found by Brent's method on its logarithm; about 10 fits,
    each started from the last.
    """
    wanted = math.log(checks.real(C, "C", 0, above=True))
    checks.real(rtol, "rtol", 0, above=True)
    model = _fitted(X, y, 1.0, loss, settings, None)
    least = _penalty_at(0 * model.coef_.ravel(), model, X, y, settings)
    if wanted <= math.log(least):
        raise ValueError(
            f"C must be above {least:.6g}, below which every coefficient is 0, got {C:g}."
        )

    def excess(radius: float) -> float:
        nonlocal model
        model = _fitted(X, y, radius, loss, settings, model)
        if not model.coef_.any():  # so small that 0 is within the tolerance, as at 0 itself
            return below
        return math.log(_penalty(model, X, y, settings)) - wanted

    below = math.log(least) - wanted
    low, high, at_low = 0.0, 1.0, below
    while (above := excess(high)) < 0:
        low, high, at_low = high, 2 * high, above
        # On separable data the solution is at infinity, and every radius is too small.
        if high > 1e12:
            raise ValueError(f"C = {C:g} has no radius below 1e12: there is no finite solution.")
    if math.isinf(above):
        # Beyond the solution without constraint, whose norm is the largest radius there is.
        high = min(high, float(np.abs(model.coef_).sum()))
        above = excess(high)
        if above < 0:  # so weak a penalty is none
            return high
    from scipy.optimize import brentq

    ends = {low: at_low, high: above}  # known already; a fit with radius 0 there is not
    return float(
        brentq(
            # No logarithm of a float is beyond 1000, which inf must not stay: it has no chord.
            lambda radius: min(ends[radius] if radius in ends else excess(radius), 1e3),
            low, high, xtol=1e-300, rtol=max(rtol, 4 * float(np.finfo(float).eps)),
        )
    )  # fmt: skip


def _fitted(
    X: MatrixLike,
    y: PerRow,
    radius: float,
    loss: str,
    settings: dict[str, Any],
    before: LinearEstimator | None,
) -> LinearEstimator:
    kind = FrankWolfeRegressor if declared(loss).task == "regression" else FrankWolfeClassifier
    options = {"tol": 1e-9, **settings}
    weight = options.pop("sample_weight", None)
    model = before if before is not None else kind(loss, warm_start=True, **options)
    with warnings.catch_warnings():
        # Rounding may stop a fit just short of so small a gap, and any radius may be asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "the radius", UserWarning)
        model.set_params(constraint="l1", radius=radius).fit(X, y, sample_weight=weight)
    if is_classifier(model) and len(model.classes_) > 2:
        raise ValueError(f"y must have two classes, got {len(model.classes_)}.")
    return model


def _penalty(model: LinearEstimator, X: MatrixLike, y: PerRow, settings: dict[str, Any]) -> float:
    """1 / (sum of weights * multiplier), inf where the solution does not touch the boundary."""
    x = model.coef_.ravel()
    # Rounding, and the tolerance of the fit, leave a solution on the boundary a little inside.
    if np.abs(x).sum() < model.radius * (1 - 1e-6):
        return math.inf
    return _penalty_at(x, model, X, y, settings)


def _penalty_at(
    x: NDArray[Any], model: LinearEstimator, X: MatrixLike, y: PerRow, settings: dict[str, Any]
) -> float:
    X, checked = validate_data(model, X, y, accept_sparse="csr", reset=False)
    target = Targets.of_classes(checked).vectors[0] if is_classifier(model) else checked
    weight = settings.get("sample_weight")
    weight = None if weight is None else np.asarray(weight, dtype=float)
    f = Design(X, weight).risk(target, model.loss_, model.fit_intercept).f
    multiplier = float(np.abs(f.gradient(x.astype(f.dtype))).max())
    total = float(X.shape[0] if weight is None else weight.sum())
    return 1 / (total * multiplier) if multiplier > 0 else math.inf


def _nonzeros(coef: NDArray[Any], radius: float) -> int:
    return int(np.count_nonzero(np.abs(coef) > 1e-15 * radius))


def _copy(model: LinearEstimator) -> LinearEstimator:
    from copy import deepcopy

    return deepcopy(model)
