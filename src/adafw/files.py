"""Files that are there whole or not at all."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str], folder: bool = False) -> Iterator[Path]:
    """A name beside `path` to write a file to; it takes the place of `path` if all went well.

    What stood at `path` survives any failure, and nothing partial does. With `folder`, the same
    for a directory, which is made.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        if folder:
            partial.mkdir()
        yield partial
        for file in partial.iterdir() if folder else [partial]:
            with open(file, "rb") as written:
                os.fsync(written.fileno())
        if folder and target.is_dir():  # a full directory cannot be replaced in one go
            shutil.rmtree(target)
        os.replace(partial, target)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True) if folder else partial.unlink(missing_ok=True)
        raise


def discard_partial(folder: Path) -> None:
    """Removes what a process that was killed while `replacing` has left in a folder."""
    for partial in folder.glob(".*.part"):
        shutil.rmtree(partial) if partial.is_dir() else partial.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
