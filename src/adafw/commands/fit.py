"""adafw fit: a data file in, a model file out."""

import sys
from typing import Any

import click

from adafw.commands.options import data_options, echo_json, settings_of, settings_options


@click.command(name="fit", short_help="Fit a linear model under a constraint.")
@click.argument("data", type=click.Path(), nargs=-1, required=True)
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
@settings_options
@click.option(
    "--folds", type=click.IntRange(2), default=5, show_default=True, help="Of --radius cv."
)
@click.option(
    "--rule",
    type=click.Choice(["best", "one_se"]),
    default="best",
    show_default=True,
    help="Of --radius cv: best mean score, or smallest radius within one standard error of it.",
)
@click.option(
    "--radius-path",
    type=click.Path(dir_okay=False),
    help="Write objective, gap, features used (and scores, with --radius cv) of 30 radii (csv).",
)
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
@click.option(
    "--test", type=click.Path(), help="Data to score the model on, of the format of DATA."
)
@click.option(
    "--report",
    type=click.Path(dir_okay=False),
    help="Write a page about the fit: data, certificate, convergence, coefficients, score (html).",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Fit on so many processes of this machine (Dask); DATA may be several parts.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Fit on the Dask cluster of this scheduler; its workers must see the files.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--quiet", is_flag=True, help="No live line.")
def command(as_json: bool, data: tuple[str, ...], **options: Any) -> None:
    """Fits a linear model under a constraint to DATA and writes it, with a certificate.

    DATA is a LIBSVM file (plain, gz, bz2 or xz), CSV, Parquet, npy (target in the last column),
    npz (X and y, or a sparse matrix and y) or a directory of parts, which `adafw convert` writes
    and which may be larger than memory. Values of --param: k=10, shape=20,30, groups=@FILE.
    --max-seconds counts from the reading of DATA on, over all classes. Ctrl-C keeps what there is.
    With --workers or --scheduler, DATA is one or more parts, whose rows stay on the workers.
    --radius cv tries 30 radii, from no effect to where the set stops binding, in every fold.

    Exit codes: 0 the model is written (a fit that stopped before its tolerance says so on standard
    error); 1 files could not be read or written; 2 wrong usage or bad data; 130 interrupted, and
    the model reached so far is written.
    """
    from adafw.commands.fitting import Files, describe_model, describe_scores, fit_file
    from adafw.fitting import Settings

    choose = options["radius"] == "cv"
    if choose:
        options["radius"] = str(Settings.radius)
    settings = settings_of(options)
    files = Files(data=data[0], parts=data, **options, choose=choose)
    done = fit_file(settings, files)
    model = done.model
    if as_json:
        classes = None if model.classes is None else model.classes.tolist()
        scores = {} if done.test is None else {"test": done.test}
        echo_json({"model": str(files.output), **model.header, "classes": classes, **scores})
    else:
        click.echo(describe_model(model, str(files.output)))
        if done.test is not None:
            click.echo(describe_scores(done.test))
    if done.fitted.interrupted:
        sys.exit(130)
