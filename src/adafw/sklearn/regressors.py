"""Linear regression under a constraint."""

from collections.abc import Mapping
from typing import Any, Literal

from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import column_or_1d

from adafw.fitting import Deadline, Design, Targets
from adafw.fitting.radii import Problem
from adafw.losses import Outputs
from adafw.sklearn.base import FrankWolfeBase, declared, documented, weights_of
from adafw.sklearn.typing import (
    AlgorithmLike,
    LossLike,
    PerRow,
    RandomState,
    SetLike,
    SklearnObject,
)
from adafw.typing import MatrixLike


class LinearRegressor(RegressorMixin, FrankWolfeBase):  # type: ignore[misc]
    """Means from coefficients, however these were found."""

    delta: float

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """The mean of the target at <a, x> + b: its exponential for loss="poisson", else itself."""
        found = self._predictor.predict(self._features(X))
        return found.reshape(len(found), -1) if self.coef_.ndim == 2 else found

    def _set_coefficients(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        if isinstance(self.loss_, Outputs):
            self.coef_, self.intercept_ = coef, intercept.astype(coef.dtype)
        else:
            self.coef_, self.intercept_ = coef[0], coef.dtype.type(intercept[0])

    def _problem(self, X: MatrixLike, y: PerRow, sample_weight: PerRow | None) -> Problem:
        settings = self._settings()
        settings.check("regression")
        X, y = self._validated(X, y, y_numeric=True, multi_output=True)
        if not self.__sklearn_tags__().target_tags.multi_output and y.ndim == 2:
            y = column_or_1d(y, warn=True) if y.shape[1] == 1 else y
        Targets.of_numbers(y, X.dtype).plan(settings, X.shape[1])
        return Problem(X, y, weights_of(sample_weight, X), settings, "regression")

    def __sklearn_tags__(self) -> SklearnObject:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = declared(self.loss).least_target >= 0
        # scikit-learn's checks of several targets know none that must be positive.
        tags.target_tags.multi_output = not tags.target_tags.positive_only
        return tags


@documented("regression")
class FrankWolfeRegressor(LinearRegressor):
    """A linear regression whose coefficients lie in a set, with a certificate of optimality.

    min over x in C and all b of the mean loss of <a_i, x> + b. The intercept b lies outside the
    set: data are centred for the squared loss, and b is optimised exactly for the others. Several
    targets (a y of two dimensions) are one problem: min over X in C, a set of matrices, and all b
    of the mean over samples of the sum of the losses: joint sparsity with "group", reduced rank
    with "nuclear".

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, intercept_ : shape (n_features,), and a number; for a y of two dimensions (n_targets,
        n_features) and (n_targets,).
    gap_, value_, lower_bound_, violation_, n_iter_, status_, trace_, algorithm_, learning_rate_,
    loss_, n_features_in_, feature_names_in_ : as in `FrankWolfeClassifier`.
    """

    def __init__(
        self,
        loss: LossLike = "squared",
        *,
        delta: float = 1.0,
        constraint: SetLike = "l1",
        radius: float = 100.0,
        constraint_params: Mapping[str, object] | None = None,
        algorithm: AlgorithmLike = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_epochs: float = 1000,
        max_seconds: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: RandomState = 0,
    ) -> None:
        self._keep(locals())

    def fit(
        self, X: MatrixLike, y: PerRow, sample_weight: PerRow | None = None
    ) -> "FrankWolfeRegressor":
        """Fits to rows X (array or sparse) with targets y."""
        deadline = Deadline(self.max_seconds)
        self._fit_problem(self._problem(X, y, sample_weight), deadline)
        return self

    def partial_fit(
        self, X: MatrixLike, y: PerRow, sample_weight: PerRow | None = None
    ) -> "FrankWolfeRegressor":
        """One pass over more rows of a stream, in minibatches; nothing is certified."""
        settings = self._settings()
        settings.check("regression")
        first = not hasattr(self, "n_features_in_")
        X, y = self._validated(X, y, y_numeric=True, multi_output=True, reset=first)
        design = Design(X, weights_of(sample_weight, X), finite=True, passing=True)
        targets = Targets.of_numbers(y, X.dtype)
        self._partial_fit_targets(design, targets, targets.plan(settings, X.shape[1]))
        return self
