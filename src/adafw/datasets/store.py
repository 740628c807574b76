"""The data directory: where files are looked for, and how they get there."""

import os
from pathlib import Path
from typing import Any, Literal, get_args

#: "auto" takes the original or a sample of it, "any" the stand-in too where both are missing.
Source = Literal["auto", "any", "original", "sample", "stand-in"]


class DataMissing(FileNotFoundError):
    """A data set is neither in the data directory nor to be had from its source."""


def data_directory() -> Path:
    """$ADAFW_DATA, or the user's cache directory."""
    given = os.environ.get("ADAFW_DATA")
    if given:
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("adafw"))


def find(*names: str) -> Path | None:
    """The first of these files that lies in the data directory."""
    paths = (data_directory() / name for name in names)
    return next((path for path in paths if path.is_file()), None)


def fetch(what: str, url: str, names: tuple[str, ...], checksum: str | None) -> Path:
    """Downloads a file into the data directory under the first name, or raises `DataMissing`.

    `checksum` is a SHA-256 or None. Nothing stays behind if the transfer breaks or it differs.
    """
    import pooch

    known = None if checksum is None else f"sha256:{checksum}"
    try:
        return Path(pooch.retrieve(url, known, fname=names[0], path=data_directory()))
    except (OSError, ValueError) as error:  # no network, no permission; another checksum
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
        raise missing(what, names, url, reason) from None


def missing(what: str, names: tuple[str, ...], url: str = "", reason: str = "") -> DataMissing:
    """The error that says what is missing, where it was looked for, and how to get it."""
    text = f"{what} was not found: {data_directory()} has no {' and no '.join(names)}"
    if url:
        text += f", and fetching it from {url} failed ({reason})"
    get = f"put {names[0]} there" + (f" (from {url})" if url else "")
    return DataMissing(f"{text}; {get}, or set ADAFW_DATA to the directory that has it.")


def check_source(source: Any) -> None:
    """Refuses an unknown source."""
    if source not in get_args(Source):
        raise ValueError(f"source must be one of {', '.join(get_args(Source))}, got {source!r}.")
