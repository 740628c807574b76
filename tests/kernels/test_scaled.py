"""Descents on scaled columns, step by step, against the same rules on dense matrices."""

import numpy as np
import pytest
from scipy import sparse

from adafw.kernels import scaled
from adafw.kernels.descent import Bound
from adafw.kernels.shuffle import shuffle
from adafw.rows import as_rows


def problem(seed, m=14, n=9, free=False):
    """(dense A, bends, mixed, total, slope) of a model; no column is empty."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.6)
    A[rng.integers(0, m, n), np.arange(n)] = 1.0
    bends = rng.random(m) + 0.1
    total = float(bends.sum()) if free else 0.0
    mixed = A.T @ bends if free else np.zeros(n)
    return A, bends, mixed, total, float(rng.standard_normal()) if free else 0.0


def columns_of(A, bends, unit, step, dtype=np.float64, gap=5):
    """Of sqrt(B) A / sqrt(unit step): with `gap` entries of others before them."""
    values, rows, starts = as_rows(sparse.csr_array(A)).column_arrays()
    each = np.sqrt(bends)[rows] * values / np.sqrt(unit * step)
    place = starts[:-1] + np.uint64(gap)
    room = np.concatenate([np.full(gap, np.nan), each]).astype(dtype)
    ahead = starts[:-1] - place  # wraps around
    return scaled.SingleColumns(room, rows, ahead, place, starts[1:] + np.uint64(gap), unit, step)


def hessian(A, bends, mixed, total):
    H = A.T @ (bends[:, None] * A)
    return H - np.outer(mixed, mixed) / total if total else H


def descended(H, g, diagonal, slope, mixed, total, bound, w, multiplier, epochs, tolerance, seed,
              margin):  # fmt: skip
    """`descend` with all slopes from a matrix: (w, multiplier, first, last)."""
    radius, signed, binding = bound
    x, w, size = w.copy(), w.copy(), w.size
    order, count, whole, word = np.arange(size).astype(np.uint32), size, True, np.uint64(seed)
    begin = g - mixed * slope / total if total else g
    violations = []
    clip = lambda level, around: min(max(level, around / 4), around * 4)  # noqa: E731
    for epoch in range(epochs):
        word = shuffle(order, count, np.uint64(word))
        seen = [int(a) for a in order[:count]]
        used = [a for a in seen if w[a] != 0]
        response = sum(1 / diagonal[a] for a in used)
        follows = binding and used
        rate = scaled.SHARE / response if follows else 0.0
        if follows and epoch:
            missing = np.abs(w).sum() - radius
            multiplier = clip(multiplier + scaled.JUMP * missing / response, multiplier)
        reach = 3 * radius / max(1, len(used))
        misses, kept = [], []
        for a in seen:
            q, old = begin[a] + H[a] @ (w - x), w[a]
            level = clip(multiplier + rate * (np.abs(w).sum() - radius), multiplier)
            out = (abs(q) if signed else -q) - level
            if old == 0 and out < -margin:
                continue
            misses.append(max(out, 0.0) if old == 0 else abs(q + level * np.sign(old)))
            kept.append(a)
            target = diagonal[a] * old - q
            w[a] = 0.0
            if target > level:
                w[a] = min((target - level) / diagonal[a], old + reach)
            elif signed and target < -level:
                w[a] = max((target + level) / diagonal[a], old - reach)
        order[: len(kept)] = kept
        if binding:
            multiplier = clip(multiplier + rate * (np.abs(w).sum() - radius), multiplier)
        violations.append(sum(misses))
        close = not binding or abs(np.abs(w).sum() - radius) <= 0.02 * radius
        if violations[-1] <= tolerance and close:
            if whole:
                break
            whole = True
        else:
            whole = len(kept) == size
        stay = not whole or len(kept) == size
        count, margin = (len(kept), max(misses, default=0.0)) if stay else (size, np.inf)
        if not stay:
            order[:] = np.arange(size)
    return w, multiplier, violations[0], violations[-1]


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("binding", [False, True])
@pytest.mark.parametrize("margin", [0.0, np.inf])
def test_descent_follows_its_rules(free, signed, binding, margin):
    """Whatever the units of the columns and of their image, and to single precision in that."""
    for seed in range(10):
        A, bends, mixed, total, slope = problem(seed, free=free)
        H, rng = hessian(A, bends, mixed, total), np.random.default_rng(100 + seed)
        g = rng.standard_normal(9) * (3.0 if seed % 2 else 0.5)
        w = np.maximum(rng.standard_normal(9), 0) * (rng.choice([-1, 1], 9) if signed else 1)
        radius = (0.3 if seed % 3 else 1.2) * float(np.abs(w).sum())
        diagonal = np.diag(H) + 1e-3
        tolerance, epochs = (1e-3, 40) if seed % 4 else (0.0, 7)
        expected = descended(
            H, g, diagonal, slope, mixed, total, (radius, signed, binding), w, 0.4, epochs,
            tolerance, seed, margin,
        )  # fmt: skip
        for dtype, exact in ((np.float64, 1e-9), (np.float32, 1e-4)):
            columns = columns_of(A, bends, 3.0, 1 / radius, dtype)
            model = scaled.ScaledModel(columns, g, diagonal, mixed, total, slope)
            found, image = w.copy(), np.zeros(14, dtype)
            told = scaled.descend(
                model, Bound(radius, signed, binding), found, image, 0.4,
                epochs if dtype == np.float64 else min(epochs, 7), tolerance, seed, margin,
            )  # fmt: skip
            if dtype == np.float32 and epochs > 7:
                continue  # where it ends may hang on a digit
            np.testing.assert_allclose(found, expected[0], rtol=exact, atol=exact)
            assert told == pytest.approx(expected[1:], rel=1e3 * exact, abs=10 * exact)
            moved = np.sqrt(bends) * (A @ (found - w)) / np.sqrt(columns.unit / columns.step)
            np.testing.assert_allclose(image, moved, atol=10 * exact)


def test_the_multiplier_is_there_in_a_few_epochs():
    """A Newton step between two epochs: by what moves within them alone it takes three times as
    many, which is why there is one."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 60)) * (rng.random((400, 60)) < 0.1)
    bends = rng.random(400) + 0.5
    H, g = hessian(A, bends, np.zeros(60), 0.0), 20 * rng.standard_normal(60)
    diagonal, mixed = np.diag(H).copy(), np.zeros(60)
    radius = 0.3 * float(np.abs(g / diagonal).sum())
    model = scaled.ScaledModel(columns_of(A, bends, 1.0, 1.0), g, diagonal, mixed, 0.0, 0.0)

    def missing(epochs):
        w = np.zeros(60)
        scaled.descend(
            model, Bound(radius, True, True), w, np.zeros(400), 5.0, epochs, 0.0, 1, np.inf
        )
        return abs(np.abs(w).sum() / radius - 1)

    assert missing(4) < 0.1
    assert missing(8) < 2e-3
    assert missing(12) < 5e-5
