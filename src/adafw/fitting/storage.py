"""Arrays and a JSON header in one .npz file, no pickle, versioned: models and checkpoints."""

import json
import os
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.io.arrays import TooLarge, read_npz, write_npz
from adafw.io.damage import DAMAGE, is_damage
from adafw.typing import Json, Plain


def write_arrays(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: dict[str, Plain],
    arrays: dict[str, NDArray[Any]],
) -> None:
    """An .npz file with a JSON header, whole or not at all."""
    text = json.dumps({"kind": kind, "format": version, **header}).encode()
    write_npz(path, {"header": np.frombuffer(text, np.uint8), **arrays})


def read_arrays(
    path: str | os.PathLike[str], kind: str, version: int, known: str, oldest: int = 1
) -> tuple[dict[str, Json], dict[str, NDArray[Any]]]:
    """(header, arrays) of a file of this kind; one that is not, too old or newer, is refused.

    `known` is a pattern of the arrays' names; others are not looked at.
    """
    if os.path.isdir(path):
        raise ValueError(f"{path} must be a file, got a directory.")
    # Names that are not known are not read: they may be of any size.
    pattern = re.compile(f"header|{known}")
    try:
        arrays = read_npz(path, lambda name: bool(pattern.fullmatch(name)), packed=False)
        header = json.loads(arrays.pop("header").tobytes())
        found, of_version = header.pop("kind"), int(header.pop("format"))
    except TooLarge:
        raise
    except DAMAGE as error:
        if not is_damage(error):  # one that is missing or unreadable says so itself
            raise
        raise ValueError(
            f"{path} must be an {kind} file, got something else or only a part of one."
        ) from None
    if found != kind:
        raise ValueError(f"{path} must be an {kind} file, got an {found} file.")
    if of_version > version:
        raise ValueError(
            f"{path} has format {of_version}, this version of adafw reads up to {version}; "
            "upgrade adafw."
        )
    if of_version < oldest:
        raise ValueError(
            f"{path} has format {of_version} of an older adafw, this version reads from {oldest} "
            "on; start anew, or go on with the version that wrote it."
        )
    return header, arrays
