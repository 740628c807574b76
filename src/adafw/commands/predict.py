"""adafw predict: a model and a data file in, one line a row out."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from adafw.commands.options import FORMATS, refuse_same_file


@click.command(name="predict", short_help="Predict with a model.")
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    help="File to write.  [default: standard output]",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Format of the data.  [default: by the file's name]",
)
@click.option("--proba", is_flag=True, help="Probabilities of the classes, in their order.")
@click.option("--decision", is_flag=True, help="Scores <a, x> + b.")
def command(
    model: str, data: str, output: str | None, format_: str | None, proba: bool, decision: bool
) -> None:  # fmt: skip
    """Writes a prediction of MODEL for every row of DATA, one a line.

    The data, a file or a directory of parts, are read in pieces: larger than memory is fine, but
    for npz. A target column
    is ignored where the file has one. CSV and Parquet columns are matched by name.

    Exit codes: 0 done, 1 files could not be read or written, 2 wrong usage or bad data, 130
    interrupted; a file is written whole or not at all.
    """
    import numpy as np

    from adafw.fitting.model import LinearModelFile
    from adafw.io.tables import read_pieces

    if proba and decision:
        raise click.UsageError("--proba and --decision exclude one another.")
    refuse_same_file({"MODEL": model, "DATA": data}, {"--output": output})
    fitted = LinearModelFile.load(model)
    predictor = fitted.predictor
    with _sink(output) as file:
        for piece in read_pieces(data, format_, columns_of(fitted), np.float64):
            if proba:
                rows = predictor.predict_proba(piece.X)
            elif decision:
                rows = predictor.decision(piece.X)
            else:
                rows = predictor.predict(piece.X)
            file.write(_lines(rows))


def columns_of(model: Any) -> Any:
    """Which columns of a file the model wants."""
    from adafw.io.tables import ColumnChoice

    header = model.header
    return ColumnChoice(
        features=None if header["features"] is None else tuple(header["features"]),
        target=header["target"],
        n_features=model.n_features,
        zero_based="auto" if header["zero_based"] is None else header["zero_based"],
    )


def _lines(rows: Any) -> str:
    """Numbers with all their digits, several of a row joined by commas."""
    if rows.ndim == 1:
        return "".join(f"{_word(value)}\n" for value in rows.tolist())
    return "".join(",".join(_word(value) for value in row) + "\n" for row in rows.tolist())


def _word(value: object) -> str:
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return str(value)


@contextmanager
def _sink(output: str | None) -> Iterator[TextIO]:
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    from adafw.io.atomic import replacing

    with replacing(output) as partial, open(partial, "w", encoding="utf-8") as file:
        yield file
