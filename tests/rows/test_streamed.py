"""Rows on a disk: what they read, when, and that fits with them are those in memory."""

import errno
import os

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import gradients
from adafw.datasets import load_parts, save_parts, text_like
from adafw.io.damage import FileChanged
from adafw.io.direct import DirectFile
from adafw.rows import StreamedRows, as_rows, files, streamed
from adafw.rows.disk import Room, ahead, in_advance, source_of
from adafw.steps.corrective import atoms


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(streamed, "PIECE", 5000)


def pair(tmp_path, dtype=np.float64, dense=False, m=900, n=300):
    """A model in memory and the same on a disk."""
    A, y = text_like(m, n, nonzeros=8, seed=0)
    A = (A.toarray() if dense else A).astype(dtype)
    save_parts(tmp_path / "parts", A, y)
    B, z = load_parts(tmp_path / "parts", stream=True)
    loss = adafw.losses.Logistic()
    return adafw.LinearModel(A, y, loss), adafw.LinearModel(B, z, loss)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_those_in_memory(tmp_path, dtype, dense):
    f, g = pair(tmp_path, dtype, dense)
    assert isinstance(g.rows, StreamedRows)
    assert len(list(g.rows.pieces())) > 3
    rng = np.random.default_rng(1)
    x, p = rng.normal(size=300).astype(dtype), rng.normal(size=900).astype(dtype)
    exact = 1e-12 if dtype == np.float64 else 1e-3
    for batch in (None, np.arange(100, 160), rng.integers(0, 900, 70), np.array([899, 0, 0, 1])):
        w = p if batch is None else p[: len(batch)]
        np.testing.assert_allclose(g.rows.dot(x, batch), f.rows.dot(x, batch), atol=exact)
        np.testing.assert_allclose(g.rows.combine(w, batch), f.rows.combine(w, batch), atol=exact)
        X, W = np.column_stack([x, 2 * x]), np.column_stack([w, -w])
        np.testing.assert_allclose(
            g.rows.dot_matrix(X, batch), f.rows.dot_matrix(X, batch), atol=2 * exact
        )
        np.testing.assert_allclose(
            g.rows.combine_matrix(W, batch), f.rows.combine_matrix(W, batch), atol=2 * exact
        )
    assert g.rows.dot_matrix(X[:, :0]).shape == (900, 0)
    for p_ in (1, 2, np.inf):
        for axis in (0, 1):
            np.testing.assert_allclose(g.rows.norms(p_, axis), f.rows.norms(p_, axis), rtol=1e-5)
    bound, _ = g.rows.spectral_norm()
    assert bound == pytest.approx(f.rows.spectral_norm()[0], rel=1e-4)
    weights = np.abs(p).astype(np.float64)
    np.testing.assert_allclose(
        g.rows.variances(weights), f.rows.variances(weights), rtol=1e-4, atol=exact
    )
    for got, wanted in zip(g.rows.curve(np.abs(p), x), f.rows.curve(np.abs(p), x), strict=True):
        np.testing.assert_allclose(got, wanted, atol=100 * exact)
    assert g.rows.describe() == f.rows.describe()
    assert str(g.rows).endswith("on disk")


@pytest.mark.parametrize("constraint", [adafw.L1Ball(20.0), adafw.NuclearBall(8.0)], ids=repr)
def test_several_outputs_are_fitted_on_a_disk(tmp_path, constraint):
    A, _ = text_like(900, 60, nonzeros=8, seed=0)
    y = np.random.default_rng(0).integers(0, 3, 900).astype(float)
    save_parts(tmp_path / "parts", A, y)
    B, z = load_parts(tmp_path / "parts", stream=True)
    runs = [
        adafw.minimize(
            adafw.MatrixModel(data, targets.astype(int), adafw.losses.Softmax(), intercept=True),
            constraint, adafw.Corrective(), gap_tolerance=1e-7, max_iterations=40,
        )
        for data, targets in ((A, y), (B, np.array(z)))
    ]  # fmt: skip
    assert [r.status for r in runs] == ["converged"] * 2
    assert runs[1].value == pytest.approx(runs[0].value, abs=2e-7)


def test_a_working_set_is_kept_in_what_is_left(tmp_path, monkeypatch):
    """Not in a share of all memory, which other things may hold; the last one's is given back."""
    f, g = pair(tmp_path)
    chosen = np.arange(0, 300, 3)
    needed = g.rows._working_bytes(chosen)
    beside = streamed.VECTORS * 8 * 900 + 4 * streamed.PIECE
    p, exact = np.random.default_rng(0).random(900), f.rows.working(chosen)
    for left, last, kept in (
        (needed + beside, None, True), (needed + beside - 1, None, False), (beside, "kept", True),
    ):  # fmt: skip
        before = g.rows.working(chosen) if last else None
        monkeypatch.setattr(streamed, "spare_bytes", lambda left=left: left)
        working = g.rows.working(chosen, before)
        assert bool(working.kept) is kept
        np.testing.assert_allclose(working.combine(p), exact.combine(p), atol=1e-12)
        monkeypatch.undo()
        monkeypatch.setattr(streamed, "PIECE", 5000)


def test_a_working_set_takes_what_was_planned_for_it(tmp_path):
    rows = pair(tmp_path)[1].rows
    for chosen in (np.arange(40), np.arange(60)):
        working = rows.working(chosen)
        arrays = [array for _, piece in working.kept for array in piece.part]
        held = sum(a.nbytes if a.base is None else a.base.nbytes for a in arrays)
        assert held == rows._working_bytes(chosen) + 8 * len(working.kept)


def test_a_batch_that_the_caller_changes_is_another_one(tmp_path):
    """Rows read last are kept for the second product of the same batch, of no other."""
    f, g = pair(tmp_path)
    x, batch = np.random.default_rng(1).normal(size=300), np.array([5, 6, 7])
    for rows in ([5, 6, 7], [500, 2, 2], [5, 6, 8]):
        batch[:] = rows
        np.testing.assert_allclose(g.rows.dot(x, batch), f.rows.dot(x, batch), atol=1e-12)
        w = np.array([1.0, -2.0, 3.0])
        np.testing.assert_allclose(g.rows.combine(w, batch), f.rows.combine(w, batch), atol=1e-12)


def test_a_bound_on_the_spectral_norm_from_passes_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "EXACT", 64)
    monkeypatch.setattr("adafw.rows.spectral.EXACT", 64)
    f, g = pair(tmp_path, m=200, n=100)
    assert g.rows.spectral_norm()[0] == pytest.approx(f.rows.spectral_norm()[0], rel=1e-6)
    assert g.rows.spectral_norm()[1] is False


@pytest.mark.parametrize(("m", "n"), [(200, 64), (64, 200), (200, 30), (30, 200)])
def test_the_spectral_norm_of_few_rows_or_columns_is_exact(tmp_path, monkeypatch, m, n):
    monkeypatch.setattr(streamed, "EXACT", 64)
    monkeypatch.setattr("adafw.rows.spectral.EXACT", 64)
    f, g = pair(tmp_path, m=m, n=n)
    w = np.random.default_rng(0).random(m)
    count = passes(g.rows, monkeypatch)
    for weights in (None, w):
        norm, exact = g.rows.spectral_norm(weights)
        assert exact
        assert norm == pytest.approx(f.rows.spectral_norm(weights)[0], rel=1e-12)
    assert len(count) == (2 if n <= 64 else 0)  # a pass each for A^T A, none where rows are few


ALGORITHMS = {
    "Corrective": (adafw.Corrective(), adafw.L1Ball(20.0)),
    "Corrective box": (adafw.Corrective(), adafw.LInfBall(0.5)),
    "Corrective l2": (adafw.Corrective(), adafw.L2Ball(3.0)),
    "Corrective simplex": (adafw.Corrective(), adafw.Simplex(5.0)),
    "AdaCSFW": (adafw.AdaCSFW(1.0, batch_size=60), adafw.L1Ball(5.0)),
    "SVRF": (adafw.SVRF(), adafw.LInfBall(0.1)),
    "SFW": (adafw.SFW(), adafw.L1Ball(5.0)),
    "FW": (adafw.FW(adafw.steps.LineSearch()), adafw.LpBall(5.0, 3)),
    "AdaGrad": (adafw.AdaGrad(0.3, gradient=gradients.CSFW(60)), adafw.L1Ball(5.0)),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_runs_are_those_in_memory(tmp_path, name):
    algorithm, ball = ALGORITHMS[name]
    f, g = pair(tmp_path)
    found = [
        adafw.minimize(model, ball, algorithm, seed=adafw.Blocks(1, 20), max_iterations=12)
        for model in (f, g)
    ]
    assert found[0].value == pytest.approx(found[1].value, abs=1e-9)
    if not name.startswith("Corrective"):
        np.testing.assert_allclose(found[0].x, found[1].x, atol=1e-8)


@pytest.mark.parametrize("path", ["fused", "lazy"])
@pytest.mark.parametrize("source", [lambda: 3, lambda: adafw.Blocks(3, 20)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fast_paths_read_the_rows_of_their_batches(tmp_path, path, source, dtype, monkeypatch):
    f, g = pair(tmp_path, dtype)
    count = passes(g.rows, monkeypatch)
    found = []
    for model in (f, g):
        algorithm = adafw.AdaCSFW(1.0, 3, batch_size=40)
        how = {"seed": source(), "max_iterations": 30, "record_every": 1000, "path": path}
        found.append(adafw.minimize(model, adafw.L1Ball(5.0), algorithm, **how))
    np.testing.assert_array_equal(found[0].x, found[1].x)
    assert len(count) <= 4  # value and gradient of two records
    best = adafw.minimize(g, adafw.L1Ball(5.0), adafw.AdaCSFW(1.0, 3), max_iterations=2)
    assert best.path in ("fused", "lazy")
    wide = adafw.AdaCSFW(1.0, 3, batch_size=10**8)
    with pytest.raises(ValueError, match=f"there is no {path} path"):
        adafw.minimize(g, adafw.L1Ball(5.0), wide, max_iterations=1, path=path)
    growing = adafw.AdaCSFW(1.0, 3, batch_size=lambda t: 40 if t < 900 else 10**8)
    with pytest.raises(ValueError, match=f"there is no {path} path"):
        adafw.minimize(g, adafw.L1Ball(5.0), growing, max_iterations=1, path=path)
    for whole in (adafw.SVRF(), adafw.Algorithm(gradients.SAGA(5), adafw.steps.FrankWolfeStep())):
        assert adafw.minimize(g, adafw.L1Ball(5.0), whole, max_iterations=1).path == "generic"


def test_a_state_goes_on_where_the_data_have_moved_to_a_disk(tmp_path):
    f, g = pair(tmp_path)
    algorithm, ball = ALGORITHMS["AdaCSFW"]
    how = {"path": "generic", "record_every": 5}
    half = adafw.minimize(f, ball, algorithm, max_iterations=10, **how)
    rest = adafw.minimize(g, ball, algorithm, state=half.state, max_iterations=20, **how)
    whole = adafw.minimize(f, ball, algorithm, max_iterations=20, **how)
    np.testing.assert_allclose(rest.x, whole.x, atol=1e-10)


def test_steps_on_many_atoms_run_on_picked_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(atoms, "MOST_ATOMS", 1)
    monkeypatch.setattr(atoms, "MANY", 1)
    f, g = pair(tmp_path)
    found = [
        adafw.minimize(model, adafw.L1Ball(50.0), adafw.Corrective(), gap_tolerance=1e-6)
        for model in (f, g)
    ]
    assert found[1].status == "converged"
    assert found[0].value == pytest.approx(found[1].value, abs=2e-6)


def passes(rows, monkeypatch):
    """How often all rows are read, in a list."""
    count = []
    pieces = StreamedRows.pieces
    monkeypatch.setattr(StreamedRows, "pieces", lambda self: count.append(1) or pieces(self))
    return count


def test_columns_are_picked_once_and_batches_read_once(tmp_path, monkeypatch):
    _, g = pair(tmp_path)
    count = passes(g.rows, monkeypatch)
    g.rows.columns(np.array([3, 7, 50]))
    assert len(count) == 1  # what the columns hold is known from the survey
    g.rows.holding(np.array([7, 50]))
    g.rows.columns(np.array([50, 3, 3]))
    assert len(count) == 1
    g.rows.columns(np.array([4]))
    assert len(count) == 2
    reads = []
    read = DirectFile.read
    monkeypatch.setattr(DirectFile, "read", lambda self, *a: reads.append(1) or read(self, *a))
    batch = np.concatenate([np.arange(50, 80), np.arange(500, 530)])
    g.gradient(np.ones(300), batch)
    assert len(reads) == 4  # two runs, values and columns, and not again for the second product


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("chosen", [[50, 3, 7], [299, 0], [7, 3, 50, 4, 1], [5]], ids=str)
def test_columns_are_held_in_any_order(tmp_path, dense, chosen):
    f, g = pair(tmp_path, dense=dense)
    A = f.rows.block(slice(None))
    for some in (chosen, chosen[:2], chosen[::-1]):  # picked, among what was picked, turned round
        wanted = np.array(some)
        rows, numbers = g.rows.holding(wanted)
        np.testing.assert_array_equal(rows.block(slice(None))[:, numbers], A[:, wanted])
        np.testing.assert_array_equal(g.rows.columns(wanted).block(slice(None)), A[:, wanted])
        values, places, starts = rows.column_arrays()
        for j, k in zip(wanted, numbers, strict=True):
            column, part = np.zeros(900), slice(int(starts[k]), int(starts[k + 1]))
            column[places[part]] = values[part]
            np.testing.assert_array_equal(column, A[:, j])


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("keep", [True, False])
def test_working_sets_are_those_in_memory(tmp_path, monkeypatch, dense, keep):
    if not keep:
        monkeypatch.setattr(streamed, "machine_bytes", lambda: 1000)
    f, g = pair(tmp_path, dense=dense)
    rng = np.random.default_rng(2)
    count, last = passes(g.rows, monkeypatch), None
    for chosen in (np.array([3, 7, 50]), np.array([3, 50, 9, 1]), np.array([9])):
        here, last = f.rows.working(chosen), g.rows.working(chosen, last)
        assert last.chosen is chosen
        w, p = rng.normal(size=chosen.size), rng.random(900)
        np.testing.assert_allclose(last.dot(w), here.dot(w), atol=1e-13)
        np.testing.assert_allclose(last.combine(p), here.combine(p), atol=1e-11)
        np.testing.assert_allclose(last.squares(p), here.squares(p), atol=1e-11)
        np.testing.assert_allclose(last.product(p, w), here.product(p, w), atol=1e-11)
        for first in (0, chosen.size - 1):
            grams = np.zeros((2, chosen.size, chosen.size))
            for rows, gram in zip((here, last), grams, strict=True):
                rows.add_gram(p, gram, first)
            np.testing.assert_allclose(*np.tril(grams), atol=1e-11)
    assert len(count) == (3 if keep else 3 * 6)


def test_corrective_steps_without_memory_for_their_working_set(tmp_path, monkeypatch):
    f, g = pair(tmp_path)
    monkeypatch.setattr(streamed, "machine_bytes", lambda: 1000)
    found = [
        adafw.minimize(model, adafw.L1Ball(20.0), adafw.Corrective(), gap_tolerance=1e-7)
        for model in (f, g)
    ]
    assert found[1].status == "converged"
    assert found[0].value == pytest.approx(found[1].value, abs=2e-7)


def test_batches_that_are_too_large_to_keep_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(streamed, "KEPT", 3000)
    f, g = pair(tmp_path)
    batch = np.arange(20, 800)
    x = np.random.default_rng(0).normal(size=300)
    np.testing.assert_allclose(g.gradient(x, batch), f.gradient(x, batch), atol=1e-14)


def test_columns_that_would_not_fit_are_refused(tmp_path, monkeypatch):
    _, g = pair(tmp_path)
    monkeypatch.setattr(files, "machine_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"3 columns of the data in use at a time need .* of mem"):
        g.rows.columns(np.array([0, 1, 2]))


def test_not_finite_is_refused(tmp_path):
    for bad in (np.nan, np.inf):
        A = sparse.csr_array(np.diag([1.0, bad, 2.0]))
        parts = A.copy()
        parts.data = np.array([1.0, 1.0, 2.0])
        save_parts(tmp_path / "parts", parts, np.ones(3))
        with open(tmp_path / "parts" / "data.npy", "rb+") as file:
            file.seek(-16, os.SEEK_END)
            file.write(np.array([bad]).tobytes())
        B, _ = load_parts(tmp_path / "parts", stream=True)
        with pytest.raises(ValueError, match="A must be finite"):
            as_rows(B)
        assert not np.isfinite(as_rows(B, finite=True).largest)  # of someone who has looked


def test_files_that_change_are_noticed(tmp_path):
    _, g = pair(tmp_path)
    path = tmp_path / "parts" / "data.npy"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(FileChanged, match=r"data.npy changed while it was read"):
        g.rows.dot(np.ones(300))
    with pytest.raises(FileChanged):
        g.rows.dot(np.ones(300), np.array([899]))


def test_columns_out_of_range_do_not_reach_a_kernel(tmp_path):
    _, g = pair(tmp_path)
    path = tmp_path / "parts" / "indices.npy"
    before = path.stat()
    with open(path, "rb+") as file:
        file.seek(-4, os.SEEK_END)
        file.write(np.array([10**6], np.int32).tobytes())
    # The file says that it is as old as it was, as by a clock too coarse to see the change.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(ValueError, match="columns must be numbers from 0 to 299"):
        g.rows.dot(np.ones(300))


@pytest.mark.parametrize("direct", [True, False])
def test_any_stretch_of_a_file_is_read_whole(tmp_path, direct, monkeypatch):
    past_the_cache, opened = getattr(os, "O_DIRECT", 0), os.open

    def refusing(path, flags, *rest):
        if flags & past_the_cache:
            raise OSError(errno.EINVAL, "a file system that knows only its cache")
        return opened(path, flags, *rest)

    if not direct:
        monkeypatch.setattr(os, "open", refusing)
    values = np.random.default_rng(0).normal(size=10_000)
    path = tmp_path / "a.npy"
    np.save(path, values)
    source, room = DirectFile(str(path), 128, values.dtype), Room()
    for first, last in ((0, 10_000), (0, 1), (9_999, 10_000), (500, 1012), (511, 513), (7, 7)):
        np.testing.assert_array_equal(source.read(first, last, room), values[first:last])
    with pytest.raises(FileChanged):
        source.read(9_000, 20_000, room)


def test_sources_are_found_behind_views(tmp_path):
    A = np.arange(60.0).reshape(20, 3)
    save_parts(tmp_path / "parts", A, np.ones(20))
    B, _ = load_parts(tmp_path / "parts", stream=True)
    source, first = source_of(B[4:])
    assert first == 12
    np.testing.assert_array_equal(source.read(12, 15, Room()), [12, 13, 14])
    np.testing.assert_array_equal(as_rows(B[4:]).dot(np.ones(3)), A[4:].sum(1))
    for view in (B[:, 1:], B[::2], B.T):  # entries that do not follow each other in the file
        part = A[:, 1:] if view.shape == (20, 2) else A[::2] if len(view) == 10 else A.T
        rows = as_rows(view)
        assert not rows.streamed
        np.testing.assert_array_equal(rows.block(slice(None)), part)
    assert source_of(A) is None
    assert source_of(B.copy()) is None


def test_reading_ahead_keeps_order_and_errors():
    assert list(ahead(lambda k, slot: (k, slot), 5)) == [(0, 0), (1, 1), (2, 0), (3, 1), (4, 0)]
    assert list(ahead(lambda k, slot: k, 0)) == []

    def failing():
        yield 1
        raise OSError("the disk")

    found = []
    with pytest.raises(OSError, match="the disk"):
        found.extend(in_advance(failing()))
    assert found == [] or found == [1]


def test_mapped_entries_that_repeat_are_summed_in_memory(tmp_path):
    A = sparse.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 4.0]]))
    save_parts(tmp_path / "parts", A, np.ones(2))
    with open(tmp_path / "parts" / "indices.npy", "rb+") as file:
        file.seek(-3 * A.indices.itemsize, os.SEEK_END)
        file.write(np.array([1, 1, 2], A.indices.dtype).tobytes())
    B, _ = load_parts(tmp_path / "parts", stream=True)
    assert as_rows(B).streamed  # which are taken at their word
    C = sparse.csr_array(A.shape)
    C.data, C.indices, C.indptr = B.data, B.indices, B.indptr
    rows = as_rows(C)
    assert not rows.streamed
    np.testing.assert_array_equal(rows.block(slice(None)), [[0.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
