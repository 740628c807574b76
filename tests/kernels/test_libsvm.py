import struct
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adafw.kernels.libsvm import number


def read(word):
    text = np.frombuffer(word.encode(), np.uint8)
    value, sure, end = number(text, 0, text.size)
    assert end == text.size
    return value, sure


def same_bits(a, b):
    return struct.pack("d", a) == struct.pack("d", b)


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 18))
def test_every_sure_number_is_what_float_reads(x, digits):
    for word in (repr(x), f"{x:.{digits}e}", f"{x:.{digits}f}"[:40]):
        value, sure = read(word)
        assert not sure or same_bits(value, float(word))


@given(st.integers(0, 2**64 - 1), st.integers(-84, 65))
def test_integers_of_64_bits_times_powers_of_ten(w, q):
    word = f"{w}e{q}"
    value, sure = read(word)
    assert not sure or same_bits(value, float(word))


@given(st.floats(1e-15, 1e15), st.integers(17, 19))
def test_numbers_next_to_a_rounding_boundary(x, digits):
    middle = (Decimal(x) + Decimal(float(np.nextafter(x, np.inf)))) / 2
    word = f"{middle:.{digits - 1}e}"
    value, sure = read(word)
    assert not sure or same_bits(value, float(word))


@pytest.mark.parametrize(
    "word",
    ["1", "-1", "+1", "0", "-0", "0.0", ".5", "5.", "1e5", "1E-5", "-1.5e+3", "00012", "0e999",
     "0.1234567890123456", "0.12345678901234567", "3.141592653589793238", "1e22", "1e23", "1e-22",
     "9007199254740993", "9007199254740992.5", "9999999999999999999"],
)  # fmt: skip
def test_ordinary_numbers_are_sure(word):
    value, sure = read(word)
    assert sure
    assert same_bits(value, float(word))


@pytest.mark.parametrize(
    "word",
    ["15146544968002809", "14840641112981521", "18084875060471242",  # ties, to even
     "38619004311263416e1", "49203261288414558e1", "5612908072461898678",  # nearly one
     "52211158016918015e65", "19393029562342919e55", "291885527953042220e-1",  # low bits carry
     "1058307449498525614e2", "18030273798119134e4", "10427893421242223e4",  # or just do not
     "18014398509481983", "36028797018963967", "72057594037927935e-3"],  # up to a power of two
)  # fmt: skip
def test_numbers_that_take_the_last_bit_of_a_product(word):
    for sign in ("", "-"):
        value, sure = read(sign + word)
        assert sure
        assert same_bits(value, float(sign + word))


@pytest.mark.parametrize(
    "word", ["", "+", "-", ".", "e5", "1e", "1e+", "1.2.3", "--1", "0x1", "1_0", "nan", "-inf",
             "1e-300", "1" * 20, "1,2"]
)  # fmt: skip
def test_everything_else_is_left_to_python(word):
    assert not read(word)[1]
