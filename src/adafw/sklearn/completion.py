"""Matrix completion: ratings, and other tables of which some entries were observed."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

from adafw import checks
from adafw.fitting import Deadline
from adafw.fitting.completion import (
    DENSE,
    Offsets,
    fit_offsets,
    smallest_radius,
)
from adafw.fitting.weighting import NORMS, Map, Weighted, by_frequency, solve, walk
from adafw.losses import Loss
from adafw.names import LOSSES
from adafw.rows import stored_entries
from adafw.sklearn.base import warn_unfinished
from adafw.sklearn.typing import PerRow, RandomState, SklearnObject
from adafw.steps.corrective.observed import Observed
from adafw.typing import MatrixLike

#: Losses of observed entries.
_LOSSES = ("squared", "huber", "logistic")
#: Radii of a search grow by this factor until so many in a row have not bettered the best score.
_GROWTH, _WORSE, _MOST = 1.5, 1, 60
#: A fold that is held out is this part of all, at most.
_PARTS = 10
#: The share of the objective that the first radius of a search can gain at most.
_LEAST_GAIN = 0.05
#: The part of max_seconds that the search may use.
_SEARCH_SHARE = 0.8


@dataclass(frozen=True)
class _Entries:
    """Row and column numbers and values, in the order of the rows; targets as the loss takes."""

    rows: NDArray[Any]
    cols: NDArray[Any]
    y: NDArray[Any]

    def part(self, chosen: NDArray[Any]) -> "_Entries":
        """Some of them, in the same order."""
        chosen = np.sort(chosen)
        return _Entries(self.rows[chosen], self.cols[chosen], self.y[chosen])


class MatrixCompletion(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A low-rank matrix from some of its entries, with a certificate of optimality.

    min over X in a ball of the nuclear norm, or of a weighted one, of the mean over the observed
    entries of l(X[r, c] + o_rc, v). The offsets o_rc = mean + row_r + col_c are found first, by the
    same loss without X. X exists as two factors only: memory grows with the observations, and with
    rows + columns times the rank.

    Parameters
    ----------
    radius : bound on the norm of X; "cv" chooses it by cross-validation.
    norm : "nuclear", the sum of the singular values; "frequency", of rows and columns weighted by
        how often they were seen; "adaptive", weighted a second time by that solution, so that what
        is large is shrunk less, which mostly predicts best. See `adafw.fitting.weighting` for
        formulas.
    loss : "squared"; "huber", which outliers do not bend; "logistic" for values of two kinds.
    delta : of the Huber loss: where the parabola ends.
    offsets : whether there are a mean and row and column offsets; without, all are 0.
    shape : (rows, columns) of the matrix; None takes the largest numbers that occur.
    cv : folds of radius="cv" that are held out in turn, each a tenth of the entries (or 1 / cv).
    tol : stop when gap <= tol * max(|objective|, 1e-12).
    max_iter, max_seconds : iterations of a fit, and seconds of the whole, at most.
    random_state : seed of the folds.

    Attributes
    ----------
    left_, right_ : X = left_ @ right_, of shapes (rows, rank_) and (rank_, columns).
    mean_, row_offsets_, col_offsets_ : the offsets.
    gap_, value_, lower_bound_ : no X in the ball does better than value_ - gap_, for these offsets
        and, of "adaptive", these weights. gap_ is the exact Frank-Wolfe gap: proven up to 10^7
        entries, above that with a probability of failure of 1e-12.
    radius_, radii_, scores_ : the radius, and with "cv" those tried and their mean held-out losses.
    rank_, n_iter_, status_ : the number of singular values, iterations, and why the fit stopped.
    norm_, row_map_, col_map_ : the norm, and the matrices A and B (`toarray()`) of a weighted one:
        the ball holds A Y B^T for all Y of nuclear norm <= radius_; None where they are identities.
    row_labels_, col_labels_ : labels of rows and columns, where a frame has them; else None.
    """

    shape_: tuple[int, int]
    radii_: NDArray[Any] | None
    scores_: NDArray[Any] | None
    row_map_: Map | None
    col_map_: Map | None
    row_labels_: NDArray[Any] | None
    col_labels_: NDArray[Any] | None

    def __init__(
        self, radius: float | str = "cv", *, norm: str = "nuclear", loss: str = "squared",
        delta: float = 1.0, offsets: bool = True, shape: tuple[int, int] | None = None, cv: int = 3,
        tol: float = 1e-3, max_iter: int = 200, max_seconds: float | None = None,
        random_state: RandomState = 0,
    ) -> None:  # fmt: skip
        self.radius, self.norm, self.loss, self.delta = radius, norm, loss, delta
        self.offsets = offsets
        self.shape, self.cv, self.tol, self.max_iter = shape, cv, tol, max_iter
        self.max_seconds, self.random_state = max_seconds, random_state

    def fit(self, X: MatrixLike, y: PerRow | None = None) -> "MatrixCompletion":
        """Fits to observed entries.

        X holds pairs (row, column) with the values in y: an integer array, or a data frame of two
        columns of any labels. Without y, X is a sparse matrix whose stored entries were observed,
        or a data frame (or an array) of three columns: row, column, value.
        """
        loss, deadline = self._checked(), Deadline(self.max_seconds)
        entries = self._entries(X, y)
        if isinstance(self.radius, str):
            part = Deadline(None if self.max_seconds is None else _SEARCH_SHARE * deadline.left)
            self._search(entries, loss, part)
        else:
            self.radius_ = checks.real(self.radius, "radius", 0, above=True)
            self.radii_ = self.scores_ = None
        seen, offsets = self._seen(entries, loss)
        how = (self.norm, self.radius_, self.tol, deadline, self.max_iter)
        weighted, _ = solve(seen, *how)
        self._keep(weighted, offsets, loss)
        found = weighted.found
        if found.status != "converged":
            warn_unfinished(
                f"the completion stopped before its tolerance ({found.status}): gap "
                f"{found.gap:.3g} of the value {found.value:.6g}, tol={self.tol:g} was asked for; "
                "raise max_iter, max_seconds or tol, or lower the radius."
            )
        return self

    def decision_function(self, X: MatrixLike) -> NDArray[Any]:
        """X[r, c] + offsets for pairs (row, column); unknown rows or columns add nothing."""
        check_is_fitted(self)
        rows, cols = self._known(X)
        inside = (rows >= 0) & (cols >= 0)
        scores = self._offsets.at(rows, cols)
        scores[inside] += np.einsum(
            "ij,ij->i", self.left_[rows[inside]], self.right_.T[cols[inside]]
        )
        return np.asarray(scores)

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Values for pairs (row, column); for loss="logistic" the probability of the larger one."""
        scores = self.decision_function(X)
        if not self.loss_.has_probabilities:
            return scores
        return np.asarray(self.loss_.probabilities(scores)[:, 1])

    def to_array(self) -> NDArray[Any]:
        """X plus offsets, written out, for matrices of at most 10^7 entries."""
        check_is_fitted(self)
        m, n = self.left_.shape[0], self.right_.shape[1]
        if m * n > DENSE:
            raise ValueError(
                f"a matrix must have at most {DENSE} entries to be written out, got {m} x {n}; "
                "predict the pairs that are needed."
            )
        base = self.mean_ + self.row_offsets_[:, None] + self.col_offsets_
        return np.asarray(self.left_ @ self.right_ + base)

    def _checked(self) -> Loss:
        """The loss; bad parameters are refused before the data are looked at."""
        if self.loss not in _LOSSES:
            raise ValueError(f"loss must be one of {', '.join(_LOSSES)}, got {self.loss!r}.")
        if self.norm not in NORMS:
            raise ValueError(f"norm must be one of {', '.join(NORMS)}, got {self.norm!r}.")
        if isinstance(self.radius, str):
            if self.radius != "cv":
                raise ValueError(f"radius must be a number > 0 or 'cv', got {self.radius!r}.")
        else:
            checks.real(self.radius, "radius", 0, above=True)
        if not isinstance(self.offsets, bool | np.bool_):
            raise ValueError(f"offsets must be True or False, got {self.offsets!r}.")
        checks.real(self.tol, "tol", 0)
        if self.max_seconds is not None:
            checks.real(self.max_seconds, "max_seconds", 0, above=True)
        checks.integer(self.max_iter, "max_iter", 1)
        checks.integer(self.cv, "cv", 2)
        entry = LOSSES.find(self.loss)
        return entry.make(self.delta) if entry.parameters else entry.make()

    def _entries(self, X: MatrixLike, y: PerRow | None) -> _Entries:
        """Checked, sorted by rows; sets shape_, labels, and the two values of a logistic loss."""
        rows, cols, values = self._triples(X, y)
        self.values_ = None
        if self.loss == "logistic":
            self.values_ = np.unique(values)
            if len(self.values_) != 2:
                raise ValueError(
                    f"loss='logistic' needs values of two kinds, got {len(self.values_)}."
                )
            values = np.where(values == self.values_[1], 1.0, -1.0)
        if not np.isfinite(values).all():
            raise ValueError("values must be finite, got NaN or infinity.")
        if not values.size:
            raise ValueError("there must be at least one observed entry, got none.")
        least = self._least_shape
        found = (max(least[0], int(rows.max()) + 1), max(least[1], int(cols.max()) + 1))
        if self.row_labels_ is not None and self.col_labels_ is not None:
            found = (len(self.row_labels_), len(self.col_labels_))
        asked: tuple[int, ...] = found if self.shape is None else tuple(np.atleast_1d(self.shape))
        if len(asked) != 2 or found[0] > asked[0] or found[1] > asked[1]:
            raise ValueError(f"shape must be a pair of at least {found}, got {self.shape}.")
        self.shape_ = (int(asked[0]), int(asked[1]))
        if (rows[1:] < rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            rows, cols, values = rows[order], cols[order], values[order]
        kind = np.int32 if max(self.shape_) < 2**31 else np.int64
        return _Entries(rows.astype(kind), cols.astype(kind), values.astype(np.float64))

    def _triples(
        self, X: MatrixLike, y: PerRow | None
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        self.row_labels_ = self.col_labels_ = None
        self._least_shape = (0, 0)
        stored = stored_entries(X)
        if stored is not None:
            if y is not None:
                raise ValueError("y must be None where X is a sparse matrix of observed entries.")
            self._least_shape = X.shape
            return stored
        columns = _columns(X)
        if len(columns) != (3 if y is None else 2):
            raise ValueError(
                "X must have the columns row and column, with the values in y, or row, column and "
                f"value without y, got {len(columns)} columns{'' if y is None else ' and y'}."
            )
        values = np.asarray(columns[2] if y is None else y)
        if values.dtype.kind not in "biuf" or values.shape != columns[0].shape:
            raise ValueError(
                f"values must be numbers, one a pair, got {values.dtype} of shape {values.shape} "
                f"for {len(columns[0])} pairs."
            )
        if _is_frame(X):
            self.row_labels_, rows = _labels(columns[0], "rows")
            self.col_labels_, cols = _labels(columns[1], "columns")
        else:
            rows, cols = _numbers(columns[0]), _numbers(columns[1])
        return rows, cols, values.astype(float)

    def _known(self, X: MatrixLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numbers of rows and columns to predict; -1 for those that were never seen."""
        stored = stored_entries(X)
        columns = _columns(X) if stored is None else list(stored)
        if len(columns) < 2:
            raise ValueError(f"X must hold pairs (row, column), got {len(columns)} columns.")
        found = []
        labels_of = (self.row_labels_, self.col_labels_)
        for column, labels, size in zip(columns, labels_of, self.shape_, strict=False):
            if labels is None:
                numbers = _numbers(column)
                found.append(np.where(numbers < size, numbers, -1))
            else:
                found.append(_places(labels, column))
        return found[0], found[1]

    def _seen(self, entries: _Entries, loss: Loss) -> tuple[Observed, Offsets]:
        m, n = self.shape_
        offsets = Offsets(0.0, np.zeros(m), np.zeros(n))
        if self.offsets:
            offsets = fit_offsets(entries.rows, entries.cols, self.shape_, entries.y, loss)
        base = offsets.at(entries.rows, entries.cols)
        seen = Observed(entries.rows, entries.cols, self.shape_, entries.y, base, loss)
        return seen, offsets

    def _search(self, entries: _Entries, loss: Loss, deadline: Deadline) -> None:
        """Sets radius_: the best mean held-out loss along radii that grow until it rises."""
        # Folds of a tenth: with much less to learn from, smaller radii than of the whole are best.
        parts = min(max(self.cv, _PARTS), len(entries.y))
        if parts < self.cv:
            raise ValueError(f"cv must be at most the number of entries, {parts}, got {self.cv}.")
        folds = KFold(parts, shuffle=True, random_state=self.random_state).split(entries.y)
        chosen = itertools.islice(folds, self.cv)
        splits = [(entries.part(a), entries.part(b)) for a, b in chosen]
        paths = []
        everything = self._seen(entries, loss)[0]
        plain = self.norm == "nuclear"
        first = smallest_radius(everything if plain else by_frequency(everything), _LEAST_GAIN)
        radii = [first * _GROWTH**k for k in range(_MOST)]
        for train, test in splits:
            seen, offsets = self._seen(train, loss)
            steps = walk(seen, self.norm, radii, max(self.tol, 1e-2), deadline, self.max_iter)
            paths.append((steps, test, offsets.at(test.rows, test.cols)))
        means: list[float] = []
        for _ in radii:
            now = [
                _held_out(next(steps, None), test, base, loss, self.shape_)
                for steps, test, base in paths
            ]
            if not np.isfinite(now).all():
                break
            means.append(float(np.mean(now)))
            if len(means) - 1 - int(np.argmin(means)) >= _WORSE:
                break
        if not means:
            raise ValueError("no radius could be tried in the time; raise max_seconds.")
        self.radii_, self.scores_ = np.array(radii[: len(means)]), np.array(means)
        self.radius_ = float(radii[int(np.argmin(means))])

    def _keep(self, weighted: Weighted, offsets: Offsets, loss: Loss) -> None:
        found = weighted.found
        self.norm_, self.row_map_, self.col_map_ = self.norm, weighted.rows, weighted.cols
        self.left_, self.right_ = found.left, np.ascontiguousarray(found.right.T)
        self._offsets, self.loss_ = offsets, loss
        self.mean_, self.row_offsets_ = offsets.mean, offsets.rows
        self.col_offsets_ = offsets.cols
        self.value_, self.gap_, self.lower_bound_ = found.value, found.gap, found.lower_bound
        self.rank_, self.n_iter_, self.status_ = found.left.shape[1], found.n_iter, found.status

    def __sklearn_tags__(self) -> SklearnObject:
        tags = super().__sklearn_tags__()
        # Its X are places in a matrix: the common checks, on features, mean nothing to it.
        tags._skip_test = True
        return tags


def _held_out(
    weighted: Weighted | None,
    test: _Entries,
    base: NDArray[Any],
    loss: Loss,
    shape: tuple[int, int],
) -> float:
    if weighted is None:
        return float("nan")
    found = weighted.found
    seen = Observed(test.rows, test.cols, shape, test.y, base, loss)
    return seen.value(seen.predict(found.left, found.right))


def _is_frame(X: MatrixLike) -> bool:
    # By what it has: pandas, polars and others are frames alike, and none of them need be there.
    return hasattr(X, "columns") and not isinstance(X, np.ndarray)


def _columns(X: MatrixLike) -> list[NDArray[Any]]:
    """Columns of a data frame or of an array of two dimensions."""
    if _is_frame(X):
        return [np.asarray(X[name]) for name in X.columns]
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must hold pairs (row, column), one a line, got shape {array.shape}.")
    return list(array.T)


def _labels(column: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """(labels in order, the number of each entry's label)."""
    missing = column != column if column.dtype.kind in "fOmM" else np.zeros(1, bool)
    if column.dtype.kind == "O":
        missing = missing | np.array([entry is None for entry in column], bool)
    if np.asarray(missing).any():
        raise ValueError(f"labels of {name} must not be missing; drop such lines first.")
    try:
        labels, numbers = np.unique(column, return_inverse=True)
    except TypeError as error:
        raise TypeError(
            f"labels of {name} must be of one kind, all text or all numbers, got a mixture."
        ) from error
    return labels, numbers


def _places(labels: NDArray[Any], column: NDArray[Any]) -> NDArray[np.int64]:
    """Numbers of the labels, -1 for those that were never seen."""
    try:
        place = np.minimum(np.searchsorted(labels, column), len(labels) - 1)
    except TypeError as error:
        raise TypeError(
            f"X must hold labels as those that were fitted, such as {labels[0]!r}, got "
            f"{column.dtype}."
        ) from error
    return np.where(labels[place] == column, place, -1)


def _numbers(column: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers >= 0."""
    if column.dtype.kind not in "iuf" or (column.size and not (column == np.floor(column)).all()):
        raise ValueError(
            "rows and columns must be whole numbers, counted from 0; give a data frame for labels."
        )
    numbers = column.astype(np.int64)
    if numbers.size and numbers.min() < 0:
        raise ValueError(f"rows and columns must be >= 0, got {numbers.min()}.")
    return numbers
