"""How kernels are compiled: once, cached on disk, without the lock, sums in the order written.

Numba keeps compiled code beside the sources or, where they cannot be written, in the user's cache
directory; NUMBA_CACHE_DIR names another one. By itself it looks only at the file of a kernel;
here at all whose functions the kernel may call, too, so that a change to one of them is compiled.

NUMBA_DISABLE_JIT=1 switches compilation off: the kernels then run as the Python they are written
in, with the same results and much slower; NumPy warns of the integers that wrap around in hashes.
"""
# mypy: disable-error-code="no-untyped-call"

import contextlib
import logging
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile

_PACKAGE = Path(__file__).parents[1]
#: How kernels import from each other.
_IMPORTED = re.compile(r"^from adafw\.(kernels|torch)\.(\w+) import ", re.MULTILINE)
_NOTE = "compiling for this kind of data, once on this machine: a few seconds"


F = TypeVar("F", bound=Callable[..., object])


@overload
def jit(function: F) -> F: ...
@overload
def jit(function: None = None, **options: Any) -> Callable[[F], F]: ...
def jit(function: Callable[..., object] | None = None, **options: Any) -> object:
    """`function` compiled at its first call; `options` are numba's. No fastmath unless asked for:
    IEEE arithmetic is kept."""
    if function is None:
        return lambda function: jit(function, **options)
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if dispatcher is not function:  # which it is where compilation is switched off
        # Without a directory that can be written, each process compiles for itself.
        with contextlib.suppress(RuntimeError, OSError):
            dispatcher._cache = _Cache(function)
    return dispatcher


class _Cache(FunctionCache):
    """Numba's cache, without which a kernel still runs.

    A directory that could be written when the library was imported may be full, read-only or gone
    when code is to be kept; a file in it may not be ours to read. Then the code is compiled anew.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        stamps = tuple(_stamp(file) for file in _sources(function.__code__.co_filename))
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base, stamps)

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            return super().load_overload(sig, target_context)
        except OSError:
            return None

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:
            self.disable()


@cache
def _sources(file: str) -> tuple[str, ...]:
    """The file, and those that it imports functions from, in some way: what its code depends on."""
    found, left = {file}, [file]
    while left:
        for package, name in _IMPORTED.findall(Path(left.pop()).read_text(encoding="utf-8")):
            other = str(_PACKAGE / package / f"{name}.py")
            if other not in found:
                found.add(other)
                left.append(other)
    return tuple(sorted(found))


@cache
def _stamp(file: str) -> tuple[float, int]:
    """Tells a file from what it was, as numba does."""
    known = os.stat(file)
    return known.st_mtime, known.st_size


class _Note(event.Listener):
    """Says once in a process that compilation, not the algorithm, takes the time."""

    said = False

    def on_start(self, event: Any) -> None:
        ours = str(event.data["dispatcher"].py_func.__module__).startswith("adafw.")
        if self.said or not ours:
            return
        self.said = True
        logging.getLogger("adafw").info(_NOTE)
        if sys.stderr.isatty() and os.environ.get("ADAFW_PROGRESS", "1") != "0":
            sys.stderr.write(f"adafw: {_NOTE}\n")

    def on_end(self, event: object) -> None:
        pass


event.register("numba:compile", _Note())
