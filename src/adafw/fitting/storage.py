"""Arrays and a JSON header in one .npz file, no pickle, versioned: models and checkpoints."""

import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.io.atomic import replacing
from adafw.io.damage import DAMAGE, is_damage
from adafw.typing import Plain


def write_arrays(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: dict[str, Plain],
    arrays: dict[str, NDArray[Any]],
) -> None:
    """An .npz file with a JSON header, whole or not at all."""
    text = json.dumps({"kind": kind, "format": version, **header}).encode()
    with replacing(path) as partial, open(partial, "wb") as file:
        np.savez(file, header=np.frombuffer(text, np.uint8), **arrays)  # type: ignore[arg-type]


def read_arrays(
    path: str | os.PathLike[str], kind: str, version: int, oldest: int = 1
) -> tuple[dict[str, Plain], dict[str, NDArray[Any]]]:
    """(header, arrays) of a file of this kind; one that is not, too old or newer, is refused."""
    if os.path.isdir(path):
        raise ValueError(f"{path} must be a file, got a directory.")
    with open(path, "rb") as stream:  # a file that is missing or unreadable says so itself
        try:
            with np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            found, of_version = header.pop("kind"), int(header.pop("format"))
        except DAMAGE as error:
            if not is_damage(error):
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
