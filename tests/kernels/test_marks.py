"""Marks of arrays, word by word."""

import numpy as np
import pytest

from adafw.kernels.marks import mark

FACTOR, WORD = 0x9E3779B97F4A7C15, 2**64


def stirred(value, word):
    value ^= word
    return ((value << 29 | value >> 35) % WORD) * FACTOR % WORD


def by_hand(words, begin):
    lanes = [(begin + k) % WORD for k in range(4)]
    whole = len(words) - len(words) % 4
    for k, word in enumerate(words):
        lane = k % 4 if k < whole else 0
        lanes[lane] = stirred(lanes[lane], int(word))
    a, b, c, d = lanes
    return stirred(stirred(stirred(a, b), c), d)


def read_only(words):
    words.flags.writeable = False
    return words


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 11])
def test_four_lanes_are_stirred_together(size):
    words = np.random.default_rng(size).integers(0, WORD, size, np.uint64)
    for begin in (0, 7, WORD - 2):
        assert int(mark(read_only(words.copy()), np.uint64(begin))) == by_hand(words, begin)


def test_no_single_word_is_passed_over():
    words = np.random.default_rng(0).integers(0, WORD, 11, np.uint64)
    seen = {int(mark(read_only(words.copy()), np.uint64(0)))}
    for k in range(11):
        for bit in (0, 63):
            other = words.copy()
            other[k] ^= np.uint64(1 << bit)
            seen.add(int(mark(read_only(other), np.uint64(0))))
    assert len(seen) == 23
