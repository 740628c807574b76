"""Linear regression under a constraint."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from adafw.fitting import Deadline, Design, Targets
from adafw.sklearn.base import FrankWolfeBase, declared, documented, weights_of


@documented("regression")
class FrankWolfeRegressor(RegressorMixin, FrankWolfeBase):  # type: ignore[misc]
    """A linear regression whose coefficients lie in a set, with a certificate of optimality.

    min over x in C and all b of the mean loss of <a_i, x> + b. The intercept b lies outside the
    set: data are centred for the squared loss, and b is optimised exactly for the others.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, intercept_ : shape (n_features,), and a number.
    gap_, value_, lower_bound_, violation_, n_iter_, status_, trace_, algorithm_, learning_rate_,
    loss_, n_features_in_, feature_names_in_ : as in `FrankWolfeClassifier`.
    """

    delta: float

    def __init__(
        self,
        loss: Any = "squared",
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
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = 0,
    ) -> None:
        self._keep(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FrankWolfeRegressor":
        """Fits to rows X (array or sparse) with targets y."""
        plan = self._settings().plan("regression")
        deadline = Deadline(self.max_seconds)
        X, y = self._validated(X, y, y_numeric=True)
        design = Design(X, weights_of(sample_weight, X), finite=True)
        self._fit_targets(design, Targets.of_numbers(y, X.dtype), plan, deadline)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FrankWolfeRegressor":
        """One pass over more rows of a stream, in minibatches; nothing is certified."""
        plan = self._settings().plan("regression")
        X, y = self._validated(X, y, y_numeric=True, reset=not hasattr(self, "n_features_in_"))
        design = Design(X, weights_of(sample_weight, X), finite=True)
        self._partial_fit_targets(design, Targets.of_numbers(y, X.dtype), plan)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The mean of the target at <a, x> + b: its exponential for loss="poisson", else itself."""
        return self._predictor.predict(self._features(X))

    def _set_coefficients(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        self.coef_, self.intercept_ = coef[0], coef.dtype.type(intercept[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = declared(self.loss).least_target >= 0
        return tags
