import bz2
import itertools
import json
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw.datasets import libsvm_to_parts, load_parts, read_libsvm, save_parts, write_libsvm
from adafw.io import growing, parts
from adafw.io.growing import Lines
from adafw.io.meter import Meter
from adafw.io.shuffled import Shuffled
from adafw.io.tables import read_table
from adafw.rows import as_rows


def sample(m=200, n=40, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = sparse.random_array((m, n), density=0.2, rng=rng, format="csr", dtype=dtype)
    return A, rng.choice([-1.0, 1.0], m)


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


def assert_equal(A, B):
    assert A.shape == B.shape
    assert A.dtype == B.dtype
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(A, name), getattr(B, name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_parts_come_back_mapped(tmp_path, dtype):
    A, y = sample(dtype=dtype)
    save_parts(tmp_path / "parts", A, y)
    B, z = load_parts(tmp_path / "parts")
    assert_equal(B, A)
    np.testing.assert_array_equal(z, y)
    assert is_mapped(B.data)
    assert is_mapped(B.indices)
    assert np.load(tmp_path / "parts" / "indptr.npy").dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        B.data[0] = 1


def test_dense_parts_come_back_mapped(tmp_path):
    A = np.random.default_rng(0).standard_normal((30, 7)).astype(np.float32)
    save_parts(tmp_path / "parts", A, np.arange(30))
    B, y = load_parts(tmp_path / "parts")
    np.testing.assert_array_equal(A, B)
    np.testing.assert_array_equal(y, np.arange(30))
    assert is_mapped(B)


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_training_on_parts_copies_nothing_and_equals_training_in_memory(tmp_path, kind):
    rng = np.random.default_rng(0)
    m, n = 40_000, 60
    A = sparse.random_array((m, n), density=0.5, rng=rng, format="csr")
    A = A if kind == "csr" else A.toarray()
    y = rng.choice([-1.0, 1.0], m)
    save_parts(tmp_path / "parts", A, y)
    size = sum(file.stat().st_size for file in (tmp_path / "parts").iterdir())

    def run(A, y):
        f = adafw.LinearModel(A, y, adafw.losses.Logistic())
        algorithm = adafw.AdaCSFW(learning_rate=1.0)
        return f, adafw.minimize(f, adafw.L1Ball(5.0), algorithm, max_iterations=5)

    _, expected = run(A, y)
    tracemalloc.start()
    B, z = load_parts(tmp_path / "parts")
    f, result = run(B, z)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    np.testing.assert_array_equal(result.x, expected.x)
    held = f.rows.matrix.data if kind == "csr" else f.rows.array
    assert is_mapped(held)
    # A few vectors with one number a row are all that is made.
    assert peak < 12 * 8 * m
    assert peak < size / 2


def test_repeated_and_unsorted_columns_are_put_in_order_first(tmp_path):
    A = sparse.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3))
    save_parts(tmp_path / "parts", A, [1.0])
    B, _ = load_parts(tmp_path / "parts")
    np.testing.assert_array_equal(B.toarray(), [[2, 0, 4]])
    assert A.nnz == 3


def test_no_stored_entries(tmp_path):
    save_parts(tmp_path / "parts", sparse.csr_array((3, 4)), np.ones(3))
    B, _ = load_parts(tmp_path / "parts")
    assert B.nnz == 0
    assert (B @ np.ones(4)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("block_bytes", [1, 50, 1000, 1 << 20])
@pytest.mark.parametrize("zero_based", [True, False])
def test_converter_equals_reader_whatever_the_block_size(tmp_path, block_bytes, zero_based):
    A, y = sample(m=60)
    path = tmp_path / "file.svm.bz2"
    write_libsvm(path, A, y, zero_based=zero_based)
    expected, _ = read_libsvm(path)
    B, z = libsvm_to_parts(path, tmp_path / "parts", block_bytes=block_bytes)
    assert_equal(B, expected)
    np.testing.assert_array_equal(z, y)


def test_converter_uses_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "CHUNK", 1 << 12)
    path = tmp_path / "file.svm"
    path.write_text("1 1:0.5 7:0.25 9:-1\n" * 300_000)
    libsvm_to_parts(path, tmp_path / "parts", block_bytes=1 << 14)  # compiles
    tracemalloc.start()
    libsvm_to_parts(path, tmp_path / "parts", block_bytes=1 << 16)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 * (1 << 16) + 2 * 4 * 300_001  # blocks; and row starts when mapped
    assert path.stat().st_size > 5_000_000


def test_ids_that_turn_out_wide(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "CHUNK", 3)
    path = tmp_path / "file.svm"
    path.write_text("1 1:1 2:2 4:3 5:4\n" * 5 + "1 3000000000:5\n" + "1 2:7\n")
    A, _ = libsvm_to_parts(path, tmp_path / "parts", block_bytes=20)
    assert_equal(A, read_libsvm(path)[0])
    assert A.indices.dtype == A.indptr.dtype == np.int64


def test_malformed_line_in_a_late_block(tmp_path):
    path = tmp_path / "file.svm"
    path.write_bytes(bz2.compress(b"1 1:1\n" * 50 + b"1 1:x\n"))
    with pytest.raises(ValueError, match=r"line 51, column 5: expected a number"):
        libsvm_to_parts(path, tmp_path / "parts", block_bytes=64)
    assert [p.name for p in tmp_path.iterdir()] == ["file.svm"]


def test_lines_without_a_sample_count_as_lines(tmp_path):
    """Comments and blank lines in earlier blocks: the number is the one an editor shows."""
    path = tmp_path / "a.svm"
    path.write_text("# head\n\n1 1:2\n" * 20 + "1 x\n")
    with pytest.raises(ValueError, match="line 61, column 3"):
        libsvm_to_parts(path, tmp_path / "parts", block_bytes=32)
    with pytest.raises(ValueError, match="line 61, column 3"):
        read_libsvm(path)


def test_failure_keeps_the_old_parts(tmp_path):
    A, y = sample()
    save_parts(tmp_path / "parts", A, y)
    bad = A.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="A must be finite"):
        save_parts(tmp_path / "parts", bad, y)
    with pytest.raises(ValueError, match="y must have shape"):
        save_parts(tmp_path / "parts", A, y[1:])
    (tmp_path / "empty").write_text("")
    with pytest.raises(ValueError, match="at least one sample"):
        libsvm_to_parts(tmp_path / "empty", tmp_path / "parts")
    assert_equal(load_parts(tmp_path / "parts")[0], A)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "parts"]


def test_never_replaces_a_foreign_directory(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(ValueError, match="must be new or hold parts"):
        save_parts(tmp_path / "mine", np.eye(2), [1, 2])


def test_what_is_not_whole_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no manifest\.json"):
        load_parts(tmp_path / "missing")
    A, y = sample()
    folder = tmp_path / "parts"
    save_parts(folder, A, y)
    np.save(folder / "data.npy", A.data[1:])
    with pytest.raises(ValueError, match=r"data\.npy must hold float64 of shape"):
        load_parts(folder)
    (folder / "manifest.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="must have parts of format 1, got 99"):
        load_parts(folder)


def test_nan_is_found_in_every_piece():
    values = np.zeros((1 << 12, 1 << 11))
    values[-1, -1] = np.nan
    with pytest.raises(ValueError, match="A must be finite"):
        adafw.LinearModel(values, np.ones(1 << 12), adafw.losses.Squared())
    values[-1, -1] = 1e300  # its square overflows, it is finite
    adafw.LinearModel(values, np.ones(1 << 12), adafw.losses.Squared())


def row_bytes(A, y):
    """Each row as something to sort and count."""
    return sorted((float(y[i]), A[[i]].toarray().tobytes()) for i in range(A.shape[0]))


@pytest.mark.parametrize("block_bytes", [40, 1000, 1 << 20])
def test_a_shuffle_keeps_every_row_with_its_target_and_moves_most(tmp_path, block_bytes):
    A, y = sample(m=300)
    y = y * np.arange(1, 301)  # each its own
    path = tmp_path / "file.svm"
    write_libsvm(path, A, y)
    how = {"block_bytes": block_bytes, "n_features": A.shape[1]}
    B, z = libsvm_to_parts(path, tmp_path / "parts", shuffle=3, **how)
    assert row_bytes(B, z) == row_bytes(A, y)
    assert np.count_nonzero(z == y) < 10
    assert {file.name for file in (tmp_path / "parts").iterdir()} == {
        "manifest.json", "data.npy", "indices.npy", "indptr.npy", "y.npy",
    }  # fmt: skip
    again, _ = libsvm_to_parts(path, tmp_path / "again", shuffle=3, **how)
    assert_equal(again, B)
    other, _ = libsvm_to_parts(path, tmp_path / "other", shuffle=4, **how)
    assert (other != B).nnz > 0
    assert json.loads((tmp_path / "parts" / "manifest.json").read_text())["shuffle"] == 3


class Taken:
    """Stands where a `Store` does, and keeps the targets in their order."""

    def __init__(self):
        self.y = []

    def append(self, lines):
        assert len(lines.y) < 3, "a heap beyond twice its limit is never held in memory"
        self.y += lines.y.tolist()


def test_every_order_is_as_likely(tmp_path):
    path = tmp_path / "any"
    path.touch()
    lines = Lines(np.ones(3), np.zeros(3, np.int32), np.ones(3, np.int64), np.arange(3.0))
    orders = []
    for seed in range(300):
        mixed, store = Shuffled(tmp_path, seed, 30, Meter("", path, False)), Taken()
        mixed.take(iter([lines]), 30)  # rows of 28 bytes: a heap of three is dealt out again
        mixed.give(store)
        orders.append(tuple(store.y))
    counts = [orders.count(order) for order in itertools.permutations((0.0, 1.0, 2.0))]
    assert sum(counts) == 300
    # 50 expected in each, with a deviation of 6.5.
    assert min(counts) > 25
    assert max(counts) < 75
    assert [file.name for file in tmp_path.iterdir()] == ["any"]


def test_ids_that_need_64_bits_and_come_late_are_shuffled_too(tmp_path):
    path = tmp_path / "file.svm"
    path.write_text("1 1:1\n" * 30 + "2 1:1 3000000000:5\n" + "3 2:1\n" * 30)
    B, z = libsvm_to_parts(path, tmp_path / "parts", shuffle=0, block_bytes=100)
    assert sorted(z) == [1.0] * 30 + [2.0] + [3.0] * 30
    i = int(np.flatnonzero(z == 2.0)[0])
    assert B.indices[B.indptr[i] : B.indptr[i + 1]].tolist() == [0, 2999999999]
    assert B.data[B.indptr[i] : B.indptr[i + 1]].tolist() == [1.0, 5.0]


def test_bytes_done_are_told(tmp_path, capsys):
    path = tmp_path / "file.svm.gz"
    A, y = sample(m=2000)
    write_libsvm(path, A, y)
    libsvm_to_parts(path, tmp_path / "parts", progress=True, shuffle=1, block_bytes=1 << 12)
    said = capsys.readouterr().err
    assert re.search(r"converting file.svm.gz +\d+%  [\d.]+ kB of [\d.]+ kB, [\d.]+ \wB/s", said)
    libsvm_to_parts(path, tmp_path / "parts")
    assert capsys.readouterr().err == ""


def test_a_wrong_seed_is_refused(tmp_path):
    with pytest.raises(ValueError, match="shuffle must be an integer >= 0, got -1"):
        libsvm_to_parts("none.svm", tmp_path / "parts", shuffle=-1)


def test_parts_larger_than_half_the_memory_are_streamed(tmp_path, monkeypatch):
    A, y = sample()
    save_parts(tmp_path / "parts", A, y)
    size = sum(file.stat().st_size for file in (tmp_path / "parts").glob("*.npy"))
    for limit, streamed in ((2 * size, False), (2 * size - 1, True)):
        monkeypatch.setattr(parts, "machine_bytes", lambda limit=limit: limit)
        B, _ = load_parts(tmp_path / "parts")
        assert as_rows(B).streamed is streamed
        assert_equal(B, A)
    assert as_rows(load_parts(tmp_path / "parts", stream=True)[0]).streamed


def test_targets_of_any_form_are_numbers(tmp_path):
    y = np.arange(6)[::-2]
    save_parts(tmp_path / "parts", np.eye(3), y)
    assert load_parts(tmp_path / "parts")[1].tolist() == [5, 3, 1]
    with pytest.raises(ValueError, match="y must hold numbers, got <U1"):
        save_parts(tmp_path / "parts", np.eye(3), ["a", "b", "c"])


def test_a_manifest_says_what_the_parts_are(tmp_path):
    path = tmp_path / "file.svm"
    for text, shift in (("1 1:1 3:2\n", False), ("1 0:1 2:2\n", True)):
        path.write_text(text)
        libsvm_to_parts(path, tmp_path / "parts", n_features=5, dtype=np.float32, shuffle=7)
        told = parts.Manifest.read(tmp_path / "parts")
        assert told == parts.Manifest("csr", (1, 5), "float32", 7, shift)
        assert read_table(tmp_path / "parts").zero_based is shift
    save_parts(tmp_path / "dense", np.eye(3), np.ones(3))
    assert parts.Manifest.read(tmp_path / "dense") == parts.Manifest("dense", (3, 3), "float64")


@pytest.mark.parametrize(("n", "kind"), [(2**31 - 1, np.int32), (2**31, np.int64)])
def test_a_width_beyond_32_bits_is_known_to_all_arrays(tmp_path, n, kind):
    path = tmp_path / "file.svm"
    path.write_text("1 1:2 5:3\n")
    A, _ = libsvm_to_parts(path, tmp_path / "parts", n_features=n)
    assert A.shape == (1, n)
    assert A.indices.tolist() == [0, 4]
    assert np.load(tmp_path / "parts" / "indices.npy").dtype == kind


def test_options_of_the_reader_are_those_of_the_converter(tmp_path):
    path = tmp_path / "file.svm"
    path.write_text("1 1:0.1\n")
    A, _ = libsvm_to_parts(path, tmp_path / "parts", zero_based=True, dtype=np.float32)
    assert_equal(A, read_libsvm(path, zero_based=True, dtype=np.float32)[0])
    with pytest.raises(ValueError, match="n_features must be at least 2 for"):
        libsvm_to_parts(path, tmp_path / "parts", zero_based=True, n_features=1)
    with pytest.raises(ValueError, match="block_bytes must be an integer >= 1, got 0"):
        libsvm_to_parts(path, tmp_path / "parts", block_bytes=0)
    path.write_text("1 0:0.1\n")
    with pytest.raises(ValueError, match="expected a feature id >= 1"):
        libsvm_to_parts(path, tmp_path / "parts", zero_based=False)


def test_a_shuffle_never_opens_too_many_files(tmp_path, monkeypatch):
    """Four a heap, of all heaps that rows are dealt to at a time, however small they must be."""
    from adafw.io import shuffled

    monkeypatch.setattr(shuffled, "HEAPS", 5)
    most, deal = [], Shuffled._deal

    def counted(self, lines, count):
        most.append(count)
        assert self.limit == 4 * 64
        return deal(self, lines, count)

    monkeypatch.setattr(Shuffled, "_deal", counted)
    A, y = sample(m=300)
    write_libsvm(tmp_path / "file.svm", A, y)
    B, z = libsvm_to_parts(tmp_path / "file.svm", tmp_path / "parts", shuffle=1, block_bytes=64)
    assert row_bytes(B, z) == row_bytes(read_libsvm(tmp_path / "file.svm")[0], y)
    assert max(most) == 5
    assert len(most) > 5  # heaps that are too large are dealt out again


def test_numbers_that_would_not_fit_are_never_written(tmp_path):
    with growing.Growing(tmp_path / "a.npy", np.dtype(np.int32)) as array:
        array.append(np.array([1, 2], np.int32))
        with pytest.raises(TypeError, match="safe"):
            array.append(np.array([2**40]))
        array.append(np.array([3], np.int16))
    assert np.load(tmp_path / "a.npy").tolist() == [1, 2, 3]


def test_heaps_are_as_many_as_the_size_of_the_file_asks_for(tmp_path, monkeypatch):
    """A tenth more than it would fill; all there may be if the size is not known, as of a pipe."""
    asked = []

    def deal(self, lines, count):
        asked.append(count)
        return []

    monkeypatch.setattr(Shuffled, "_deal", deal)
    (tmp_path / "any").touch()
    mixed = Shuffled(tmp_path, 0, 1000, Meter("", tmp_path / "any", False))
    for size in (0, 900, 910, 5000, 10**6, None):
        mixed.take(iter([]), size)
    assert asked == [1, 1, 2, 6, 64, 64]


def test_a_row_that_is_larger_than_a_heap_is_shuffled_too(tmp_path, monkeypatch):
    dealt, deal = [], Shuffled._deal

    def counted(self, lines, count):
        dealt.append(count)
        assert len(dealt) < 50, "rows are dealt out again and again"
        return deal(self, lines, count)

    monkeypatch.setattr(Shuffled, "_deal", counted)
    path = tmp_path / "file.svm"
    path.write_text("".join(f"{k} 1:{k} 2:1 3:1 4:1\n" for k in range(1, 9)))
    B, z = libsvm_to_parts(path, tmp_path / "parts", shuffle=2, block_bytes=1)
    assert sorted(z) == list(range(1, 9))
    np.testing.assert_array_equal(B.toarray()[:, 0], z)


def test_what_is_no_directory_of_parts_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name in ("file", "empty", "missing"):
        with pytest.raises(FileNotFoundError, match="must be a directory made by save_parts or"):
            load_parts(tmp_path / name)
    (tmp_path / "empty" / "manifest.json").write_text("no json")
    with pytest.raises(ValueError, match=r"manifest\.json must be a manifest of parts"):
        load_parts(tmp_path / "empty")
    save_parts(tmp_path / "empty", np.eye(2), np.ones(2))  # whoever has a manifest is replaced
    assert load_parts(tmp_path / "empty")[0].shape == (2, 2)


def test_dense_rows_stored_by_columns_are_refused(tmp_path):
    """Their bytes would be taken for rows where they are streamed."""
    A = np.arange(6.0).reshape(2, 3)
    save_parts(tmp_path / "parts", A, np.ones(2))
    np.save(tmp_path / "parts" / "data.npy", np.asfortranarray(A))
    for stream in (False, True):
        with pytest.raises(ValueError, match=r"data\.npy must hold float64 of shape \(2, 3\)"):
            load_parts(tmp_path / "parts", stream=stream)


def test_the_order_of_a_seed_stays_what_it_is(tmp_path, monkeypatch):
    """Through many heaps; bytes are told as they are put back in order, up to all of them."""
    path = tmp_path / "file.svm"
    path.write_text("".join(f"{k} {1 + k % 3}:1\n" for k in range(400)))
    told, done = [], Meter.done

    class Told(Meter):
        def done(self, count, total, what=""):
            told.append((count, total, what))
            done(self, count, total, what)

    monkeypatch.setattr(parts, "Meter", Told)
    _, z = libsvm_to_parts(path, tmp_path / "parts", shuffle=3, block_bytes=160)
    order = z.astype(int).tolist()
    assert sorted(order) == list(range(400))
    assert order[:10] == ORDER[:10]
    assert int(np.arange(400) @ order) == ORDER[10]
    back = [(count, total) for count, total, what in told if what == "shuffling"]
    counts = [count for count, _ in back]
    assert counts == sorted(counts)
    assert len(set(counts)) == len(counts) > 2
    assert back[-1][0] == back[-1][1] == 400 * (8 + 4 + 8 + 8)


#: The first of 400 rows by seed 3, and the sum of all of them, each times its place.
ORDER = [159, 385, 22, 319, 248, 68, 143, 371, 138, 202, 15813119]


def test_a_small_file_is_one_heap(tmp_path, monkeypatch):
    asked, deal = [], Shuffled._deal

    def counted(self, lines, count):
        asked.append((count, self.limit))
        return deal(self, lines, count)

    monkeypatch.setattr(Shuffled, "_deal", counted)
    (tmp_path / "file.svm").write_text("1 1:1\n" * 9)
    libsvm_to_parts(tmp_path / "file.svm", tmp_path / "parts", shuffle=1)
    assert asked == [(1, 4 << 26)]


def test_targets_are_one_number_a_row(tmp_path):
    A = np.eye(3)
    for y in (np.ones((3, 1)), np.ones((3, 2)), np.ones(2), np.float64(1.0)):
        with pytest.raises(ValueError, match=r"y must have shape \(3,\), got"):
            save_parts(tmp_path / "p", A, y)
    assert not (tmp_path / "p").exists()


def test_arrays_of_other_kinds_than_the_manifest_says_are_refused(tmp_path):
    """Row starts and entries are taken by compiled code as what they are said to be."""
    folder, A = tmp_path / "p", sparse.csr_array(np.array([[1.0, 0.0], [2.0, 3.0]]))
    for name, dtype in (("indptr", np.int32), ("data", np.float32), ("indices", np.uint32)):
        save_parts(folder, A, np.ones(2))
        np.save(folder / f"{name}.npy", np.load(folder / f"{name}.npy").astype(dtype))
        with pytest.raises(ValueError, match=f"{name}.npy must hold .* got {np.dtype(dtype)}"):
            load_parts(folder)
    save_parts(folder, A, np.ones(2))
    words = json.loads((folder / "manifest.json").read_text())
    for shape in ([2.0, 2], [2, True], [2], [2, 2, 2], "22"):
        (folder / "manifest.json").write_text(json.dumps({**words, "shape": shape}))
        with pytest.raises(ValueError, match="must be a manifest of parts, got a damaged one"):
            load_parts(folder)
