"""The work of `adafw fit`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from adafw import __version__
from adafw.commands.fit import default_output
from adafw.commands.live import Live
from adafw.commands.options import as_number, clean, parameters
from adafw.describe import digest
from adafw.fitting.checkpoint import Checkpoint, Run
from adafw.fitting.linear import Fit, Settings, no_effect, one_against_rest
from adafw.fitting.model import LinearModelFile
from adafw.fitting.names import CLASSIFICATION, REGRESSION, constraint_named, loss_named
from adafw.fitting.predictions import looks_like_classes
from adafw.io.atomic import replacing
from adafw.io.tables import Columns, Piece, format_of, read_table
from adafw.rows import as_rows


@dataclass(frozen=True)
class Job:
    """The options of one call."""

    data: str
    output: Any
    format_: str | None
    target: str | None
    labels: str | None
    n_features: int | None
    dtype: str
    task: str
    loss: str | None
    constraint: str
    radius: float
    param: tuple[str, ...]
    delta: float
    algorithm: str
    learning_rate: str
    no_intercept: bool
    class_weight: str | None
    tol: float
    max_epochs: float
    time_limit: float | None
    seed: int
    checkpoint: str | None
    checkpoint_every: float
    resume: bool
    plot: str | None
    as_json: bool
    quiet: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", Path(self.output or default_output(self.data)))
        if self.resume and self.checkpoint is None:
            raise click.UsageError("--resume needs --checkpoint FILE to go on from.")
        if self.time_limit is not None and not self.time_limit > 0:
            raise click.UsageError(f"--time-limit must be > 0, got {self.time_limit:g}.")
        for path in filter(None, (self.output, self.checkpoint, self.plot)):
            if not Path(path).parent.is_dir():
                raise click.UsageError(f"{path} must lie in a directory that exists.")

    def run(self) -> tuple[LinearModelFile, bool]:
        """The model, written, and whether the fit was interrupted."""
        table = self._table()
        y = table.y
        assert y is not None
        classify = self._classify(y)
        settings = self._settings(classify)
        classes = np.unique(y) if classify else None
        if classes is not None and len(classes) < 2:
            raise ValueError(f"{self.data} must have labels of at least two classes, got one.")
        if classes is None:
            targets, weights = [y.astype(self.dtype)], None
        else:
            labels = np.searchsorted(classes, y)
            targets = one_against_rest(labels, range(len(classes)))
            weights = self._weights(labels, len(classes))
        start = Checkpoint(self._problem(table, settings))
        if self.resume and self.checkpoint is not None and Path(self.checkpoint).exists():
            start = Checkpoint.load(self.checkpoint, start.problem)
        live = Live(self.tol, table.X.shape[0], len(targets), not self.quiet)
        run = Run(settings, self.checkpoint, self.checkpoint_every, self.time_limit, live)
        try:
            fits = run.fit(table.X, targets, weights, start)
        finally:
            live.close()
        model = self._model(fits, classes, table, start.problem)
        model.save(self.output)
        if self.plot is not None:
            _draw(fits, self.plot)
        self._warn(fits, settings)
        return model, any(fit.status == "interrupted" for fit in fits)

    def _table(self) -> Piece:
        if self.labels is None:
            libsvm = format_of(self.data, self.format_) == "libsvm"
            columns = Columns(target=self.target, n_features=self.n_features if libsvm else None)
            return read_table(self.data, self.format_, columns, self.dtype)
        table = read_table(self.data, self.format_, Columns(all_features=True), self.dtype)
        try:
            y = np.load(self.labels, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{self.labels} must be a .npy file of targets: {error}.") from None
        if not isinstance(y, np.ndarray) or y.shape != (table.X.shape[0],):
            raise ValueError(f"{self.labels} must hold {table.X.shape[0]} targets, one a row.")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"{self.labels} must have finite targets, got NaN or infinity.")
        return replace(table, y=y)

    def _classify(self, y: NDArray[Any]) -> bool:
        if self.loss is not None and self.loss not in {**CLASSIFICATION, **REGRESSION}:
            known = ", ".join([*CLASSIFICATION, *REGRESSION])
            raise ValueError(f"loss must be one of {known}, got {self.loss!r}.")
        if self.task != "auto":
            classify = self.task == "classification"
        elif self.loss is not None:
            classify = self.loss in CLASSIFICATION
        else:
            classify = looks_like_classes(y)
        if self.loss is not None and (self.loss in CLASSIFICATION) != classify:
            raise ValueError(f"loss {self.loss} does not fit the task {self.task}.")
        if not classify and y.dtype.kind not in "biuf":
            raise ValueError(f"{self.data} must have numbers for targets, got {y[0]!r}.")
        return classify

    def _settings(self, classify: bool) -> Settings:
        name = self.loss or ("logistic" if classify else "squared")
        options = {"delta": self.delta} if name == "huber" else {}
        rate = as_number(self.learning_rate)
        if not (rate == "auto" or isinstance(rate, int | float)):
            raise ValueError(f"learning_rate must be auto or a number, got {rate!r}.")
        return Settings(
            loss=loss_named(name, CLASSIFICATION if classify else REGRESSION, **options),
            constraint=constraint_named(self.constraint, self.radius, parameters(self.param)),
            algorithm=self.algorithm,
            learning_rate=rate if rate == "auto" else float(rate),
            fit_intercept=not self.no_intercept,
            tol=self.tol,
            max_epochs=self.max_epochs,
            seed=self.seed,
        )

    def _weights(self, labels: NDArray[Any], n_classes: int) -> NDArray[Any] | None:
        if self.class_weight is None:
            return None
        count = np.bincount(labels, minlength=n_classes)
        return (len(labels) / (n_classes * count))[labels].astype(self.dtype)

    def _problem(self, table: Piece, settings: Settings) -> dict[str, Any]:
        """What a checkpoint must agree with: data and everything that changes the iterates."""
        y = table.y
        assert y is not None
        marks = y if y.dtype.kind in "biuf" else np.unique(y, return_inverse=True)[1]
        return {
            "data": clean({"X": as_rows(table.X).describe(), "y": digest(np.asarray(marks))}),
            "loss": repr(settings.loss),
            "constraint": clean(settings.constraint.describe()),
            "algorithm": self.algorithm,
            "learning_rate": self.learning_rate,
            "fit_intercept": settings.fit_intercept,
            "class_weight": self.class_weight,
            "seed": self.seed,
        }

    def _model(
        self, fits: list[Fit], classes: NDArray[Any] | None, table: Piece, problem: dict[str, Any]
    ) -> LinearModelFile:
        settings = self._settings(classes is not None)
        name = self.loss or ("logistic" if classes is not None else "squared")
        header = {
            "adafw": __version__,
            "settings": {
                "task": "regression" if classes is None else "classification",
                "loss": name, "delta": self.delta, "constraint": self.constraint,
                "radius": self.radius, "constraint_params": list(self.param),
                "algorithm": self.algorithm, "learning_rate": self.learning_rate,
                "fit_intercept": settings.fit_intercept, "class_weight": self.class_weight,
                "tol": self.tol, "max_epochs": self.max_epochs, "seed": self.seed,
                "dtype": self.dtype,
            },
            "certificate": [
                {
                    "value": fit.value, "gap": fit.gap, "lower_bound": fit.lower_bound,
                    "violation": fit.violation, "status": fit.status, "iterations": fit.n_iter,
                    "epochs": fit.trace[-1].epoch, "algorithm": fit.algorithm,
                    "learning_rate": fit.learning_rate,
                    "nonzeros": fit.trace[-1].nonzeros, "seconds": fit.trace[-1].wall_seconds,
                }
                for fit in fits
            ],
            "data": {"file": Path(self.data).name, **problem["data"]},
            "features": None if table.features is None else list(table.features),
            "target": self.target,
            "zero_based": table.zero_based,
        }  # fmt: skip
        coef = np.array([fit.coef for fit in fits])
        return LinearModelFile(coef, np.array([f.intercept for f in fits]), classes, clean(header))

    def _warn(self, fits: list[Fit], settings: Settings) -> None:
        late = [fit for fit in fits if fit.status not in ("converged", "not started")]
        if late:
            worst = max(late, key=lambda fit: fit.tolerance_reached)
            click.echo(
                f"Warning: stopped before the tolerance ({worst.status.replace('_', ' ')}): gap "
                f"{worst.gap:.3g} is {worst.tolerance_reached:.3g} of the objective, "
                f"{self.tol:g} was asked for.", err=True,
            )  # fmt: skip
        missing = sum(fit.status == "not started" for fit in fits)
        if missing:
            click.echo(f"Warning: {missing} of {len(fits)} classes were not started.", err=True)
        if not any(fit.radius_matters for fit in fits):
            click.echo(f"Warning: {no_effect(settings.constraint.scale)}", err=True)

    def class_list(self, model: LinearModelFile) -> Any:
        """Labels as JSON can hold them."""
        return None if model.classes is None else model.classes.tolist()

    def summary(self, model: LinearModelFile) -> str:
        """What a person wants to read at the end."""
        return describe_model(model, str(self.output))


def describe_model(model: LinearModelFile, path: str) -> str:
    """Settings and certificate of a model in a few lines."""
    settings, data = model.header["settings"], model.header["data"]
    shape = " x ".join(str(n) for n in data["X"]["shape"])
    lines = [
        f"{path}: {settings['task']}, {settings['loss']} loss, {settings['constraint']} of radius "
        f"{settings['radius']:g}, fitted to {data['file']} ({shape} {data['X']['name']})",
    ]
    if model.classes is not None:
        lines.append(f"  classes      {', '.join(_label(c) for c in model.classes[:10])}"
                     + (", ..." if len(model.classes) > 10 else ""))  # fmt: skip
    for k, c in enumerate(model.header["certificate"]):
        several = len(model.header["certificate"]) > 1
        which = (
            f"class {_label(model.classes[k])}: " if several and model.classes is not None else ""
        )
        lines.append(
            f"  {which}{c['status']}, objective {c['value']:.8g}, gap {c['gap']:.3g} "
            f"({c['algorithm']}, {c['iterations']} iterations, {c['nonzeros']} of "
            f"{model.n_features} coefficients, {c['seconds']:.3g} s)"
        )
    return "\n".join(lines)


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | int | np.number) else str(value)


def _draw(fits: list[Fit], path: str) -> None:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ValueError(
            "--plot needs matplotlib; install it with pip install 'adafw[plot]'."
        ) from None
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for k, fit in enumerate(fits):
        for ax, column in zip(axes, ("gap", "value"), strict=True):
            ax.plot(fit.trace["epoch"], fit.trace[column], label=f"fit {k + 1}", linewidth=1)
            ax.set(xlabel="epochs", ylabel=column, yscale="log" if column == "gap" else "linear")
    if 1 < len(fits) <= 10:
        axes[0].legend(fontsize="small")
    kind = Path(path).suffix.lstrip(".") or "png"
    with replacing(path) as partial:
        figure.savefig(partial, format=kind)
    pyplot.close(figure)
