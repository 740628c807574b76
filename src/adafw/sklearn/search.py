"""Models whose radius is chosen by cross-validation."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv

from adafw import checks
from adafw.fitting import Deadline, LinearPredictor
from adafw.fitting.radii import Problem, Scores, check_sized, find_radii, score_radii
from adafw.sklearn.base import FrankWolfeBase, documented, weights_of
from adafw.sklearn.classifiers import FrankWolfeClassifier, LinearClassifier
from adafw.sklearn.path import RadiusPath, radius_path
from adafw.sklearn.regressors import FrankWolfeRegressor, LinearRegressor
from adafw.sklearn.typing import (
    AlgorithmLike,
    ClassWeight,
    LossLike,
    PerRow,
    RandomState,
    SetLike,
    SklearnObject,
)
from adafw.typing import MatrixLike

#: The part of max_seconds that the search may use; the rest is left to the last fit.
_SEARCH_SHARE = 0.7


class RadiusSearch(FrankWolfeBase):
    """What the two models with a chosen radius share."""

    radii: int | ArrayLike
    cv: SklearnObject
    scoring: SklearnObject
    rule: Literal["best", "one_se"]
    warm_start = False
    #: The model without a search.
    _plain: ClassVar[type[FrankWolfeBase]]

    def _search_and_fit(
        self, problem: Problem, sample_weight: PerRow | None, deadline: Deadline
    ) -> None:
        """Sets radius_ and what tells of the search, and fits to all data."""
        check_sized(self.constraint)
        if self.rule not in ("best", "one_se"):
            raise ValueError(f"rule must be 'best' or 'one_se', got {self.rule!r}.")
        radii = self._given_radii()
        part = Deadline(None if self.max_seconds is None else _SEARCH_SHARE * deadline.left)
        X, y = problem.X, problem.y
        problem.check_foldable()
        folds = list(check_cv(self.cv, y, classifier=problem.classes is not None).split(X, y))
        scorer = check_scoring(self._view(problem), scoring=self.scoring)
        # A scorer of the user need not take weights; those of scikit-learn do.
        weights = None if callable(self.scoring) else weights_of(sample_weight, X)

        def score(model: LinearPredictor, rows: NDArray[Any]) -> float:
            one = self._view(problem)
            one._set_coefficients(model.coef, model.intercept)
            extra = {} if weights is None else {"sample_weight": weights[rows]}
            return float(scorer(one, X[rows], y[rows], **extra))

        if radii is None:
            radii = find_radii(problem, cast(int, self.radii), part)
        found = score_radii(problem, radii, folds, score, part, problem.settings.jobs)
        best = found.choose(self.rule)
        self.radius_, self.radii_ = float(found.radii[best]), found.radii
        self.scores_, self.values_, self.gaps_ = found.scores, found.values, found.gaps
        self._warn_of(found)
        settings = replace(problem.settings, radius=self.radius_)
        self._fit_problem(replace(problem, settings=settings), deadline, callers=2)

    def without_search(self) -> FrankWolfeBase:
        """A plain model, not fitted, with the same settings and the radius chosen."""
        given = self.get_params(deep=False)
        known = self._plain().get_params()
        same = {key: value for key, value in given.items() if key in known}
        return self._plain(**same, radius=self.radius_)

    def _path_of_search(self, X: MatrixLike, y: PerRow) -> RadiusPath:
        with warnings.catch_warnings():  # the search has warned already
            warnings.simplefilter("ignore")
            return radius_path(X, y, radii=self.radii_, estimator=self.without_search())

    def _given_radii(self) -> NDArray[Any] | None:
        if isinstance(self.radii, int | np.integer) and not isinstance(self.radii, bool):
            checks.integer(self.radii, "radii", 1)
            return None
        sizes = np.unique(np.asarray(self.radii, dtype=float))
        if sizes.ndim != 1 or not sizes.size or not (np.isfinite(sizes).all() and sizes[0] > 0):
            raise ValueError("radii must be a number of radii, or numbers > 0, at least one.")
        return sizes

    def _view(self, problem: Problem) -> FrankWolfeBase:
        """A plain model that a scorer can ask."""
        view = self._plain(loss=self.loss)
        view.loss_ = problem.part()[1].plan(problem.settings, problem.X.shape[1]).loss
        view.n_features_in_ = problem.X.shape[1]
        view.coef_ = view.intercept_ = np.zeros(1)
        if problem.classes is not None:
            view.classes_ = problem.classes
        return view

    def _warn_of(self, found: Scores) -> None:
        missing = int(np.isnan(found.gaps).sum())
        if missing:
            warnings.warn(
                f"the time was up before {missing} of {found.gaps.size} fits of the search; their "
                "radii do not count.", ConvergenceWarning, stacklevel=4,
            )  # fmt: skip
        if found.unfinished:
            warnings.warn(
                f"{len(found.unfinished)} of {found.gaps.size} fits of the search: "
                f"{found.unfinished[0]}", ConvergenceWarning, stacklevel=4,
            )  # fmt: skip


@documented("classification")
class FrankWolfeClassifierCV(RadiusSearch, LinearClassifier):
    """`FrankWolfeClassifier` with its radius chosen by cross-validation.

    In each fold the models of all radii are fitted from small to large, each begun where the last
    ended and certified as ever; then one model of the chosen radius is fitted to all data.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    radius_, radii_ : the radius chosen, and all of them, ascending.
    scores_, values_, gaps_ : (radii, folds): score of the rows held out, objective and certified
        gap of the fit to the others, summed over the classes.
    coef_, intercept_, ... : as in `FrankWolfeClassifier`, of the model fitted to all data.
    """

    _plain = FrankWolfeClassifier

    def __init__(
        self,
        loss: LossLike = "logistic",
        *,
        radii: int | ArrayLike = 30,
        cv: SklearnObject = None,
        scoring: SklearnObject = None,
        rule: str = "best",
        constraint: SetLike = "l1",
        constraint_params: Mapping[str, object] | None = None,
        algorithm: AlgorithmLike = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        multi_class: str = "auto",
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
    ) -> "FrankWolfeClassifierCV":
        """Chooses the radius and fits to rows X (array or sparse) with labels y."""
        deadline = Deadline(self.max_seconds)
        self._search_and_fit(self._problem(X, y, sample_weight), sample_weight, deadline)
        return self


@documented("regression")
class FrankWolfeRegressorCV(RadiusSearch, LinearRegressor):
    """`FrankWolfeRegressor` with its radius chosen by cross-validation.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    radius_, radii_, scores_, values_, gaps_ : as in `FrankWolfeClassifierCV`.
    coef_, intercept_, ... : as in `FrankWolfeRegressor`, of the model fitted to all data.
    """

    _plain = FrankWolfeRegressor

    def __init__(
        self,
        loss: LossLike = "squared",
        *,
        radii: int | ArrayLike = 30,
        cv: SklearnObject = None,
        scoring: SklearnObject = None,
        rule: str = "best",
        delta: float = 1.0,
        constraint: SetLike = "l1",
        constraint_params: Mapping[str, object] | None = None,
        algorithm: AlgorithmLike = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
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
    ) -> "FrankWolfeRegressorCV":
        """Chooses the radius and fits to rows X (array or sparse) with targets y."""
        deadline = Deadline(self.max_seconds)
        self._search_and_fit(self._problem(X, y, sample_weight), sample_weight, deadline)
        return self
