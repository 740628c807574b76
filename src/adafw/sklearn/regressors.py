"""Linear regression under a constraint."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from adafw.fitting import loss_named
from adafw.fitting.names import REGRESSION, declared
from adafw.losses import Loss
from adafw.sklearn.base import FrankWolfeBase, weights_of


class FrankWolfeRegressor(RegressorMixin, FrankWolfeBase):  # type: ignore[misc]
    """A linear regression whose coefficients lie in a set, with a certificate of optimality.

    min over x in C and all b of the mean loss of <a_i, x> + b. The intercept b lies outside the
    set: data are centred for the squared loss, and b is optimised exactly for the others.

    Parameters
    ----------
    loss : "squared"; "huber", quadratic up to |residual| = delta and linear beyond; "poisson",
        for counts of mean exp(<a, x> + b), which is then what `predict` returns.
    delta : of the Huber loss.
    constraint, radius, constraint_params, algorithm, learning_rate, fit_intercept, warm_start,
    tol, max_epochs, random_state : as in `FrankWolfeClassifier`.

    Attributes
    ----------
    coef_, intercept_ : shape (n_features,), and a number.
    gap_, value_, lower_bound_, violation_, n_iter_, status_, trace_, algorithm_, learning_rate_,
    n_features_in_, feature_names_in_ : as in `FrankWolfeClassifier`.
    """

    def __init__(
        self,
        loss: str = "squared",
        *,
        delta: float = 1.0,
        constraint: Any = "l1",
        radius: float = 100.0,
        constraint_params: Mapping[str, Any] | None = None,
        algorithm: Any = "auto",
        learning_rate: Any = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_epochs: float = 1000,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.delta = delta
        self.constraint = constraint
        self.radius = radius
        self.constraint_params = constraint_params
        self.algorithm = algorithm
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.tol = tol
        self.max_epochs = max_epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FrankWolfeRegressor":
        """Fits to rows X (array or sparse) with targets y."""
        settings = self._settings(self._loss())
        X, y = self._validated(X, y, y_numeric=True)
        weight = weights_of(sample_weight, X)
        self._fit_targets(X, [y.astype(X.dtype, copy=False)], [weight], settings)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FrankWolfeRegressor":
        """One pass over more rows of a stream, in minibatches; nothing is certified."""
        settings = self._settings(self._loss())
        X, y = self._validated(X, y, y_numeric=True, reset=not hasattr(self, "n_features_in_"))
        weight = weights_of(sample_weight, X)
        self._partial_fit_targets(X, [y.astype(X.dtype, copy=False)], [weight], settings)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The mean of the target: <a, x> + b, or its exponential for the Poisson loss."""
        z = self._predictions(X).ravel()
        return self.loss_.mean(z)

    def _loss(self) -> Loss:
        options = {"delta": self.delta} if self.loss == "huber" else {}
        return loss_named(self.loss, REGRESSION, **options)

    def _set_coefficients(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        self.coef_, self.intercept_ = coef[0], coef.dtype.type(intercept[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = declared(self.loss).least_target >= 0
        return tags
