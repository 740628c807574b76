"""Marks of large arrays: one number for all their bits, at the speed of reading them."""

import numpy as np

from adafw.kernels.jit import jit
from adafw.typing import Array

#: Odd, with bits in no pattern: 2^64 over the golden ratio (Knuth's multiplicative hashing).
FACTOR = np.uint64(0x9E3779B97F4A7C15)
LEFT, RIGHT = np.uint64(29), np.uint64(35)


@jit
def stir(mark: np.uint64, word: np.uint64) -> np.uint64:
    """One to one in the word, and in the mark: a single change is never lost.

    The turn carries high bits down again. By products alone a flipped sign would stay in the
    highest bit, and a second one would undo it.
    """
    mark = mark ^ word
    return ((mark << LEFT) | (mark >> RIGHT)) * FACTOR


@jit
def mark(words: Array, begin: np.uint64) -> np.uint64:
    """A 64-bit mark of unsigned 64-bit words; four at a time, as a product takes four cycles."""
    a, b, c, d = begin, begin + np.uint64(1), begin + np.uint64(2), begin + np.uint64(3)
    whole = words.size - words.size % 4
    for k in range(0, whole, 4):
        a = stir(a, words[k])
        b = stir(b, words[k + 1])
        c = stir(c, words[k + 2])
        d = stir(d, words[k + 3])
    for k in range(whole, words.size):
        a = stir(a, words[k])
    return stir(stir(stir(a, b), c), d)
