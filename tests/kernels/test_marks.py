"""Marks of arrays, word by word."""

import numpy as np
import pytest

from adafw.kernels.marks import blocks, mark

FACTOR, WORD = 0x9E3779B97F4A7C15, 2**64


def stirred(value, word):
    value ^= word
    return ((value << 29 | value >> 35) % WORD) * FACTOR % WORD


def by_hand(words, begin):
    lanes = [(begin + k) % WORD for k in range(64)]
    for k, word in enumerate(words):
        lanes[k % 64] = stirred(lanes[k % 64], int(word))
    total = begin
    for lane in lanes:
        total = stirred(total, lane)
    return total


def read_only(words):
    words.flags.writeable = False
    return words


@pytest.mark.parametrize("size", [0, 1, 2, 63, 64, 65, 128, 200])
def test_lanes_are_stirred_together(size):
    words = np.random.default_rng(size).integers(0, WORD, size, np.uint64)
    for begin in (0, 7, WORD - 2):
        assert int(mark(read_only(words.copy()), np.uint64(begin))) == by_hand(words, begin)


def test_no_single_word_is_passed_over():
    words = np.random.default_rng(0).integers(0, WORD, 150, np.uint64)
    seen = {int(mark(read_only(words.copy()), np.uint64(0)))}
    for k in range(150):
        for bit in (0, 63):
            other = words.copy()
            other[k] ^= np.uint64(1 << bit)
            seen.add(int(mark(read_only(other), np.uint64(0))))
    assert len(seen) == 301


def test_blocks_are_marked_in_a_chain():
    words = read_only(np.random.default_rng(1).integers(0, WORD, 500, np.uint64))
    starts, total = np.array([0, 130, 70, 370]), 5
    for start in starts:
        total = by_hand(words[start : start + 130], total)
    assert int(blocks(words, starts, 130, np.uint64(5))) == total
