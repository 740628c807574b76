"""Models of several outputs: sums, descent and second derivatives against dense matrices."""

import numpy as np
import pytest
from scipy import sparse

from adafw.kernels import joint_descent, joint_gram
from adafw.kernels.parts import Part
from adafw.kernels.shuffle import shuffle
from adafw.rows import as_rows

M, N, K = 11, 5, 3


def problem(seed):
    """(dense A, its columns, shares s of the outputs, weights of the samples)."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.7)
    A[rng.integers(0, M, N), np.arange(N)] = 1.0
    s = rng.dirichlet(np.ones(K), M)
    return A, as_rows(sparse.csr_array(A)).column_arrays(), s, rng.random(M) / M + 0.01


def whole(A, s, weights, coupled):
    """The second derivative in all coefficients (j, c), j first."""
    H = np.zeros((N * K, N * K))
    for a, w, p in zip(A, weights, s, strict=True):
        inner = np.diag(p) - (np.outer(p, p) if coupled else 0)
        H += w * np.kron(np.outer(a, a), inner)
    return H


def in_intercepts(A, s, weights, coupled):
    """(second derivative in the intercepts, mixed ones: one row a coefficient)."""
    B, C = np.zeros((K, K)), np.zeros((N * K, K))
    for a, w, p in zip(A, weights, s, strict=True):
        inner = w * (np.diag(p) - (np.outer(p, p) if coupled else 0))
        B += inner
        C += np.kron(a[:, None], inner)
    return B, C


def model_of(seed, coupled, intercepts, chosen):
    A, columns, s, weights = problem(seed)
    rng = np.random.default_rng(1000 + seed)
    g = rng.standard_normal(chosen.size)
    features, outputs = (chosen // K).astype(np.uint64), chosen % K
    H = whole(A, s, weights, coupled)[np.ix_(chosen, chosen)]
    turned = np.ascontiguousarray(s.T)
    diagonal = np.empty(chosen.size)
    joint_descent.diagonals(columns, features, outputs, turned, weights, coupled, diagonal)
    np.testing.assert_allclose(diagonal, np.diag(H), rtol=1e-12)
    B, C = in_intercepts(A, s, weights, coupled)
    inverse = np.linalg.pinv(B) if intercepts else np.zeros((0, 0))
    made = joint_descent.JointModel(
        columns, features, outputs, g, turned, weights, diagonal + 1e-3, coupled, inverse
    )
    return A, s, weights, H, C[chosen], made


CHOSEN = np.array([0, 1, 4, 6, 8, 9, 11, 13])


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("intercepts", [False, True])
def test_moves_means_intercepts_and_slopes(coupled, intercepts):
    for seed in range(5):
        A, s, _, H, C, model = model_of(seed, coupled, intercepts, CHOSEN)
        d = np.random.default_rng(seed).standard_normal(CHOSEN.size)
        d[2] = 0.0
        W = np.zeros(N * K)
        W[CHOSEN] = d
        dz, mean, out = np.ones((K, M)), np.zeros(M), np.empty(CHOSEN.size)
        joint_descent.moves(model.columns, model.features, model.outputs, d, dz)
        np.testing.assert_allclose(dz, 1 + (A @ W.reshape(N, K)).T, atol=1e-13)
        dz -= 1
        if coupled:
            mean[:] = 7.0
            joint_descent.mean_moves(model.s, dz, mean)
            np.testing.assert_allclose(mean, (s * dz.T).sum(axis=1), atol=1e-13)
        shift, expected = np.full(K, 0.5), model.g + H @ d
        if intercepts:
            joint_descent.settle(model, dz, mean, shift)
            db = -model.settle @ (C.T @ d)
            np.testing.assert_allclose(shift, 0.5 + db, atol=1e-12)
            np.testing.assert_allclose(dz, (A @ W.reshape(N, K)).T + db[:, None], atol=1e-12)
            expected = expected + C @ db
            if coupled:
                np.testing.assert_allclose(mean, (s * dz.T).sum(axis=1), atol=1e-12)
        joint_descent.slopes(model, dz, mean, out)
        np.testing.assert_allclose(out, expected, atol=1e-12)


def descended(H, C, model, radius, binding, w, multiplier, epochs, tolerance, seed):
    """`descend` with slopes from the whole matrix: (w, shift, multiplier, violation)."""
    x, w, size, diagonal = w.copy(), w.copy(), w.size, model.diagonal
    shift = np.zeros(K)
    order, word = np.arange(size).astype(np.uint32), np.uint64(seed)
    count, full, margin = size, True, 0.0
    for _ in range(epochs):
        word = shuffle(order, count, np.uint64(word))
        seen = [int(a) for a in order[:count]]
        used = [a for a in seen if w[a] != 0]
        rate = 0.7 / sum(1 / diagonal[a] for a in used) if binding and used else 0.0
        reach = 3 * radius / max(1, len(used))
        misses, kept = [], []

        def level():
            wanted = multiplier + rate * (np.abs(w).sum() - radius)  # noqa: B023
            return min(max(wanted, multiplier / 4), multiplier * 4)  # noqa: B023

        for a in seen:
            q = model.g[a] + H[a] @ (w - x) + C[a] @ shift
            here, old = level(), w[a]
            if old == 0:
                if abs(q) - here < -margin:
                    continue
                misses.append(max(abs(q) - here, 0.0))
            else:
                misses.append(abs(q + here * np.sign(old)))
            kept.append(a)
            target, w[a] = diagonal[a] * old - q, 0.0
            if target > here:
                w[a] = min((target - here) / diagonal[a], old + reach)
            elif target < -here:
                w[a] = max((target + here) / diagonal[a], old - reach)
        order[: len(kept)] = kept
        if model.settle.size:
            shift = -model.settle @ (C.T @ (w - x))
        if binding:
            multiplier = level()
        violation, largest = sum(misses), max(misses, default=0.0)
        close = not binding or abs(np.abs(w).sum() - radius) <= 0.02 * radius
        if violation <= tolerance and close:
            if full:
                break
            full = True
        else:
            full = len(kept) == size
        if not full or len(kept) == size:
            count, margin = len(kept), largest
        else:
            count, margin = size, np.inf
            order[:] = np.arange(size)
    return w, shift, multiplier, violation


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("intercepts", [False, True])
@pytest.mark.parametrize("binding", [False, True])
def test_descent_follows_its_rules(coupled, intercepts, binding):
    for seed in range(10):
        A, _, _, H, C, model = model_of(seed, coupled, intercepts, CHOSEN)
        if not intercepts:
            C = np.zeros_like(C)
        rng = np.random.default_rng(seed)
        w = np.maximum(rng.standard_normal(CHOSEN.size), 0) * rng.choice([-1.0, 1.0], CHOSEN.size)
        radius = (0.3 if seed % 3 else 1.2) * float(np.abs(w).sum())
        tolerance, epochs = (1e-3, 40) if seed % 4 else (0.0, 7)
        expected = descended(H, C, model, radius, binding, w, 0.4, epochs, tolerance, seed)
        found, dz = w.copy(), np.zeros((K, M))
        mean, shift = np.zeros(M), np.zeros(K)
        multiplier, violation = joint_descent.descend(
            model, radius, binding, found, dz, mean, shift, 0.4, epochs, tolerance, seed
        )
        np.testing.assert_allclose(found, expected[0], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(shift, expected[1], rtol=1e-8, atol=1e-10)
        assert multiplier == pytest.approx(expected[2], rel=1e-8)
        assert violation == pytest.approx(expected[3], rel=1e-6, abs=1e-10)
        W = np.zeros(N * K)
        W[CHOSEN] = found - w
        np.testing.assert_allclose(dz, (A @ W.reshape(N, K)).T + shift[:, None], atol=1e-10)


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("intercepts", [False, True])
def test_atoms_of_several_outputs_row_by_row(coupled, intercepts):
    """Entries of a feature once for each of its atoms; products and second derivatives by them."""
    A, _, s, weights = problem(3)
    weights[4] = 0.0
    part = as_rows(sparse.csr_array(A)).working(np.arange(N)).part
    features = CHOSEN // K
    assert set(features) == set(range(N))
    first = np.append(np.unique(features, return_index=True)[1], CHOSEN.size).astype(np.int64)
    room = int(np.diff(first)[part.positions].sum())
    atoms = Part(np.empty(room), np.empty(room, np.uint32), np.empty(M + 1, np.uint64))
    joint_gram.expand(part, first, atoms)
    dense = np.zeros((M, CHOSEN.size))
    for i in range(M):
        here = slice(int(atoms.starts[i]), int(atoms.starts[i + 1]))
        assert (np.diff(atoms.positions[here].astype(int)) > 0).all()
        dense[i, atoms.positions[here]] = atoms.values[here]
    np.testing.assert_array_equal(dense, A[:, features])
    outputs = (CHOSEN % K).astype(np.int64)
    rng = np.random.default_rng(0)
    w, slopes = rng.standard_normal(CHOSEN.size), rng.standard_normal((M, K))
    W = np.zeros(N * K)
    W[CHOSEN] = w
    out = np.full((M, K), 9.0)
    joint_gram.dot(atoms, outputs, w, out)
    np.testing.assert_allclose(out, A @ W.reshape(N, K), atol=1e-13)
    total = np.full(CHOSEN.size, 9.0)
    joint_gram.combine(atoms, outputs, slopes, total)
    np.testing.assert_allclose(total, (A.T @ slopes).reshape(-1)[CHOSEN], atol=1e-13)
    gram = np.ones((CHOSEN.size, CHOSEN.size))
    mixed = np.ones((CHOSEN.size, K if intercepts else 0))
    joint_gram.add(atoms, outputs, s, weights, coupled, gram, mixed)
    H = whole(A, s, weights, coupled)[np.ix_(CHOSEN, CHOSEN)]
    np.testing.assert_allclose(np.tril(gram), np.tril(1 + H), atol=1e-13)
    assert (np.triu(gram, 1) == np.triu(np.ones_like(gram), 1)).all()
    if intercepts:
        C = in_intercepts(A, s, weights, coupled)[1][CHOSEN]
        np.testing.assert_allclose(mixed, 1 + C, atol=1e-13)
