"""Random orders, by a generator of one word that callers keep in their states."""

import numpy as np

from adafw.kernels.jit import jit
from adafw.typing import Array

# Knuth's linear congruential generator. Its low bits have short periods: only the upper ones count.
_FACTOR, _SHIFT, _UPPER = (
    np.uint64(6364136223846793005),
    np.uint64(1442695040888963407),
    np.uint64(33),
)


@jit
def shuffle(order: Array, count: int, word: np.uint64) -> np.uint64:
    """The first `count` entries of `order` in random order; the next word of the generator."""
    for q in range(count - 1):
        word = word * _FACTOR + _SHIFT
        other = q + np.int64((word >> _UPPER) % np.uint64(count - q))
        order[q], order[other] = order[other], order[q]
    return word
