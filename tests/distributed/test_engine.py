"""What the coordinator makes of answers, and what it sends: without a cluster."""

import numpy as np
import pytest

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

from adafw.distributed.crew import Traffic
from adafw.distributed.engine import Answer, Engine
from adafw.distributed.recipes import CallPart, DaskPart, FilePart, as_recipes
from adafw.distributed.shelf import POINTS
from adafw.distributed.wire import Packed, Reply, pack


def engine():
    made = Engine.__new__(Engine)
    made._points = {}
    return made


def test_answers_come_in_the_order_of_the_rows():
    answer = Answer(
        (np.ones(3),), {2: np.array([5.0]), 0: np.array([1.0, 2.0]), 1: np.array([3.0])}
    )
    assert answer.total.tolist() == [1, 1, 1]
    assert [part.tolist() for part in answer.each()] == [[1, 2], [3], [5]]
    assert answer.by_rows().tolist() == [1, 2, 3, 5]
    positions = {0: np.array([3, 0]), 1: np.array([1]), 2: np.array([2])}
    assert answer.by_rows(positions, 4).tolist() == [2, 3, 5, 1]
    wide = Answer(
        (), {4: np.array([[1.0, 2.0]], np.float32), 7: np.array([[3.0, 4.0]], np.float32)}
    )
    found = wide.by_rows({4: np.array([1]), 7: np.array([0])}, 2)
    assert found.tolist() == [[3, 4], [1, 2]]
    assert found.dtype == np.float32
    nothing = Answer((), {}).by_rows({}, 0, (3,), np.float32)
    assert (nothing.shape, nothing.dtype) == ((0, 3), np.float32)


def test_sums_are_made_in_the_order_of_the_parts():
    """Whoever answered first: rounding depends on the order. Packed vectors are added in place."""
    sparse, full = np.zeros(9), np.arange(1.0, 10.0)
    sparse[4] = 0.5
    replies = [
        ([3, 5], Reply((1e-16, pack(sparse)), ["d", "f"])),
        ([0, 4], Reply((1.0, pack(full)), ["a", "e"])),
        ([1], Reply((-1.0, pack(full)), ["b"])),
    ]
    assert replies[0][1].summed[1].index is not None
    assert replies[1][1].summed[1].index is None
    answer = engine()._joined(replies)
    assert answer.summed[0] == 1e-16  # (1 - 1) + 1e-16
    expected = 2 * full
    expected[4] += 0.5
    assert answer.summed[1].tolist() == expected.tolist()
    assert answer.own == {0: "a", 1: "b", 3: "d", 4: "e", 5: "f"}
    assert full.tolist() == list(range(1, 10)), "what was sent is not written to"
    first = engine()._joined([([0], Reply((pack(sparse),), [None]))])
    assert first.total.tolist() == sparse.tolist()
    full.flags.writeable = False  # as what has come over a wire may be
    both = [([0], Reply((pack(full),), [None])), ([1], Reply((pack(sparse),), [None]))]
    assert engine()._joined(both).total.tolist() == (full + sparse).tolist()


def test_a_point_is_sent_as_a_change_of_what_a_worker_knows():
    made, x = engine(), np.arange(1.0, 41.0)
    assert made._packed("a", x).index is None
    made._points["a"] = [(3, x - 1), (7, x)]
    same = made._packed("a", x.copy())
    assert (same.base, same.nbytes) == (7, 0)
    assert made._packed("a", x - 1).base == 3
    near = x.copy()
    near[5] = -1
    change = made._packed("a", near)
    assert (change.base, change.index.tolist()) == (7, [5])
    assert change.unpack(x).tolist() == near.tolist()
    assert made._packed("b", near).index is None
    assert POINTS == 4


def test_what_was_asked_is_copied_to_be_compared():
    traffic = Traffic(1, 2, 3, 4, 5.0, 6, 7)
    before = traffic.copy()
    traffic.trips += 1
    assert before == Traffic(1, 2, 3, 4, 5.0, 6, 7)
    assert traffic != before


def test_names_and_functions_become_recipes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def made():
        return np.eye(2), np.ones(2)

    found = as_recipes(["a.svm", tmp_path / "b.npz", made], format=None, target="t", n_features=9,
                       dtype=np.float32)  # fmt: skip
    svm, npz, call = found
    assert (svm.path, npz.path) == (str(tmp_path / "a.svm"), str(tmp_path / "b.npz"))
    assert svm.dtype == npz.dtype == "float32"
    assert (svm.columns.n_features, npz.columns.n_features) == (9, None)
    assert svm.columns.target == npz.columns.target == "t"
    assert (str(svm), str(call)) == (svm.path, "part 2 (made)")
    assert as_recipes("a.svm", format=None, target=None, n_features=None, dtype=float) == [
        FilePart(str(tmp_path / "a.svm"))
    ]
    settled = svm.settled(12, True)
    assert (settled.columns.n_features, settled.columns.zero_based) == (12, True)
    assert svm.settled(12, None).columns.zero_based == svm.columns.zero_based
    assert npz.settled(12, True) == npz
    assert call.settled(12, True) is call.bare() is call
    assert svm.arguments() == call.arguments() == ()
    forced = FilePart("x.txt", "libsvm").settled(5, False)
    assert (forced.columns.n_features, forced.columns.zero_based) == (5, False)


def test_blocks_are_checked_where_they_are_made():
    X, y = np.eye(3), np.arange(3.0)
    block = CallPart(lambda: (X, y, [1, 2, 3]), 4).make()
    assert (block.y.tolist(), block.weight.tolist()) == ([0, 1, 2], [1, 2, 3])
    assert block.zero_based is None
    part = DaskPart(("a", "b"), 5, True)
    assert part.arguments() == ("a", "b")
    assert part.bare() == DaskPart((), 5, True)
    assert str(part) == "block 5 of X"
    assert part.make(X, np.ones((3, 2))).y.shape == (3, 2)
    for make, message in (
        (lambda: DaskPart((), 5).make(X, np.ones((3, 2))), r"block 5 of X must have one target"),
        (lambda: part.make(X, np.ones(2)), r"one target a row, shape \(3,\), got \(2,\)"),
        (lambda: part.make(X, y, np.ones(2)), r"one weight a row, shape \(3,\), got \(2,\)"),
        (lambda: part.make(X, [0.0, np.inf, 1.0]), "finite targets, got inf in its row 1"),
        (lambda: CallPart(lambda: (X, y), 4).make() and CallPart(lambda: X, 4).make(),
         r"must return \(X, y\)"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=message):
            make()


def test_a_vector_that_is_all_of_it_is_sent_as_it_is():
    """Positions take four bytes each: they must be worth it."""
    v = np.ones(12)
    v[8:] = 0  # 8 entries of 12 bytes are as many as 12 of 8
    assert pack(v).index is None
    v[7] = 0
    assert pack(v).index.tolist() == list(range(7))
    assert pack(v.astype(np.float32)).index is None  # 7 of 8 bytes against 12 of 4
    matrix = np.zeros((2, 3))
    matrix[1, 1] = 2
    assert pack(matrix).index.tolist() == [4]
    assert Packed(3, np.array([2.0]), np.array([1], np.uint32)).unpack().tolist() == [0, 2, 0]
    base = np.ones(3)
    changed = Packed(3, np.array([2.0]), np.array([1], np.uint32), 9).unpack(base)
    assert (changed.tolist(), base.tolist()) == ([1, 2, 1], [1, 1, 1])
