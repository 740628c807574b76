import numpy as np
import pytest

from adafw.random import as_source, freeze, thaw

KINDS = [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64]


@pytest.mark.parametrize("kind", KINDS)
def test_words_hold_the_whole_generator(kind):
    rng = np.random.Generator(kind(12345))
    rng.integers(0, 1000, size=7, dtype=np.int32)  # leaves half a word unused in most kinds
    words = freeze(rng)
    assert words.dtype == np.uint64
    twin = thaw(words)
    assert np.array_equal(rng.integers(0, 10**9, size=50), twin.integers(0, 10**9, size=50))
    assert np.array_equal(rng.random(50, dtype=np.float32), twin.random(50, dtype=np.float32))


def test_other_sources_stay_themselves():
    class Source:
        def integers(self, low, high, size):
            return np.zeros(size, dtype=int)

    source = Source()
    assert thaw(freeze(as_source(source))) is source
    old = np.random.RandomState(0)
    with pytest.raises(TypeError, match="seed must be an integer"):
        as_source(old)
