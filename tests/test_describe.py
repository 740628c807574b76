import numpy as np
import pytest

import adafw
from adafw.describe import describe, digest


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
