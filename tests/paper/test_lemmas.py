"""Lemmas D.1, D.2, D.3, D.6 and D.8; expectations over a batch are taken over all batches."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adafw
from adafw import gradients, losses, metrics, solver, theory
from adafw.random import as_source
from adafw.steps import AdaptiveStep

SETS = [
    adafw.L1Ball(1.3),
    adafw.L2Ball(0.8),
    adafw.LInfBall(0.6),
    adafw.Simplex(1.1),
    adafw.UnitSimplex(0.9),
    adafw.Box(-0.3, 1.2),
]


class Script:
    """A source of indices that returns the given batch."""

    def __init__(self, batch):
        self.batch = np.array(batch)

    def integers(self, low, high, size):
        assert len(self.batch) == size
        assert self.batch.max() < high
        return self.batch


def small_model(loss=None, m=4, n=3, seed=0):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((m, n)), rng.choice([-1.0, 1.0], m)
    return adafw.LinearModel(A, y, loss or losses.Logistic())


def inside(constraint, rng, n):
    """A random point of the set."""
    corners = [constraint.lmo(rng.standard_normal(n)) for _ in range(4)]
    return rng.dirichlet(np.ones(4)) @ np.array(corners)


# Lemma D.1 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@given(
    seed=st.integers(0, 10**6),
    eta=st.floats(1e-3, 1e3),
    bound=st.floats(0, 1),
    momentum=st.booleans(),
)
@settings(max_examples=25, deadline=None, derandomize=True)
def test_d1_each_inner_step_is_the_minimiser_on_its_segment(constraint, seed, eta, bound, momentum):
    rng = np.random.default_rng(seed)
    n = 5
    x = inside(constraint, rng, n)
    g = rng.standard_normal(n) * 10 ** rng.uniform(-2, 2, n)
    metric = metrics.AMSGrad(offset=1e-2) if momentum else metrics.AdaGrad(offset=1e-2)
    m, h, _ = metric.update(g, 0, metric.init(x))

    def q(y):
        return m @ (y - x) + (h * (y - x)) @ (y - x) / (2 * eta)

    y = x
    for k in range(1, 5):
        # Template 3 from the same start with one inner step more: its last inner step.
        step = AdaptiveStep(eta, k, bound, metric)
        after, _ = step.update(None, constraint, x, g, 0, metric.init(x))
        d = constraint.lmo(m + h * (y - x) / eta) - y
        grid = np.linspace(0, bound, 101)
        lowest = min(q(y + gamma * d) for gamma in grid)
        rounding = 1e-15 * (np.abs(m) + h * np.abs(after - x) / eta) @ (1 + np.abs(x))
        assert q(after) <= lowest + rounding + 1e-14 * abs(lowest)
        assert q(after) <= q(y) + rounding + 1e-14 * abs(lowest)
        # and it is a point of the segment, not merely a low one
        gamma = np.clip((after - y) @ d / max(d @ d, 1e-300), 0, bound)
        np.testing.assert_allclose(after, y + gamma * d, atol=1e-14)
        y = after


# Lemma D.2 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("inner_steps", [1, 3])
def test_d2_a_step_is_at_most_k_d_gamma_long(constraint, inner_steps):
    f = small_model(m=30, n=5)
    step = AdaptiveStep(50.0, inner_steps, lambda t: 0.7 / (t + 1))
    algorithm = adafw.Algorithm(gradients.Minibatch(2), step)
    s = solver.start(f, constraint, algorithm, constraint.start(5), as_source(0))
    D, moved = constraint.diameter(5), 0.0
    for t in range(40):
        x = s.x
        solver.run(f, constraint, algorithm, s, 1)
        length = np.linalg.norm(s.x - x)
        assert length <= inner_steps * D * step.max_step(t) * (1 + 1e-12)
        moved = max(moved, length / (D * step.max_step(t)))
    assert moved > 0.3  # the bound on the step was at work


# Lemmas D.3, D.6, D.8: one draw, all batches ----------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_d3_minibatches(constraint, batch_size):
    f, rng = small_model(), np.random.default_rng(1)
    G = theory.constants(f, constraint).gradient_bound
    estimator = gradients.Minibatch(batch_size)
    for _ in range(5):
        x = inside(constraint, rng, 3)
        errors = [
            np.linalg.norm(estimator.update(f, x, 1, {}, Script(batch))[0] - f.gradient(x))
            for batch in product(range(4), repeat=batch_size)
        ]
        assert np.mean(errors) <= G / np.sqrt(batch_size)
        terms = np.array([f.gradient(x, np.array([i])) for i in range(4)])
        variance = ((terms - f.gradient(x)) ** 2).sum(axis=1).mean()
        assert np.mean(np.square(errors)) == pytest.approx(variance / batch_size, rel=1e-12)


def test_d3_is_nearly_attained_where_gradients_cancel():
    # Gradients +1 and -1, whose mean is 0; ten of them, as a batch of all terms would be exact.
    a = np.tile([[1.0], [-1.0]], (5, 1))
    f = adafw.UserSum(
        10, lambda x: 0.0, lambda x, batch: a[batch].mean(0) if batch is not None else 0 * x
    )
    for b in (1, 4, 9):
        errors = [
            abs(gradients.Minibatch(b).update(f, np.zeros(1), 0, {}, Script(batch))[0][0])
            for batch in product(range(2), repeat=b)
        ]
        assert 0.7 / np.sqrt(b) <= np.mean(errors) <= 1 / np.sqrt(b)


def squared_error(f, x, estimates):
    return np.mean([np.sum((g - f.gradient(x)) ** 2) for g in estimates])


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("loss", [losses.Squared(), losses.Logistic()], ids=repr)
def test_d6_variance_reduction(constraint, batch_size, loss, solved):
    f, rng = small_model(loss), np.random.default_rng(2)
    minimum = solved(f, constraint).minimum
    L = theory.constants(f, constraint).smoothness
    estimator = gradients.SVRF(batch_size, k0=0)
    batches = list(product(range(4), repeat=batch_size))
    for _ in range(5):
        snapshot, x = inside(constraint, rng, 3), inside(constraint, rng, 3)
        _, state = estimator.update(f, snapshot, 0, {}, None)
        estimates = [estimator.update(f, x, 2, dict(state), Script(b))[0] for b in batches]
        np.testing.assert_allclose(np.mean(estimates, axis=0), f.gradient(x), atol=1e-13)
        errors = f.value(x) - minimum + f.value(snapshot) - minimum
        assert squared_error(f, x, estimates) <= 4 * L / batch_size * errors


def stale(f, x, alpha):
    """||f'(x) - alpha||_1."""
    return np.abs(f.slopes(x) / f.n_terms - alpha).sum()


@pytest.mark.parametrize("batch_size", [1, 2, 4])
@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_d8_one_refresh(constraint, batch_size):
    f, rng = small_model(), np.random.default_rng(3)
    m, L = f.n_terms, 0.25
    keep = 1 - theory.effective_batch(batch_size, m) / m
    estimator = gradients.CSFW(batch_size)
    D1 = theory.data_constants(f, constraint).data_diameter_1
    K, gamma = 3, 0.2
    for _ in range(4):
        alpha, g = rng.standard_normal(m) / m, None
        g = f.combine(alpha)
        last = inside(constraint, rng, 3)
        # x as Template 3 may reach it from the last iterate: K steps of at most gamma.
        x = last
        for _ in range(K):
            x = x + gamma * (constraint.lmo(rng.standard_normal(3)) - x)
        left = []
        for batch in product(range(m), repeat=batch_size):
            state = {"alpha": alpha.copy(), "gradient": g}
            estimate, state = estimator.update(f, x, 1, state, Script(batch))
            left.append(stale(f, x, state["alpha"]))
            np.testing.assert_allclose(estimate, f.combine(state["alpha"]), atol=1e-14)
        # The proof's equality, with b_e / m for the chance of being refreshed ...
        assert np.mean(left) == pytest.approx(keep * stale(f, x, alpha), rel=1e-12)
        # ... and the lemma's inequality.
        assert np.mean(left) <= keep * (stale(f, last, alpha) + K * L * D1 / m * gamma) + 1e-14


def test_d8_along_a_run(problem):
    f, constraint = problem.f, problem.constraint
    m, b, K, T = f.n_terms, 6, 2, 25
    guarantee = theory.theorem_3_7(f, constraint, lower=1.0, upper=3.0, batch_size=b, inner_steps=K)
    c, keep = guarantee.constants, 1 - theory.effective_batch(b, m) / m
    seen = np.zeros((20, T))
    for seed in range(20):
        x0 = constraint.start(f.shape)
        s = solver.start(f, constraint, guarantee.algorithm, x0, as_source(seed))
        for t in range(T):
            x = s.x
            solver.run(f, constraint, guarantee.algorithm, s, 1)
            seen[seed, t] = stale(f, x, s.gradient["alpha"])
    t = np.arange(T)
    first = seen[:, 0].mean()
    noise = keep ** (t / 2) * np.log(t / 2 + 1) + 2 * (1 / (1 - keep) - 1) / (t + 2)
    bound = keep**t * first + 2 * K * c.curvature * c.data_diameter_1 / m * noise
    assert (seen.mean(axis=0) <= bound).all()
