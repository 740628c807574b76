"""Files that are there whole or not at all."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new name beside `path` to write to; it takes the place of `path` if all went well.

    A file or a directory; whatever stood at `path` survives any failure, and no partial file does.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        yield partial
        if partial.is_dir():
            if target.is_dir():
                shutil.rmtree(target)
        else:
            with open(partial, "rb") as file:
                os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes a text file, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
