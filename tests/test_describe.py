import zlib

import numpy as np
import pytest

import adafw
from adafw.describe import _mark, describe, digest


@pytest.mark.parametrize("shape", [(8192, 10), (16384,), (3_000_000,)])
def test_digests_see_changes_in_any_pattern(shape):
    rng = np.random.default_rng(0)
    a = rng.normal(size=shape)
    b, c = a.copy(), a.copy()
    b.reshape(-1)[1::2] *= -1
    c.reshape(-1)[-1] += 1
    assert len({digest(x)["digest"] for x in (a, b, c)}) == 3
    assert digest(a) == digest(a.copy())


def test_sets_with_other_arrays_are_other_sets():
    lower, upper = np.zeros(10_000), np.ones(10_000)
    other = upper.copy()
    other[1::2] = 2
    assert adafw.Box(lower, upper) == adafw.Box(lower, upper.copy())
    assert adafw.Box(lower, upper) != adafw.Box(lower, other)
    assert hash(adafw.Box(lower, upper)) == hash(adafw.Box(lower, upper.copy()))
    assert adafw.L1Ball(1.0) != adafw.L2Ball(1.0)


def test_functions_of_t_are_told_apart_by_their_values():
    one, two = adafw.CSFW(lambda t: 1 / (t + 1)), adafw.CSFW(lambda t: 1 / (t + 2))
    assert one.describe() != two.describe()
    assert one.describe() == adafw.CSFW(lambda t: 1.0 / (1 + t)).describe()
    assert describe(adafw.schedules.OpenLoop()) == {
        "name": "OpenLoop",
        "numerator": 2.0,
        "shift": 2.0,
    }


def test_marks_of_large_arrays_see_signs_and_single_bits():
    """A product with an odd number leaves the highest bit where it is: signs must not cancel."""
    a = np.random.default_rng(0).normal(size=100_003).astype(np.float32)
    marks = {digest(a)["digest"]}
    for flipped in ([0, 8], [0, 8, 16, 24], range(100_003), [100_002], [100_001, 3]):
        b = a.copy()
        b[list(flipped)] *= -1
        marks.add(digest(b)["digest"])
    assert len(marks) == 6
    swapped = a.copy()
    swapped[[0, 8]] = a[[8, 0]]
    assert digest(swapped)["digest"] not in marks


def test_of_what_is_larger_than_16_mb_blocks_are_looked_at():
    """256 of 64 kB, evenly apart, the first and the last bytes among them."""
    whole, half = 1 << 24, 1 << 23
    data = np.zeros(2 * whole, np.uint8)

    def seen(size, at):
        before = digest(data[:size])
        data[at] = 1
        after = digest(data[:size])
        data[at] = 0
        return before != after

    apart = (2 * whole - (1 << 16)) / 255
    for size, at, found in (
        (whole, (1 << 16) + 9, True), (whole, whole - 1, True), (2 * whole, 0, True),
        (2 * whole, (1 << 16) - 1, True), (2 * whole, (1 << 16) + 9, False),
        (2 * whole, 2 * whole - 1, True), (2 * whole, int(100 * apart), True),
        (2 * whole, int(100 * apart) + (1 << 16) - 1, True),
        (2 * whole, int(100 * apart) - 9, False), (half, 5, True),
    ):  # fmt: skip
        assert seen(size, at) == found, (size, at)
    # Entries that are words are marked in one call, and alike.
    mixed = np.random.default_rng(0).integers(0, 256, (1 << 24) + 808, np.uint8)
    words = mixed.view(np.float64)
    assert digest(words)["digest"] == digest(mixed.view(np.uint64))["digest"]
    total = 0
    for k in np.linspace(0, words.size - (1 << 13), 256).astype(int):
        total = _mark(mixed[8 * k : 8 * k + (1 << 16)], total)
    assert digest(words)["digest"] == f"{total:016x}"
    assert digest(data[:9].reshape(3, 3)) == {
        "shape": [3, 3], "dtype": "uint8", "digest": f"{zlib.crc32(bytes(9)):08x}",
    }  # fmt: skip
    assert digest(data[:0])["digest"] == f"{0:08x}"


def test_things_as_plain_numbers():
    rule = adafw.schedules.as_schedule(lambda t: 1 / (t - 5), "step_size", -np.inf)
    told = [-0.2, -0.25, -1 / 3, -0.5, None, 0.2, 1 / 95, 1 / 995]
    assert describe(rule) == pytest.approx(told)
    assert describe(adafw.schedules.as_schedule(0.5, "step_size", 0)) == 0.5
    assert describe(adafw.schedules.as_schedule(adafw.schedules.OpenLoop(3.0), "step_size", 0)) == {
        "name": "OpenLoop", "numerator": 3.0, "shift": 2.0,
    }  # fmt: skip
    assert describe(np.float32(0.5)) == 0.5
    assert describe((1, None, "a", [True])) == [1, None, "a", [True]]
    assert describe(np.arange(16)) == list(range(16))
    assert describe(np.arange(17)) == digest(np.arange(17))
    assert describe(adafw.arrays.Constant([1, 2], "lower")) == [1, 2]
    assert describe(len) == {"name": "len"}
    assert describe(object()) == {"name": "object"}
