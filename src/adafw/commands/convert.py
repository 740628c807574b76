"""adafw convert: LIBSVM text in, a directory of parts out."""

import click

from adafw.commands.options import echo_json, refuse_same_file


@click.command(name="convert", short_help="Convert LIBSVM text to parts.")
@click.argument("data", type=click.Path(dir_okay=False))
@click.argument("parts", type=click.Path(file_okay=False))
@click.option(
    "--shuffle",
    type=click.IntRange(0),
    metavar="SEED",
    help="Write the rows in a random order, in which blocks of them are as good as single rows.",
)
@click.option("--n-features", type=click.IntRange(1), help="Columns, if more than occur.")
@click.option(
    "--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--quiet", is_flag=True, help="No live line.")
def command(
    data: str, parts: str, shuffle: int | None, n_features: int | None, dtype: str, as_json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Converts DATA, LIBSVM text (plain, gz, bz2 or xz), to PARTS, a directory of arrays.

    The text is read once, in memory of about half a gigabyte whatever its size, on all cores;
    progress is told in bytes. `adafw fit PARTS` then starts at once, also where the data are larger
    than memory. With --shuffle all data are written twice. Parts that are there are replaced.

    Exit codes: 0 done, 1 files could not be read or written, 2 wrong usage or bad data, 130
    interrupted; PARTS are there whole or not at all.
    """
    from adafw.io.parts import libsvm_to_parts

    refuse_same_file({"DATA": data}, {"PARTS": parts})
    A, _ = libsvm_to_parts(
        data, parts, n_features=n_features, dtype=dtype, shuffle=shuffle,
        progress=False if quiet else None,
    )  # fmt: skip
    m, n = A.shape
    entries = int(A.nnz)  # type: ignore[union-attr]
    if as_json:
        echo_json({"parts": parts, "rows": m, "features": n, "entries": entries})
    else:
        click.echo(f"{parts}: {m} rows of {n} features, {entries} entries")
