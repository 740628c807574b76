"""Active sets: atoms dense and sparse, found again, moved, and as plain arrays."""

import numpy as np
import pytest
from scipy import sparse

from adafw.steps import ActiveSet


def made(kind="sparse"):
    rows = np.array([[2.0, 0, 0, 0], [0, -2.0, 0, 0], [0, 0, 0, 2.0]])
    rows = rows if kind == "sparse" else rows + 1.0
    return ActiveSet(
        np.array([0.5, 0.25, 0.25]), sparse.csr_array(rows) if kind == "sparse" else rows
    )


@pytest.mark.parametrize("entries", [1, 2])
def test_a_start_is_its_own_atom_kept_sparsely_up_to_a_quarter(entries):
    x = np.zeros((2, 2))
    x.reshape(-1)[:entries] = 3.0
    active = ActiveSet.of(x, {})
    assert active.weights.tolist() == [1.0]
    assert sparse.issparse(active.atoms) is (entries == 1)
    assert active.atoms.shape == (1, 4)
    np.testing.assert_array_equal(active.point(x), x)
    if entries == 2:
        x[0, 0] = 9.0  # the atom is a copy
        assert active.point(x)[0, 0] == 3.0


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_states_are_plain_arrays_and_back(kind):
    active = made(kind)
    state = active.state()
    names = {"weights", "data", "indices", "indptr"} if kind == "sparse" else {"weights", "atoms"}
    assert set(state) == names <= set(ActiveSet.KEYS)
    assert all(type(part) is np.ndarray for part in state.values())
    again = ActiveSet.of(np.zeros(4), state)
    np.testing.assert_array_equal(again.weights, active.weights)
    for k in range(3):
        np.testing.assert_array_equal(again.atom(k, np.zeros(4)), active.atom(k, np.zeros(4)))


def test_damaged_atoms_are_refused():
    state = made().state()
    state["indices"] = state["indices"] + 4
    with pytest.raises(ValueError, match="ind"):
        ActiveSet.of(np.zeros(4), state)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_scores_atoms_and_the_point(kind):
    active, g = made(kind), np.array([[1.0, 2.0], [3.0, 4.0]])
    rows = active.atoms.toarray() if kind == "sparse" else active.atoms
    scores = active.scores(g)
    np.testing.assert_array_equal(scores, rows @ g.reshape(-1))
    assert type(scores) is np.ndarray
    like = np.zeros((2, 2), np.float32)
    np.testing.assert_array_equal(active.atom(2, like), rows[2].reshape(2, 2))
    point = active.point(like)
    assert (point.dtype, point.shape) == (np.float32, (2, 2))
    np.testing.assert_array_equal(point.reshape(-1), active.weights @ rows)


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_an_atom_is_found_among_those_of_its_score(kind):
    active, g = made(kind), np.array([1.0, -1.0, 7.0, 0.5])
    scores = active.scores(g)  # of the first two alike
    for k in range(3):
        v = active.atom(k, np.zeros(4))
        assert active.find(v, scores, float(g @ v) * (1 + 1e-9)) == k
    assert active.find(np.array([0.0, 0, 2.0, 0]), scores, 14.0) is None
    other = np.array([2.0, 0.0, 0.0, 0.0]) + (kind == "dense")
    other[1] += 1e-9
    assert active.find(other, scores, float(g @ other)) is None
    zero = ActiveSet(np.ones(1), np.zeros((1, 4)))
    assert zero.find(np.zeros(4), zero.scores(g), 0.0) == 0


@pytest.mark.parametrize("kind", ["sparse", "dense"])
def test_weight_that_moves(kind):
    active = made(kind)
    first = active.atom(0, np.zeros(4))
    moved = active.moved(np.array([-0.25, 0.25, 0.0]))
    assert moved.weights.tolist() == [0.25, 0.5, 0.25]
    gone = active.moved(np.array([0.25, -0.25, 0.0]))
    assert gone.weights.tolist() == [0.75, 0.25]
    np.testing.assert_array_equal(gone.atom(0, first), first)
    np.testing.assert_array_equal(gone.atom(1, first), active.atom(2, first))
    # What is less than rounding of x leaves too; what is left has sum 1.
    eps = np.finfo(float).eps
    assert active.moved(np.array([0.0, -0.25 + 0.9 * eps, 0.0])).weights.size == 2
    assert active.moved(np.array([0.0, -0.25 + 1.5 * eps, 0.0])).weights.size == 3
    np.testing.assert_allclose(active.moved(np.array([0.5, 0.25, -0.25])).weights, [2 / 3, 1 / 3])


@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("new", ["sparse", "dense"])
def test_a_new_atom_comes_last(kind, new):
    active = made(kind)
    v = np.array([0.0, 0, 3.0, 0]) if new == "sparse" else np.array([1.0, 2, 3, 4])
    more = active.moved(np.array([-0.25, -0.25, 0, 0.5]), v)
    assert more.weights.tolist() == [0.25, 0.25, 0.5]
    np.testing.assert_array_equal(more.atom(2, v), v)
    np.testing.assert_array_equal(more.atom(1, v), active.atom(2, v))
    assert sparse.issparse(more.atoms) is (kind == new == "sparse")


def test_a_state_without_weights_has_x_as_its_only_atom():
    x = np.array([0.0, 0.5, 0.0, 0.0])
    active = ActiveSet.of(x, {"phi": 1.0, "M": 2.0})
    assert active.weights.tolist() == [1.0]
    np.testing.assert_array_equal(active.point(x), x)
