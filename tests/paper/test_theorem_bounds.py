"""Means over seeds obey the inequalities of Theorems 3.1, 3.3, 3.5 and 3.7."""

import numpy as np
import pytest

import adafw
from adafw import metrics, solver, theory
from adafw.random import as_source
from tests.paper.conftest import paths_of

SEEDS, STEPS = range(8), 20
#: Bounds that close in on each other; kappa = 4.
WIDTH = {"lower": lambda t: 1 - 0.5 / (t + 1), "upper": lambda t: 1 + 1 / (t + 1)}
METRICS = [metrics.AdaGrad(), metrics.RMSProp(), metrics.AdaDelta()]


def column(problem, guarantee, name, x0=None):
    """The column of the trace at t = 0 .. STEPS, as a mean over the seeds; on the worst path."""
    f, constraint, algorithm = problem.f, problem.constraint, guarantee.algorithm
    means = []
    for path in paths_of(f, constraint, algorithm):
        rows = [
            adafw.minimize(
                f, constraint, algorithm,
                seed=seed, x0=x0, max_iterations=STEPS, record_every=1, path=path,
            ).trace[name]
            for seed in SEEDS
        ]  # fmt: skip
        means.append(np.mean(rows, axis=0))
    return np.max(means, axis=0)


def make(theorem, problem, metric=METRICS[0], **options):
    return theorem(problem.f, problem.constraint, metric=metric, inner_steps=2, **WIDTH, **options)


def assert_values_obey(problem, guarantee):
    error = column(problem, guarantee, "value") - problem.minimum
    bounds = [guarantee.bound(t) for t in range(1, STEPS + 1)]
    assert (error[1:] <= bounds).all()


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_theorem_3_1(problem, metric):
    assert_values_obey(problem, make(theory.theorem_3_1, problem, metric))


@pytest.mark.parametrize("k0", [0, 2])
def test_theorem_3_5(problem, k0):
    assert_values_obey(problem, make(theory.theorem_3_5, problem, k0=k0))


@pytest.mark.parametrize("batch_size", [1, 20, 60, 200])
def test_theorem_3_7(problem, batch_size):
    assert_values_obey(problem, make(theory.theorem_3_7, problem, batch_size=batch_size))


def mean_gaps(problem, guarantee, x0=None):
    """E g(X_t) = the mean over s <= t of E g(x_s)."""
    return np.cumsum(column(problem, guarantee, "gap", x0)) / np.arange(1, STEPS + 2)


@pytest.mark.parametrize("options", [{"nu": 0.05}, {"nu": 0.3}, {"horizon": STEPS}], ids=repr)
def test_theorem_3_3_on_convex_problems(problem, options):
    f, constraint = problem.f, problem.constraint
    error = f.value(constraint.start(f.shape)) - problem.minimum
    guarantee = make(theory.theorem_3_3, problem, initial_error=error, **options)
    bounds = [guarantee.bound(t) for t in range(STEPS)]
    assert (mean_gaps(problem, guarantee)[:STEPS] <= bounds).all()


class Saddles:
    """f_i(x) = <x, S_i x> / 2 + <c_i, x> on [-1, 1]^3, S_i diagonal of both signs.

    Its terms separate over the coordinates, so that the minimum is one of 3 x 3 candidates.
    """

    def __init__(self):
        rng = np.random.default_rng(3)
        self.S, self.c = rng.uniform(-2, 1, (15, 3)), rng.uniform(-1, 1, (15, 3))
        self.constraint = adafw.LInfBall(1.0)
        self.f = adafw.UserSum(15, lambda x: self.terms(x).mean(), self.gradient)
        s, c = self.S.mean(axis=0), self.c.mean(axis=0)
        inside = np.where(s > 0, np.clip(-c / np.where(s > 0, s, 1), -1, 1), 1.0)
        candidates = np.array([-np.ones(3), np.ones(3), inside])
        self.minimum = (s * candidates**2 / 2 + c * candidates).min(axis=0).sum()
        self.constants = theory.Constants(
            smoothness=np.abs(self.S).max(),
            gradient_bound=np.linalg.norm(np.abs(self.S) + np.abs(self.c), axis=1).max(),
            diameter=self.constraint.diameter(3),
        )

    def terms(self, x):
        return (self.S * x**2 / 2 + self.c * x).sum(axis=1)

    def gradient(self, x, batch):
        rows = slice(None) if batch is None else batch
        return (self.S[rows] * x + self.c[rows]).mean(axis=0)


@pytest.mark.parametrize("options", [{"nu": 0.1}, {"horizon": STEPS}], ids=repr)
def test_theorem_3_3_on_a_nonconvex_problem(options):
    problem = Saddles()
    x0 = np.array([0.1, -0.2, 0.05])
    grid = np.linspace(-1, 1, 41)
    lowest = min(
        problem.f.value(np.array([a, b, c])) for a in grid for b in grid for c in (-1, 0, 1)
    )
    assert problem.minimum <= lowest
    error = problem.f.value(x0) - problem.minimum
    guarantee = make(
        theory.theorem_3_3, problem, initial_error=error, constants=problem.constants, **options
    )
    gaps = mean_gaps(problem, guarantee, x0)
    assert gaps[0] > 0.1
    assert (gaps[:STEPS] <= [guarantee.bound(t) for t in range(STEPS)]).all()


def test_the_rate_is_the_right_one_where_frank_wolfe_is_slow():
    """On the simplex, f(x) = ||x||^2 - 1/n >= 1/(t+1) - 1/n after t steps from a vertex."""
    n = 200
    # m = 1: every gradient is exact, whatever the batch.
    f = adafw.UserSum(1, lambda x: float(x @ x), lambda x, batch: 2 * x, convex=True)
    c = theory.Constants(smoothness=2.0, gradient_bound=2.0, diameter=np.sqrt(2))
    guarantee = theory.theorem_3_1(
        f, adafw.Simplex(1.0), lower=1.0, upper=1.0, inner_steps=1, constants=c
    )
    x0 = np.eye(n)[0]
    r = adafw.minimize(
        f, adafw.Simplex(1.0), guarantee.algorithm, x0=x0, max_iterations=60, record_every=1
    )
    for t in range(1, 61):
        error = r.trace[t].value - 1 / n
        assert 1 / (t + 1) - 1 / n <= error + 1e-14
        assert error <= guarantee.bound(t)


@pytest.mark.parametrize("theorem", [theory.theorem_3_1, theory.theorem_3_5])
def test_every_step_keeps_the_inequality_the_proofs_start_from(problem, theorem):
    """f(x_{t+1}) <= Q_t(x_t + gamma_t (v_t - x_t)) + ||grad f - g_t|| ||x_{t+1} - x_t||."""
    f, constraint = problem.f, problem.constraint
    algorithm = make(theorem, problem).algorithm
    step, metric = algorithm.step, algorithm.step.metric
    s = solver.start(f, constraint, algorithm, constraint.start(f.shape), as_source(0))
    state = metric.init(s.x)
    for t in range(STEPS):
        x, before = s.x, s.copy()
        solver.run(f, constraint, algorithm, s, 1)
        # The same draw again, from the state before it, gives the estimate that was used.
        rng = adafw.random.thaw(before.rng)
        g, _ = algorithm.gradient.update(f, x, t, before.gradient, rng)
        _, h, state = metric.update(g, t, state)
        d = constraint.lmo(g) - x
        gamma, eta = step.max_step(t), step.learning_rate(t)
        model = f.value(x) + gamma * (g @ d) + gamma**2 / (2 * eta) * (d @ (h * d))
        noise = np.linalg.norm(f.gradient(x) - g) * np.linalg.norm(s.x - x)
        assert f.value(s.x) <= model + noise + 1e-13
