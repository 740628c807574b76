"""Marks of large arrays: one number for all their bits, at the speed of reading them."""

import numpy as np

from adafw.kernels.jit import jit
from adafw.typing import Array

#: Odd, with bits in no pattern: 2^64 over the golden ratio (Knuth's multiplicative hashing).
FACTOR = np.uint64(0x9E3779B97F4A7C15)
LEFT, RIGHT = np.uint64(29), np.uint64(35)
#: Marks that are made side by side: with 32 they are as slow as with one instruction a word.
LANES = 64


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
    """A 64-bit mark of unsigned 64-bit words, every LANES-th of them in one of so many marks.

    A product takes its time, and those of other lanes go on meanwhile, several in one instruction.
    """
    lanes = np.empty(LANES, np.uint64)
    for j in range(LANES):
        lanes[j] = begin + np.uint64(j)
    whole = words.size - words.size % LANES
    for k in range(0, whole, LANES):
        for j in range(LANES):
            lanes[j] = stir(lanes[j], words[k + j])
    for k in range(whole, words.size):
        lanes[k - whole] = stir(lanes[k - whole], words[k])
    total = begin
    for j in range(LANES):
        total = stir(total, lanes[j])
    return total


@jit
def blocks(words: Array, starts: Array, size: int, begin: np.uint64) -> np.uint64:
    """The mark of blocks of so many words, each from the mark of the one before."""
    total = begin
    for start in starts:
        total = mark(words[start : start + size], total)
    return total
