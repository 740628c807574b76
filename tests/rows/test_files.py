"""Files behind rows: where they are cut, what fits, and the memory they are read into."""

import itertools
import mmap

import numpy as np
import pytest
from scipy import sparse

from adafw.datasets import load_parts, save_parts
from adafw.rows import as_rows, files
from adafw.rows.disk import Room

A = np.where(np.random.default_rng(0).random((50, 8)) < 0.5, 2.5, 0.0)
A[7] = 0.0
each_kind = pytest.mark.parametrize("make", [np.array, sparse.csr_array])


def mapped(tmp_path, make, dtype=np.float64):
    save_parts(tmp_path / "parts", make(A.astype(dtype)), np.ones(50))
    return as_rows(load_parts(tmp_path / "parts", stream=True)[0])


@each_kind
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("limit", [1, 100, 250, 10**6])
def test_stretches_hold_as_much_as_they_may(tmp_path, make, dtype, limit):
    """In bytes of values and of columns; one row where that is more already."""
    found = mapped(tmp_path, make, dtype)._files
    each = np.count_nonzero(A, axis=1) if make is sparse.csr_array else np.full(50, 8)
    size = np.dtype(dtype).itemsize + (4 if make is sparse.csr_array else 0)
    for cuts, bytes_of in (
        (found.cuts(limit), size * each),
        (found.cuts_of(np.arange(49, -1, -1), limit), size * each[::-1]),
    ):
        assert (cuts[0], cuts[-1]) == (0, 50)
        for first, last in itertools.pairwise(cuts):
            assert bytes_of[first:last].sum() <= limit or last == first + 1
            # The next row would have been too much.
            assert last == 50 or bytes_of[first : last + 1].sum() > limit


@each_kind
def test_rows_are_gathered_in_their_order_from_any_places(tmp_path, make):
    """By several readers at a time, runs of neighbours in one go; a row of no entries too."""
    found = mapped(tmp_path, make)._files
    rng = np.random.default_rng(1)
    for rows in ([7], [], [3, 4, 5, 6, 7, 8], [49, 0, 0, 1, 2, 7, 6], rng.integers(0, 50, 200)):
        numbers = np.asarray(rows, np.int64)
        got = found.gather(numbers)
        np.testing.assert_array_equal(got.block(slice(None)), A[numbers])
        assert got.dtype == np.float64


def test_runs_of_neighbours_are_fetched_once():
    asked = []
    files._fetch_runs(np.array([3, 4, 5, 9, 10, 2, 2, 3]), lambda a, b, rooms: asked.append((a, b)))
    assert sorted(asked) == [(0, 3), (3, 5), (5, 6), (6, 8)]
    asked.clear()
    many = np.arange(0, 60, 2)
    files._fetch_runs(many, lambda a, b, rooms: asked.append((a, b)))
    assert sorted(asked) == [(k, k + 1) for k in range(30)]
    files._fetch_runs(np.zeros(0, np.int64), lambda a, b, rooms: asked.append(None))
    assert None not in asked


@each_kind
def test_picked_columns_are_refused_beyond_a_quarter_of_memory(tmp_path, make, monkeypatch):
    rows, chosen = mapped(tmp_path, make), np.array([0, 3, 5])
    entries = np.count_nonzero(A[:, chosen])
    size = 12 * entries if make is sparse.csr_array else 8 * 3 * 50
    monkeypatch.setattr(files, "machine_bytes", lambda: 4 * size)
    np.testing.assert_array_equal(rows.columns(chosen).block(slice(None)), A[:, chosen])
    rows = mapped(tmp_path / "again", make)
    monkeypatch.setattr(files, "machine_bytes", lambda: 4 * size - 4)
    wanted = files.readable(2 * size).replace(".", r"\.")
    with pytest.raises(MemoryError, match=f"3 columns of the data in use at a time need {wanted}"):
        rows.columns(chosen)


def test_columns_just_outside_do_not_reach_a_kernel(tmp_path):
    found = mapped(tmp_path, sparse.csr_array)._files
    starts = np.array([0, 2])
    for columns, good in (([0, 7], True), ([0, 8], False), ([-1, 3], False)):
        parts = np.ones(2), np.array(columns, np.int32), starts
        if good:
            assert found._rows(*parts).passing
        else:
            with pytest.raises(ValueError, match="columns must be numbers from 0 to 7"):
                found._rows(*parts)


def test_a_room_grows_and_begins_at_a_page():
    room = Room()
    small = room.of(10)
    assert len(small) == 10
    assert len(room.of(mmap.PAGESIZE)) == mmap.PAGESIZE
    large = room.of(3 * mmap.PAGESIZE + 1)
    assert len(large) == 3 * mmap.PAGESIZE + 1
    for view in (small, large):
        assert np.frombuffer(view, np.uint8).ctypes.data % mmap.PAGESIZE == 0
    large[-1] = 7
    assert room.of(3 * mmap.PAGESIZE + 1)[-1] == 7  # the same memory again


def test_columns_beyond_32_bits_are_gathered_whole(tmp_path):
    wide = sparse.csr_array(
        (np.array([1.0, 2.0, 3.0]), np.array([4, 2_999_999_999, 7]), np.array([0, 1, 2, 3])),
        shape=(3, 3_000_000_000),
    )
    save_parts(tmp_path / "parts", wide, np.ones(3))
    rows = as_rows(load_parts(tmp_path / "parts", stream=True)[0], finite=True)
    got = rows.take(np.array([1, 0, 1]))
    assert got.shape == (3, 3_000_000_000)
    assert got.matrix.indices.tolist() == [2_999_999_999, 4, 2_999_999_999]
    assert got.matrix.data.tolist() == [2.0, 1.0, 2.0]
