"""Arrays that compiled code finds by their address, so that one call can work on many of them.

To hand an array to compiled code takes a microsecond; an address is a number in a table.
"""
# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, attr-defined, call-arg"

import ctypes

import numpy as np
from numba import carray, types
from numba.core import cgutils, config
from numba.extending import intrinsic

from adafw.kernels.jit import jit

if config.DISABLE_JIT:

    def array_at(address, size, like):
        """The `size` entries of the dtype of `like` that lie at an address; nobody keeps them."""
        memory = (ctypes.c_char * (int(size) * like.itemsize)).from_address(int(address))
        return np.frombuffer(memory, like.dtype)

else:

    @intrinsic
    def _pointer(typing_context, address):
        def code(context, builder, signature, arguments):
            return builder.inttoptr(arguments[0], cgutils.voidptr_t)

        return types.voidptr(types.intp), code

    @jit
    def array_at(address, size, like):
        """The `size` entries of the dtype of `like` that lie at an address; nobody keeps them."""
        return carray(_pointer(address), (size,), like.dtype)
