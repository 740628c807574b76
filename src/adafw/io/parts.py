"""Data larger than memory: a directory of .npy arrays that are mapped, not loaded.

manifest.json   format, kind ("csr" or "dense"), shape, dtype, the seed of a shuffle, ids from 0
data.npy        stored entries, or the dense rows
indices.npy     column of every stored entry (csr)
indptr.npy      where each row starts, int64 (csr)
y.npy           targets
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from adafw import checks
from adafw.io.arrays import write_npy
from adafw.io.atomic import replacing
from adafw.io.damage import DAMAGE, FileName, is_damage
from adafw.io.growing import CHUNK, Lines, Store
from adafw.io.libsvm import ZeroBased, check_dtype, check_width, first_id, lowest_id
from adafw.io.libsvm_text import NO_ID, Notation, parsed
from adafw.io.mapped import mapped
from adafw.io.meter import Meter
from adafw.io.packed import opened
from adafw.io.shuffled import Shuffled
from adafw.memory import machine_bytes
from adafw.rows import as_rows
from adafw.rows.csr import as_csr
from adafw.rows.disk import Room, ahead, in_advance, source_of

if TYPE_CHECKING:
    from scipy import sparse

    Matrix: TypeAlias = NDArray[np.floating] | sparse.csr_array

_FORMAT = 1  # of the manifest; raise it when the meaning of a file changes


def save_parts(directory: FileName, A: "ArrayLike | sparse.sparray", y: ArrayLike) -> None:
    """Writes A (array or sparse) and y so that `load_parts` can map them.

    An existing directory is replaced, and only once everything is written.
    """
    rows = as_rows(A)
    targets = np.asarray(y)
    if targets.shape != (rows.shape[0],):
        raise ValueError(f"y must have shape ({rows.shape[0]},), got {targets.shape}.")
    if targets.dtype.kind not in "biuf":
        raise ValueError(f"y must hold numbers, got {targets.dtype}.")
    with _new_directory(directory) as partial:
        write_npy(partial / "y.npy", targets)
        for name, array in rows.parts().items():
            write_npy(partial / f"{name}.npy", array)
        m, n = rows.shape
        Manifest(str(rows.describe()["name"]), (m, n), rows.dtype.name).write(partial)


def load_parts(
    directory: FileName, *, stream: bool | None = None
) -> tuple["Matrix", NDArray[np.generic]]:
    """Maps what `save_parts` or `libsvm_to_parts` wrote: (A, y), read-only.

    Nothing is loaded: the system reads the pages that are asked for and drops them when memory is
    short. Only the row starts (32 or 64 bits a row) may be copied. They are checked, and so are
    the column numbers, in one pass over them: compiled code relies on their range. That columns
    are sorted and unique in a row is taken as written.

    `stream` is for data that exceed memory, where a map is slow: `LinearModel` and all that fits
    then read the files in order, a second thread ahead, and batches as runs of rows. None means
    if the parts take more than half of the memory of the machine, or of this process's limit.
    """
    folder = Path(directory)
    manifest = Manifest.read(folder)
    m, n = manifest.shape
    if stream is None:
        stream = is_larger_than_memory(folder)
    y = _part(folder, "y", (m,))
    if manifest.kind == "dense":
        return _part(folder, "data", (m, n), manifest.dtype, stream), y
    indptr = _part(folder, "indptr", (m + 1,), "int64")
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{folder / 'indptr.npy'} must ascend from 0; write the parts again.")
    entries = (int(indptr[-1]),)
    data = _part(folder, "data", entries, manifest.dtype, stream)
    indices = _part(folder, "indices", entries, stream=stream)
    if indices.dtype not in (np.int32, np.int64):
        raise ValueError(
            f"{folder / 'indices.npy'} must hold int32 or int64, got {indices.dtype}; write the "
            "parts again."
        )
    for chunk in _chunks(indices):
        if chunk.min() < 0 or chunk.max() >= n:
            raise ValueError(
                f"{folder / 'indices.npy'} must hold column numbers from 0 to {n - 1}, got others; "
                "write the parts again."
            )
    return as_csr(data, indices, indptr, (m, n)), y


def is_larger_than_memory(folder: Path) -> bool:
    """Whether parts take more than half of the memory: the rest is for vectors and copies."""
    return sum(file.stat().st_size for file in folder.glob("*.npy")) > machine_bytes() / 2


def _chunks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """A mapped array in pieces, read ahead if it is streamed."""
    begins, found = range(0, array.size, CHUNK), source_of(array)
    if found is None:
        yield from (array[k : k + CHUNK] for k in begins)
        return
    (source, first), rooms = found, (Room(), Room())

    def read(k: int, slot: int) -> NDArray[Any]:
        last = min(begins[k] + CHUNK, array.size)
        return source.read(first + begins[k], first + last, rooms[slot])

    yield from ahead(read, len(begins))


def libsvm_to_parts(
    path: FileName,
    directory: FileName,
    *,
    n_features: int | None = None,
    zero_based: ZeroBased = "auto",
    dtype: DTypeLike = np.float64,
    block_bytes: int = 1 << 26,
    shuffle: int | None = None,
    progress: bool | None = None,
) -> tuple["Matrix", NDArray[np.generic]]:
    """Converts a LIBSVM file, packed or not, to parts, and maps them: (A, y).

    The file is read once, `block_bytes` of text at a time, parsed on all cores while what was
    parsed before is written; memory stays at about eight times that, whatever the file's size.
    Parameters as in `read_libsvm`, and:

    Parameters
    ----------
    shuffle : the seed of a random order of the rows, in which `adafw.Blocks` are as good as i.i.d.
        rows; None keeps the file's. All data are then written twice.
    progress : show bytes done and to do; None shows them on a terminal after a second.
    """
    notation = Notation(lowest_id(zero_based), check_dtype(dtype))
    checks.integer(block_bytes, "block_bytes", 1)
    if shuffle is not None:
        checks.integer(shuffle, "shuffle", 0)
    with _new_directory(directory) as partial, Meter("converting", path, progress) as meter:
        with opened(path) as file, Store(partial, notation.dtype) as store:
            ids = Ids()
            lines = in_advance(_lines(file, path, notation, block_bytes, ids, meter))
            if shuffle is None:
                for part in lines:
                    store.append(part)
            else:
                mixed = Shuffled(partial, shuffle, 4 * block_bytes, meter)
                mixed.take(lines, meter.total)
                mixed.give(store)
            if not store.rows:
                raise ValueError(f"{path} must hold at least one sample, got none.")
            shift = first_id(zero_based, ids.least)
            width = check_width(n_features, ids.largest - shift + 1, path)
            store.finish(width, shift)
            rows = store.rows
        manifest = Manifest("csr", (rows, width), notation.dtype.name, shuffle, shift == 0)
        manifest.write(partial)
    return load_parts(directory)


class Ids:
    """The smallest and the largest feature id seen."""

    least, largest = NO_ID, -1


def _lines(
    file: BinaryIO, path: FileName, notation: Notation, size: int, ids: Ids, meter: Meter
) -> Iterator[Lines]:
    """The samples of a file, so many bytes of text at a time; what ids there are is noted."""
    for samples in parsed(file, path, notation, size):
        ids.least = min(ids.least, samples.least_id)
        ids.largest = max(ids.largest, samples.largest_id)
        meter.at(file)
        yield Lines(samples.data, samples.indices, np.diff(samples.indptr), samples.y)


def _new_directory(directory: FileName) -> AbstractContextManager[Path]:
    """A directory to fill that takes the place of `directory`; only parts are ever replaced."""
    target = Path(directory)
    if target.exists() and not (target / "manifest.json").is_file():
        raise ValueError(
            f"{target} must be new or hold parts, got something else; remove it first."
        )
    return replacing(target, folder=True)


@dataclass(frozen=True)
class Manifest:
    """What the arrays of a directory are."""

    kind: str
    shape: tuple[int, int]
    dtype: str
    #: The seed of the rows' random order; None if they are in their file's.
    shuffle: int | None = None
    #: Whether ids of the LIBSVM file counted from 0; None if there was none.
    zero_based: bool | None = None

    def write(self, folder: Path) -> None:
        words = {
            "format": _FORMAT, "kind": self.kind, "shape": [int(n) for n in self.shape],
            "dtype": self.dtype, "shuffle": self.shuffle, "zero_based": self.zero_based,
        }  # fmt: skip
        (folder / "manifest.json").write_text(json.dumps(words, indent=2) + "\n")

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        path = folder / "manifest.json"
        try:
            words = json.loads(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            raise FileNotFoundError(
                f"{folder} must be a directory made by save_parts or libsvm_to_parts: it has no "
                "manifest.json."
            ) from None
        except (ValueError, RecursionError):
            raise ValueError(f"{path} must be a manifest of parts, got something else.") from None
        version = words.get("format") if isinstance(words, dict) else None
        if version != _FORMAT:
            raise ValueError(
                f"{folder} must have parts of format {_FORMAT}, got {version}; write them again "
                "with this version."
            )
        shape = words.get("shape")
        sizes = isinstance(shape, list) and [type(n) for n in shape] == [int, int]
        if (
            not (sizes and min(shape) >= 1)
            or words.get("kind") not in ("csr", "dense")
            or words.get("dtype") not in ("float32", "float64")
        ):
            raise ValueError(f"{path} must be a manifest of parts, got a damaged one.")
        seed, zero = words.get("shuffle"), words.get("zero_based")
        return cls(
            words["kind"],
            (shape[0], shape[1]),
            words["dtype"],
            seed if isinstance(seed, int) else None,
            zero if isinstance(zero, bool) else None,
        )


def _part(
    folder: Path,
    name: str,
    shape: tuple[int, ...],
    dtype: str | None = None,
    stream: bool = False,
) -> NDArray[Any]:
    """One array of the directory; mapped, but for one without entries, which cannot be."""
    path = folder / f"{name}.npy"
    try:
        array = mapped(path, stream) if shape[0] else np.load(path, allow_pickle=False)
    except DAMAGE as error:
        if not is_damage(error):
            raise
        raise ValueError(f"{path} must be a whole .npy file; write the parts again.") from None
    numbers = array.dtype.kind in "biuf" and array.flags.c_contiguous
    if array.shape != shape or not numbers or (dtype is not None and array.dtype != dtype):
        raise ValueError(
            f"{path} must hold {dtype or 'numbers'} of shape {shape} as the manifest says, got "
            f"{array.dtype} of shape {array.shape}; write the parts again."
        )
    return array
