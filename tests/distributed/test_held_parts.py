"""A part on a worker, without a cluster: what it is asked for twice is what was asked for."""

import math

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw.distributed.parts import OPERATIONS, Header, HeldPart, summed
from adafw.distributed.recipes import Block

RNG = np.random.default_rng(0)
A = np.round(RNG.normal(size=(9, 5)) * (RNG.random((9, 5)) < 0.7), 3)
Y, W = RNG.choice([-1.0, 1.0], 9), RNG.uniform(0.5, 2, 9)


def held(kind="csr", dtype=np.float64, rows=slice(None), weight=W):
    X = A[rows].astype(dtype)
    block = Block(sparse.csr_array(X) if kind == "csr" else X, Y[rows],
                  None if weight is None else weight[rows])  # fmt: skip
    return HeldPart.of(block, "one")


def ask(part, operation, x=None, own=None, dtype="float64", columns=None, **common):
    common = {"dtype": dtype, "columns": columns, **common}
    return OPERATIONS[operation](part, x, common, own or {})


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_columns_are_seen_in_the_dtype_that_is_asked_for(kind):
    """In float32 first, then in float64, then others: none is taken for another."""
    part, columns, x = held(kind, np.float32), np.array([3, 0]), np.array([1.0, 1e-9])
    exact = A.astype(np.float32).astype(float)
    for dtype in ("float32", "float64", "float32"):
        _, z = ask(part, "dot", x.astype(dtype), dtype=dtype, columns=columns)
        assert z.dtype == dtype
        np.testing.assert_allclose(z, exact[:, columns] @ x, rtol=1e-6, atol=1e-6)
    (gram,), _ = ask(part, "gram", own={"p": W}, columns=columns)
    assert gram.dtype == np.float64
    np.testing.assert_allclose(gram, (exact[:, columns].T * W) @ exact[:, columns], rtol=1e-12)
    _, z = ask(part, "dot", x, columns=np.array([0, 3]))
    np.testing.assert_allclose(z, exact[:, [0, 3]] @ x, rtol=1e-13, atol=1e-15)
    _, z = ask(part, "dot", np.ones(5))
    np.testing.assert_allclose(z, exact.sum(axis=1), rtol=1e-6)


def test_working_sets_follow_the_columns_that_are_chosen():
    part, p = held(), RNG.random(9)
    for chosen in ([1, 4], [4, 1], [2, 4, 0], [1, 4]):
        (total,), _ = ask(part, "working_combine", own={"p": p}, chosen=np.array(chosen))
        np.testing.assert_allclose(total, p @ A[:, chosen])


def test_a_lower_triangle_from_a_row_on():
    part, p, chosen = held(), RNG.random(9), np.array([3, 0, 2, 4])
    whole = (A[:, chosen].T * p) @ A[:, chosen]
    for first in (0, 1, 3):
        (total,), _ = ask(part, "working_gram", own={"p": p}, chosen=chosen, first=first)
        lower = [whole[i, j] for i in range(first, 4) for j in range(i + 1)]
        np.testing.assert_allclose(total, lower)


@pytest.mark.parametrize("weight", [None, W])
def test_the_risk_of_parts_is_that_of_the_whole(weight):
    """Of uneven parts with uneven weights; one whose weights are all 0 adds nothing."""
    loss, x = adafw.losses.Logistic(), RNG.normal(size=5)
    f = adafw.LinearModel(A, Y, loss, weight)
    total = 9.0 if weight is None else weight.sum()
    cuts = (slice(0, 2), slice(2, 3), slice(3, 9))
    answers = [ask(held(rows=c, weight=weight), "risk", x, loss=loss, total=total)[0] for c in cuts]
    silent = held(rows=slice(0, 4), weight=np.zeros(9))
    answers.append(ask(silent, "risk", x, loss=loss, total=total)[0])
    value, g = sum(a[0] for a in answers), sum(a[1] for a in answers)
    assert value == pytest.approx(f.value(x), rel=1e-12)
    np.testing.assert_allclose(g, f.gradient(x), rtol=1e-12, atol=1e-14)
    assert summed(answers)[0] == pytest.approx(value, rel=1e-15)


def test_a_model_is_kept_for_one_loss_and_one_kind_of_rows():
    part, x = held(), RNG.normal(size=5)
    for loss in (adafw.losses.Logistic(), adafw.losses.SquaredHinge(), adafw.losses.Logistic()):
        (value, _), _ = ask(part, "risk", x, loss=loss, total=W.sum())
        assert value == pytest.approx(adafw.LinearModel(A, Y, loss, W).value(x), rel=1e-12)


def test_moments_of_rows_without_weight():
    _, (total, mean, variance) = ask(held(), "moments", own={"p": np.zeros(9)})
    assert (total, mean.any(), variance.any()) == (0.0, False, False)
    _, (total, mean, variance) = ask(held(), "moments", own={"p": W})
    assert total == pytest.approx(W.sum())
    np.testing.assert_allclose(mean, np.average(A, axis=0, weights=W))
    np.testing.assert_allclose(variance, np.average((A - mean) ** 2, axis=0, weights=W))


@pytest.mark.parametrize("change", ["value", "row", "column", "none"])
def test_a_mark_depends_on_every_entry_and_its_place_but_not_on_the_cut(change):
    whole = ask(held(), "mark", own={"start": 0})[1]
    parts = [ask(held(rows=c), "mark", own={"start": c.start})[1] for c in
             (slice(0, 4), slice(4, 9))]  # fmt: skip
    assert sum(parts) % 2**64 == whole
    X = A.copy()
    X[0, 0], X[3, 2] = 7.0, 8.0
    other = X.copy()
    if change == "value":
        other[3, 2] += 1e-15 * 8
    elif change == "row":
        other[[2, 3]] = X[[3, 2]]
    elif change == "column":
        other[:, [0, 2]] = X[:, [2, 0]]
    marks = [
        ask(HeldPart.of(Block(sparse.csr_array(Z), Y), "z"), "mark", own={"start": 0})[1]
        for Z in (X, other)
    ]
    assert (marks[0] == marks[1]) is (change == "none")


@pytest.mark.parametrize("name", ["rows", "stored", "largest", "y", "weight", "names"])
def test_a_header_tells_other_rows(name):
    one = held().header()
    assert one.is_of(held().header())
    other = {
        "rows": held(rows=slice(0, 8)).header(),
        "stored": held("dense").header(),
        "largest": Header(**{**vars(one), "largest": 2 * one.largest}),
        "y": Header(**{**vars(one), "y": -one.y}),
        "weight": Header(**{**vars(one), "weight": None}),
        "names": Header(**{**vars(one), "names": ("a", "b", "c", "d", "e")}),
    }[name]
    assert not one.is_of(other)
    assert not other.is_of(one)


def test_a_widened_part_has_the_same_rows_and_more_columns():
    part = held()
    part.widen(8)
    assert part.rows.shape == (9, 8)
    np.testing.assert_allclose(ask(part, "dot", np.ones(8))[1], A.sum(axis=1))
    part.widen(6)
    assert part.rows.shape == (9, 8)


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_moments_of_float32_rows_are_joined_in_double_precision(kind):
    part, weights = held(kind, np.float32), W.astype(np.float32)
    _, (total, mean, variance) = ask(part, "moments", own={"p": weights}, dtype="float32")
    assert type(total) is float
    assert total == pytest.approx(float(weights.astype(float).sum()), rel=1e-15)
    assert mean.dtype == variance.dtype == np.float64
    exact = A.astype(np.float32).astype(float)
    np.testing.assert_allclose(mean, np.average(exact, axis=0, weights=weights), atol=1e-6)


def test_sums_over_parts_and_their_shortest_form():
    """Numbers are added without rounding on the way, vectors packed, matrices left as they are."""
    vector = np.array([0.0, 0.0, 0.0, 1.0])
    found = summed(
        [(0.1, vector, np.eye(2)), (0.2, 2 * vector, np.eye(2)), (-0.3, vector, np.eye(2))]
    )
    assert found[0] == math.fsum([0.1, 0.2, -0.3])
    assert found[1].index.tolist() == [3]
    assert found[1].unpack().tolist() == [0, 0, 0, 4]
    assert found[2].tolist() == (3 * np.eye(2)).tolist()
    assert vector.tolist() == [0, 0, 0, 1], "what was handed in is not written to"


def test_products_with_several_columns_and_batches():
    part, rng = held(), np.random.default_rng(3)
    x, p, batch = rng.normal(size=(5, 3)), rng.normal(size=(9, 3)), np.array([8, 0, 8], np.uint32)
    _, z = ask(part, "dot_matrix", x.reshape(-1), outputs=3)
    np.testing.assert_allclose(z, A @ x)
    _, z = ask(part, "dot_matrix", x.reshape(-1), own={"batch": batch}, outputs=3)
    np.testing.assert_allclose(z, A[batch] @ x)
    (total,), _ = ask(part, "combine_matrix", own={"p": p})
    np.testing.assert_allclose(total.reshape(5, 3), A.T @ p)
    (total,), _ = ask(part, "combine_matrix", own={"p": p[:3], "batch": batch})
    np.testing.assert_allclose(total.reshape(5, 3), A[batch].T @ p[:3])
    (image,), move = ask(part, "curve", x[:, 0], own={"p": W})
    np.testing.assert_allclose(image, A.T @ (W * (A @ x[:, 0])))
    np.testing.assert_allclose(move, A @ x[:, 0])
    _, (arrays, shape) = ask(part, "take", own={"batch": batch})
    taken = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape)
    np.testing.assert_allclose(taken.toarray(), A[batch])
    _, (arrays, shape) = ask(part, "columns", chosen=np.array([4, 1]))
    taken = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape)
    np.testing.assert_allclose(taken.toarray(), A[:, [4, 1]])
    for name, own, expected in (
        ("working_squares", {"p": W}, W @ A[:, [4, 1]] ** 2),
        ("working_product", {"p": W}, A[:, [4, 1]].T @ (W * (A[:, [4, 1]] @ [2.0, 3.0]))),
    ):
        (total,), _ = ask(part, name, own=own, chosen=np.array([4, 1]), w=np.array([2.0, 3.0]))
        np.testing.assert_allclose(total, expected)
    _, z = ask(part, "working_dot", chosen=np.array([4, 1]), w=np.array([2.0, 3.0]))
    np.testing.assert_allclose(z, A[:, [4, 1]] @ [2.0, 3.0])
    for p_, axis in ((1, 0), (2, 1), (np.inf, 1)):
        _, norms = ask(part, "norms", p=p_, axis=axis)
        np.testing.assert_allclose(norms, np.linalg.norm(A, p_, axis=axis))


def test_a_part_without_weight_adds_zeros_of_the_dtype_of_the_point():
    x, loss = RNG.normal(size=5).astype(np.float32), adafw.losses.Logistic()
    for weight in (np.zeros(9), W):
        part = held(dtype=np.float32, weight=weight)
        (value, g), _ = ask(part, "risk", x, dtype="float32", loss=loss, total=9.0)
        assert (g.dtype, g.shape, type(value)) == (np.float32, (5,), float)


@pytest.mark.parametrize("kind", ["csr", "dense"])
def test_sums_of_float32_rows_keep_the_digits_of_their_weights(kind):
    p = np.random.default_rng(4).normal(size=(9, 2))
    (total,), _ = ask(held(kind, np.float32), "combine_matrix", own={"p": p}, dtype="float32")
    assert total.dtype == np.float64
    exact = A.astype(np.float32).astype(float).T @ p
    np.testing.assert_allclose(total.reshape(5, 2), exact, rtol=1e-12)


def test_local_iterations_are_those_of_the_part_in_its_share():
    from adafw.distributed.local_run import run_locally

    loss, x, g = adafw.losses.Logistic(), np.full(5, 0.1), np.ones(5) / 9
    how = dict(
        share=0.1, step=adafw.steps.FrankWolfeStep(0.3), t=6, gradient=g, seed=0,
        constraint=adafw.L1Ball(2.0), iterations=6,
    )  # fmt: skip
    f = adafw.LinearModel(A, Y, loss, W)
    points = [run_locally(f, x, how, number) for number in (0, 3)]
    assert not np.array_equal(*points)
    for number, point in zip((0, 3), points, strict=True):
        own = {"number": number, "weight": 0.25}
        (total,), _ = ask(held("dense"), "local", x, own=own, loss=loss, **how)
        np.testing.assert_allclose(total, point / 4, rtol=1e-12, atol=1e-15)
    (total,), _ = ask(held(weight=np.zeros(9)), "local", x, own=own, loss=loss, **how)
    np.testing.assert_allclose(total, x / 4)  # a part without weight stays where it is
