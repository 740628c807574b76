"""What the classifier and the regressor share: settings, fitting, streaming, what is reported."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from adafw.fitting import Fit, Settings, constraint_named, fit_linear
from adafw.fitting.linear import no_effect
from adafw.losses import Loss
from adafw.sklearn.stream import Stream


class FrankWolfeBase(BaseEstimator):  # type: ignore[misc]
    """Settings and the fitted attributes that every model has."""

    loss: Any
    constraint: Any
    radius: float
    constraint_params: Mapping[str, Any] | None
    algorithm: Any
    learning_rate: Any
    fit_intercept: bool
    warm_start: bool
    tol: float
    max_epochs: float
    random_state: Any
    trace_: Any
    _stream: list[Stream] | None

    def _settings(self, loss: Loss) -> Settings:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept must be True or False, got {self.fit_intercept!r}.")
        return Settings(
            loss=loss,
            constraint=constraint_named(self.constraint, self.radius, self.constraint_params),
            algorithm=self.algorithm,
            learning_rate=self.learning_rate,
            fit_intercept=bool(self.fit_intercept),
            tol=self.tol,
            max_epochs=self.max_epochs,
            seed=int(seed),
        )

    def _validated(self, X: Any, y: Any, *, reset: bool = True, **checks: Any) -> tuple[Any, Any]:
        options = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], **checks}
        return validate_data(self, X, y, reset=reset, **options)

    def _fit_targets(
        self,
        X: Any,
        targets: list[NDArray[Any]],
        weights: list[NDArray[Any] | None],
        settings: Settings,
    ) -> None:
        """One linear fit for each target vector, and the attributes that tell of them."""
        previous = getattr(self, "coef_", None) if self.warm_start else None
        starts = [None] * len(targets)
        if previous is not None and np.shape(previous)[-1] == X.shape[1]:
            rows = np.atleast_2d(previous)
            starts = list(rows) if len(rows) == len(targets) else starts
        fits = []
        for y, w, start in zip(targets, weights, starts, strict=True):
            fits.append(fit_linear(X, y, settings, sample_weight=w, start=start))
            if fits[-1].status == "interrupted":  # searches and pipelines must stop, too
                raise KeyboardInterrupt
        self.loss_ = settings.loss
        self._report(fits)
        _warn(fits, settings)

    def _report(self, fits: list[Fit]) -> None:
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
        self._set_coefficients(
            np.array([fit.coef for fit in fits]), np.array([fit.intercept for fit in fits])
        )

    def _set_coefficients(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        raise NotImplementedError

    def _partial_fit_targets(
        self,
        X: Any,
        targets: list[NDArray[Any]],
        weights: list[NDArray[Any] | None],
        settings: Settings,
    ) -> None:
        """One pass over the rows given, from where the last call ended."""
        streams = getattr(self, "_stream", None)
        if streams is None:
            previous = getattr(self, "coef_", None)
            starts = [(None, 0.0)] * len(targets)
            if previous is not None:
                starts = list(
                    zip(np.atleast_2d(previous), np.atleast_1d(self.intercept_), strict=True)
                )
            streams = [
                Stream.begin(X, y, w, settings, coef, float(b))
                for y, w, (coef, b) in zip(targets, weights, starts, strict=True)
            ]
        streams = [
            stream.advance(X, y, w, settings)
            for stream, y, w in zip(streams, targets, weights, strict=True)
        ]
        self._stream, self.loss_ = streams, settings.loss
        self.learning_rate_ = streams[0].learning_rate
        self.n_iter_ = streams[0].t
        # What was seen before is gone: no gap can be measured, and none is claimed.
        self.gap_ = self.value_ = self.lower_bound_ = float("nan")
        self.violation_ = max(settings.constraint.violation(s.coef) for s in streams)
        self.status_, self.algorithm_, self.trace_ = (
            "streaming",
            str(streams[0].algorithm),
            None,
        )
        self._set_coefficients(
            np.array([s.coef for s in streams]), np.array([s.intercept for s in streams])
        )

    def _predictions(self, X: Any) -> NDArray[Any]:
        """<a, x> + b for every row, one column a coefficient vector."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        coef = np.atleast_2d(self.coef_)
        return np.asarray(X @ coef.T) + np.atleast_1d(self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def weights_of(sample_weight: Any, X: Any) -> NDArray[Any] | None:
    """Checked sample weights, None if there are none."""
    if sample_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, X, dtype=X.dtype, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must not be 0 in every entry.")
    return np.asarray(weight)


def _warn(fits: list[Fit], settings: Settings) -> None:
    """A fit that stopped early says how far it got; a radius that nothing feels is named."""
    unfinished = [fit for fit in fits if fit.status != "converged"]
    if unfinished:
        worst = max(unfinished, key=lambda fit: fit.tolerance_reached)
        reason = {
            "stalled": "rounding allows no more progress",
            "max_epochs": f"max_epochs={settings.max_epochs:g} is used up",
        }.get(worst.status, worst.status.replace("_", " "))
        warnings.warn(
            f"the fit stopped before its tolerance ({reason}): gap {worst.gap:.3g} is "
            f"{worst.tolerance_reached:.3g} of the value {worst.value:.6g}, tol={settings.tol:g} "
            "was asked for; raise max_epochs or tol, standardise the features, or lower the "
            "radius.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if not any(fit.radius_matters for fit in fits):
        warnings.warn(no_effect(settings.constraint.scale), UserWarning, stacklevel=4)
