"""Coordinate descent and sweeps, step by step, against the same rules on dense matrices."""

import numpy as np
import pytest
from scipy import sparse

from adafw.kernels import coordinates, descent
from adafw.kernels.shuffle import shuffle
from adafw.rows import as_rows


def problem(seed, m=14, n=9, free=False):
    """(dense A, its columns as kernels take them, bends, mixed, total, slope) of a model."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.6)
    A[rng.integers(0, m, n), np.arange(n)] = 1.0  # no column is empty
    columns = as_rows(sparse.csr_array(A)).column_arrays()
    bends = rng.random(m) + 0.1
    total = float(bends.sum()) if free else 0.0
    mixed = A.T @ bends if free else np.zeros(n)
    return A, columns, bends, mixed, total, float(rng.standard_normal()) if free else 0.0


def hessian(A, bends, mixed, total):
    H = A.T @ (bends[:, None] * A)
    return H - np.outer(mixed, mixed) / total if total else H


@pytest.mark.parametrize("free", [False, True])
def test_diagonals_and_products_of_chosen_columns(free):
    A, columns, bends, mixed, total, _ = problem(0, free=free)
    chosen = np.array([7, 2, 5], np.uint64)
    diagonal, sums = np.empty(3), np.empty(3)
    descent.diagonals(columns, chosen, bends, diagonal, sums)
    some = A[:, [7, 2, 5]]
    np.testing.assert_allclose(diagonal, bends @ some**2, rtol=1e-13)
    np.testing.assert_allclose(sums, bends @ some, rtol=1e-12, atol=1e-14)
    out = np.ones(14)
    descent.add_columns(columns, chosen, np.array([2.0, 0.0, -3.0]), out)
    np.testing.assert_allclose(out, 1 + 2 * A[:, 7] - 3 * A[:, 5], atol=1e-14)
    found = coordinates.curvatures(columns, bends, mixed, total)
    np.testing.assert_allclose(found, np.diag(hessian(A, bends, mixed, total)), rtol=1e-12)


def descended(A, bends, g, diagonal, mixed, total, slope, bound, w, multiplier, epochs, tolerance,
              seed):  # fmt: skip
    """`descend` with all slopes from the whole matrix: (w, multiplier, first, last, visits)."""
    radius, signed, binding = bound
    x, w, size = w.copy(), w.copy(), w.size
    order = np.arange(size).astype(np.uint32)
    count, whole, margin, visits, word = size, True, 0.0, 0, np.uint64(seed)
    violations = []
    for _ in range(epochs):
        word = shuffle(order, count, np.uint64(word))
        seen = [int(a) for a in order[:count]]
        used = [a for a in seen if w[a] != 0]
        response = sum(1 / diagonal[a] for a in used)
        rate = 0.7 / response if binding and used else 0.0
        reach = 3 * radius / max(1, len(used))
        misses, kept = [], []

        def level():
            wanted = multiplier + rate * (np.abs(w).sum() - radius)  # noqa: B023
            return min(max(wanted, multiplier / 4), multiplier * 4)  # noqa: B023

        for a in seen:
            dz = A @ (w - x)
            shift = -(slope + mixed @ (w - x)) / total if total else 0.0
            q = g[a] + mixed[a] * shift + A[:, a] @ (bends * dz)
            here, old = level(), w[a]
            if old == 0:
                out = (abs(q) if signed else -q) - here
                if out < -margin:
                    continue
                misses.append(max(out, 0.0))
            else:
                misses.append(abs(q + here * np.sign(old)))
            kept.append(a)
            target = diagonal[a] * old - q
            w[a] = 0.0
            if target > here:
                w[a] = min((target - here) / diagonal[a], old + reach)
            elif signed and target < -here:
                w[a] = max((target + here) / diagonal[a], old - reach)
        visits += count
        order[: len(kept)] = kept
        if binding:
            multiplier = level()
        violation, largest = sum(misses), max(misses, default=0.0)
        violations.append(violation)
        close = not binding or abs(np.abs(w).sum() - radius) <= 0.02 * radius
        if violation <= tolerance and close:
            if whole:
                break
            whole = True
        else:
            whole = len(kept) == size
        if not whole:
            count, margin = len(kept), largest
        elif len(kept) == size:
            count, margin = size, largest
        else:
            count, margin = size, np.inf
            order[:] = np.arange(size)
    return w, multiplier, violations[0], violation, visits


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("binding", [False, True])
def test_descent_follows_its_rules(free, signed, binding):
    """Random orders, a multiplier that follows, weights with a reach, coordinates left out."""
    fewer = ended = 0
    for seed in range(12):
        A, columns, bends, mixed, total, slope = problem(seed, free=free)
        rng = np.random.default_rng(100 + seed)
        g = rng.standard_normal(9) * (3.0 if seed % 2 else 0.5)
        w = np.maximum(rng.standard_normal(9), 0) * (rng.choice([-1, 1], 9) if signed else 1)
        radius = (0.3 if seed % 3 else 1.2) * float(np.abs(w).sum())
        diagonal = np.diag(hessian(A, bends, mixed, total)) + 1e-3
        tolerance, epochs = (1e-3, 40) if seed % 4 else (0.0, 7)
        given = (g, diagonal, mixed, total, slope)
        expected = descended(
            A, bends, *given, (radius, signed, binding), w, 0.4, epochs, tolerance, seed
        )
        model = descent.Model(
            columns, np.arange(9, dtype=np.uint64), g, bends, diagonal, mixed, total, slope
        )
        found, image = w.copy(), np.zeros(14)
        bound = descent.Bound(radius, signed, binding)
        multiplier, first, last, visits = descent.descend(
            model, bound, found, image, 0.4, epochs, tolerance, seed
        )
        np.testing.assert_allclose(found, expected[0], rtol=1e-9, atol=1e-12)
        assert multiplier == pytest.approx(expected[1], rel=1e-9)
        assert first == pytest.approx(expected[2], rel=1e-9)
        assert last == pytest.approx(expected[3], rel=1e-7, abs=1e-12)
        assert visits == expected[4]
        np.testing.assert_allclose(image, bends * (A @ (found - w)), atol=1e-12)
        fewer += visits < 9 * epochs and visits % 9 != 0
        ended += visits < 9 * epochs
    assert fewer > 2
    assert ended > 4


@pytest.mark.parametrize("free", [False, True])
def test_a_descent_goes_on_from_an_image(free):
    """An image B dz adds A^T B dz to all slopes, as the gradient at the end of dz would."""
    for seed in range(6):
        A, columns, bends, mixed, total, slope = problem(seed, free=free)
        rng = np.random.default_rng(200 + seed)
        g, w, started = rng.standard_normal(9), rng.standard_normal(9), rng.standard_normal(14)
        diagonal, image = np.diag(hessian(A, bends, mixed, total)) + 1e-3, bends * started
        found = []
        for slopes, begun in ((g, image), (g + A.T @ image, np.zeros(14))):
            model = descent.Model(
                columns, np.arange(9, dtype=np.uint64), slopes, bends, diagonal, mixed, total, slope
            )
            v, at = w.copy(), begun.copy()
            bound = descent.Bound(2.0, True, True)
            told = descent.descend(model, bound, v, at, 0.4, 5, 0.0, seed)
            np.testing.assert_allclose(at - begun, bends * (A @ (v - w)), atol=1e-12)
            found.append([*v, *told])
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


def test_the_first_violation_is_that_of_the_first_epoch():
    """However many follow, in which it falls."""
    A, columns, bends, mixed, total, slope = problem(3)
    diagonal, g = np.diag(hessian(A, bends, mixed, total)).copy(), np.linspace(-2, 2, 9)
    model = descent.Model(
        columns, np.arange(9, dtype=np.uint64), g, bends, diagonal, mixed, total, slope
    )
    found = [
        descent.descend(
            model, descent.Bound(9.0, True, False), np.zeros(9), np.zeros(14), 0.1, epochs, 0.0, 5
        )
        for epochs in (1, 2, 30)
    ]
    assert found[0][1] == found[0][2] == found[1][1] == found[2][1] > 0
    assert found[0][2] > found[1][2] > found[2][2]


@pytest.mark.parametrize("free", [False, True])
def test_a_sweep_over_columns_takes_exact_steps_and_leaves_out_what_is_held(free):
    for seed in range(8):
        A, columns, bends, mixed, total, _ = problem(seed, free=free)
        H = hessian(A, bends, mixed, total)
        rng = np.random.default_rng(50 + seed)
        g, d = 2 * rng.standard_normal(9), np.zeros(9)
        lower, upper = -rng.random(9), rng.random(9)
        lower[3] = upper[3] = 0.0  # no room at all
        diagonal = np.diag(H).copy()
        diagonal[5] = 0.0  # taken for flat: seen, and not moved
        image = bends * (A @ d)
        order = rng.permutation(9).astype(np.uint64)
        count = 9
        for _ in range(3):
            visited, at = [int(j) for j in order[:count]], d.copy()
            gap, kept = 0.0, []
            for j in visited:
                slope = g[j] + H[j] @ at
                room = at[j] - (lower[j] if slope > 0 else upper[j])
                gap += slope * room
                if room == 0 and slope != 0:
                    continue
                kept.append(j)
                if diagonal[j] > 0:
                    at[j] = np.clip(at[j] - slope / diagonal[j], lower[j], upper[j])
            found, count = coordinates.columns_sweep(
                columns, bends, mixed, total, g, diagonal, lower, upper, d, image, order, count
            )
            np.testing.assert_allclose(d, at, atol=1e-12)
            assert found == pytest.approx(gap, abs=1e-11)
            assert order[:count].tolist() == kept
            assert sorted(order) == list(range(9))
            np.testing.assert_allclose(image, bends * (A @ d), atol=1e-12)
        assert d[5] == d[3] == 0
        assert 3 not in kept


def test_a_sweep_over_a_matrix_takes_exact_steps():
    for seed in range(8):
        A, _, bends, mixed, total, _ = problem(seed)
        H = hessian(A, bends, mixed, total)
        H[4, 4] = 0.0  # flat: not moved
        rng = np.random.default_rng(seed)
        g, d = 2 * rng.standard_normal(9), np.zeros(9)
        lower, upper = -rng.random(9), rng.random(9)
        order, slopes, at = rng.permutation(9), g.copy(), np.zeros(9)
        for _ in range(2):
            gap = 0.0
            for j in order:
                slope = g[j] + at @ H[:, j]
                gap += slope * (at[j] - (lower[j] if slope > 0 else upper[j]))
                if H[j, j] > 0:
                    at[j] = np.clip(at[j] - slope / H[j, j], lower[j], upper[j])
            found = coordinates.matrix_sweep(H, lower, upper, d, slopes, order)
            np.testing.assert_allclose(d, at, atol=1e-12)
            assert found == pytest.approx(gap, abs=1e-11)
            np.testing.assert_allclose(slopes, g + H @ d, atol=1e-12)


def test_orders_are_random_and_follow_from_a_word():
    """Knuth's generator, upper bits: all orders of four occur, about as often."""
    counts, word = {}, np.uint64(1)
    state = 1
    for _ in range(2400):
        order, by_hand = np.arange(6).astype(np.uint32), list(range(6))
        word = shuffle(order, 4, np.uint64(word))
        for q in range(3):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            other = q + (state >> 33) % (4 - q)
            by_hand[q], by_hand[other] = by_hand[other], by_hand[q]
        assert order.tolist() == by_hand
        assert int(word) == state
        counts[tuple(by_hand)] = counts.get(tuple(by_hand), 0) + 1
    assert len(counts) == 24
    assert 60 < min(counts.values()) <= max(counts.values()) < 145
