"""How kernels are compiled: once, cached on disk, without the lock, sums in the order written.

Numba keeps compiled code beside the sources or, where they cannot be written, in the user's cache
directory; NUMBA_CACHE_DIR names another one. It looks only at the file a kernel stands in: after
a change to a function that kernels of other files call, delete the cache (`make clean`).

NUMBA_DISABLE_JIT=1 switches compilation off: the kernels then run as the Python they are written
in, with the same results and much slower.
"""

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

_NOTE = "compiling for this kind of data, once on this machine: a few seconds"


def jit(function: Callable[..., Any]) -> Any:
    """`function` compiled at its first call. IEEE arithmetic is kept: no fastmath."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no directory can be written: compile anew in each process
        return numba.njit(**options)(function)


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

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Note())  # type: ignore[no-untyped-call]
