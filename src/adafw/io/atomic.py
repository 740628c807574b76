"""Files that are there whole or not at all."""

import errno
import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What readers of packed files and arrays raise at bytes that are not theirs, or not all there.
DAMAGE = (
    ValueError, TypeError, AttributeError, KeyError, EOFError, OSError, OverflowError, MemoryError,
    NotImplementedError, RuntimeError, SyntaxError, struct.error, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip


def is_damage(error: BaseException) -> bool:
    """Whether one of DAMAGE tells of the bytes, not of the disk; a seek before the start does."""
    return not isinstance(error, OSError) or error.errno in (None, errno.EINVAL)


@contextmanager
def replacing(path: str | os.PathLike[str], folder: bool = False) -> Iterator[Path]:
    """A name beside `path` to write a file to; it takes the place of `path` if all went well.

    What stood at `path` survives any failure, and nothing partial does. With `folder`, the same
    for a directory, which is made.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
    try:
        if folder:
            partial.mkdir()
        yield partial
        for file in partial.iterdir() if folder else [partial]:
            with open(file, "rb") as written:
                os.fsync(written.fileno())
        aside = partial.with_suffix(".old")
        if folder and target.is_dir():  # a full directory cannot be replaced in one go
            os.replace(target, aside)
        os.replace(partial, target)
        _remove(aside)
    except BaseException:
        _remove(partial)
        raise


def discard_partial(folder: Path) -> None:
    """Removes what a process that was killed while `replacing` has left in a folder."""
    for partial in folder.glob(".*.part"):
        _remove(partial)


def _remove(path: Path) -> None:
    if path.is_dir():
        from shutil import rmtree  # dear to import, and seldom needed

        rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
