import numpy as np
import pytest

from adafw.random import Blocks, as_source, freeze, thaw

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


def sizes_and_sources():
    return [(1, 10, 3), (7, 10, 3), (9, 10, 3), (25, 10, 4), (100, 40, 1000), (5, 3, 1)]


@pytest.mark.parametrize(("size", "m", "rows"), sizes_and_sources())
def test_blocks_are_runs_of_neighbours_cut_to_the_size(size, m, rows):
    batch = Blocks(3, rows).integers(0, m, size=size)
    first = np.random.default_rng(3).integers(0, m, size=-(-size // rows))
    expected = [(int(s) + k) % m for s in first for k in range(rows)][:size]
    assert batch.tolist() == expected


@pytest.mark.parametrize("size", [1, 4, 5, 8, 12])
def test_a_batch_draws_as_many_first_rows_as_it_has_blocks(size):
    """Not one more, also where the last block is whole: the next batch would be another one."""
    source, twin = Blocks(3, 4), np.random.default_rng(3)
    source.integers(0, 100, size=size)
    twin.integers(0, 100, size=-(-size // 4))
    assert source.integers(0, 2**53) == twin.integers(0, 2**53)


def test_every_place_of_a_batch_is_uniform():
    source, m = Blocks(0, rows=4), 7
    counts = np.zeros((6, m))
    for _ in range(7000):
        counts[np.arange(6), source.integers(0, m, size=6)] += 1
    # 1000 expected in each, with a deviation of 29.
    assert np.abs(counts - 1000).max() < 150


def test_blocks_shift_by_the_lowest_and_pass_on_single_numbers():
    assert set(Blocks(1, 5).integers(10, 13, size=50)) == {10, 11, 12}
    twin = np.random.default_rng(1)
    source = Blocks(np.random.default_rng(1), 5)
    assert source.integers(0, 2**53) == twin.integers(0, 2**53)  # the coin of PAGE and LSVRG


@pytest.mark.parametrize("kind", KINDS)
def test_words_hold_blocks(kind):
    source = Blocks(np.random.Generator(kind(5)), rows=17)
    source.integers(0, 1000, size=40)
    words = freeze(source)
    assert words.dtype == np.uint64
    twin = thaw(words)
    assert twin.rows == 17
    assert np.array_equal(source.integers(0, 10**6, size=50), twin.integers(0, 10**6, size=50))
    assert np.array_equal(freeze(twin), freeze(source))


def test_wrong_blocks_are_refused():
    with pytest.raises(ValueError, match="rows must be an integer >= 1, got 0"):
        Blocks(0, rows=0)
    for seed in (-1, "a", Blocks(0)):
        with pytest.raises(TypeError, match="must be an integer >= 0"):
            Blocks(seed)


def test_words_begin_with_the_number_of_their_kind():
    """Which saved states rely on: numbers and their order are for ever."""
    for number, kind in enumerate(KINDS):
        assert freeze(np.random.Generator(kind(1)))[0] == number
    words = freeze(Blocks(np.random.Generator(np.random.Philox(1)), rows=17))
    assert words[:3].tolist() == [5, 17, 3]
    words = freeze(np.random.default_rng(3))
    state = np.random.default_rng(3).bit_generator.state
    numbers = [int(w) for w in words[1:]]
    wide = [numbers[k] << 64 | numbers[k + 1] for k in range(0, len(numbers), 2)]
    inner = state["state"]
    assert wide == [state["has_uint32"], inner["inc"], inner["state"], state["uinteger"]]


def test_seeds_are_numbers_or_draw_themselves():
    assert as_source(np.int64(3)).random() == np.random.default_rng(3).random()
    for wrong in (True, 1.0, -1, None, "0"):
        with pytest.raises(TypeError, match="seed must be an integer >= 0, a numpy Generator"):
            as_source(wrong)
    rng = np.random.default_rng(0)
    assert as_source(rng) is rng
