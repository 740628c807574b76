"""Linear classification under a constraint."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from adafw.fitting import loss_named
from adafw.fitting.linear import one_against_rest
from adafw.fitting.names import CLASSIFICATION, declared
from adafw.fitting.predictions import winners
from adafw.sklearn.base import FrankWolfeBase, weights_of


def _has_probabilities(model: "FrankWolfeClassifier") -> bool:
    if not declared(model.loss).has_probabilities:
        raise AttributeError(
            f"probabilities are known for loss='logistic' only, got loss={model.loss!r}."
        )
    return True


class FrankWolfeClassifier(ClassifierMixin, FrankWolfeBase):  # type: ignore[misc]
    """A linear classifier whose coefficients lie in a set, with a certificate of optimality.

    min over x in C and all b of the mean loss of <a_i, x> + b. The intercept b lies outside the
    set and is optimised exactly. Several classes are fitted one against the rest.

    Parameters
    ----------
    loss : "logistic", "squared_hinge" or "smoothed_hinge".
    constraint : a set of `adafw`, or the name of one of size `radius`: "l1" (few features),
        "l2", "linf" (bounded coefficients), "simplex" (weights >= 0 of sum radius),
        "unit_simplex" (sum <= radius), "ksparse", "group", "lp", "nuclear", "spectral".
    radius : size of the set (tau); no effect where constraint is a set itself.
    constraint_params : what a named set needs besides: {"k": 10} for "ksparse" (10 if left
        out), {"groups": labels} for "group", {"p": 1.5} for "lp", {"shape": (rows, columns)}
        for "nuclear" and "spectral".
    algorithm : "auto", the name of a preset such as "AdaCSFW", or an `adafw.Algorithm`. "auto":
        Newton steps over the set up to 500 features; else, up to 5e7 stored entries, spectral
        projected gradients where the set has a projection and Frank-Wolfe with line search where
        not; above that, AdaGrad with CSFW's gradients, or CSFW where there is no projection.
    learning_rate : eta, for algorithms that have one; "auto" searches half decades on a sample
        of 10 000 rows (section 3.6 of the paper).
    fit_intercept : whether there is a b.
    class_weight : None, "balanced" or {class: weight}.
    warm_start : start from the coefficients of the last fit.
    tol : stop when gap <= tol * max(|value|, 1e-12).
    max_epochs : stop after so many passes over the data.
    random_state : seed of the batches.

    Attributes
    ----------
    coef_, intercept_ : shape (1, n_features) and (1,) for two classes, else one row a class.
    gap_, value_, lower_bound_ : no coefficients in the set do better than value_ - gap_, nor
        than lower_bound_; arrays of one entry a class for more than two. gap_ is the exact
        Frank-Wolfe gap, or value_ where that is smaller, since a loss is never below 0; it is
        value_ - lower_bound_ where that is smaller and rounding keeps the former above tol.
    violation_ : how far coef_ is outside the set, relative to its radius: rounding only.
    n_iter_, status_, trace_, algorithm_ : iterations, why the fit stopped, its records, and what
        was used.
    learning_rate_ : eta of Template 3: searched or given; 1 for Newton steps, the last step
        length for spectral ones, inf for plain Frank-Wolfe.
    classes_, n_features_in_, feature_names_in_ : as in scikit-learn.
    """

    def __init__(
        self,
        loss: str = "logistic",
        *,
        constraint: Any = "l1",
        radius: float = 100.0,
        constraint_params: Mapping[str, Any] | None = None,
        algorithm: Any = "auto",
        learning_rate: Any = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        warm_start: bool = False,
        tol: float = 1e-4,
        max_epochs: float = 1000,
        random_state: Any = 0,
    ) -> None:
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.constraint_params = constraint_params
        self.algorithm = algorithm
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.tol = tol
        self.max_epochs = max_epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "FrankWolfeClassifier":
        """Fits to rows X (array or sparse) with labels y."""
        settings = self._settings(loss_named(self.loss, CLASSIFICATION))
        X, y = self._validated(X, y)
        check_classification_targets(y)
        classes, labels = np.unique(y, return_inverse=True)
        weight = self._weights(X, y, classes, labels, weights_of(sample_weight, X))
        present = classes if weight is None else np.unique(y[weight > 0])
        if len(present) < 2:
            raise ValueError(
                "a classifier needs samples of at least two classes with positive weight, got "
                f"{len(present)} class: {present[0] if len(present) else 'none'}."
            )
        if self.warm_start and not np.array_equal(getattr(self, "classes_", classes), classes):
            del self.coef_  # rows of it belong to other classes
        self.classes_ = classes
        targets = one_against_rest(labels, range(len(classes)))
        self._fit_targets(X, targets, [weight] * len(targets), settings)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> "FrankWolfeClassifier":
        """One pass over more rows of a stream, in minibatches; `classes` at the first call.

        The learning rate is searched on the rows of the first call. Nothing is certified: gap_ is
        nan.
        """
        settings = self._settings(loss_named(self.loss, CLASSIFICATION))
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
        labels = np.searchsorted(self.classes_, y)
        weight = self._weights(X, y, self.classes_, labels, weights_of(sample_weight, X))
        targets = one_against_rest(labels, range(len(self.classes_)))
        self._partial_fit_targets(X, targets, [weight] * len(targets), settings)
        return self

    def decision_function(self, X: Any) -> NDArray[Any]:
        """<a, x> + b: (n_samples,) for two classes, else one column a class."""
        scores = self._predictions(X)
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the largest score."""
        check_is_fitted(self)
        return self.classes_[winners(self.decision_function(X))]

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Probabilities of the classes; for more than two, normalised one against the rest."""
        check_is_fitted(self)
        return self.loss_.probabilities(self.decision_function(X))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[Any]:
        """Logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _set_coefficients(self, coef: NDArray[Any], intercept: NDArray[Any]) -> None:
        self.coef_, self.intercept_ = coef, intercept.astype(coef.dtype)

    def _weights(
        self,
        X: Any,
        y: NDArray[Any],
        classes: NDArray[Any],
        labels: NDArray[Any],
        weight: NDArray[Any] | None,
    ) -> NDArray[Any] | None:
        """Sample weights times class weights."""
        if self.class_weight is None:
            return weight
        if self.class_weight == "balanced":
            count = np.bincount(labels, weight, minlength=len(classes))
            total = count.sum()
            of_class = np.divide(
                total, (count > 0).sum() * count, out=np.zeros(len(classes)), where=count > 0
            )
        else:
            of_class = compute_class_weight(self.class_weight, classes=classes, y=y)
        ones = np.ones(X.shape[0]) if weight is None else weight
        return (ones * of_class[labels]).astype(X.dtype)
