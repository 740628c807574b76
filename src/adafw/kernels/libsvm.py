"""LIBSVM text to CSR arrays, byte by byte: `label [qid:q] id:value id:value ... # comment`."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adafw.kernels.jit import jit

# What `parse` ended with; FULL: the text has more rows or entries than were counted.
FINE, WANT_ID, WANT_COLON, WANT_HIGHER_ID, WANT_LOWEST_ID, WANT_QUERY, WIDE, FULL = range(8)

Text = NDArray[np.uint8]

_NEWLINE, _HASH, _PLUS, _MINUS, _DOT, _COLON = 10, 35, 43, 45, 46, 58
_WIDEST = 10**17  # an integer below this takes another digit within 64 bits

#: Powers of ten that a double holds exactly (Clinger 1990).
_EXACT = np.array([10.0**q for q in range(23)])
#: Decimal exponents that the 128-bit table below serves.
_LEAST, _MOST = -65, 65


def _power_of_five(q: int) -> int:
    """5^q scaled to 128 bits: cut off for q >= 0, rounded up for q < 0 (Lemire 2021, section 6)."""
    if q >= 0:
        return (5**q << 128) >> (5**q).bit_length()
    power = 5**-q
    shift = power.bit_length() + (127 if q >= -27 else 128 + power.bit_length())
    scaled = (1 << shift) // power + 1
    return scaled >> max(0, scaled.bit_length() - 128)


_FIVES = [_power_of_five(q) for q in range(_LEAST, _MOST + 1)]
_HIGH = np.array([five >> 64 for five in _FIVES], dtype=np.uint64)
_LOW = np.array([five & (1 << 64) - 1 for five in _FIVES], dtype=np.uint64)


@jit
def count(text: Text, start: int, stop: int) -> tuple[int, int]:
    """Newlines and colons in text[start:stop]: bounds on rows - 1 and on stored entries."""
    lines = colons = 0
    for i in range(start, stop):
        lines += text[i] == _NEWLINE
        colons += text[i] == _COLON
    return lines, colons


class Stretch(NamedTuple):
    """Whole lines text[start:stop], and the rows and entries that are theirs to fill."""

    start: int
    stop: int
    row: int
    slot: int
    row_end: int
    slot_end: int


class Filled(NamedTuple):
    """The arrays that `parse` fills; `query` is left alone if it has no entries.

    `slow` takes pairs (slot, position) of numbers left for Python's float(); slot -1 - row means
    a label.
    """

    y: NDArray[np.float64]
    query: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32] | NDArray[np.int64]
    data: NDArray[np.float32] | NDArray[np.float64]
    slow: NDArray[np.int64]


class Ended(NamedTuple):
    """Where `parse` stopped: next row and slot, ids seen, pairs in `slow`, why, and the byte."""

    row: int
    slot: int
    least: int
    largest: int
    left: int
    code: int
    at: int


@jit
def parse(text: Text, stretch: Stretch, lowest: int, to: Filled) -> Ended:
    """The lines of a stretch into its rows and entries; ids must ascend from `lowest` on.

    Nothing is written outside the stretch's own rows and entries, whatever the text holds.
    """
    i, stop, row, slot = stretch.start, stretch.stop, stretch.row, stretch.slot
    least, largest, left = _WIDEST, -1, 0
    # Counted from 0, id 2^31 - 1 makes 2^31 columns, a number that 32 bits do not hold.
    limit = 2**31 - 2 if to.indices.itemsize == 4 else _WIDEST - 1
    while i < stop:
        i = _skip_blanks(text, i, stop)
        if i == stop or text[i] == _NEWLINE or text[i] == _HASH:
            i = _skip_line(text, i, stop)
            continue
        value, exact, after = number(text, i, stop)
        if row >= stretch.row_end or left >= len(to.slow):
            return Ended(row, slot, least, largest, left, FULL, i)
        if not exact:
            to.slow[left, 0], to.slow[left, 1] = -1 - row, i
            left += 1
        to.y[row] = value
        i = _skip_blanks(text, after, stop)
        if i + 3 < stop and text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100:  # qid
            q, after = _integer(text, i + 4, stop)
            whole = after > i + 4 and q < _WIDEST and _ends(text, after, stop)
            if text[i + 3] != _COLON or not whole:
                return Ended(row, slot, least, largest, left, WANT_QUERY, i)
            if to.query.size:
                to.query[row] = q
            i = _skip_blanks(text, after, stop)
        last = lowest - 1
        while i < stop and text[i] != _NEWLINE and text[i] != _HASH:
            j, after = _integer(text, i, stop)
            if after == i:
                return Ended(row, slot, least, largest, left, WANT_ID, i)
            if after == stop or text[after] != _COLON:
                return Ended(row, slot, least, largest, left, WANT_COLON, after)
            if j <= last:
                code = WANT_LOWEST_ID if j < lowest else WANT_HIGHER_ID
                return Ended(row, slot, least, largest, left, code, i)
            if j > limit:
                return Ended(row, slot, least, largest, left, WIDE, i)
            if slot >= stretch.slot_end or left >= len(to.slow):
                return Ended(row, slot, least, largest, left, FULL, i)
            last = j
            least = min(least, j)
            value, exact, next_i = number(text, after + 1, stop)
            if not exact:
                to.slow[left, 0], to.slow[left, 1] = slot, after + 1
                left += 1
            to.indices[slot] = j
            to.data[slot] = value
            slot += 1
            i = _skip_blanks(text, next_i, stop)
        largest = max(largest, last)
        row += 1
        to.indptr[row] = slot
        i = _skip_line(text, i, stop)
    return Ended(row, slot, least, largest, left, FINE, i)


@jit
def number(text: Text, i: int, stop: int) -> tuple[float, bool, int]:
    """The double nearest to the decimal number at text[i:stop], whether it is sure, and its end.

    Up to 15 digits and exponents up to 22 by one exact operation (Clinger 1990), up to 19 digits
    by 128-bit products (Lemire 2021). Whatever is left is not sure, numbers or not.
    """
    negative = i < stop and text[i] == _MINUS
    begin = i
    if i < stop and (text[i] == _MINUS or text[i] == _PLUS):
        i += 1
    digits, first = np.uint64(0), i
    while i < stop and 48 <= text[i] <= 57:
        digits = digits * np.uint64(10) + np.uint64(text[i] - 48)
        i += 1
    n, fraction = i - first, 0
    if i < stop and text[i] == _DOT:
        i += 1
        first = i
        while i < stop and 48 <= text[i] <= 57:
            digits = digits * np.uint64(10) + np.uint64(text[i] - 48)
            i += 1
        fraction = i - first
        n += fraction
    exponent = 0
    if n > 0 and i < stop and (text[i] == 69 or text[i] == 101):
        minus = i + 1 < stop and text[i + 1] == _MINUS
        i += 1
        if i < stop and (text[i] == _MINUS or text[i] == _PLUS):
            i += 1
        exponent, after = _integer(text, i, stop)
        if after == i:
            n = 0
        i = after
        exponent = -exponent if minus else exponent
    if n == 0 or n > 19 or not _ends(text, i, stop):
        return 0.0, False, _skip_token(text, begin, stop)
    q = exponent - fraction
    sure = True
    if digits < np.uint64(2**53) and -22 <= q <= 22:
        value = float(digits)
        value = value / _EXACT[-q] if q < 0 else value * _EXACT[q]
    elif digits == np.uint64(0):
        value = 0.0
    elif _LEAST <= q <= _MOST:
        value, sure = _nearest(digits, q)
    else:
        value, sure = 0.0, False
    return -value if negative else value, sure, i


@jit
def _nearest(w: np.uint64, q: int) -> tuple[float, bool]:
    """The double nearest to w 10^q, and whether that is sure; w > 0 (Lemire 2021, Algorithm 1).

    With |q| <= 65 and w < 2^64 the result is a normal number.
    """
    shift = 0
    while w < np.uint64(1 << 63):
        w <<= np.uint64(1)
        shift += 1
    high, low = _product(w, _HIGH[q - _LEAST])
    if high & np.uint64(0x1FF) == np.uint64(0x1FF):  # too near a boundary for 64 bits of 5^q
        more, _ = _product(w, _LOW[q - _LEAST])
        low += more
        if low < more:
            high += np.uint64(1)
    if low == np.uint64(0xFFFFFFFFFFFFFFFF) and not -27 <= q <= 55:
        return 0.0, False
    top = high >> np.uint64(63)
    drop = top + np.uint64(9)
    mantissa = high >> drop
    power = ((217706 * q) >> 16) + 63 + int(top) - shift
    exact_half = low <= np.uint64(1) and mantissa & np.uint64(3) == np.uint64(1)
    if exact_half and -4 <= q <= 23 and mantissa << drop == high:
        mantissa &= ~np.uint64(1)  # a tie: to even
    mantissa = (mantissa + (mantissa & np.uint64(1))) >> np.uint64(1)
    if mantissa >= np.uint64(1 << 53):
        mantissa = np.uint64(1 << 52)
        power += 1
    return math.ldexp(np.float64(mantissa), int(power - 52)), True


@jit
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The high and the low word of a b."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a1, a0, b1, b0 = a >> half, a & mask, b >> half, b & mask
    middle = a1 * b0 + ((a0 * b0) >> half)
    cross = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (cross >> half), a * b


@jit
def _integer(text: Text, i: int, stop: int) -> tuple[int, int]:
    """Digits as an integer, which stops growing at 1e17 or above, and where they end."""
    n = 0
    while i < stop and 48 <= text[i] <= 57:
        if n < _WIDEST:
            n = n * 10 + int(np.int64(text[i]) - 48)
        i += 1
    return n, i


@jit
def _is_blank(byte: int) -> bool:
    return byte == 32 or (9 <= byte <= 13 and byte != _NEWLINE)


@jit
def _ends(text: Text, i: int, stop: int) -> bool:
    return i >= stop or _is_blank(text[i]) or text[i] == _NEWLINE or text[i] == _HASH


@jit
def _skip_blanks(text: Text, i: int, stop: int) -> int:
    while i < stop and _is_blank(text[i]):
        i += 1
    return i


@jit
def _skip_token(text: Text, i: int, stop: int) -> int:
    while not _ends(text, i, stop):
        i += 1
    return i


@jit
def _skip_line(text: Text, i: int, stop: int) -> int:
    """Just after the end of the line."""
    while i < stop and text[i] != _NEWLINE:
        i += 1
    return min(i + 1, stop)
