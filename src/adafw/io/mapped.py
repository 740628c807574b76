"""Arrays mapped from files, with an error instead of a dead process where a file is cut short.

Reading a page of a map that its file no longer has is answered by Linux with SIGBUS, which ends a
process. Such a fault comes at the very instruction that reads, between two of Python's, so Python
may answer it: zeros are put in the place of the lost pages for the instruction to go on with, and
`FileChanged` is raised in the thread as soon as the compiled code that was reading returns. No
result gets out. A fault anywhere else goes to what handled it before; other systems are left alone.
"""

import ctypes
import mmap
import os
import signal
import sys
import threading
import weakref

import numpy as np
from numpy.typing import NDArray

from adafw.io.damage import FileChanged, FileName
from adafw.io.direct import DirectFile
from adafw.rows.disk import OnDisk

# Linux on 64-bit machines: bits/sigaction.h, bits/types/siginfo_t.h, sys/mman.h.
_SA_SIGINFO, _SI_ADDR = 4, 16
_PROT_READ, _ZEROS = 1, 0x2 | 0x10 | 0x20 | 0x4000  # private, fixed, anonymous, no reserve

_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class _Action(ctypes.Structure):
    """struct sigaction."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def mapped(path: FileName, stream: bool = False) -> NDArray[np.generic]:
    """The array of an .npy file, mapped read-only.

    A plain array over the map: numpy's own memmap class costs microseconds at every slice. If
    `stream`, rows that are made of it read the file piece by piece, and leave the map alone.
    """
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if stream:
        offset, dtype = array.offset, array.dtype
        array = array.view(OnDisk)
        array.source = DirectFile(os.path.abspath(path), offset, dtype)
    start = array.ctypes.data
    _GUARD.watch(start, array.nbytes, os.fspath(path))
    weakref.finalize(array, _GUARD.stretches.pop, start, None)  # before its memory is given back
    return np.asarray(array)


class _Guard:
    """Which stretches of memory are maps of which files, and the handler that knows them."""

    def __init__(self) -> None:
        self.stretches: dict[int, tuple[int, str]] = {}
        self.sizes: dict[str, int] = {}
        self.before = _Action()
        self.installed = False
        self.lock = threading.Lock()

    def watch(self, start: int, size: int, path: str) -> None:
        """Answers faults in this stretch from now on."""
        with self.lock:
            self.stretches[start] = (start + size, path)
            self.sizes[path] = _size(path)
            if self.installed or not sys.platform.startswith("linux") or sys.maxsize < 1 << 32:
                return
            self.libc = ctypes.CDLL(None)
            self.libc.mmap.restype = ctypes.c_void_p
            address, size_t, integer = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
            self.libc.mmap.argtypes = [address, size_t, integer, integer, integer, ctypes.c_long]
            self.set_exception = ctypes.pythonapi.PyThreadState_SetAsyncExc
            self.set_exception.argtypes = [ctypes.c_ulong, ctypes.py_object]
            self.handler = _Handler(self._answer)  # kept: the system calls it
            ours = _Action(ctypes.cast(self.handler, ctypes.c_void_p), flags=_SA_SIGINFO)
            self.libc.sigaction(signal.SIGBUS, ctypes.byref(ours), ctypes.byref(self.before))
            self.installed = True

    def _answer(self, number: int, info: int, context: int) -> None:
        address = ctypes.c_void_p.from_address(info + _SI_ADDR).value or 0
        lost = [(b, path) for a, (b, path) in list(self.stretches.items()) if a <= address < b]
        if not lost:
            # Not ours: the instruction is repeated, and faults again under the handler before.
            self.libc.sigaction(signal.SIGBUS, ctypes.byref(self.before), None)
            return
        end, path = lost[-1]
        # All that the file has lost at once: the next fault would find the exception waiting.
        self._put_zeros(address, end)
        for stop, other in list(self.stretches.values()):
            missing = self.sizes[other] - _size(other)
            if missing > 0:
                self._put_zeros(stop - missing, stop)
        # A thread of a BLAS library runs no Python: its error goes to the main thread.
        known = {thread.ident for thread in threading.enumerate()}
        own = threading.get_ident()
        thread = own if own in known else threading.main_thread().ident
        # Called by `map` while its results are unpacked, since after a call written as one the
        # interpreter would raise the exception here, in the handler, where it is lost.
        called = map(self.set_exception, (thread,), (_error(path),))
        (_,) = called

    def _put_zeros(self, start: int, end: int) -> None:
        page = start - start % mmap.PAGESIZE
        if page < end:
            self.libc.mmap(page, end - page, _PROT_READ, _ZEROS, -1, 0)


def _size(path: str) -> int:
    """Bytes of a file now."""
    try:
        return os.stat(path).st_size
    except OSError:  # its name is gone, its content need not be
        return 1 << 62


def _error(path: str) -> type[FileChanged]:
    """FileChanged with its sentence, as a class: the interpreter calls it without arguments."""

    class Changed(FileChanged):
        def __init__(self, *_: object) -> None:
            super().__init__(path)

    Changed.__name__ = Changed.__qualname__ = "FileChanged"
    return Changed


_GUARD = _Guard()
