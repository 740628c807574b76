"""Options that several commands share, and how their values are read."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FORMATS = ("libsvm", "csv", "parquet", "npy", "npz")
Command = Callable[..., Any]


def data_options(command: Command) -> Command:
    """--format, --target, --labels."""
    for option in (
        click.option(
            "--labels", type=click.Path(dir_okay=False), help="Targets in a .npy file of their own."
        ),
        click.option(
            "--target",
            help="Column of the targets in CSV, Parquet and npy files: a name or a number from 0."
            "  [default: the last]",
        ),
        click.option(
            "--format", "format_", type=click.Choice(FORMATS),
            help="Format of the data.  [default: by the file's name]",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


def as_number(text: str) -> Any:
    """A number if it is one, else the text; a list of numbers where there are commas."""
    if "," in text:
        return [as_number(part) for part in text.split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parameters(pairs: tuple[str, ...]) -> dict[str, Any]:
    """key=value pairs; a value @FILE is read from a file of numbers, one a line."""
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--param must be key=value, got {pair!r}.")
        if text.startswith("@"):
            words = Path(text[1:]).read_text().split()
            found[key] = [as_number(word) for word in words]
        else:
            value = as_number(text)
            found[key] = tuple(value) if key == "shape" and isinstance(value, list) else value
    return found


def clean(value: Any) -> Any:
    """Plain data with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: clean(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [clean(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def echo_json(value: Any) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(clean(value)))
