"""What goes wrong with the bytes of a file, told apart from what goes wrong with the disk."""

import errno
import lzma
import os
import struct
import tokenize
import zipfile
import zlib
from typing import TypeAlias

#: A file as users name it.
FileName: TypeAlias = str | os.PathLike[str]

#: What readers of packed files and arrays raise at bytes that are not theirs, or not all there.
DAMAGE = (
    ValueError, TypeError, AttributeError, KeyError, EOFError, OSError, OverflowError, MemoryError,
    NotImplementedError, RuntimeError, SyntaxError, struct.error, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip


class FileChanged(OSError):
    """Another process wrote to a file, or cut it short, while it was read."""

    def __init__(self, path: FileName) -> None:
        super().__init__(f"{path} changed while it was read; read it again once it is complete.")


def is_damage(error: BaseException) -> bool:
    """Whether one of DAMAGE tells of the bytes, not of the disk; a seek before the start does."""
    if isinstance(error, FileChanged):
        return False
    return not isinstance(error, OSError) or error.errno in (None, errno.EINVAL)


def reason(error: BaseException) -> str:
    """What a reader said, on one line, if it said anything."""
    said = " ".join(str(error).split()).removesuffix(".")
    return f": {said}" if said else ""
