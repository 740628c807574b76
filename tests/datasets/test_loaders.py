import functools
import gzip
import hashlib
import http.server
import inspect
import threading
import zipfile

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import datasets
from adafw.datasets import store, write_libsvm, year_msd

REAL = datasets.data_directory()


def real(name):
    return pytest.mark.skipif(
        not (REAL / name).is_file(), reason=f"{name} is not in {REAL} (set ADAFW_DATA)"
    )


@pytest.fixture
def empty_store(tmp_path, monkeypatch):
    """A data directory of our own, and no way out to any network."""
    monkeypatch.setenv("ADAFW_DATA", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    return tmp_path


@pytest.fixture
def server(tmp_path_factory, monkeypatch):
    """A web server on this machine: (directory, address)."""
    folder = tmp_path_factory.mktemp("served")
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        yield folder, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def test_directory_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ADAFW_DATA", str(tmp_path))
    assert datasets.data_directory() == tmp_path
    monkeypatch.delenv("ADAFW_DATA")
    assert datasets.data_directory().name == "adafw"


@pytest.mark.parametrize(
    ("load", "what", "name"),
    [
        (datasets.rcv1, "RCV1", "rcv1_train.binary.bz2"),
        (datasets.year_prediction, "YearPredictionMSD", "YearPredictionMSD.txt.zip"),
        (datasets.imdb, "IMDB", "imdb_subwords8k_ids.npz"),
        (datasets.cifar10, "CIFAR-10", "cifar10.npz"),
        (datasets.fashion_mnist, "Fashion-MNIST", "train-images-idx3-ubyte.gz"),
        (datasets.tiny_shakespeare, "Tiny Shakespeare", "tinyshakespeare.txt"),
    ],
)
def test_missing_data_say_what_where_and_how(empty_store, load, what, name):
    with pytest.raises(datasets.DataMissing) as error:
        load()
    text = str(error.value)
    assert text.startswith(f"{what} was not found: {empty_store} has no {name}")
    assert f"put {name} there" in text
    assert "set ADAFW_DATA" in text
    assert list(empty_store.iterdir()) == []


def test_download_with_checksum(empty_store, server):
    folder, address = server
    (folder / "file.txt").write_bytes(b"content")
    checksum = hashlib.sha256(b"content").hexdigest()
    place = store.Place("it", ("local.txt",), "sample", f"{address}/file.txt", checksum)
    path = place.fetch()
    assert path == empty_store / "local.txt"
    assert path.read_bytes() == b"content"
    (folder / "file.txt").unlink()  # it is not asked for again
    assert place.fetch() == path
    assert place.locate("auto") == ("original", path)


def test_wrong_checksum_or_address_leaves_nothing(empty_store, server):
    folder, address = server
    (folder / "file.txt").write_bytes(b"other")
    with pytest.raises(datasets.DataMissing, match=r"failed .*hash"):
        store.Place("it", ("local.txt",), "sample", f"{address}/file.txt", "0" * 64).fetch()
    with pytest.raises(datasets.DataMissing, match="404"):
        store.Place("it", ("local.txt",), "sample", f"{address}/missing.txt").fetch()
    assert list(empty_store.iterdir()) == []


def test_sources_are_tried_in_their_order(empty_store):
    place = store.Place("it", ("whole",), "sample", "http://127.0.0.1:9/none")
    assert place.locate("any") == ("stand-in", store.Path())
    with pytest.raises(datasets.DataMissing, match="the sample of it was not found"):
        place.locate("sample")
    (empty_store / "sample").touch()
    assert place.locate("auto") == ("sample", empty_store / "sample")
    with pytest.raises(datasets.DataMissing, match="it was not found"):
        place.locate("original")
    (empty_store / "whole").touch()
    assert place.locate("auto") == ("original", empty_store / "whole")
    assert place.locate("sample") == ("sample", empty_store / "sample")
    assert place.locate("stand-in")[0] == "stand-in"


def test_nothing_stands_in_for_data_that_are_there(empty_store):
    """The source "any" takes what "auto" takes; one that is named takes nothing else."""
    place = store.Place("it", ("packed", "whole"), "sample", "http://127.0.0.1:9/none")
    for kind, name in (("sample", "sample"), ("original", "whole"), ("original", "packed")):
        (empty_store / name).touch()
        for source in ("any", "auto", kind):
            assert place.locate(source) == (kind, empty_store / name)
    assert place.locate("sample") == ("sample", empty_store / "sample")
    assert place.locate("stand-in") == ("stand-in", store.Path())


def test_unknown_source():
    with pytest.raises(ValueError, match="source must be one of auto, any"):
        datasets.rcv1("internet")


def test_any_source_falls_back_to_a_labelled_stand_in(empty_store, monkeypatch):
    data = datasets.rcv1("any")
    assert data.is_stand_in
    assert "STAND-IN: generated data" in data.label
    assert data.A.shape == (20_242, 47_236)
    assert (data.A.nnz, data.y.sum()) == (1_537_487, 46)  # those of seed 0
    monkeypatch.setattr(year_msd, "_TRAIN", 500)
    data = datasets.year_prediction("any")
    assert data.is_stand_in
    assert data.label.endswith("STAND-IN: generated data of its shape, standardised")
    A, y = datasets.correlated_regression(500)
    np.testing.assert_array_equal(data.A, year_msd.standardised(A))
    np.testing.assert_array_equal(data.y, y - y.mean())


def test_a_wrong_rcv1_file_is_refused(empty_store):
    A, y = datasets.text_like(50, 47_236, nonzeros=5)
    write_libsvm(empty_store / "rcv1_train.binary", A, y)
    with pytest.raises(ValueError, match=r"must be LIBSVM's rcv1_train\.binary"):
        datasets.rcv1()


@pytest.mark.parametrize("packed", [True, False])
def test_year_table_from_text(empty_store, monkeypatch, packed):
    monkeypatch.setattr(year_msd, "_ALL", 5)
    monkeypatch.setattr(year_msd, "_TRAIN", 4)
    table = np.random.default_rng(0).standard_normal((5, 91)).round(5)
    text = "\r\n".join(",".join(map(repr, row)) for row in table.tolist()) + "\r\n"
    if packed:
        with zipfile.ZipFile(empty_store / "YearPredictionMSD.txt.zip", "w") as archive:
            archive.writestr("YearPredictionMSD.txt", text)
    else:
        (empty_store / "YearPredictionMSD.txt").write_text(text, newline="")
    data = datasets.year_prediction(standardise=False)
    np.testing.assert_array_equal(data.A, table[:4, 1:])
    np.testing.assert_array_equal(data.y, table[:4, 0])
    assert not data.is_stand_in
    data = datasets.year_prediction()
    np.testing.assert_allclose(data.A.mean(0), 0, atol=1e-14)
    np.testing.assert_allclose(data.A.std(0), 1)
    assert abs(data.y.mean()) < 1e-14


def test_standardising_a_constant_column():
    np.testing.assert_array_equal(year_msd.standardised(np.full((3, 1), 7.0)), np.zeros((3, 1)))


def test_first_rows_are_labelled():
    data = datasets.Dataset(np.eye(3), np.ones(3), "eye", "whole")
    assert data.first(3) is data
    assert data.label == "eye (3 x 3)"
    part = data.first(2)
    assert part.is_stand_in
    assert part.label == "eye (2 x 3), STAND-IN: whole, the first 2 of 3 rows"
    with pytest.raises(ValueError, match="rows must be an integer >= 1, got 0"):
        data.first(0)


def test_own_files(tmp_path):
    write_libsvm(tmp_path / "a.svm", np.eye(2), [1, -1])
    data = datasets.from_libsvm(tmp_path / "a.svm", n_features=5)
    assert data.A.shape == (2, 5)
    assert data.name == "a.svm"
    datasets.save_parts(tmp_path / "parts", data.A, data.y)
    assert datasets.from_parts(tmp_path / "parts").A.shape == (2, 5)


def test_text_like_has_the_shape_of_rcv1():
    A, y = datasets.text_like(4000, 47_236)
    assert abs(A.nnz / 4000 - 75) < 4
    np.testing.assert_allclose(np.sqrt(A.multiply(A).sum(axis=1)), 1)
    assert abs(np.mean(y)) < 0.05
    assert set(np.unique(y)) == {-1, 1}
    counts = np.sort(np.bincount(A.indices, minlength=47_236))[::-1]
    assert counts[0] > 20 * counts[1000]
    B, z = datasets.text_like(4000, 47_236)
    assert (A != B).nnz == 0
    np.testing.assert_array_equal(y, z)


def test_text_like_can_be_learnt():
    A, y = datasets.text_like(2000, 3000, nonzeros=30, seed=1)
    f = adafw.LinearModel(A[:1500], y[:1500], adafw.losses.Logistic())
    result = adafw.minimize(
        f, adafw.L1Ball(100.0), adafw.AdaCSFW(learning_rate=10.0), max_epochs=50
    )
    assert np.mean(np.sign(A[1500:] @ result.x) == y[1500:]) > 0.65


@pytest.mark.parametrize("m", [1, 3000])
def test_correlated_regression(m):
    A, y = datasets.correlated_regression(m, 90)
    assert A.shape == (m, 90)
    if m > 1:
        X = year_msd.standardised(A)
        _, residual, *_ = np.linalg.lstsq(X, y - y.mean(), rcond=None)
        assert 0.2 < 1 - residual[0] / m / y.var() < 0.35
        correlation = np.abs(np.corrcoef(A.T) - np.eye(90))
        assert correlation.max() > 0.3
        assert abs(y.std() - 11) < 1


@real("rcv1_v2_binary.npz")
def test_rcv1_sample():
    data = datasets.rcv1("sample")
    assert data.A.shape == (20_242, 47_236)
    assert data.A.nnz == 1_517_908
    assert (data.y > 0).sum() == 10_097
    assert data.is_stand_in
    assert sparse.issparse(data.A)
    np.testing.assert_allclose(np.sqrt(data.A.multiply(data.A).sum(axis=1)), 1, atol=3e-6)


@real("yearprediction_msd_partial.npz")
def test_year_sample():
    data = datasets.year_prediction("sample", standardise=False)
    assert data.A.shape == (6724, 90)
    assert data.is_stand_in
    assert (data.y.min(), data.y.max()) == (1922, 2011)


@real("cifar10.npz")
@pytest.mark.slow
def test_cifar10():
    data = datasets.cifar10()
    digest = hashlib.sha256(data.x_train).hexdigest()
    assert (digest[:12], digest[-5:]) == ("47af8b02cfcf", "8304a")
    np.testing.assert_allclose(
        data.x_train.mean((0, 1, 2)) / 255, [0.49139968, 0.48215841, 0.44653091], atol=1e-8
    )
    np.testing.assert_array_equal(np.bincount(data.y_test), 1000)


@real("imdb_subwords8k_ids.npz")
@pytest.mark.slow
def test_imdb():
    data = datasets.imdb()
    assert data.offsets_train[-1] == len(data.ids_train) == 8_590_945
    assert data.ids_test.max() < data.vocabulary
    np.testing.assert_array_equal(np.bincount(data.y_train), 12_500)


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.tobytes(), 1))


def test_fashion_mnist_is_read_from_idx_files(empty_store):
    rng = np.random.default_rng(0)
    parts = {
        "train-images-idx3": rng.integers(0, 9, (60_000, 28, 28), np.uint8),
        "train-labels-idx1": rng.integers(0, 9, 60_000, np.uint8),
        "t10k-images-idx3": rng.integers(0, 9, (10_000, 28, 28), np.uint8),
        "t10k-labels-idx1": rng.integers(0, 9, 10_000, np.uint8),
    }
    for name, array in parts.items():
        write_idx(empty_store / f"{name}-ubyte.gz", array)
    data = datasets.fashion_mnist()
    found = (data.x_train[..., 0], data.y_train, data.x_test[..., 0], data.y_test)
    for array, wanted in zip(found, parts.values(), strict=True):
        assert np.array_equal(array, wanted)
    assert data.classes[9] == "ankle boot"
    write_idx(empty_store / "t10k-labels-idx1-ubyte.gz", parts["t10k-labels-idx1"][:-1])
    with pytest.raises(ValueError, match=r"must be an idx file of bytes of shape \(10000,\)"):
        datasets.fashion_mnist()
    (empty_store / "t10k-labels-idx1-ubyte.gz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="got another or a damaged one; remove it"):
        datasets.fashion_mnist()


@pytest.mark.parametrize("size", [0, 1, 9, 60, -9, -8, -4, -1])
def test_the_beginning_of_an_idx_file_is_refused(empty_store, size):
    """As a download that broke off leaves it."""
    images, labels = np.zeros((60_000, 28, 28), np.uint8), np.zeros(60_000, np.uint8)
    write_idx(empty_store / "train-images-idx3-ubyte.gz", images)
    path = empty_store / "train-labels-idx1-ubyte.gz"
    write_idx(path, labels)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"must be an idx file of bytes of shape \(60000,\), got"):
        datasets.fashion_mnist()


@pytest.mark.parametrize("place", [12, 20, 31, -20])
def test_an_idx_file_with_a_wrong_byte_is_refused(empty_store, place):
    rng = np.random.default_rng(0)
    write_idx(empty_store / "train-images-idx3-ubyte.gz", np.zeros((60_000, 28, 28), np.uint8))
    path = empty_store / "train-labels-idx1-ubyte.gz"
    write_idx(path, rng.integers(0, 10, 60_000).astype(np.uint8))
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"must be an idx file of bytes of shape \(60000,\), got"):
        datasets.fashion_mnist()


@pytest.mark.parametrize("head", [[0, 0, 9, 1, 60_000], [0, 0, 8, 1, 59_999], [0, 0, 8, 2, 60_000]])
def test_an_idx_file_of_other_contents_is_refused_whatever_its_length(empty_store, head):
    """Numbers of another kind, and sides that do not belong to what follows them."""
    write_idx(empty_store / "train-images-idx3-ubyte.gz", np.zeros((60_000, 28, 28), np.uint8))
    path = empty_store / "train-labels-idx1-ubyte.gz"
    *kind, side = head
    content = bytes(kind) + np.array([side], ">u4").tobytes() + bytes(60_000)
    path.write_bytes(gzip.compress(content, 1))
    with pytest.raises(ValueError, match=r"must be an idx file of bytes of shape \(60000,\), got"):
        datasets.fashion_mnist()


@pytest.mark.parametrize("size", [59_999, 60_001])
def test_an_idx_file_of_another_length_than_it_says_is_refused(empty_store, size):
    write_idx(empty_store / "train-images-idx3-ubyte.gz", np.zeros((60_000, 28, 28), np.uint8))
    content = bytes([0, 0, 8, 1]) + np.array([60_000], ">u4").tobytes() + bytes(size)
    (empty_store / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(content, 1))
    with pytest.raises(ValueError, match="got another or a damaged one; remove it"):
        datasets.fashion_mnist()


def test_another_text_is_not_taken_for_shakespeare(empty_store):
    (empty_store / "tinyshakespeare.txt").write_text("To be, or not to be")
    with pytest.raises(ValueError, match="must be Tiny Shakespeare, 1115394 characters, got 19"):
        datasets.tiny_shakespeare()


@real("tinyshakespeare.txt")
def test_the_real_shakespeare():
    text = datasets.tiny_shakespeare()
    assert len(text.alphabet) == 65
    assert "".join(text.alphabet[i] for i in text.ids[:13]) == "First Citizen"


def test_cifar10_is_decoded_from_differences(empty_store):
    """Undone by hand: differences modulo 256 along both sides, of red and blue to green."""
    rng = np.random.default_rng(0)
    images = {name: rng.integers(0, 256, (n, 4, 5, 3), np.uint8) for name, n in
              (("train", 3), ("test", 2))}  # fmt: skip
    stored = {}
    for name, pixels in images.items():
        planes = pixels.transpose(3, 0, 1, 2).copy()
        planes[0] -= planes[1]
        planes[2] -= planes[1]
        nothing = np.uint8(0)
        across = np.diff(planes, axis=3, prepend=nothing)
        stored[f"r_{name}"] = np.diff(across, axis=2, prepend=nothing)
        stored[f"y_{name}"] = np.arange(len(pixels), dtype=np.uint8)
    np.savez(empty_store / "cifar10.npz", **stored)
    data = datasets.cifar10()
    np.testing.assert_array_equal(data.x_train, images["train"])
    np.testing.assert_array_equal(data.x_test, images["test"])
    np.testing.assert_array_equal(data.y_test, [0, 1])
    assert data.x_train.flags.c_contiguous


def test_a_damaged_file_is_told_from_one_that_cannot_be_read(empty_store):
    path = empty_store / "imdb_subwords8k_ids.npz"
    np.savez(path, ids_train=np.arange(3))
    with pytest.raises(ValueError, match=r"must be an \.npz file with ids_train, offsets_train"):
        datasets.imdb()
    path.write_bytes(b"no archive")
    with pytest.raises(ValueError, match="got another or a damaged one; remove it"):
        datasets.imdb()
    with pytest.raises(FileNotFoundError):
        store.arrays(empty_store / "missing.npz", "ids_train")


def summary(A, y):
    """Numbers that any change of the data moves."""
    A = sparse.csr_array(A)
    places = A.indices @ np.arange(1.0, A.nnz + 1)
    return [A.nnz, A.data.sum(), np.sin(A.data) @ np.arange(A.nnz), places, y @ np.arange(len(y))]


@pytest.mark.parametrize(
    ("make", "arguments", "expected"),
    [
        (datasets.support_vector, (50, 8), [118, 18, 1237.80381865, 11827, 285]),
        (datasets.text_like, (50, 30, 6.0), [362, 124.386178798, 20630.9656099, 781335, -359]),
        (datasets.correlated_regression, (20, 5),
         [100, -4637.65644648, 240.151810327, 10300, 379521.628654]),
        (datasets.low_rank, (6, 2), [10, 10, 37.8661943164, 1325, 15.1673085826]),
        (datasets.matching, (5, 3), [75, -17.6244188023, -353.333252909, 45600, -10.1624044625]),
    ],
)  # fmt: skip
def test_generated_data_stay_what_they_are(make, arguments, expected):
    """Results that were published with them can be had again; seed 0 is the default."""
    assert summary(*make(*arguments)) == pytest.approx(expected, rel=1e-7)
    assert summary(*make(*arguments, seed=0)) == pytest.approx(expected, rel=1e-7)
    assert summary(*make(*arguments, seed=1)) != pytest.approx(expected, rel=1e-7)


def test_a_sample_of_rcv1_is_read(empty_store):
    """Weights are stored in millionths, and rows beyond those of the original are left out."""
    np.savez(
        empty_store / "rcv1_v2_binary.npz", data_micro=np.array([250_000, 1_000_000, 500_000]),
        indices=np.array([4, 1, 0]), indptr=np.array([0, 2, 3]), shape=np.array([2, 6]),
        y=np.array([1, -1], np.int8),
    )  # fmt: skip
    data = datasets.rcv1()
    assert (data.is_stand_in, data.name, data.y.dtype) == (True, "RCV1", np.float64)
    wanted = [[0, 1, 0, 0, 0.25, 0], [0.5, 0, 0, 0, 0, 0]]
    np.testing.assert_allclose(data.A.toarray(), wanted)
    np.testing.assert_array_equal(data.y, [1, -1])


def test_a_sample_of_years_has_products_of_its_means(empty_store):
    means = np.random.default_rng(0).standard_normal((5, 12))
    np.savez(
        empty_store / "yearprediction_msd_partial.npz", X12=means, year12=np.arange(1990, 1995)
    )
    data = datasets.year_prediction(standardise=False)
    assert data.A.shape == (5, 90)
    np.testing.assert_array_equal(data.A[:, :12], means)
    products = np.sort([[a * b for k, a in enumerate(row) for b in row[k:]] for row in means])
    np.testing.assert_allclose(np.sort(data.A[:, 12:]), products)
    np.testing.assert_array_equal(data.y, range(1990, 1995))
    assert data.is_stand_in


def test_tiny_shakespeare_is_numbered_by_its_alphabet(empty_store, monkeypatch):
    monkeypatch.setattr("adafw.datasets.text._SHAKESPEARE_LENGTH", 6)
    (empty_store / "tinyshakespeare.txt").write_text("to be,")
    text = datasets.tiny_shakespeare()
    assert text.alphabet == " ,beot"
    assert "".join(text.alphabet[i] for i in text.ids) == "to be,"
    for other in ("to be", "to be, "):
        (empty_store / "tinyshakespeare.txt").write_text(other)
        with pytest.raises(ValueError, match=f"6 characters, got {len(other)}; remove it"):
            datasets.tiny_shakespeare()


def test_the_original_of_rcv1_is_known_by_its_size(empty_store, monkeypatch):
    """Ids of LIBSVM's file count from 1, also where no line has the first or the last."""
    monkeypatch.setattr("adafw.datasets.text._RCV1_SHAPE", (2, 6))
    monkeypatch.setattr("adafw.datasets.text._RCV1_ENTRIES", 3)
    (empty_store / "rcv1_train.binary").write_text("1 2:0.5 4:0.25\n-1 3:1\n")
    data = datasets.rcv1()
    wanted = [[0, 0.5, 0, 0.25, 0, 0], [0, 0, 1, 0, 0, 0]]
    np.testing.assert_array_equal(data.A.toarray(), wanted)
    np.testing.assert_array_equal(data.y, [1, -1])
    assert (data.name, data.description, data.is_stand_in) == (
        "RCV1", "LIBSVM's rcv1_train.binary", False,
    )  # fmt: skip
    for lines in ("1 2:0.5 4:0.25\n", "1 2:0.5\n-1 3:1\n", "1 2:0.5\n-1 3:1\n-1 3:1\n"):
        (empty_store / "rcv1_train.binary").write_text(lines)
        with pytest.raises(ValueError, match=r"2 rows with 3 entries, got \d with \d; remove it"):
            datasets.rcv1()
    (empty_store / "rcv1_train.binary").write_text("1 0:0.5 4:0.25\n-1 3:1\n")
    with pytest.raises(ValueError, match="line 1, column 3: expected a feature id >= 1"):
        datasets.rcv1()


def test_imdb_is_read_in_its_order(empty_store):
    names = ["ids_train", "offsets_train", "y_train", "ids_test", "offsets_test", "y_test"]
    arrays = {name: np.arange(k + 1) for k, name in enumerate(names)}
    np.savez(empty_store / "imdb_subwords8k_ids.npz", **dict(reversed(arrays.items())))
    data = datasets.imdb()
    for name, array in arrays.items():
        np.testing.assert_array_equal(getattr(data, name), array)
    assert (data.vocabulary, data.name) == (8185, "IMDB")


def test_a_table_of_years_that_is_not_whole_is_refused(empty_store):
    (empty_store / "YearPredictionMSD.txt").write_text("1999,1,2\n")
    with pytest.raises(ValueError, match="515345 lines of 91 numbers, got 3 numbers; remove it"):
        datasets.year_prediction()


def test_own_files_say_what_they_are(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:0.1 2:3\n")
    data = datasets.from_libsvm(path, zero_based=True, dtype="float32", n_features=4, threads=1)
    assert data.A.toarray().tolist() == [[0, np.float32(0.1), 3, 0]]
    assert (data.A.dtype, data.description) == (np.float32, f"LIBSVM file {path}")
    assert not data.is_stand_in
    datasets.save_parts(tmp_path / "parts", data.A, data.y)
    again = datasets.from_parts(tmp_path / "parts")
    assert again.label == "parts (1 x 4)"
    assert again.description == f"mapped parts in {tmp_path / 'parts'}"
    np.testing.assert_array_equal(again.y, [1])


def test_first_rows_are_rows_with_their_targets():
    data = datasets.Dataset(np.arange(6.0).reshape(3, 2), np.array([5, 6, 7]), "n", "d", True)
    part = data.first(2)
    assert part.A.tolist() == [[0, 1], [2, 3]]
    assert part.y.tolist() == [5, 6]
    assert data.first(4) is data
    assert "STAND-IN: d" in data.label


def test_an_earlier_name_of_a_file_comes_first(empty_store):
    (empty_store / "b").touch()
    assert store.find("a", "b") == empty_store / "b"
    (empty_store / "a").touch()
    assert store.find("a", "b") == empty_store / "a"
    assert store.find("c") is None
    (empty_store / "folder").mkdir()
    assert store.find("folder") is None


def test_a_home_directory_is_spelt_out(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ADAFW_DATA", "~/data")
    assert datasets.data_directory() == tmp_path / "data"


def test_what_is_missing_is_told_with_its_ways_out(empty_store):
    told = store.missing("It", ("a", "b"), "http://x/a", "no way")
    assert str(told) == (
        f"It was not found: {empty_store} has no a and no b, and fetching it from http://x/a failed"
        " (no way); put a there (from http://x/a), or set ADAFW_DATA to the directory that has it."
    )
    assert str(store.missing("It", ("a",))) == (
        f"It was not found: {empty_store} has no a; put a there, or set ADAFW_DATA to the "
        "directory that has it."
    )


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (datasets.support_vector, {"m": 0}), (datasets.support_vector, {"n": 0}),
        (datasets.text_like, {"m": 0}), (datasets.text_like, {"n": 0}),
        (datasets.text_like, {"nonzeros": 0}), (datasets.correlated_regression, {"m": 0}),
        (datasets.correlated_regression, {"n": 0}), (datasets.low_rank, {"n": 0}),
        (datasets.low_rank, {"rank": 0}), (datasets.low_rank, {"share": 1.5}),
        (datasets.low_rank, {"noise": -1}), (datasets.matching, {"n": 0}),
        (datasets.matching, {"features": 0}), (datasets.matching, {"noise": -1}),
    ],
)  # fmt: skip
def test_sizes_of_generated_data_are_checked(make, wrong):
    small = {"m": 3, "n": 3} if "m" in inspect.signature(make).parameters else {"n": 3}
    (key,) = wrong
    with pytest.raises(ValueError, match=f"{key} must be"):
        make(**{**small, **wrong})


@pytest.mark.parametrize("share", [0, 0.05])
def test_some_entry_of_a_matrix_is_always_observed(share):
    A, y = datasets.low_rank(4, rank=1, share=share)
    assert (A.shape, A.nnz, y.shape) == ((1, 16), 1, (1,))


def test_generated_data_are_what_their_formulas_say():
    """Shares of signs and flips, ranks, and assignments, as they are described."""
    A, y = datasets.support_vector(4000, 30, seed=5)
    share = np.diff(A.tocsc().indptr) / 4000
    np.testing.assert_allclose(share, 1 / np.arange(1, 31), atol=0.03)
    assert set(np.unique(A.data)) == {-1, 1}
    u = np.sign(np.linalg.lstsq(A.toarray(), y, rcond=None)[0])
    assert np.mean(np.where(A @ u >= 0, 1.0, -1.0) != y) == pytest.approx(0.05, abs=0.015)
    A, y = datasets.low_rank(40, rank=2, share=1.0, noise=0.0)
    assert A.shape == (1600, 1600)
    entries = np.zeros(1600)
    entries[A.indices] = y
    assert np.linalg.matrix_rank(entries.reshape(40, 40)) == 2
    assert datasets.low_rank(200, rank=50, share=1.0, noise=0.0)[1].var() == pytest.approx(
        1, abs=0.1
    )
    A, y = datasets.matching(6, 4, noise=0.0)
    F, G = A[:4, :6].toarray().T, y.reshape(6, 4)
    order = [int(np.flatnonzero((g == F).all(axis=1))[0]) for g in G]
    assert sorted(order) == list(range(6))
    P = np.eye(6)[order]
    np.testing.assert_allclose(A @ P.ravel(), y)
    A, y = datasets.correlated_regression(5000, 8, seed=2)
    assert y.mean() == pytest.approx(1998, abs=1)
    scale = A.std(axis=0)
    assert scale[-1] > 100 * scale[0]
    values = np.linalg.eigvalsh(np.cov((A / np.logspace(0, 3, 8)).T))[::-1]
    np.testing.assert_allclose(values, 1 / np.arange(1, 9), rtol=0.15)
