"""Arrays in numpy's own formats, .npy and .npz, read with distrust.

A header is a claim: nothing of the size it claims is allocated before the bytes are known to be
there. Objects (pickle) are never loaded.
"""

import io
import math
import os
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from adafw.io.atomic import replacing
from adafw.io.damage import DAMAGE, FileName, is_damage, reason
from adafw.io.packed import opened
from adafw.memory import machine_bytes, readable

_AT_ONCE = 1 << 24  # bytes that are asked for without knowing whether they are there


@dataclass(frozen=True)
class NpyHeader:
    """What the head of an .npy file says, and where it ends."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    by_columns: bool
    end: int

    @property
    def nbytes(self) -> int:
        """Bytes of the entries, in Python's integers, which do not overflow."""
        return math.prod(self.shape) * self.dtype.itemsize

    @classmethod
    def read(cls, file: IO[bytes]) -> "NpyHeader":
        """Reads the head; what is wrong with it raises one of DAMAGE."""
        version = np.lib.format.read_magic(file)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:  # 3.0 is for fields with names, which no file of ours has
            raise ValueError(f"arrays of format {version} are not read here")
        with warnings.catch_warnings():
            # Headers of Python 2 are fine; whoever wrote them is not asked to do so again.
            warnings.simplefilter("ignore", UserWarning)
            shape, by_columns, dtype = readers[version](file)
        if dtype.hasobject or dtype.itemsize == 0 or any(n < 0 for n in shape):
            raise ValueError(f"arrays of {dtype} and shape {shape} are not read here")
        return cls(shape, dtype, by_columns, file.tell())


class NpyMatrix:
    """An .npy file of a matrix of numbers, of which some rows are read at a time, as copies."""

    def __init__(self, file: BinaryIO, path: FileName) -> None:
        try:
            self.header = NpyHeader.read(file)
        except DAMAGE as error:
            if not is_damage(error):
                raise
            raise ValueError(
                f"{path} must be a whole .npy file of numbers{reason(error)}."
            ) from None
        if len(self.header.shape) != 2 or self.header.dtype.kind not in "biuf":
            raise ValueError(f"{path} must hold a matrix of numbers.")
        self.file, self.path = file, path
        self._by_columns: NDArray[np.generic] | None = None

    def rows(self, start: int, stop: int) -> NDArray[np.generic]:
        """Rows start .. stop - 1; of a matrix stored by rows, the next ones."""
        m, n = self.header.shape
        if not self.header.by_columns:
            return self._numbers((stop - start) * n).reshape(stop - start, n)
        if not isinstance(self.file, io.BufferedReader):
            # Packed: going back is dear, so all columns are kept.
            if self._by_columns is None:
                self._by_columns = self._numbers(m * n).reshape(n, m).T
            return self._by_columns[start:stop]
        part = np.empty((stop - start, n), self.header.dtype)
        for j in range(n):
            self.file.seek(self.header.end + (j * m + start) * self.header.dtype.itemsize)
            part[:, j] = self._numbers(stop - start)
        return part

    def _numbers(self, count: int) -> NDArray[np.generic]:
        size = count * self.header.dtype.itemsize
        found = _up_to(self.file, size)
        if len(found) < size:
            raise ValueError(f"{self.path} must be a whole .npy file, got only a part of one.")
        return np.frombuffer(found, self.header.dtype)


def _up_to(file: BinaryIO, size: int) -> bytes:
    """The next `size` bytes, or as many as there are, in memory for those that there are."""
    pieces, left = [], size
    while left and (piece := file.read(min(left, _AT_ONCE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def read_npz(
    path: FileName, known: Callable[[str], bool], *, packed: bool
) -> dict[str, NDArray[np.generic]]:
    """The arrays of an .npz file whose names are `known`; others are not looked at.

    `packed` says whether the file may be compressed: it then must fit into the machine's memory;
    if not, all arrays together are no larger than the file. Either is checked before anything is
    unpacked, so that no small file fills the memory. Damage raises one of DAMAGE.
    """
    with opened(path) as file, zipfile.ZipFile(file) as archive:
        members: dict[str, zipfile.ZipInfo] = {}
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if known(name):
                if name in members:
                    raise ValueError(f"{path} must hold one array {name!r}, got two.")
                members[name] = member
        allowed = machine_bytes() if packed else os.fstat(file.fileno()).st_size
        wanted = sum(member.file_size for member in members.values())
        if wanted > allowed:
            raise TooLarge(
                f"{path} must unpack to at most {readable(allowed)}, got {readable(wanted)}."
            )
        return {name: _unpacked(archive, member) for name, member in members.items()}


class TooLarge(ValueError):
    """An archive unpacks to more than is allowed."""


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[np.generic]:
    with archive.open(member) as file:
        header = NpyHeader.read(file)
        # Only now is an array of the claimed size made: as many bytes are there.
        if header.end + header.nbytes != member.file_size:
            raise ValueError(f"{member.filename} has another size than its header says")
        entries = bytearray(file.read())  # to the end, where the checksum is compared
    if len(entries) != header.nbytes:
        raise EOFError(f"{member.filename} ends too early")
    flat = np.frombuffer(entries, header.dtype)
    return flat.reshape(header.shape, order="F" if header.by_columns else "C")


def write_npy(path: FileName, array: NDArray[np.generic]) -> None:
    """An .npy file, written by Python: numpy's own way tells nothing of a disk that was full."""
    rows = np.ascontiguousarray(array)
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(rows))
        file.write(rows.data)


def write_npz(path: FileName, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """An .npz file, not compressed, whole or not at all."""
    # By hand: where a write fails, NumPy's own leaves an archive that complains when it goes.
    with replacing(path) as partial, zipfile.ZipFile(partial, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
