"""Data larger than memory: a directory of .npy arrays that are mapped, not loaded.

manifest.json   format, kind ("csr" or "dense"), shape, dtype
data.npy        stored entries, or the dense rows
indices.npy     column of every stored entry (csr)
indptr.npy      where each row starts, int64 (csr)
y.npy           targets
"""

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw import checks
from adafw.io.atomic import replacing
from adafw.io.libsvm import (
    ZeroBased,
    as_csr,
    blocks,
    check_dtype,
    check_width,
    first_id,
    lowest_id,
    parse_block,
)
from adafw.rows import as_rows

_FORMAT = 1  # of the manifest; raise it when the meaning of a file changes
_CHUNK = 1 << 22  # entries handled at a time where a whole array could be too large


def save_parts(directory: str | os.PathLike[str], A: Any, y: Any) -> None:
    """Writes A (array or sparse) and y so that `load_parts` can map them.

    An existing directory is replaced, and only once everything is written.
    """
    rows = as_rows(A)
    targets = np.asarray(y)
    if targets.shape != (rows.shape[0],):
        raise ValueError(f"y must have shape ({rows.shape[0]},), got {targets.shape}.")
    with _new_directory(directory) as partial:
        np.save(partial / "y.npy", targets)
        for name, array in rows.parts().items():
            np.save(partial / f"{name}.npy", array)
        _write_manifest(partial, rows.describe()["name"], rows.shape, rows.dtype)


def load_parts(directory: str | os.PathLike[str]) -> tuple[Any, NDArray[Any]]:
    """Maps what `save_parts` or `libsvm_to_parts` wrote: (A, y), read-only.

    Nothing is loaded: the system reads the pages that are asked for and drops them when memory is
    short. Only the row starts (32 or 64 bits a row) may be copied. That columns are sorted and
    unique is taken from the manifest, not checked again.
    """
    folder = Path(directory)
    manifest = _read_manifest(folder)
    m, n = (int(size) for size in manifest["shape"])
    y = _mapped(folder, "y", (m,))
    if manifest["kind"] == "dense":
        return _mapped(folder, "data", (m, n), manifest["dtype"]), y
    indptr = _mapped(folder, "indptr", (m + 1,), "int64")
    entries = (int(indptr[-1]),)
    data = _mapped(folder, "data", entries, manifest["dtype"])
    return as_csr(data, _mapped(folder, "indices", entries), indptr, (m, n)), y


def libsvm_to_parts(
    path: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    block_bytes: int = 1 << 26,
) -> tuple[Any, NDArray[Any]]:
    """Converts a LIBSVM file, packed or not, to parts, and maps them: (A, y).

    The file is read once, `block_bytes` of text at a time; memory stays at about four times that,
    whatever the size of the file. Parameters as in `read_libsvm`.
    """
    kind, lowest = check_dtype(dtype), lowest_id(zero_based)
    checks.integer(block_bytes, "block_bytes", 1)
    least, largest, line, entries = 1 << 62, -1, 1, 0
    with _new_directory(directory) as partial:
        with (
            _Growing(partial / "data.npy", kind) as data,
            _Growing(partial / "indices.npy", np.dtype(np.int32)) as indices,
            _Growing(partial / "indptr.npy", np.dtype(np.int64)) as indptr,
            _Growing(partial / "y.npy", np.dtype(np.float64)) as y,
        ):
            indptr.append(np.zeros(1, np.int64))
            for text in blocks(path, block_bytes):
                block = parse_block(text, str(path), line, lowest, kind)
                if block.indices.dtype == np.int64:
                    indices.widen()
                data.append(block.data)
                indices.append(block.indices)
                indptr.append(block.indptr[1:] + entries)
                y.append(block.y)
                entries += len(block.data)
                line += int(np.count_nonzero(text == 10))
                least, largest = min(least, block.least_id), max(largest, block.largest_id)
            if not y.size:
                raise ValueError(f"{path} must hold at least one sample, got none.")
            shift = first_id(zero_based, least)
            width = check_width(n_features, largest - shift + 1, str(path))
            if entries > np.iinfo(np.int32).max:
                indices.widen()  # scipy wants ids and row starts of one width
            indices.subtract(shift)
        _write_manifest(partial, "csr", (y.size, width), kind)
    return load_parts(directory)


class _Growing:
    """A one-dimensional .npy file that grows at its end; its header is right once closed."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.path, self.dtype, self.size = path, dtype, 0

    def __enter__(self) -> "_Growing":
        self.file = open(self.path, "wb+")
        self._write_header()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if kind is None:
            self._write_header()
        self.file.close()

    def _write_header(self) -> None:
        # numpy pads a header so that its length does not change with the number of entries.
        self.file.seek(0)
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.size,)}
        np.lib.format.write_array_header_1_0(self.file, header)

    def append(self, values: NDArray[Any]) -> None:
        """Writes values of a dtype that fits at the end."""
        self.file.write(values.astype(self.dtype, casting="safe", copy=False).data)
        self.size += values.size

    def widen(self) -> None:
        """Turns 32-bit into 64-bit integers, chunk by chunk from the end, in place."""
        if self.dtype.itemsize == 8:
            return
        self.dtype = np.dtype(np.int64)
        start = self._data_start()
        for begin in reversed(range(0, self.size, _CHUNK)):
            n = min(_CHUNK, self.size - begin)
            self.file.seek(start + 4 * begin)
            narrow = np.frombuffer(self.file.read(4 * n), np.int32)
            self.file.seek(start + 8 * begin)
            self.file.write(narrow.astype(np.int64).data)
        self.file.seek(0, os.SEEK_END)

    def subtract(self, shift: int) -> None:
        """Subtracts a number from every entry, chunk by chunk."""
        start = self._data_start()
        for begin in range(0, self.size if shift else 0, _CHUNK):
            n = min(_CHUNK, self.size - begin)
            at = start + self.dtype.itemsize * begin
            self.file.seek(at)
            values = np.frombuffer(self.file.read(n * self.dtype.itemsize), self.dtype)
            self.file.seek(at)
            self.file.write((values - self.dtype.type(shift)).data)

    def _data_start(self) -> int:
        self._write_header()
        return self.file.tell()


def _new_directory(directory: str | os.PathLike[str]) -> Any:
    """A directory to fill that takes the place of `directory`; only parts are ever replaced."""
    target = Path(directory)
    if target.exists() and not (target / "manifest.json").is_file():
        raise ValueError(
            f"{target} must be new or hold parts, got something else; remove it first."
        )
    return replacing(target, folder=True)


def _write_manifest(folder: Path, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    manifest = {
        "format": _FORMAT, "kind": kind, "shape": [int(n) for n in shape], "dtype": dtype.name
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def _read_manifest(folder: Path) -> Any:
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(
            f"{folder} must be a directory made by save_parts or libsvm_to_parts: it has no "
            "manifest.json."
        ) from None
    if manifest.get("format") != _FORMAT:
        raise ValueError(
            f"{folder} must have parts of format {_FORMAT}, got {manifest.get('format')}; "
            "write them again with this version."
        )
    return manifest


def _mapped(
    folder: Path, name: str, shape: tuple[int, ...], dtype: str | None = None
) -> NDArray[Any]:
    # A plain array over the map: numpy's own memmap class costs microseconds at every slice.
    array = np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r" if shape[0] else None))
    if array.shape != shape or (dtype is not None and array.dtype != dtype):
        raise ValueError(
            f"{folder / name}.npy must hold {dtype or 'numbers'} of shape {shape} as the manifest "
            f"says, got {array.dtype} of shape {array.shape}; write the parts again."
        )
    return array
