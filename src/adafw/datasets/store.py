"""The data directory: where files are looked for, and how they get there."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from numpy.typing import NDArray

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


@dataclass(frozen=True)
class Place:
    """Where a data set is to be had: names of its file and of a sample of it, and its address.

    `sample` is empty where there is none. `checksum` is the SHA-256 of what the address gives, None
    if none is published.
    """

    what: str
    files: tuple[str, ...]
    sample: str
    url: str
    checksum: str | None = None

    def file(self) -> Path:
        """The file itself, downloaded where the data directory has none."""
        return find(*self.files) or self.fetch()

    def locate(self, source: Source) -> tuple[str, Path]:
        """("original", file), ("sample", file) or ("stand-in", nothing), or `DataMissing`."""
        if source not in get_args(Source):
            allowed = ", ".join(get_args(Source))
            raise ValueError(f"source must be one of {allowed}, got {source!r}.")
        if source == "stand-in":
            return "stand-in", Path()
        for kind, names in (("original", self.files), ("sample", (self.sample,))):
            path = find(*names)
            if path is not None and source in ("auto", "any", kind):
                return kind, path
        if source == "sample":
            raise missing(f"the sample of {self.what}", (self.sample,))
        try:
            return "original", self.fetch()
        except DataMissing:
            if source == "any":
                return "stand-in", Path()
            raise

    def fetch(self) -> Path:
        """Downloads the file into the data directory; a transfer that fails leaves nothing."""
        import pooch

        known = None if self.checksum is None else f"sha256:{self.checksum}"
        try:
            return Path(pooch.retrieve(self.url, known, self.files[0], data_directory()))
        except (OSError, ValueError) as error:  # no network, no permission; another checksum
            reason = f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
            names = (*self.files, self.sample) if self.sample else self.files
            raise missing(self.what, names, self.url, reason) from None


def arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    """These arrays of an .npz file of the data directory, in this order."""
    # Imported here: most users of this module have no file to read.
    from adafw.io.arrays import read_npz
    from adafw.io.damage import DAMAGE, is_damage

    try:
        found = read_npz(path, names.__contains__, packed=True)
        return [found[name] for name in names]
    except DAMAGE as error:
        if not is_damage(error):
            raise
        raise ValueError(
            f"{path} must be an .npz file with {', '.join(names)}, got another or a damaged one; "
            "remove it."
        ) from None


def missing(what: str, names: tuple[str, ...], url: str = "", reason: str = "") -> DataMissing:
    """The error that says what is missing, where it was looked for, and how to get it."""
    text = f"{what} was not found: {data_directory()} has no {' and no '.join(names)}"
    if url:
        text += f", and fetching it from {url} failed ({reason})"
    get = f"put {names[0]} there" + (f" (from {url})" if url else "")
    return DataMissing(f"{text}; {get}, or set ADAFW_DATA to the directory that has it.")
