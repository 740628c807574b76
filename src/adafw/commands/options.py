"""Options that several commands share, and how their values are read."""

import json
import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click

from adafw.fitting.settings import Settings
from adafw.typing import Json, JsonTable

FORMATS = ("libsvm", "csv", "parquet", "npy", "npz", "parts")
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


#: Options whose form on the command line is not simply --name VALUE.
_FORMS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "fit_intercept": (("--intercept/--no-intercept", "fit_intercept"), {"help": None}),
    "constraint_params": (
        ("-p", "--param", "constraint_params"),
        {"multiple": True, "metavar": "KEY=VALUE", "default": (), "type": str},
    ),
    "learning_rate": (("--learning-rate",), {"type": str}),
    "radius": (
        ("--radius",),
        {
            "type": str,
            "help": "Size of the set (tau), for those that have "
            "one; cv chooses it by cross-validation.",
        },
    ),
    "class_weight": (("--class-weight",), {"type": click.Choice(["balanced"])}),
    "seed": (("--seed",), {"type": click.IntRange(0)}),
}


def settings_options(command: Command) -> Command:
    """One option for every field of `Settings`; `settings_of` reads them."""
    # An older word for --max-seconds.
    command = click.option("--time-limit", type=float, hidden=True)(command)
    for option in reversed(fields(Settings)):
        names, form = _FORMS.get(option.name, ((f"--{option.name.replace('_', '-')}",), {}))
        how = {
            "default": option.default,
            "show_default": option.default is not None,
            "type": _type(option),
            "help": f"{option.metadata['help'][0].upper()}{option.metadata['help'][1:]}.",
            **form,
        }
        command = click.option(*names, **how)(command)
    return command


def settings_of(options: JsonTable) -> Settings:
    """Takes the options of `settings_options` out of those of a call."""
    limit = options.pop("time_limit")
    given = {option.name: options.pop(option.name) for option in fields(Settings)}
    given["constraint_params"] = parameters(given["constraint_params"]) or None
    given["learning_rate"] = as_number(given["learning_rate"])
    try:
        given["radius"] = float(given["radius"])
    except ValueError:
        raise click.UsageError(
            f"--radius must be a number > 0 or cv, got {given['radius']!r}."
        ) from None
    if given["max_seconds"] is None:
        given["max_seconds"] = limit
    return Settings(**given)


def in_options(sentence: str) -> str:
    """A sentence about parameters of Python in the words of the command line.

    constraint_params={'lower': ...} becomes -p lower=VALUE, constraint='box' --constraint box,
    max_iter --max-iter.
    """
    sentence = re.sub(r"constraint_params=\{'(\w+)': \.\.\.\}", r"-p \1=VALUE", sentence)
    sentence = sentence.replace("constraint_params must be None", "no -p is taken")
    for option in fields(Settings):
        names = _FORMS.get(option.name, ((f"--{option.name.replace('_', '-')}",), {}))[0]
        sentence = re.sub(rf"\b{option.name}='([^' ]+)'", rf"{names[0]} \1", sentence)
        if "_" in option.name:  # other names are words that mean more than an option
            sentence = re.sub(rf"(?<![\w-]){option.name}\b", names[0], sentence)
    return sentence


def _type(option: "Field[Any]") -> type | None:
    """The plain type among those that a field takes."""
    hint = get_type_hints(Settings)[option.name]
    plain = [kind for kind in get_args(hint) or (hint,) if kind in (int, float, str)]
    return plain[0] if plain else None


def as_number(text: str) -> Json:
    """A number if it is one, else the text; a list of numbers where there are commas."""
    if "," in text:
        return [as_number(part) for part in text.split(",")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def parameters(pairs: tuple[str, ...]) -> JsonTable:
    """key=value pairs; a value @FILE is read from a file of numbers.

    A .npy file is an array; of text, lines of one number are a vector, of several (separated by
    commas or blanks) a matrix. "none" stands for a bound that there is not.
    """
    found: JsonTable = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals:
            raise click.UsageError(f"--param must be key=value, got {pair!r}.")
        if text.startswith("@"):
            found[key] = _numbers_in(text[1:])
        else:
            value = _bound(as_number(text))
            found[key] = tuple(value) if key == "shape" and isinstance(value, list) else value
    return found


def _bound(value: Json) -> Json:
    """None for the word "none", alone or in a list."""
    if isinstance(value, list):
        return [_bound(part) for part in value]
    return None if value == "none" else value


def _numbers_in(path: str) -> Json:
    """A vector or a matrix of numbers from a file."""
    if path.endswith(".npy"):
        import numpy as np

        return np.load(path, allow_pickle=False)
    lines = [line.replace(",", " ").split() for line in Path(path).read_text().splitlines()]
    rows = [[_bound(as_number(word)) for word in words] for words in lines if words]
    return [row[0] for row in rows] if all(len(row) == 1 for row in rows) else rows


def refuse_same_file(
    read: Mapping[str, str | Path | None], written: Mapping[str, str | Path | None]
) -> None:
    """Refuses to write a file that is read, or to write one for two reasons; links are followed."""
    seen: dict[str, str] = {}
    for option, path in [*read.items(), *written.items()]:
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in seen and option in written:
            raise click.UsageError(
                f"{option} must be another file than {seen[place]}, got {path} for both."
            )
        seen.setdefault(place, option)


def clean(value: Json) -> Json:
    """Plain data with null for what JSON has no number for."""
    if isinstance(value, dict):
        return {key: clean(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [clean(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def echo_json(value: Json) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(clean(value)))
