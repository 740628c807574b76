import bz2
import gzip
import lzma
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from adafw.datasets import read_libsvm, write_libsvm
from adafw.io.damage import FileChanged

fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
TEXT = b"1 1:0.5 3:-2\n-1 2:1e-3 # c\n"


def read(tmp_path, text, **options):
    path = tmp_path / "file.svm"
    path.write_bytes(text)
    return read_libsvm(path, **options)


def assert_same(ours, theirs):
    """Same matrix and labels, bit for bit, explicit zeros and their signs included."""
    A, y = ours
    B, z = theirs
    assert A.shape == B.shape
    assert A.dtype == B.dtype
    for a, b in ((A.data, B.data), (A.indices, B.indices), (A.indptr, B.indptr), (y, z)):
        assert np.asarray(a, dtype=b.dtype).tobytes() == np.asarray(b).tobytes()


def numbers():
    plain = st.floats(allow_nan=False, allow_infinity=False)
    return st.one_of(
        plain.map(repr),
        plain.map(lambda x: f"{x:.6g}"),
        st.integers(-(10**25), 10**25).map(str),
        st.decimals(allow_nan=False, allow_infinity=False, places=30).map(str),
        st.sampled_from(["0", "-0", "+1", "1.", ".5", "1E3", "nan", "inf", "-Infinity"]),
    )


@st.composite
def files(draw):
    """Text that scikit-learn reads: blank lines, comments, qids, tabs, CRLF, zeros, any number."""
    lines = []
    first = draw(st.integers(0, 1))
    for _ in range(draw(st.integers(1, 8))):
        ids = sorted(draw(st.sets(st.integers(first, 40), max_size=6)))
        words = [draw(numbers())]
        if draw(st.booleans()):
            words.append(f"qid:{draw(st.integers(0, 10**9))}")
        words += [f"{i}:{draw(numbers())}" for i in ids]
        line = draw(st.sampled_from(["", " ", "\t"])) + draw(
            st.sampled_from([" ", "\t", "  ", " \v"])
        ).join(words)
        line += draw(st.sampled_from(["", " ", "#", " # 1:2 qid:3", "\r", "\t"]))
        lines.append(line)
        lines += draw(st.sampled_from([[], [""], ["# note 7:8"], [" \t"], ["\r"]]))
    return "\n".join(lines).encode() + draw(st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"]))


@fuzz
@given(files(), st.sampled_from(["auto", True]), st.sampled_from([np.float32, np.float64]))
@example(b"1", "auto", np.float64)
def test_reads_what_scikit_learn_reads(tmp_path, text, zero_based, dtype):
    path = tmp_path / "file.svm"
    path.write_bytes(text)
    with np.errstate(over="ignore"):
        theirs = load_svmlight_file(str(path), zero_based=zero_based, dtype=dtype, query_id=True)
    for threads in (1, 3):
        A, y, q = read_libsvm(
            path, zero_based=zero_based, dtype=dtype, query_id=True, threads=threads
        )
        assert_same((A, y), theirs[:2])
        if len(theirs[2]) == len(y):  # theirs leaves out lines without a qid
            np.testing.assert_array_equal(q, theirs[2])


@fuzz
@given(
    st.binary(max_size=60) | st.text("0123456789:.e-+ q#id\n\r\t,_", max_size=60).map(str.encode)
)
def test_junk_is_refused_or_read_alike(tmp_path, text):
    """Never a crash, never another result than scikit-learn's; we may be stricter."""
    path = tmp_path / "file.svm"
    path.write_bytes(text)
    try:
        ours = read_libsvm(path)
    except ValueError:
        return
    with np.errstate(over="ignore"):
        theirs = load_svmlight_file(str(path))
    assert_same(ours, theirs)


def test_written_by_scikit_learn(tmp_path):
    A = sparse.random_array((300, 50), density=0.2, rng=np.random.default_rng(0), format="csr")
    y = np.random.default_rng(1).standard_normal(300)
    path = tmp_path / "file.svm"
    for zero_based in (True, False):
        dump_svmlight_file(A, y, str(path), zero_based=zero_based, comment="made: 1:2")
        assert_same(
            read_libsvm(path, zero_based=zero_based, n_features=50),
            load_svmlight_file(str(path), zero_based=zero_based, n_features=50),
        )


@fuzz
@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([".svm", ".gz", ".bz2", ".xz"]))
def test_written_text_reads_back_to_the_same_bits(tmp_path, seed, zero_based, suffix):
    rng = np.random.default_rng(seed)
    A = sparse.random_array((7, 9), density=0.4, rng=rng, format="csr")
    A.data[:] = rng.standard_normal(A.nnz) * 10.0 ** rng.integers(-300, 300, A.nnz)
    A.data[::5] = 0.0
    y, q = rng.standard_normal(7), rng.integers(0, 5, 7)
    path = tmp_path / f"file{suffix}"
    write_libsvm(path, A, y, zero_based=zero_based, query_id=q)
    opener = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, open)
    with opener(path, "rt") as file:  # packed as its name says, for others to read
        assert file.read().count("\n") == 7
    B, z, p = read_libsvm(path, zero_based=zero_based, n_features=9, query_id=True)
    assert_same((B, z), (A, y))
    np.testing.assert_array_equal(p, q)


def test_writer_keeps_float32_short_and_exact(tmp_path):
    A = np.array([[0.1, 0.0], [1.0, 2.5]], dtype=np.float32)
    write_libsvm(tmp_path / "a", A, [1, -1])
    assert (tmp_path / "a").read_text() == "1 1:0.1\n-1 1:1 2:2.5\n"
    assert (read_libsvm(tmp_path / "a", dtype=np.float32)[0].toarray() == A).all()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_packed_files_are_known_by_their_content(tmp_path, pack):
    A, y = read(tmp_path, pack(TEXT))
    np.testing.assert_array_equal(A.toarray(), [[0.5, 0, -2], [0, 1e-3, 0]])
    np.testing.assert_array_equal(y, [1, -1])


def test_large_file_on_threads_with_comments_and_blank_lines(tmp_path):
    """Stretches then hold fewer rows and entries than the bounds say, and must be closed up."""
    rng = np.random.default_rng(0)
    lines = []
    for i in range(4000):
        ids = np.sort(rng.choice(1000, rng.integers(0, 6), replace=False)) + 1
        lines.append(f"{i} " + " ".join(f"{j}:{rng.random()!r}" for j in ids))
        if rng.random() < 0.3:
            lines.append(["", "# 1:2 3:4", "  "][rng.integers(3)])
    path = tmp_path / "file.svm"
    path.write_text("\n".join(lines))
    theirs = load_svmlight_file(str(path))
    for threads in (1, 2, 7, 64):
        assert_same(read_libsvm(path, threads=threads), theirs)


def test_a_file_in_many_chunks_is_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr("adafw.io.libsvm._CHUNK_BYTES", 40)
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{k % 3} qid:{k // 4} {1 + k % 5}:{k}.5 9:1\n" for k in range(60)))
    A, y, query = read_libsvm(path, query_id=True)
    assert query.tolist() == [k // 4 for k in range(60)]
    assert y.tolist() == [k % 3 for k in range(60)]
    assert A.shape == (60, 9)
    assert [A[k, k % 5] for k in range(60)] == [k + 0.5 for k in range(60)]


def test_result_is_canonical_and_narrow(tmp_path):
    A, _ = read(tmp_path, TEXT)
    assert A.has_canonical_format
    assert A.indices.dtype == np.int32
    assert A.indptr.dtype == np.int32


def test_ids_beyond_32_bits(tmp_path):
    A, _ = read(tmp_path, b"1 1:2 3000000000:5\n")
    assert A.shape == (1, 3_000_000_000)
    assert A.indices.tolist() == [0, 2_999_999_999]


@pytest.mark.parametrize(
    ("text", "line", "column", "wanted", "got"),
    [
        (b"1 1:2\nx 1:2\n", 2, 1, "a label (one number)", "'x'"),
        (b"1,2 1:2\n", 1, 1, "a label (one number)", "'1,2'"),
        (b"1:2 3:4\n", 1, 1, "a label (one number)", "'1:2'"),
        (b"1 1:2\n\n# c\n1 a:2\n", 4, 3, "a feature id (digits only)", "'a:2'"),
        (b"1 -1:2\n", 1, 3, "a feature id (digits only)", "'-1:2'"),
        (b"1 12 3:4", 1, 5, "':' after the feature id", "the end of the line"),
        (b"1 12", 1, 5, "':' after the feature id", "the end of the line"),
        (b"1 1:", 1, 5, "a number after ':'", "the end of the line"),
        (b"1 1: 2", 1, 5, "a number after ':'", "the end of the line"),
        (b"1 1:2x\r\n", 1, 5, "a number after ':'", "'2x'"),
        (b"1 1:1_0\n", 1, 5, "a number after ':'", "'1_0'"),
        (b"1 2:1 2:3\n", 1, 7, "ids must ascend", "'2:3'"),
        (b"1 2:1 1:3\n", 1, 7, "ids must ascend", "'1:3'"),
        (b"1 qid:x 1:3\n", 1, 3, "qid:<digits>", "'qid:x'"),
        (b"1 qid:4x 1:3\n", 1, 3, "qid:<digits>", "'qid:4x'"),
        (b"1 qid:4:1 1:3\n", 1, 3, "qid:<digits>", "'qid:4:1'"),
        (b"1 qid=4 1:3\n", 1, 3, "qid:<digits>", "'qid=4'"),
        (b"1 qid: 1:3\n", 1, 3, "qid:<digits>", "'qid:'"),
        (b"1 1:3 qid:4\n", 1, 7, "a feature id (digits only)", "'qid:4'"),
        (b"1 99999999999999999999:1\n", 1, 3, "below 1e17", "'99999999999999999999:1'"),
        (b"1 999999999999999999:1\n", 1, 3, "below 1e17", "'999999999999999999:1'"),
        (b"1 qid:999999999999999999 1:3\n", 1, 3, "qid:<digits>", "'qid:999999999999999999'"),
    ],
)
def test_malformed_lines_say_where_and_what(tmp_path, text, line, column, wanted, got):
    with pytest.raises(ValueError, match=re.escape(wanted)) as error:
        read(tmp_path, text)
    assert f"file.svm, line {line}, column {column}: expected" in str(error.value)
    assert str(error.value).endswith(f"got {got}.")


def test_the_first_of_several_errors_is_reported(tmp_path):
    text = b"1 1:2\n1 1:bad\n1 x\n" * 3
    for threads in (1, 4):
        with pytest.raises(ValueError, match=r"line 2, column 5: expected a number"):
            read(tmp_path, text, threads=threads)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_damaged_packed_file(tmp_path, pack):
    with pytest.raises(ValueError, match="must be a whole file, got a damaged one"):
        read(tmp_path, pack(TEXT * 50)[:-20])


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# nothing\n", gzip.compress(b"", mtime=0)])
def test_no_samples(tmp_path, text):
    with pytest.raises(ValueError, match=r"file\.svm must hold at least one sample, got none"):
        read(tmp_path, text)


def test_bad_options(tmp_path):
    with pytest.raises(ValueError, match=r"n_features must be at least 3 for .*, got 2"):
        read(tmp_path, TEXT, n_features=2)
    with pytest.raises(ValueError, match="expected a feature id >= 1"):
        read(tmp_path, b"1 0:1\n", zero_based=False)
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        read(tmp_path, TEXT, dtype=int)
    with pytest.raises(ValueError, match="zero_based must be"):
        read(tmp_path, TEXT, zero_based="no")
    with pytest.raises(FileNotFoundError):
        read_libsvm(tmp_path / "missing")
    with pytest.raises(ValueError, match=r"y must have shape \(2,\), got \(1,\)"):
        write_libsvm(tmp_path / "out", np.eye(2), [1])
    assert not (tmp_path / "out").exists()


def test_a_file_is_the_same_in_pieces_of_any_size(tmp_path, monkeypatch):
    """One piece, two, or one a line; with blank lines and comments between them."""
    text = b"1 1:0.5 3:-2\n-1 2:1e-3\n\n2 9:4\n# none\n3 1:1 2:2\n"
    whole = read(tmp_path, text, query_id=True)
    assert whole[0].shape == (4, 9)
    for size in range(1, len(text) + 2):
        monkeypatch.setattr("adafw.io.libsvm._CHUNK_BYTES", size)
        again = read(tmp_path, text, query_id=True)
        assert_same(again[:2], whole[:2])
        assert len(again[2]) == 4


def test_entries_that_are_given_twice_are_written_once(tmp_path):
    twice = (np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4]))
    A = sparse.csr_array(twice, shape=(2, 3))
    write_libsvm(tmp_path / "file.svm", A, [1, -1])
    assert (tmp_path / "file.svm").read_text() == "1 1:2 3:5\n-1 2:8\n"
    assert A.nnz == 4  # what was given stays as it was


@pytest.mark.parametrize("size", [1, 9, 30, 1 << 20])
def test_lines_of_messages_are_found_in_pieces_of_any_size(tmp_path, monkeypatch, size):
    from adafw.io import libsvm

    monkeypatch.setattr(libsvm, "_CHUNK_BYTES", size)
    path = tmp_path / "f.svm"
    path.write_bytes(b"# 7:1\n1 1:2 17:3\n\n-1 2:1 # 70:1\n1 07:5\n  2 70:1\n")
    lines = [libsvm.line_with_id(path, wanted) for wanted in (1, 2, 7, 17, 70, 3)]
    assert lines == [2, 4, 5, 2, 6, None]
    samples = [libsvm.line_of_sample(path, number) for number in range(5)]
    assert samples == [2, 4, 5, 6, None]


def test_what_is_written_must_fit(tmp_path):
    path = tmp_path / "f.svm"
    with pytest.raises(ValueError, match=r"y must have shape \(2,\), got \(3,\)"):
        write_libsvm(path, np.eye(2), [1, 2, 3])
    with pytest.raises(ValueError, match=r"query_id must have shape \(2,\), got \(1,\)"):
        write_libsvm(path, np.eye(2), [1, 2], query_id=[3])
    assert not path.exists()
    write_libsvm(path, np.eye(2), [1, 2], query_id=[3, 4], zero_based=True)
    assert path.read_text() == "1 qid:3 0:1\n2 qid:4 1:1\n"


def test_long_words_of_any_bytes_are_told_by_their_beginning(tmp_path):
    with pytest.raises(ValueError, match="expected a number") as error:
        read(tmp_path, b"1 1:" + b"\xff" * 60 + b"\n")
    assert str(error.value).endswith(f"got '{chr(0xFFFD) * 40}'.")
    with pytest.raises(ValueError, match="expected a number") as error:
        read(tmp_path, b"1 1:" + b"a" * 41 + b"\v2:3\n")
    assert str(error.value).endswith(f"got '{'a' * 40}'.")
    for blank in (b"\v", b"\f", b"\r", b"#"):
        with pytest.raises(ValueError, match="expected a number after ':', got 'x'"):
            read(tmp_path, b"1 1:x" + blank + b"2:3\n")


def test_threads_are_counted_from_one_and_by_the_size_of_the_text(tmp_path, monkeypatch):
    from adafw.io import libsvm_text

    for wrong in (0, -1, 1.5):
        with pytest.raises(ValueError, match="threads must be an integer >= 1, got"):
            read(tmp_path, TEXT, threads=wrong)
    asked = []

    def pool(n):
        asked.append(n)
        return ThreadPoolExecutor(n)

    monkeypatch.setattr(libsvm_text, "ThreadPoolExecutor", pool)
    monkeypatch.setattr(libsvm_text.kernel_threads, "cores", lambda: 3)
    monkeypatch.setattr(libsvm_text, "_WORTH_THREADS", len(TEXT))
    read(tmp_path, TEXT)
    read(tmp_path, TEXT + b"\n")
    read(tmp_path, TEXT, threads=2)
    assert asked == [1, 3, 2]
    assert libsvm_text._spans(np.frombuffer(TEXT * 4, np.uint8), 4)[-1][1] == 4 * len(TEXT)


def test_values_too_large_for_float32_are_infinite(tmp_path):
    A, _ = read(tmp_path, b"1 1:1e39 2:12345678901234567890123\n", dtype=np.float32)
    assert A.data.tolist() == [np.inf, np.float32(1.2345679e22)]
    assert read(tmp_path, b"1 1:1e39\n")[0].data.tolist() == [1e39]


@pytest.mark.parametrize("length", [5, 4096, 4097, 9000])
def test_lines_of_any_length_are_cut_at_their_ends(tmp_path, monkeypatch, length):
    """The last newline of a piece is sought from its end, window by window."""
    monkeypatch.setattr("adafw.io.libsvm._CHUNK_BYTES", 12_000)
    line = b"1 1:2 #" + b"x" * length + b"\n"
    text = line * (30_000 // len(line)) + b"2 3:4\n"
    A, y = read(tmp_path, text)
    assert (A.shape, y[-1]) == ((text.count(b"\n"), 3), 2)
    assert A.sum() == 2 * (len(y) - 1) + 4


def test_little_of_a_large_array_is_copied_and_most_of_it_is_not():
    """A view would hold on to all of it."""
    from adafw.io.libsvm_text import _cut

    whole = np.arange(100.0)
    for n, copied in ((80, True), (81, False), (3, True), (100, False)):
        part = _cut(whole, n)
        assert part.tolist() == whole[:n].tolist()
        assert (part.base is None) is copied


@pytest.mark.parametrize("suffix", [".GZ", ".Bz2", ".XZ"])
def test_endings_in_capitals_pack_too(tmp_path, suffix):
    write_libsvm(tmp_path / f"a{suffix}", np.eye(2), [1, 2])
    opener = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}[suffix.lower()]
    with opener(tmp_path / f"a{suffix}", "rb") as file:
        assert file.read() == b"1 1:1\n2 2:1\n"


def test_text_that_grew_between_counting_and_parsing_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("adafw.kernels.libsvm.count", lambda text, start, stop: (0, 0))
    with pytest.raises(FileChanged, match="changed while it was read"):
        read(tmp_path, TEXT)


def test_labels_and_queries_are_one_number_a_row(tmp_path):
    path, A = tmp_path / "a.svm", np.eye(3)
    for y in (np.ones((3, 1)), np.ones(2)):
        with pytest.raises(ValueError, match=r"y must have shape \(3,\), got"):
            write_libsvm(path, A, y)
        with pytest.raises(ValueError, match=r"query_id must have shape \(3,\), got"):
            write_libsvm(path, A, np.ones(3), query_id=y.astype(int))
    assert not path.exists()
