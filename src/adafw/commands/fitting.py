"""The work of `adafw fit`: files in, the fitting core, files out."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from adafw import __version__
from adafw.commands.cluster import client_of, read_parts
from adafw.commands.options import clean, refuse_same_file
from adafw.commands.radius import Search, search_radius, write_path
from adafw.commands.report import Sample, label_of, render
from adafw.commands.score import scores_on
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
from adafw.fitting.radii import Problem, Rule, check_sized
from adafw.fitting.targets import decide_task
from adafw.io.atomic import replacing, write_text
from adafw.io.damage import DAMAGE, is_damage, reason
from adafw.io.tables import ColumnChoice, Piece, format_of, read_table
from adafw.names import LOSSES, SETS
from adafw.objectives.base import Unavailable
from adafw.rows import as_rows
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
    choose: bool
    folds: int
    rule: Rule
    radius_path: str | None
    checkpoint: str | None
    checkpoint_every: float
    resume: bool
    plot: str | None
    test: str | None
    report: str | None
    quiet: bool
    parts: tuple[str, ...] = ()
    workers: int | None = None
    scheduler: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "output", Path(self.output or default_output(self.name)))
        self._check_cluster()
        if self.resume and self.checkpoint is None:
            raise click.UsageError("--resume needs --checkpoint FILE to go on from.")
        if not 0 <= self.checkpoint_every < math.inf:
            raise click.UsageError(
                f"--checkpoint-every must be a number >= 0, got {self.checkpoint_every:g}."
            )
        refuse_same_file(
            {
                "DATA": self.data,
                **{part: part for part in self.parts[1:]},
                "--labels": self.labels,
                "--test": self.test,
            },
            {
                "--output": self.output,
                "--checkpoint": self.checkpoint,
                "--plot": self.plot,
                "--report": self.report,
                "--radius-path": self.radius_path,
            },
        )
        if self.test is not None and not Path(self.test).is_dir():
            open(self.test, "rb").close()  # before a long fit, not after it
        written = (self.output, self.checkpoint, self.plot, self.report, self.radius_path)
        for path in filter(None, written):
            if not Path(path).parent.is_dir():
                raise click.UsageError(f"{path} must lie in a directory that exists.")

    @property
    def distributed(self) -> bool:
        """Whether a cluster does the work."""
        return self.workers is not None or self.scheduler is not None

    @property
    def name(self) -> str:
        """DATA, or what the names of several parts begin with."""
        if len(self.parts) < 2:
            return self.data
        first, last = min(self.parts), max(self.parts)
        alike = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
        common = first[: next(alike, len(first))].rstrip("-_.0123456789")
        return common if common and not common.endswith("/") else f"{common}parts"

    def _check_cluster(self) -> None:
        if not self.distributed:
            if len(self.parts) > 1:
                raise click.UsageError(
                    f"DATA must be one file, got {len(self.parts)}: several are parts for "
                    "--workers N or --scheduler ADDRESS."
                )
            return
        for given, option in (
            (self.workers and self.scheduler, "--scheduler with --workers"),
            (self.labels, "--labels"),
            (self.choose, "--radius cv"),
        ):
            if given:
                raise click.UsageError(f"{option} cannot be used on a cluster's workers.")

    def read(self, client: Any = None) -> tuple[Piece, NDArray[Any]]:
        """The table, and its targets."""
        if client is not None:
            return read_parts(self.parts, client, self.format_, self.target, self.n_features,
                              self.dtype)  # fmt: skip
        if self.labels is None:
            by_ids = format_of(self.data, self.format_) in ("libsvm", "parts")
            columns = ColumnChoice(
                target=self.target, n_features=self.n_features if by_ids else None
            )
            table = read_table(self.data, self.format_, columns, self.dtype)
            assert table.y is not None
            return table, table.y
        table = read_table(self.data, self.format_, ColumnChoice(all_features=True), self.dtype)
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


@dataclass(frozen=True)
class Done:
    """A model, the fits behind it, and its scores on the file of --test."""

    model: LinearModelFile
    fitted: Fitted
    test: dict[str, Plain] | None


def fit_file(settings: Settings, files: Files) -> Done:
    """Fits and writes all that was asked for; warnings go to standard error."""
    with client_of(files.workers, files.scheduler) as client:
        try:
            return _fit_file(settings, files, client)
        except Unavailable as lost:
            raise ConnectionError(f"{lost.reason}; run it again{_way_on(lost, files)}.") from None


def _way_on(lost: Unavailable, files: Files) -> str:
    """How what was done before a cluster was lost need not be done again."""
    if files.checkpoint is None:
        return ", with --checkpoint FILE if it is to go on from where it was"
    return "" if lost.resume is None else f" with --resume: {files.checkpoint} is where it was"


def _fit_file(settings: Settings, files: Files, client: Any) -> Done:
    deadline = Deadline(settings.max_seconds)
    # Names that have no meaning are refused before the file is read.
    settings.check(decide_task(np.empty(0), files.task, settings.loss))
    if files.choose or files.radius_path is not None:
        check_sized(settings.constraint)
    table, y = files.read(client)
    task = decide_task(y, files.task, settings.loss)
    targets = _targets(y, settings, task, files.dtype)
    n = int(table.X.shape[1])
    targets.plan(settings, n)
    weights = targets.weights(settings.class_weight, None, files.dtype)
    design = Design(table.X, weights, finite=True)  # the reader has looked, and names the file
    data = _data(design, y)
    problem = Problem(table.X, y, weights, settings, task, targets.classes)
    search, settings = _choose(problem, files, deadline)
    plan = targets.plan(settings, n)
    checkpoint = Checkpoint(
        files.checkpoint, {"data": data, **plan.identity()}, files.checkpoint_every
    )
    if files.resume:
        checkpoint.load()
    live = Live(settings.tol, len(targets), not files.quiet, design.rows.status)
    try:
        fitted = fit_targets(
            design, targets, plan, deadline=deadline, checkpoint=checkpoint, watch=live
        )
    finally:
        live.close()
    model = _model(fitted, plan, targets, files, table, data)
    if search is not None:
        model.header["search"] = clean(search.plain())
    model.save(files.output)
    sample = Sample(design.rows.shape, design.rows.stored, targets)
    return _told(model, fitted, files, sample)


def _told(model: LinearModelFile, fitted: Fitted, files: Files, sample: Sample) -> Done:
    """What is asked for beside the model, which is on the disk by now."""
    if files.plot is not None:
        _draw(fitted.fits, files.plot)
    for notice in fitted.notices:
        click.echo(f"Warning: {notice.text}", err=True)
    test: dict[str, Plain] | None = None
    if files.test is not None:
        test = {"file": Path(files.test).name, **scores_on(model, files.test, files.format_)}
    if files.report is not None:
        write_text(files.report, render(model, fitted, sample, test))
    return Done(model, fitted, test)


def _targets(y: NDArray[Any], settings: Settings, task: str, dtype: str) -> Targets:
    if task == "classification":
        return Targets.of_classes(y, joint=settings.joint)
    return Targets.of_numbers(y, dtype)


def _choose(problem: Problem, files: Files, deadline: Deadline) -> tuple[Search | None, Settings]:
    """What --radius cv and --radius-path ask for, and settings with the radius chosen."""
    search, settings = None, problem.settings
    if files.choose and as_rows(problem.X, finite=True).streamed:
        raise ValueError(
            f"--radius cv must have data that fit into memory several times, got {files.data}; "
            "choose the radius on a part of the rows, or with --test."
        )
    if files.choose:
        # A part of the time is kept for the fit itself.
        part = Deadline(None if settings.max_seconds is None else 0.7 * deadline.left)
        search = search_radius(problem, files.folds, files.rule, part)
        settings = replace(settings, radius=search.radius)
    if files.radius_path is not None:
        part = Deadline(None if settings.max_seconds is None else 0.5 * deadline.left)
        write_path(files.radius_path, problem, search, part)
    return search, settings


def default_output(data: str) -> Path:
    """The data file's name with its endings replaced by .model."""
    path = Path(data)
    # /dev/stdin is a file where one stands for it, but its name is not that file's.
    if path.parts[1:2] in (("dev",), ("proc",)) or path.is_fifo():
        raise click.UsageError(f"-o must name a file for the model, as {data} is none.")
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
    joint = targets.outputs > 0
    loss = "logistic" if joint else next(e.name for e in LOSSES if e.make is type(plan.loss))
    header = {
        "adafw": __version__,
        "settings": {
            **plan.settings.plain(), "loss": loss, "task": targets.task, "dtype": files.dtype,
            "multi_class": "multinomial" if joint else "ovr",
        },
        "certificate": [_certificate(fit) for fit in fitted.fits],
        "data": {"file": Path(files.name).name, **data},
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
    if "search" in model.header:
        search = model.header["search"]
        best = search["mean_scores"][search["radii"].index(settings["radius"])]
        lines.append(f"  radius       chosen by {search['folds']} folds (rule {search['rule']}): "
                     f"mean score {_number(best, 4)}")  # fmt: skip
    if model.classes is not None:
        lines.append(f"  classes      {', '.join(label_of(c) for c in model.classes[:10])}"
                     + (", ..." if len(model.classes) > 10 else ""))  # fmt: skip
    size_of_fit = model.coef.size // len(model.header["certificate"])
    for k, c in enumerate(model.header["certificate"]):
        several = len(model.header["certificate"]) > 1
        which = (
            f"class {label_of(model.classes[k])}: " if several and model.classes is not None else ""
        )
        lines.append(
            f"  {which}{c['status']}, objective {_number(c['value'], 8)}, gap {_number(c['gap'])} "
            f"({c['algorithm']}, {c['iterations']} iterations, {c['nonzeros']} of "
            f"{size_of_fit} coefficients, {_number(c['seconds'])} s)"
        )
    return "\n".join(lines)


def describe_scores(test: dict[str, Plain]) -> str:
    """Scores on held-out data in a line."""
    scores = ", ".join(
        f"{name.replace('_', ' ')} {_number(value, 6)}"
        for name, value in test.items()
        if isinstance(value, float) and name != "rows"
    )
    return f"  on {test['file']} ({test['rows']} rows): {scores}"


def _number(value: float | None, digits: int = 3) -> str:
    """A number of a header, where null stands for NaN."""
    return "nan" if value is None else f"{value:.{digits}g}"


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
