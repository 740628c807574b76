"""The work of `adafw fit`: files in, the fitting core, files out."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from adafw import __version__
from adafw.commands.options import clean, refuse_same_file
from adafw.describe import digest
from adafw.fitting import (
    Checkpoint,
    Deadline,
    Design,
    Fit,
    Fitted,
    LinearModelFile,
    Plan,
    Settings,
    Targets,
    fit_targets,
)
from adafw.fitting.live import Live
from adafw.fitting.targets import decide_task
from adafw.io.atomic import replacing
from adafw.io.damage import DAMAGE, is_damage, reason
from adafw.io.tables import Columns, Piece, format_of, read_table
from adafw.names import LOSSES, SETS
from adafw.typing import Plain


@dataclass(frozen=True)
class Files:
    """What is read and written, and how it is shown: all options but those of the fit itself."""

    data: str
    output: Any
    format_: str | None
    target: str | None
    labels: str | None
    n_features: int | None
    dtype: str
    task: str
    checkpoint: str | None
    checkpoint_every: float
    resume: bool
    plot: str | None
    quiet: bool

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", Path(self.output or default_output(self.data)))
        if self.resume and self.checkpoint is None:
            raise click.UsageError("--resume needs --checkpoint FILE to go on from.")
        if not 0 <= self.checkpoint_every < math.inf:
            raise click.UsageError(
                f"--checkpoint-every must be a number >= 0, got {self.checkpoint_every:g}."
            )
        refuse_same_file(
            {"DATA": self.data, "--labels": self.labels},
            {"--output": self.output, "--checkpoint": self.checkpoint, "--plot": self.plot},
        )
        for path in filter(None, (self.output, self.checkpoint, self.plot)):
            if not Path(path).parent.is_dir():
                raise click.UsageError(f"{path} must lie in a directory that exists.")

    def read(self) -> tuple[Piece, NDArray[Any]]:
        """The table, and its targets."""
        if self.labels is None:
            libsvm = format_of(self.data, self.format_) == "libsvm"
            columns = Columns(target=self.target, n_features=self.n_features if libsvm else None)
            table = read_table(self.data, self.format_, columns, self.dtype)
            assert table.y is not None
            return table, table.y
        table = read_table(self.data, self.format_, Columns(all_features=True), self.dtype)
        try:
            y = np.load(self.labels, allow_pickle=False)
        except DAMAGE as error:
            if not is_damage(error):
                raise
            raise ValueError(
                f"{self.labels} must be a .npy file of targets{reason(error)}."
            ) from None
        if not isinstance(y, np.ndarray) or y.shape != (table.X.shape[0],):
            raise ValueError(f"{self.labels} must hold {table.X.shape[0]} targets, one a row.")
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise ValueError(f"{self.labels} must have finite targets, got NaN or infinity.")
        return replace(table, y=y), y


def fit_file(settings: Settings, files: Files) -> tuple[LinearModelFile, Fitted]:
    """The model, written, and the fits behind it; warnings go to standard error."""
    deadline = Deadline(settings.max_seconds)
    # Names that have no meaning are refused before the file is read.
    settings.plan(decide_task(np.empty(0), files.task, settings.loss))
    table, y = files.read()
    task = decide_task(y, files.task, settings.loss)
    plan = settings.plan(task)
    classify = task == "classification"
    targets = Targets.of_classes(y) if classify else Targets.of_numbers(y, files.dtype)
    weights = targets.weights(settings.class_weight, None, files.dtype)
    design = Design(table.X, weights, finite=True)  # the reader has looked, and names the file
    data = _data(design, y)
    checkpoint = Checkpoint(
        files.checkpoint, {"data": data, **plan.identity()}, files.checkpoint_every
    )
    if files.resume:
        checkpoint.load()
    live = Live(settings.tol, len(targets), not files.quiet)
    try:
        fitted = fit_targets(
            design, targets, plan, deadline=deadline, checkpoint=checkpoint, watch=live
        )
    finally:
        live.close()
    model = _model(fitted, plan, targets, files, table, data)
    model.save(files.output)
    if files.plot is not None:
        _draw(fitted.fits, files.plot)
    for notice in fitted.notices:
        click.echo(f"Warning: {notice.text}", err=True)
    return model, fitted


def default_output(data: str) -> Path:
    """The data file's name with its endings replaced by .model."""
    path = Path(data)
    # a.svm.gz becomes a.model, not a.svm.model.
    while path.suffix.lower() in (".gz", ".bz2", ".xz"):
        path = path.with_suffix("")
    return path.with_suffix(".model")


def _data(design: Design, y: NDArray[Any]) -> dict[str, Plain]:
    """A fingerprint of features and targets."""
    # Labels of text have no bytes to digest; their numbers say the same.
    marks = y if y.dtype.kind in "biuf" else np.unique(y, return_inverse=True)[1]
    return {"X": clean(design.rows.describe()), "y": digest(np.asarray(marks))}


def _model(
    fitted: Fitted, plan: Plan, targets: Targets, files: Files, table: Piece, data: dict[str, Plain]
) -> LinearModelFile:
    loss = next(e.name for e in LOSSES if e.make is type(plan.loss))
    header = {
        "adafw": __version__,
        "settings": {
            **plan.settings.plain(), "loss": loss, "task": targets.task, "dtype": files.dtype,
        },
        "certificate": [_certificate(fit) for fit in fitted.fits],
        "data": {"file": Path(files.data).name, **data},
        "features": None if table.features is None else list(table.features),
        "target": files.target,
        "zero_based": table.zero_based,
    }  # fmt: skip
    model = fitted.predictor
    return LinearModelFile(model.coef, model.intercept, model.classes, clean(header))


def _certificate(fit: Fit) -> dict[str, Plain]:
    last = fit.trace[-1]
    return {
        "value": fit.value, "gap": fit.gap, "lower_bound": fit.lower_bound,
        "violation": fit.violation, "status": fit.status, "iterations": fit.n_iter,
        "epochs": last.epoch, "algorithm": fit.algorithm, "learning_rate": fit.learning_rate,
        "nonzeros": last.nonzeros, "seconds": last.wall_seconds,
    }  # fmt: skip


def describe_model(model: LinearModelFile, path: str) -> str:
    """Settings and certificate of a model in a few lines."""
    settings, data = model.header["settings"], model.header["data"]
    shape = " x ".join(str(n) for n in data["X"]["shape"])
    size = f" of radius {settings['radius']:g}" if SETS.find(settings["constraint"]).sized else ""
    lines = [
        f"{path}: {settings['task']}, {settings['loss']} loss, {settings['constraint']}{size}, "
        f"fitted to {data['file']} ({shape} {data['X']['name']})",
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
            f"  {which}{c['status']}, objective {_number(c['value'], 8)}, gap {_number(c['gap'])} "
            f"({c['algorithm']}, {c['iterations']} iterations, {c['nonzeros']} of "
            f"{model.n_features} coefficients, {_number(c['seconds'])} s)"
        )
    return "\n".join(lines)


def _number(value: float | None, digits: int = 3) -> str:
    """A number of a header, where null stands for NaN."""
    return "nan" if value is None else f"{value:.{digits}g}"


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | int | np.number) else str(value)


def _draw(fits: tuple[Fit, ...], path: str) -> None:
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
