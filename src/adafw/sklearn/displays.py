"""Pictures of fits with matplotlib, in the manner of scikit-learn's displays."""

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from adafw import checks
from adafw.recorder import Trace
from adafw.result import Result
from adafw.sklearn.typing import PerRow, SklearnObject
from adafw.typing import MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Panels = tuple[Axes, Axes] | list[Axes] | NDArray[Any]


#: Columns of a trace to draw against, with the words on the axis.
_AGAINST = {
    "epoch": "epochs", "iteration": "iterations", "cpu_seconds": "CPU seconds",
    "wall_seconds": "seconds",
}  # fmt: skip
_DRAWN = {"gap": "gap", "value": "objective"}


class ConvergenceDisplay:
    """Gap or objective of one or more runs against the work done.

    Made by `from_result` or `from_estimator`; `plot` draws it once more.

    Parameters
    ----------
    traces, names : the records of each run, and what it is called in the key.

    Attributes
    ----------
    ax_, figure_ : where it was drawn. lines_ : one line a run.
    """

    def __init__(self, *, traces: Sequence[Trace], names: Sequence[str]) -> None:
        self.traces, self.names = list(traces), list(names)

    def plot(
        self, ax: "Axes | None" = None, *, x: str = "epoch", y: str = "gap", **kwargs: Any
    ) -> "ConvergenceDisplay":
        """Draws column y ("gap", "value") against x ("epoch", "cpu_seconds", ...).

        The gap has a logarithmic axis, without the records where it is 0; beside the value, the
        proven lower bound is drawn in broken lines. `kwargs` go to matplotlib's `plot`.
        """
        for name, value, known in (("x", x, _AGAINST), ("y", y, _DRAWN)):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_ = []
        for trace, name in zip(self.traces, self.names, strict=True):
            line = self.ax_.plot(trace[x], trace[y], **{"label": name, **kwargs})[0]
            self.lines_.append(line)
            if y == "value":
                bound = trace["lower_bound"]
                self.ax_.plot(trace[x], bound, "--", color=line.get_color(), linewidth=1)
        self.ax_.set(xlabel=_AGAINST[x], ylabel=_DRAWN[y])
        if y == "gap":
            self.ax_.set_yscale("log", nonpositive="mask")
        if len(self.traces) > 1 or "label" in kwargs or any(self.names):
            self.ax_.legend(fontsize="small")
        return self

    @classmethod
    def from_result(
        cls,
        result: Result | Sequence[Result],
        *,
        names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> "ConvergenceDisplay":
        """Draws the run of a `Result`, or several runs; `kwargs` as in `plot`."""
        results = list(result) if isinstance(result, Sequence) else [result]
        if not results or not all(isinstance(r, Result) for r in results):
            raise TypeError("result must be what minimize returns, or a list of such.")
        if names is None:
            titles = [r.title or f"run {k}" for k, r in enumerate(results, 1)]
            names = titles if len(results) > 1 else [""]
        if len(names) != len(results):
            raise ValueError(f"names must be one a result, {len(results)}, got {len(names)}.")
        return cls(traces=[r.trace for r in results], names=names).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: SklearnObject, *, ax: "Axes | None" = None, **kwargs: Any
    ) -> "ConvergenceDisplay":
        """Draws the fit of a model, one line a class where each has its own fit.

        A pipeline stands for its last step, a search for its best model; `kwargs` as in `plot`.
        """
        model = _model(estimator)
        if model.trace_ is None:
            raise ValueError("a model of partial_fit has no trace: there is no gap to draw.")
        several = isinstance(model.trace_, list)
        traces = model.trace_ if several else [model.trace_]
        names = [str(c) for c in model.classes_] if several else [""]
        return cls(traces=traces, names=names).plot(ax, **kwargs)


class _Path(Protocol):
    """A `RadiusPath`, which stands above."""

    @property
    def radii(self) -> NDArray[Any]: ...
    @property
    def coefs(self) -> NDArray[Any]: ...
    @property
    def scores(self) -> NDArray[Any]: ...
    @property
    def held_out(self) -> bool: ...
    @property
    def best(self) -> SklearnObject: ...


class RadiusPathDisplay:
    """Coefficients and score against the radius, with the chosen radius marked.

    Parameters
    ----------
    radii, coefs : the radii, and the coefficients of each: (radii, features).
    scores, errors : one score a radius, and its standard error or None.
    chosen : the radius to mark.
    score_name : what the scores are.

    Attributes
    ----------
    ax_, score_ax_, figure_ : the axes of the coefficients and of the scores.
    lines_ : one line for each coefficient that is not 0 everywhere.
    """

    def __init__(
        self,
        *,
        radii: NDArray[Any],
        coefs: NDArray[Any],
        scores: NDArray[Any],
        errors: NDArray[Any] | None = None,
        chosen: float | None = None,
        score_name: str = "score",
    ) -> None:
        self.radii, self.coefs = np.asarray(radii), np.asarray(coefs)
        self.scores, self.errors = np.asarray(scores), errors
        self.chosen, self.score_name = chosen, score_name

    def plot(self, ax: "Axes | Panels | None" = None, **kwargs: Any) -> "RadiusPathDisplay":
        """Draws both; `kwargs` go to matplotlib's `plot` of the coefficients.

        `ax`: None for a new figure of two panels, two axes, or one, on which the scores have a
        scale of their own at the right.
        """
        upper: Axes
        score: Axes
        if ax is None:
            _, (upper, score) = _pyplot().subplots(2, 1, sharex=True, layout="constrained")
        elif isinstance(ax, tuple | list | np.ndarray):
            upper, score = ax
        else:
            upper, score = ax, ax.twinx()
        self.ax_, self.score_ax_, self.figure_ = upper, score, upper.figure
        flat = self.coefs.reshape(len(self.radii), -1)
        used = flat[:, np.abs(flat).max(axis=0) > 0]
        self.lines_ = upper.plot(self.radii, used, **{"linewidth": 1, **kwargs})
        upper.set(ylabel="coefficient", xscale="log")
        score.errorbar(
            self.radii, self.scores, self.errors, marker="o", markersize=4, color="black",
            linestyle="-", capsize=2,
        )  # fmt: skip
        score.set(ylabel=self.score_name, xscale="log")
        shared = score.bbox.bounds == upper.bbox.bounds  # a twin has no axis of its own below
        (upper if shared else score).set_xlabel("radius")
        if self.chosen is not None:
            for part in {upper, score}:
                part.axvline(self.chosen, color="grey", linestyle="--", linewidth=1)
        return self

    @classmethod
    def from_path(
        cls, path: _Path, *, ax: "Axes | Panels | None" = None, **kwargs: Any
    ) -> "RadiusPathDisplay":
        """Draws what `radius_path` found, the radius of the best score marked."""
        return cls(
            radii=path.radii, coefs=path.coefs, scores=path.scores, chosen=float(path.best.radius),
            score_name="held-out score" if path.held_out else "training score",
        ).plot(ax, **kwargs)  # fmt: skip

    @classmethod
    def from_estimator(
        cls,
        estimator: SklearnObject,
        X: MatrixLike,
        y: PerRow,
        *,
        ax: "Axes | Panels | None" = None,
        **kwargs: Any,
    ) -> "RadiusPathDisplay":
        """Draws the search of a `FrankWolfeClassifierCV` or `FrankWolfeRegressorCV`.

        Scores and their standard errors are those of the search; the coefficients those of models
        fitted to X and y (without weights) at every radius, begun where the last one ended. A
        pipeline stands for its last step, which is given X as the steps before it leave it.
        """
        model, chosen = _model(estimator), _chosen(estimator)
        if isinstance(chosen, Pipeline) and len(chosen) > 1:
            X = chosen[:-1].transform(X)
        path = model._path_of_search(X, y)
        found, folds = model.scores_, model.scores_.shape[1]
        errors = found.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else None
        return cls(
            radii=path.radii, coefs=path.coefs, scores=found.mean(axis=1), errors=errors,
            chosen=model.radius_, score_name=f"score of {folds} folds",
        ).plot(ax, **kwargs)  # fmt: skip


class CoefficientDisplay:
    """The largest coefficients by name, as bars.

    Parameters
    ----------
    coef : (scores, features), one row for each class or target.
    feature_names, names : of the features, and of the rows.
    top : how many features to draw, those of the largest entry in size.

    Attributes
    ----------
    ax_, figure_, bars_ : where it was drawn, and one container of bars a row.
    """

    def __init__(
        self,
        *,
        coef: NDArray[Any],
        feature_names: Sequence[str],
        names: Sequence[str] = ("",),
        top: int = 20,
    ) -> None:
        self.coef = np.atleast_2d(coef)
        self.feature_names, self.names = list(feature_names), list(names)
        self.top = checks.integer(top, "top", 1)
        if len(self.feature_names) != self.coef.shape[1]:
            raise ValueError(
                f"feature_names must hold one name a feature, {self.coef.shape[1]}, got "
                f"{len(self.feature_names)}."
            )

    @property
    def chosen(self) -> NDArray[np.int64]:
        """Numbers of the features that are drawn, the largest first; none that is 0."""
        size = np.abs(self.coef).max(axis=0)
        order = np.argsort(-size, kind="stable")[: self.top]
        return order[size[order] > 0]

    def plot(self, ax: "Axes | None" = None, **kwargs: Any) -> "CoefficientDisplay":
        """Draws the bars, the largest at the top; `kwargs` go to matplotlib's `barh`."""
        features, rows = self.chosen, len(self.coef)
        if ax is None:
            height = max(1.5, 0.8 + 0.22 * len(features) * max(1.0, rows / 3))
            height += 0.2 * -(-rows // 3) if rows > 1 else 0.0  # the legend
            _, ax = _pyplot().subplots(figsize=(6, height), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        width, places = 0.8 / rows, np.arange(len(features))
        self.bars_ = [
            ax.barh(
                places + (k - (rows - 1) / 2) * width, self.coef[k, features],
                **{"height": width, "label": name, **kwargs},
            )
            for k, name in enumerate(self.names)
        ]  # fmt: skip
        ax.set_yticks(places, [self.feature_names[j] for j in features])
        ax.invert_yaxis()
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_xlabel("coefficient" if len(features) else "coefficient (all are 0)")
        if rows > 1:
            # Above the axes, which the bars fill, and to the right: names stand at the left.
            ax.legend(
                fontsize="small", ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False
            )
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: SklearnObject,
        *,
        top: int = 20,
        label: object = None,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **kwargs: Any,
    ) -> "CoefficientDisplay":
        """Draws the coefficients of a model, pipeline or search.

        Parameters
        ----------
        label : of several classes, or targets y0, y1, ..., the one to draw; None draws all.
        feature_names : None takes those that the steps before the model give out, then those of
            the data frame it was fitted to, then x0, x1, ...
        """
        model = _model(estimator)
        coef = np.atleast_2d(model.coef_)
        # Targets have no names of their own.
        several = getattr(model, "classes_", [f"y{k}" for k in range(len(coef))])
        known = list(several) if len(coef) > 1 else []
        names = [str(c) for c in known] or [""]
        if label is not None:
            if label not in known:
                among = f"one of {', '.join(names)}" if known else "None for a model of one score"
                raise ValueError(f"label must be {among}, got {label!r}.")
            k = known.index(label)
            coef, names = coef[k : k + 1], names[k : k + 1]
        if feature_names is None:
            feature_names = names_of_features(estimator)
        return cls(coef=coef, feature_names=feature_names, names=names, top=top).plot(ax, **kwargs)


def names_of_features(estimator: SklearnObject) -> list[str]:
    """What the coefficients of a model, pipeline or search belong to."""
    found = _chosen(estimator)
    model = _model(found)
    if isinstance(found, Pipeline) and len(found) > 1:
        try:
            return [str(name) for name in found[:-1].get_feature_names_out()]
        except AttributeError:  # a step that cannot tell
            pass
    # scikit-learn's convention: the attribute is there only if the data had names.
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if names is None else list(names)


def _chosen(estimator: SklearnObject) -> SklearnObject:
    """The best model of a search, which has this attribute by convention, else the model itself."""
    return getattr(estimator, "best_estimator_", estimator)


def _model(estimator: SklearnObject) -> SklearnObject:
    """The fitted model of this package in a pipeline or search."""
    from adafw.sklearn.base import FrankWolfeBase

    found = _chosen(estimator)
    model = found[-1] if isinstance(found, Pipeline) else found
    if not isinstance(model, FrankWolfeBase):
        raise TypeError(
            "estimator must be a model of adafw.sklearn, or a pipeline or fitted search that ends "
            f"in one, got {type(model).__name__}."
        )
    check_is_fitted(model)
    return model


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "displays need matplotlib; install it with pip install 'adafw[plot]'."
        ) from None
    return pyplot


def _axes(ax: "Axes | None") -> "Axes":
    """The axes given, or new ones."""
    return _pyplot().subplots(layout="constrained")[1] if ax is None else ax
