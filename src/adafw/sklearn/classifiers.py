"""Linear classification under a constraint."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from adafw.fitting import Deadline, Design, Targets
from adafw.fitting.radii import Problem
from adafw.sklearn.base import FrankWolfeBase, declared, documented, weights_of
from adafw.sklearn.plain import are_labels
from adafw.sklearn.typing import AlgorithmLike, ClassWeight, LossLike, PerRow, RandomState, SetLike
from adafw.typing import MatrixLike


def _has_probabilities(model: "LinearClassifier") -> bool:
    if not declared(model.loss).has_probabilities:
        raise AttributeError(
            f"probabilities are known for loss='logistic' only, got loss={model.loss!r}."
        )
    return True


class LinearClassifier(ClassifierMixin, FrankWolfeBase):  # type: ignore[misc]
    """Labels and probabilities from coefficients, however these were found."""

    class_weight: ClassWeight
    classes_: NDArray[Any]

    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """<a, x> + b: (n_samples,) for two classes, else one column a class."""
        return self._predictor.decision(self._features(X))

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """The label of the largest score."""
        return self._predictor.predict(self._features(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Probabilities of the classes, softmax of the scores where these were fitted jointly.

        Those of more than two classes fitted one against the rest are normalised.
        """
        return self._predictor.predict_proba(self._features(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _set_coefficients(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        self.coef_, self.intercept_ = coef, intercept.astype(coef.dtype)

    def _problem(self, X: MatrixLike, y: PerRow, sample_weight: PerRow | None) -> Problem:
        settings = self._settings()
        settings.check("classification")
        X, y = self._validated(X, y)
        classes = np.unique(y) if y.dtype.kind != "O" else None
        if classes is None or not are_labels(y, classes):
            check_classification_targets(y)
        targets = Targets.of_classes(y, classes, joint=settings.joint)
        # One class only is refused first: sets of matrices have no meaning for it.
        weight = targets.weights(self.class_weight, weights_of(sample_weight, X), X.dtype)
        targets.plan(settings, X.shape[1])
        self.classes_ = np.asarray(targets.classes)
        return Problem(X, y, weight, settings, "classification", self.classes_, targets)


@documented("classification")
class FrankWolfeClassifier(LinearClassifier):
    """A linear classifier whose coefficients lie in a set, with a certificate of optimality.

    min over x in C and all b of the mean loss of <a_i, x> + b. The intercept b lies outside the
    set and is optimised exactly. With the logistic loss, more than two classes are one problem:
    min over X in C, a set of matrices, and all b of the mean of ln(sum_c exp(z_c)) - z_y, z = a X +
    b (`losses.Softmax`); with other losses they are fitted one against the rest.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    coef_, intercept_ : shape (1, n_features) and (1,) for two classes, else one row a class.
    gap_, value_, lower_bound_ : no coefficients in the set do better than value_ - gap_, nor
        than lower_bound_; arrays of one entry a class where classes are fitted one against the
        rest, one number of the joint problem where not. gap_ is the exact
        Frank-Wolfe gap, or value_ where that is smaller, since a loss is never below 0; it is
        value_ - lower_bound_ where that is smaller and rounding keeps the former above tol.
    violation_ : how far coef_ is outside the set, relative to its radius: rounding only.
    n_iter_, status_, trace_, algorithm_ : iterations, why the fit stopped, its records, and what
        was used.
    learning_rate_ : eta of Template 3: searched or given; 1 for Newton steps, the last step
        length for spectral ones, inf for plain Frank-Wolfe.
    loss_, classes_, n_features_in_, feature_names_in_ : the loss, and as in scikit-learn.
    """

    def __init__(
        self,
        loss: LossLike = "logistic",
        *,
        constraint: SetLike = "l1",
        radius: float = 100.0,
        constraint_params: Mapping[str, object] | None = None,
        algorithm: AlgorithmLike = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        multi_class: str = "auto",
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
    ) -> "FrankWolfeClassifier":
        """Fits to rows X (array or sparse) with labels y."""
        deadline = Deadline(self.max_seconds)
        before = getattr(self, "classes_", None)
        problem = self._problem(X, y, sample_weight)
        if self.warm_start and before is not None and not np.array_equal(before, self.classes_):
            del self.coef_  # rows of it belong to other classes
        self._fit_problem(problem, deadline)
        return self

    def partial_fit(
        self,
        X: MatrixLike,
        y: PerRow,
        classes: PerRow | None = None,
        sample_weight: PerRow | None = None,
    ) -> "FrankWolfeClassifier":
        """One pass over more rows of a stream, in minibatches; `classes` at the first call.

        The learning rate is searched on the rows of the first call. Nothing is certified: gap_ is
        nan.
        """
        settings = self._settings()
        settings.check("classification")
        first = not hasattr(self, "classes_")
        X, y = self._validated(X, y, reset=not hasattr(self, "n_features_in_"))
        check_classification_targets(y)
        if first:
            if classes is None:
                raise ValueError("classes must be given at the first call of partial_fit.")
            self.classes_ = np.unique(classes)
            if len(self.classes_) < 2:
                raise ValueError(f"classes must hold at least two classes, got {self.classes_}.")
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError("classes must be the same as at the first call of partial_fit.")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(f"y must hold labels among classes, got {unknown[0]!r}.")
        targets = Targets.of_classes(y, self.classes_, settings.joint)
        plan = targets.plan(settings, X.shape[1])
        weight = targets.class_weights(self.class_weight, weights_of(sample_weight, X), X.dtype)
        self._partial_fit_targets(Design(X, weight, finite=True, passing=True), targets, plan)
        return self
