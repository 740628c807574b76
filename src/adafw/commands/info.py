"""adafw info: what a file holds, or what is installed."""

import click

from adafw.commands.options import echo_json


@click.command(name="info", short_help="What a model file holds, or what is installed.")
@click.argument("file", type=click.Path(), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(file: str | None, as_json: bool) -> None:
    """Prints settings, certificate and data fingerprint of a model FILE; without one, versions.

    Exit codes: 0 done, 1 the file could not be read, 2 it is no model file.
    """
    if file is None:
        from adafw.versions import show_versions, versions

        if as_json:
            echo_json(versions())
        else:
            show_versions()
        return
    from adafw.commands.fitting import describe_model
    from adafw.fitting.model import LinearModelFile

    model = LinearModelFile.load(file)
    if as_json:
        classes = None if model.classes is None else model.classes.tolist()
        echo_json({**model.header, "classes": classes, "n_features": model.n_features})
    else:
        click.echo(describe_model(model, file))
