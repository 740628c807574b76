"""Pairwise steps on quadratic models: minimisers found by trying every face, slopes that follow."""

from itertools import product

import numpy as np
import pytest

from adafw.kernels.pairwise import move_atom, pairwise
from adafw.kernels.parts import AtomModel

RADIUS = 1.5


def least_on_faces(H, c, level, signed, open_):
    """The least of <c, w> + <w, H w> / 2 + level sum |w| over sum |w| <= (=) RADIUS."""
    best = 0.0 if open_ else np.inf
    for signs in product((-1, 0, 1) if signed else (0, 1), repeat=len(c)):
        face = np.flatnonzero(signs)
        if not face.size:
            continue
        s = np.array(signs, float)[face]
        K, k = H[np.ix_(face, face)], -(c[face] + level * s)
        ends = [np.linalg.solve(K, k)] if open_ else []
        along = np.linalg.solve(K, s)
        free = np.linalg.solve(K, k)
        ends.append(free + along * ((RADIUS - s @ free) / (s @ along)))
        for w in ends:
            if (s * w >= 0).all() and s @ w <= RADIUS * (1 + 1e-12):
                best = min(best, c[face] @ w + w @ K @ w / 2 + level * np.abs(w).sum())
    return best


@pytest.mark.parametrize(("signed", "open_"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("level", [0.0, 0.2])
@pytest.mark.parametrize("free", [False, True])
def test_minimiser_is_that_of_all_faces(signed, open_, level, free):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((9, 5)) * rng.choice([0.1, 1.0, 3.0], 5)
        bends = rng.random(9) + 0.1
        gram, c = A.T @ (bends[:, None] * A), rng.standard_normal(5)
        mixed = A.T @ bends if free else np.zeros(5)
        total = float(bends.sum()) if free else 0.0
        H = gram - np.outer(mixed, mixed) / total if free else gram
        u = np.zeros(5) if open_ else np.array([0, 0, RADIUS, 0, 0])
        signs = rng.choice([-1.0, 1.0], 5) if signed else np.ones(5)
        model = AtomModel(gram, np.diag(H).copy(), signs, mixed, total)
        slopes = signs * (c + H @ (signs * u)) + level
        slack = RADIUS - float(u.sum())
        _, gap, slack = pairwise(
            model, slopes, u, slack, (open_, signed, level), 1e-12, 100_000
        )  # fmt: skip
        w = signs * u
        assert gap <= 1e-12
        assert u.min() >= 0
        assert slack >= 0
        assert u.sum() + slack == pytest.approx(RADIUS, abs=1e-12)
        np.testing.assert_allclose(slopes, signs * (c + H @ w) + level, atol=1e-12)
        value = c @ w + w @ H @ w / 2 + level * u.sum()
        assert value == pytest.approx(least_on_faces(H, c, level, signed, open_), abs=1e-11)


def test_the_diagonal_of_the_model_is_what_moves_an_atom():
    """It holds a ridge that the matrix does not, which tells equal columns apart."""
    gram = np.ones((3, 3))
    model = AtomModel(gram, np.full(3, 1.5), np.ones(3), np.zeros(3), 0.0)
    slopes, u = np.array([-1.0, -1.0, 2.0]), np.array([0.0, 0.0, 1.0])
    expected = slopes.copy()
    steps, _, _ = pairwise(model, slopes, u, 0.0, (False, False, 0.0), 0.0, 1)
    assert steps == 1
    moved = u[0]
    assert 0 < moved == 1 - u[2]  # of two that are equally steep the first
    move_atom(model, 0, moved, expected)
    move_atom(model, 2, -moved, expected)
    np.testing.assert_allclose(slopes, expected, atol=1e-15)


def test_weight_comes_from_where_it_promises_most():
    """Not from the atom with the highest slope, which has hardly any weight."""
    model = AtomModel(np.eye(3), np.ones(3), np.ones(3), np.zeros(3), 0.0)
    slopes, u = np.array([-1.0, 1.0, 5.0]), np.array([0.0, 0.9, 1e-3])
    pairwise(model, slopes, u, 0.0, (False, False, 0.0), 0.0, 1)
    assert u[2] == 1e-3
    assert u[1] == 0.0


def test_an_atom_in_use_does_not_turn():
    """Its other sign, the steepest there is, can only be had by giving its weight away first."""
    model = AtomModel(np.eye(2), np.ones(2), np.ones(2), np.zeros(2), 0.0)
    slopes, u = np.array([3.0, -1.0]), np.array([0.5, 0.0])
    _, gap, slack = pairwise(model, slopes, u, 0.0, (True, True, 0.0), 0.0, 1)
    assert (u[0], slack) == (0.0, 0.0)
    assert u[1] == 0.5
    assert model.signs.tolist() == [1.0, 1.0]
    assert gap == pytest.approx(0.5 * (-0.5 + 2.5))  # against the vertex -e_0, slope -2.5
