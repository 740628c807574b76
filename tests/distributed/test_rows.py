"""Rows on workers give what the matrix gives, as all rows do."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw.rows import as_rows, spectral

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

from adafw.distributed.crew import Traffic
from adafw.distributed.engine import Engine
from adafw.distributed.parts import OPERATIONS, Header, HeldPart, summed
from adafw.distributed.placement import Placement
from adafw.distributed.recipes import Block
from adafw.distributed.rows import DistributedRows
from adafw.distributed.wire import Reply


def close(got, exact, scale=1.0):
    np.testing.assert_allclose(got, exact, rtol=0, atol=1e-12 * scale)


@pytest.fixture(params=["csr", "dense"])
def pair(request, client, data, parts):
    """(the matrix, its rows on the workers)."""
    from adafw.distributed import DistributedLinearModel

    dense = request.param == "dense"
    f = DistributedLinearModel.from_parts(
        parts(dense=dense), adafw.losses.Logistic(), client=client
    )
    return data()[0].toarray(), f.rows


def test_products_are_those_of_the_matrix(pair):
    A, rows = pair
    rng = np.random.default_rng(1)
    x, p, w = rng.normal(size=14), rng.normal(size=120), rng.random(120)
    batch = np.array([119, 50, 0, 50, 51])  # of three parts, out of order, one twice
    close(rows.dot(x), A @ x)
    close(rows.dot(x, batch), A[batch] @ x)
    close(rows.combine(p), p @ A, 10)
    close(rows.combine(p[:5], batch), p[:5] @ A[batch], 10)
    close(rows.gram(w), A.T @ (w[:, None] * A), 100)
    image, move = rows.curve(w, x)
    close(image, A.T @ (w * (A @ x)), 100)
    close(move, A @ x)
    none = np.zeros(0, np.int64)
    assert rows.dot(x, none).size == 0
    close(rows.combine(np.zeros(0), none), np.zeros(14))


def test_facts_are_those_of_the_matrix(pair):
    A, rows = pair
    w = np.random.default_rng(2).random(120)
    c = w @ A / w.sum()
    close(rows.variances(w), w @ (A - c) ** 2 / w.sum(), 10)
    assert rows.largest == np.abs(A).max()
    for p in (1, 2, np.inf):
        for axis in (0, 1):
            close(rows.norms(p, axis), np.linalg.norm(A, p, axis=axis), 100)
    norm, exact = rows.spectral_norm(w)
    assert exact
    close(norm, np.linalg.norm(np.sqrt(w)[:, None] * A, 2), 100)
    centred, mean = rows.centred()
    close(mean, A.mean(0))
    close(centred.dot(np.ones(14)), (A - A.mean(0)).sum(1), 10)
    narrow = rows.columns(np.array([3, 0, 7]))
    close(narrow.dot(np.arange(3.0)), A[:, [3, 0, 7]] @ np.arange(3.0))
    close(narrow.combine(w), w @ A[:, [3, 0, 7]], 10)


def test_some_rows_and_columns_can_be_brought_here(pair):
    A, rows = pair
    some = np.array([119, 3, 50, 3])
    close(rows.take(some).dot(np.eye(14)[5]), A[some, 5])
    sent = rows.traffic.received
    here, numbers = rows.holding(np.array([9, 2]))
    close(here.dot(np.eye(2)[0]), A[:, 9])
    close(here.dot(np.eye(2)[1]), A[:, 2])
    assert numbers.tolist() == [0, 1]
    first = rows.traffic.received - sent
    here, _ = rows.holding(np.array([2, 9, 4]))
    close(here.dot(np.array([0.0, 0, 1])), A[:, 4])
    # Columns 9 and 2 are here already.
    assert rows.traffic.received - sent - first < 0.75 * first


def test_working_sets_are_summed_on_the_workers(pair):
    A, rows = pair
    rng = np.random.default_rng(3)
    chosen = np.array([2, 11, 0, 7, 5])
    p, d, B = rng.random(120), rng.normal(size=5), A[:, [2, 11, 0, 7, 5]]
    working = rows.working(chosen)
    close(working.dot(d), B @ d)
    close(working.combine(p), p @ B, 10)
    close(working.squares(p), p @ B**2, 100)
    close(working.product(p, d), B.T @ (p * (B @ d)), 100)
    exact = B.T @ (p[:, None] * B)
    for first in (0, 3):
        gram = np.zeros((5, 5))
        working.add_gram(p, gram, first)
        expected = np.tril(exact)
        expected[:first] = 0
        close(np.tril(gram), expected, 100)


def test_the_description_does_not_depend_on_the_cut(client, data, parts):
    from adafw.distributed import DistributedLinearModel

    def described(cuts, dense=False, seed=5):
        made = parts(cuts, dense=dense, seed=seed)
        f = DistributedLinearModel.from_parts(made, adafw.losses.Logistic(), client=client)
        return f.rows.describe()

    one = described((0, 120))
    assert described((0, 7, 8, 90, 120)) == one
    assert described((0, 120), seed=6) != one
    assert described((0, 60, 120), dense=True) == described((0, 120), dense=True) != one


def test_one_batch_is_one_round_trip(model):
    rng = np.random.default_rng(0)
    x, batch = rng.normal(size=14), np.arange(0, 120, 7)
    model.gradient(x, batch)
    before = model.traffic.copy()
    model.refresh(x, np.zeros(batch.size), batch)
    assert model.traffic.trips == before.trips + 1
    # x is known there: row numbers, targets and alpha go out.
    assert model.traffic.sent - before.sent < batch.size * (4 + 8 + 8) + 200
    before = model.traffic.copy()
    model.value_and_gradient(x + 1)
    model.value_and_gradient(x + 1)
    assert model.traffic.trips == before.trips + 1
    # No prediction, slope or target travels.
    assert model.traffic.received - before.received < 2 * (14 * 8 + 8 + 8 + 3 * 8) + 50


def test_two_objectives_on_one_cluster_do_not_mix(client, data, parts):
    """Each sends changes of its own last point, whatever the other has sent in between."""
    from adafw.distributed import DistributedLinearModel

    A, loss = data()[0], adafw.losses.Logistic()
    one, other = (DistributedLinearModel.from_parts(parts(), loss, client=client) for _ in range(2))
    x, z = np.random.default_rng(0).normal(size=(2, 14))
    one.rows.dot(x)
    other.rows.dot(z)
    x[3] += 1
    close(one.rows.dot(x), A @ x, 10)


def test_float32_rows_stay_float32_there(client, data):
    from adafw.distributed import DistributedLinearModel

    A, y, _ = data()
    A = A.astype(np.float32)
    halves = [(A[:60], y[:60]), (A[60:], y[60:])]
    made = [(lambda part=part: part) for part in halves]
    f = DistributedLinearModel.from_parts(made, adafw.losses.Logistic(), client=client)
    assert f.dtype == np.float32
    x = np.linspace(-1, 1, 14)
    assert f.rows.dot(x.astype(np.float32)).dtype == np.float32
    local = as_rows(sparse.csr_array(A))
    close(f.rows.doubled().dot(x), local.doubled().dot(x))
    close(f.rows.dot(x.astype(np.float32)), local.dot(x.astype(np.float32)), 1e6)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_rows_brought_here_have_the_precision_they_are_asked_in(client, data, kind):
    """Few rows of many columns are measured here: in float64 where their owner computes so."""
    from adafw.distributed import DistributedLinearModel

    A, y, _ = data()
    A = np.tile(A.toarray(), 80).astype(np.float32)  # 1120 columns
    made = [(lambda part=part: (kind(A[part]), y[part])) for part in (slice(60), slice(60, 120))]
    rows = DistributedLinearModel.from_parts(made, adafw.losses.Logistic(), client=client).rows
    some, x = np.array([119, 3, 50]), np.linspace(-1, 1, A.shape[1])
    exact = A.astype(np.float64)
    assert rows.take(some).dtype == np.float32
    doubled = rows.doubled().take(some)
    assert doubled.dtype == np.float64
    close(doubled.dot(x), exact[some] @ x, 100)
    norm, sure = rows.doubled().spectral_norm()
    assert sure
    close(norm, np.linalg.norm(exact, 2), 100)


def test_wrong_shapes_are_refused_here(model):
    with pytest.raises(ValueError, match=r"x must have shape \(14,\), got \(3,\)"):
        model.rows.dot(np.ones(3))
    for batch in ([120], [0, 120], [3, -1], [-1]):
        with pytest.raises(IndexError, match="row numbers from 0 to 119"):
            model.rows.dot(np.ones(14), np.array(batch))


def test_several_columns_are_one_round_trip(pair):
    A, rows = pair
    rng = np.random.default_rng(4)
    x, p, batch = rng.normal(size=(14, 3)), rng.normal(size=(120, 3)), np.array([119, 50, 0, 50])
    none = np.zeros(0, np.int64)
    trips = rows.traffic.trips
    close(rows.dot_matrix(x), A @ x, 10)
    close(rows.combine_matrix(p), A.T @ p, 10)
    close(rows.dot_matrix(x, batch), A[batch] @ x, 10)
    close(rows.combine_matrix(p[:4], batch), A[batch].T @ p[:4], 10)
    assert rows.traffic.trips == trips + 4
    assert rows.dot_matrix(x[:, :0]).shape == (120, 0)
    assert rows.combine_matrix(p[:, :0]).shape == (14, 0)
    assert rows.dot_matrix(x, none).shape == (0, 3)
    nothing = rows.combine_matrix(p[:0], none)
    assert nothing.dtype == rows.dtype
    assert nothing.tolist() == [[0.0] * 3] * 14


def test_chosen_columns_have_working_sets_of_their_own(pair):
    A, rows = pair
    narrow, rng = rows.columns(np.array([3, 0, 7])), np.random.default_rng(5)
    p, exact = rng.random(120), A[:, [7, 3]]
    working = narrow.working(np.array([2, 0]))
    close(working.combine(p), p @ exact, 10)
    close(working.dot(np.array([1.0, -2.0])), exact @ [1.0, -2.0], 10)
    here, numbers = narrow.holding(np.array([2, 0]))
    close(here.combine(p)[numbers], p @ exact, 10)


def test_status_tells_what_was_moved_since_the_last_one(pair, monkeypatch):
    _, rows = pair
    rows.status()
    then, before = rows._clock
    rows.dot(np.ones(14))
    sent, received = rows.traffic.sent - before.sent, rows.traffic.received - before.received
    assert min(sent, received) > 0
    clock = SimpleNamespace(monotonic=lambda: then + 2.0)
    monkeypatch.setattr(sys.modules[type(rows).__module__], "time", clock)
    workers, per_second, bytes_per_second = rows.status().split(", ")
    assert workers == f"{len(rows.engine.placement.workers)} workers"
    assert per_second == f"{120 / 2:.3g} rows/s"
    assert bytes_per_second == f"{(sent + received) / 2 / 1e6:.3g} MB/s"
    assert rows.status().endswith(", 0 rows/s, 0 MB/s")


def test_spectral_norms_where_the_gram_matrix_would_be_too_large(pair, monkeypatch):
    """By Lanczos steps on the workers, or from the rows if they are few."""
    A, rows = pair
    w = np.random.default_rng(2).random(120)
    module = sys.modules[type(rows).__module__]
    for weights in (None, w):
        scaled = A if weights is None else np.sqrt(w)[:, None] * A
        exact = np.linalg.norm(scaled, 2)
        monkeypatch.setattr(module, "_EXACT", 13)
        monkeypatch.setattr(spectral, "EXACT", 13)
        bound, sure = rows.spectral_norm(weights)
        assert not sure
        assert exact * (1 - 1e-9) <= bound <= 1.1 * exact
        monkeypatch.setattr(module, "_EXACT", 14)
        trips = rows.traffic.trips
        assert rows.spectral_norm(weights) == (pytest.approx(exact, rel=1e-12), True)
        assert rows.traffic.trips == trips + 1
    monkeypatch.setattr(module, "_EXACT", 13)
    turned = module._Matrix(rows).T
    assert turned.shape == (14, 120)
    close(turned @ w, A.T @ w, 10)
    close(turned.T @ np.ones(14), A.sum(1), 10)


def test_few_rows_of_many_columns_are_brought_here(client, monkeypatch):
    from adafw.distributed import DistributedLinearModel

    A = np.random.default_rng(0).normal(size=(6, 9))
    made = [lambda: (A[:2], np.ones(2)), lambda: (A[2:], np.ones(4))]
    f = DistributedLinearModel.from_parts(made, adafw.losses.Squared(), client=client)
    monkeypatch.setattr(sys.modules[type(f.rows).__module__], "_EXACT", 8)
    w = np.arange(1.0, 7.0)
    exact = np.linalg.norm(np.sqrt(w)[:, None] * A, 2)
    assert f.rows.spectral_norm(w)[0] == pytest.approx(exact, rel=1e-9)


class Here:
    """An engine whose parts are on this machine: what is asked of them, without a cluster."""

    def __init__(self, pieces, features):
        blocks = [Block(X, y) for X, y in pieces]
        self.parts = {k: HeldPart.of(b, "x") for k, b in enumerate(blocks) if b.X.shape[0]}
        self.known_headers = [
            self.parts[k].header() if k in self.parts else Header.of_nothing(block)
            for k, block in enumerate(blocks)
        ]
        self.crew, self.traffic = SimpleNamespace(features=features), Traffic()
        self.placement, self.asked = Placement(len(blocks)), []

    def ask(self, operation, parts=None, *, x=None, common=None, own=lambda k: {}):
        self.asked.append((operation, common))
        numbers = list(self.parts) if parts is None else parts
        point = None if x is None else np.asarray(x).reshape(-1)
        told = [OPERATIONS[operation](self.parts[k], point, common, own(k)) for k in numbers]
        total = summed([one for one, _ in told]) if told else ()
        reply = Reply(total, [alone for _, alone in told])
        return Engine._joined(None, [(numbers, reply)] if told else [])


def here(cuts=(0, 0, 3, 4, 9), dtype=np.float64, kind=sparse.csr_array, seed=0):
    """The first part is empty; the largest entry is in the last."""
    rng = np.random.default_rng(seed)
    A = np.round(rng.normal(size=(9, 5)) * (rng.random((9, 5)) < 0.7), 3).astype(dtype)
    A[8, 2] = 7.5
    y = rng.normal(size=9)
    pieces = [(kind(A[a:b]), y[a:b]) for a, b in itertools.pairwise(cuts)]
    return A.astype(np.float64), DistributedRows(Here(pieces, 5))


@pytest.mark.parametrize("kind", [sparse.csr_array, np.asarray])
def test_facts_are_those_of_all_parts(kind):
    A, rows = here(kind=kind)
    assert (rows.shape, rows.dtype, rows.largest) == ((9, 5), np.float64, 7.5)
    assert rows.stored == (np.count_nonzero(A) if kind is sparse.csr_array else A.size)
    name = "csr" if kind is sparse.csr_array else "dense"
    assert str(rows) == f"9 x 5 {name} in 4 parts"
    told = rows.describe()
    assert told == here((0, 9), kind=kind)[1].describe()
    assert {key: told[key] for key in ("name", "shape", "dtype", "stored")} == {
        "name": f"distributed {name}", "shape": [9, 5], "dtype": "float64", "stored": rows.stored,
    }  # fmt: skip
    assert told["digest"] != here(seed=1, kind=kind)[1].describe()["digest"]
    changed = DistributedRows(Here([(kind(A[:4]), np.ones(4)), (kind(2 * A[4:]), np.ones(5))], 5))
    assert told["digest"] != changed.describe()["digest"]


@pytest.mark.parametrize("weighted", [False, True])
def test_spectral_norms_and_means_count_the_weights(weighted, monkeypatch):
    """By the Gram matrix, by rows brought here, and by products alone."""
    A, rows = here()
    w = np.random.default_rng(1).uniform(0.1, 3, 9) if weighted else None
    ones = np.ones(9) if w is None else w
    norm = np.linalg.norm(np.sqrt(ones)[:, None] * A, 2)
    assert rows.spectral_norm(w) == (pytest.approx(norm, rel=1e-12), True)
    monkeypatch.setitem(DistributedRows.spectral_norm.__globals__, "_EXACT", 4)
    monkeypatch.setattr(spectral, "EXACT", 4)
    found, _ = rows.spectral_norm(w)
    assert norm * (1 - 1e-9) <= found <= 1.1 * norm
    wide = DistributedRows(Here([(A[:2].repeat(3, axis=1), np.ones(2))], 15))
    few = None if w is None else w[:2]
    found, exact = wide.spectral_norm(few)
    norm = np.linalg.norm(np.sqrt(ones[:2])[:, None] * A[:2].repeat(3, axis=1), 2)
    assert (found, exact) == (pytest.approx(norm, rel=1e-12), True)
    centred, mean = rows.centred(w)
    np.testing.assert_allclose(mean, np.average(A, axis=0, weights=w), rtol=1e-12)
    np.testing.assert_allclose(centred.dot(np.ones(5)), (A - mean).sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(
        rows.variances(w), np.average((A - mean) ** 2, axis=0, weights=w), atol=1e-12
    )


def test_float32_rows_are_asked_in_the_precision_of_their_view():
    A, rows = here(dtype=np.float32)
    wide = rows.doubled()
    assert (rows.dtype, wide.dtype, wide.doubled() is wide) == (np.float32, np.float64, True)
    assert rows.describe() == wide.describe()
    x = np.full(5, 1 / 3)
    assert rows.dot(x.astype(np.float32)).dtype == np.float32
    close(wide.dot(x), A.astype(float) @ x, 1e-3)
    narrow, chosen = wide.columns(np.array([4, 1])), A[:, [4, 1]]
    assert (narrow.shape, narrow.dtype) == ((9, 2), np.float64)
    close(narrow.dot(x[:2]), chosen.astype(float) @ x[:2], 1e-3)
    close(narrow.columns(np.array([1])).dot(x[:1]), A[:, 1].astype(float) / 3, 1e-3)
    assert rows.columns(np.array([4, 1])).dtype == np.float32
    norm = np.linalg.norm(A, 2)
    assert rows.spectral_norm()[0] == pytest.approx(norm, rel=1e-12), "in double precision"
    assert rows.take(np.array([8, 0])).dtype == np.float32
    assert wide.take(np.array([8, 0])).dtype == np.float64


def test_a_column_is_brought_here_once():
    A, rows = here()
    for chosen, fresh in (([3, 1], [3, 1]), ([1, 4, 3], [4]), ([3, 4], None)):
        rows.engine.asked.clear()
        brought, numbers = rows.holding(np.array(chosen))
        close(brought.combine(np.ones(9))[numbers], A[:, chosen].sum(0))
        close(brought.dot(np.ones(len(chosen))), A[:, chosen].sum(1))
        found = [common["chosen"].tolist() for _, common in rows.engine.asked]
        assert found == ([] if fresh is None else [fresh])


def test_points_that_were_written_to_are_sent_anew(model):
    """Neither workers nor the model take a point for the one that it was before."""
    A = model.rows.take(np.arange(120))
    x = np.random.default_rng(7).normal(size=14)
    for _ in range(2):
        close(model.rows.dot(x), A.dot(x))
        value, g = model.value(x), model.gradient(x)
        z = A.dot(x)
        assert value == pytest.approx(np.logaddexp(0, -model.y * z).mean(), rel=1e-12)
        g[:] = 0
        expected = A.combine(-model.y / (1 + np.exp(model.y * z)) / 120)
        close(model.gradient(x), expected)
        x[3] += 1.0
