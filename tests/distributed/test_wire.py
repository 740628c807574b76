import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from adafw.distributed.wire import Message, Packed, Reply, pack, size_of

entries = st.sampled_from([0.0, -0.0, 1.0, -2.5, np.inf, np.nan, 1e-300])


@given(arrays(np.float64, st.integers(0, 30), elements=entries))
def test_a_vector_comes_out_as_it_went_in(v):
    packed = pack(v)
    np.testing.assert_array_equal(packed.unpack(), v)
    assert packed.nbytes <= v.nbytes


@given(st.integers(1, 30), st.data())
def test_a_change_of_a_known_vector_comes_out_whole(n, data):
    known = data.draw(arrays(np.float64, n, elements=entries))
    v = data.draw(arrays(np.float64, n, elements=entries))
    packed = pack(v, (7, known))
    np.testing.assert_array_equal(packed.unpack(known if packed.base == 7 else None), v)
    assert packed.nbytes <= pack(v).nbytes


def test_the_shortest_form_is_taken():
    v = np.zeros(100)
    v[[3, 50]] = 1.0
    assert pack(v).nbytes == 2 * 12
    full = np.arange(1.0, 101.0)
    assert pack(full).index is None
    nearly = full.copy()
    nearly[9] = -1
    packed = pack(nearly, (4, full))
    assert (packed.base, packed.nbytes) == (4, 12)
    # Another dtype is no base to build on.
    assert pack(nearly, (4, full.astype(np.float32))).base is None


def test_bytes_are_those_of_the_arrays():
    x = Packed(9, np.ones(2), np.zeros(2, np.uint32))
    message = Message("d", [0], "dot", {"w": np.ones(3)}, [{"p": np.ones(5, np.float32)}], x)
    assert message.nbytes == 24 + 20 + 24
    assert Reply((np.ones(4),), [np.ones(2), None]).nbytes == 32 + 16 + 8
    assert size_of("text") == pytest.approx(8)
