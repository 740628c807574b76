"""adafw fit: a data file in, a model file out."""

import sys
from pathlib import Path
from typing import Any

import click

from adafw.commands.options import data_options, echo_json


@click.command(name="fit", short_help="Fit a linear model under a constraint.")
@click.argument("data", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="Model file.  [default: DATA with .model]",
)
@data_options
@click.option(
    "--n-features", type=click.IntRange(1), help="Columns of LIBSVM data, if more than occur."
)
@click.option(
    "--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True
)
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    help="auto: text, two kinds, or whole numbers of at most 20 kinds are classes.",
)
@click.option(
    "--loss",
    help="logistic, squared_hinge, smoothed_hinge; or squared, huber, poisson.",
)
@click.option(
    "--constraint",
    default="l1",
    show_default=True,
    help="l1, l2, linf, lp, simplex, unit_simplex, ksparse, group, nuclear, spectral.",
)
@click.option("--radius", type=float, default=100.0, show_default=True, help="Size of the set.")
@click.option(
    "-p",
    "--param",
    multiple=True,
    metavar="KEY=VALUE",
    help="What the set needs besides: k=10, p=1.5, shape=20,30, groups=@FILE.",
)
@click.option("--delta", type=float, default=1.0, show_default=True, help="Of the Huber loss.")
@click.option(
    "--algorithm", default="auto", show_default=True, help="auto, or a preset such as AdaCSFW."
)
@click.option("--learning-rate", default="auto", show_default=True, help="auto, or a number.")
@click.option("--no-intercept", is_flag=True, help="Fit without an intercept.")
@click.option(
    "--class-weight", type=click.Choice(["balanced"]), help="Weigh classes by their rarity."
)
@click.option(
    "--tol", type=float, default=1e-4, show_default=True, help="Stop when gap <= tol * |objective|."
)
@click.option(
    "--max-epochs",
    type=float,
    default=1000.0,
    show_default=True,
    help="Passes over the data at most.",
)
@click.option("--time-limit", type=float, help="Seconds at most, over all classes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option(
    "--checkpoint", type=click.Path(dir_okay=False), help="File to go on from if the fit is killed."
)
@click.option(
    "--checkpoint-every",
    type=float,
    default=10.0,
    show_default=True,
    help="Seconds between two writes of it.",
)
@click.option(
    "--resume", is_flag=True, help="Go on from the checkpoint, if it is there, bit for bit."
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    help="Draw gap and objective to a file (png, pdf, svg).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--quiet", is_flag=True, help="No live line.")
def command(**options: Any) -> None:  # fmt: skip
    """Fits a linear model under a constraint to DATA and writes it, with a certificate.

    DATA is a LIBSVM file (plain, gz, bz2 or xz), CSV, Parquet, npy (target in the last column) or
    npz (X and y, or a sparse matrix and y). Ctrl-C keeps what there is.

    Exit codes: 0 the model is written (a fit that stopped before its tolerance says so on standard
    error); 1 files could not be read or written; 2 wrong usage or bad data; 130 interrupted, and
    the model reached so far is written.
    """
    from adafw.commands.fitting import Job

    job = Job(**options)
    model, interrupted = job.run()
    if options["as_json"]:
        echo_json({"model": str(job.output), **model.header, "classes": job.class_list(model)})
    else:
        click.echo(job.summary(model))
    if interrupted:
        sys.exit(130)


def default_output(data: str) -> Path:
    """The data file's name with its endings replaced by .model."""
    path = Path(data)
    while path.suffix.lower() in (".gz", ".bz2", ".xz"):
        path = path.with_suffix("")
    return path.with_suffix(".model")
