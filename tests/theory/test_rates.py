"""Means over seeds obey the rates of sliding and of Frank-Wolfe with reduced variance."""

import numpy as np
import pytest

import adafw
from adafw import gradients, solver, steps, theory
from adafw.random import as_source

SEEDS, STEPS = range(6), 30
SETS = [adafw.L1Ball(1.0), adafw.L2Ball(0.7), adafw.Simplex(1.0)]
ESTIMATORS = [
    gradients.SAGA(8), gradients.LSVRG(8), gradients.LSVRG(4, probability=0.3),
    gradients.PAGE(8), gradients.PAGE(4, probability=0.2), gradients.Momentum(4),
]  # fmt: skip


@pytest.fixture(scope="module")
def f():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(60, 5)) / np.sqrt(5)
    y = np.where(A @ rng.normal(size=5) + 0.3 * rng.normal(size=60) > 0, 1.0, -1.0)
    return adafw.LinearModel(A, y, adafw.losses.Logistic())


def lowest(f, constraint):
    return adafw.minimize(f, constraint, adafw.BPCG(), max_iterations=400).lower_bound


def errors(f, constraint, guarantee, **options):
    """Means over seeds of f(x_t) - min f."""
    runs = [
        adafw.minimize(f, constraint, guarantee.algorithm, seed=seed, max_iterations=STEPS,
                       record_every=1, **options).trace["value"]
        for seed in SEEDS
    ]  # fmt: skip
    return np.mean(runs, axis=0) - lowest(f, constraint)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("stochastic", [False, True])
def test_sliding(f, constraint, stochastic):
    guarantee = theory.sliding(f, constraint, stochastic=stochastic)
    bounds = [guarantee.bound(t) for t in range(1, STEPS + 1)]
    assert (errors(f, constraint, guarantee)[1:] <= bounds).all()
    assert bounds[-1] <= 5 * bounds[0] / STEPS  # it is not of order 1 / t


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_storc(f, constraint):
    guarantee = theory.storc(f, constraint)
    x0 = constraint.lmo(f.gradient(constraint.start(f.shape)))
    found = errors(f, constraint, guarantee, x0=x0)
    for stage, t in enumerate((0, 6, 14, 26)):
        scale = guarantee.constants.smoothness * guarantee.constants.diameter**2
        assert guarantee.bound(t) == scale / 2 ** (stage + 1)
        assert found[t] <= guarantee.bound(t)


def summed(rule, steps, start, variance):
    """h_k for k = 0 .. steps of the inequality that proofs of sliding sum, with L = D = 1.

    h_k <= (1 - gamma) h_{k-1} + gamma (eta + beta (d_{k-1} - d_k) + variance / (2 (beta - gamma))),
    every d_k at most 1/2 and whatever makes h_k largest: gamma beta / (product of 1 - gamma) grows,
    so that all d_i = 1/2 but the last, which is 0. `variance(k, gamma, h)` is that of the gradient.
    """
    found, sums, product = [start], 0.0, 1.0
    for k in range(1, steps + 1):
        now = rule(k - 1)
        noise = variance(k, now.gamma, found[-1]) / (2 * (now.beta - now.gamma) or 1.0)
        if now.gamma == 1:
            sums, product, first = 0.0, 1.0, 0.0
        else:
            product, first = product * (1 - now.gamma), sums
        weight = now.gamma / product
        sums = first + weight * (now.eta + noise)
        found.append(product * (sums + weight * now.beta / 2))
    return found


def test_the_constants_of_conditional_gradient_sliding_follow_from_its_inequality(f):
    known = theory.Constants(1.0, 1.0, 1.0)
    for stochastic in (False, True):
        bound = theory.sliding(f, SETS[0], stochastic=stochastic, known=known).bound
        rule = steps.LanZhou(stochastic)
        h = summed(rule, 200, 1.0, lambda k, *_, s=stochastic: s / (k + 2) ** 3)
        assert all(h[t] <= bound(t) * (1 + 1e-12) for t in range(1, 201))
        assert h[200] >= 0.9 * bound(200)  # the constants are those of this proof


@pytest.mark.parametrize("ratio", [0.0, 0.1, 1.0, 10.0, 1e3])
@pytest.mark.parametrize("stage", range(1, 13))
def test_the_constants_of_storc_close_its_induction(stage, ratio):
    """G = `ratio` L D; from h <= 2^-stage a stage leads to 2^-(stage + 1), L = D = 1."""
    length = int(np.ceil(2 ** (stage / 2 + 2)))

    def rule(t):
        k = t + 1
        return steps.HazanLuo()(0)._replace(gamma=2 / (k + 1), beta=3 / k, eta=2 / (length * k))

    def ended(a, b):
        def variance(k, gamma, h):
            batch = length * (a + b * ratio * (k + 1))
            return 0.0 if k == 1 else 4 * (h + gamma * ratio + 2**-stage) / batch

        return summed(rule, length, 2.0**-stage, variance)[-1]

    assert ended(700, 24) <= 2.0 ** -(stage + 1)
    assert ended(700 / 3, 8) <= 2.0 ** -(stage + 1)
    if ratio >= 10 and stage > 6:
        assert ended(700, 1) > 2.0 ** -(stage + 1)


def test_storcs_rule_is_the_one_of_that_induction():
    begin = 0
    for stage in range(1, 6):
        length = int(np.ceil(2 ** (stage / 2 + 2)))
        for k in range(1, length + 1):
            now = steps.HazanLuo()(begin + k - 1)
            assert now == (2 / (k + 1), 3 / k, 2 / (length * k), k == 1)
        begin += length


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("gradient", ESTIMATORS, ids=repr)
def test_frank_wolfe_with_reduced_variance(f, constraint, gradient):
    guarantee = theory.frank_wolfe(f, constraint, gradient)
    bounds = np.array([guarantee.bound(t) for t in range(STEPS + 1)])
    found = errors(f, constraint, guarantee)
    assert (found <= bounds).all()
    assert guarantee.bound(4000) <= 0.6 * guarantee.bound(400)  # and it goes to 0


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=repr)
def test_the_variances_themselves(f, gradient):
    """Mean squared errors of the estimates along runs, over 200 seeds."""
    constraint, T = adafw.L2Ball(0.7), 12
    guarantee = theory.frank_wolfe(f, constraint, gradient)
    squares = np.zeros(T)
    for seed in range(200):
        s = solver.start(
            f, constraint, guarantee.algorithm, constraint.start(f.shape), as_source(seed)
        )
        for t in range(T):
            again = s.copy()
            g, _ = gradient.update(f, again.x, t, again.gradient, solver.thaw(again.rng))
            squares[t] += np.sum((g - f.gradient(s.x)) ** 2) / 200
            solver.run(f, constraint, guarantee.algorithm, s, 1)
    limits = theory.rates.variances(
        gradient, guarantee.algorithm.step.step_size, guarantee.constants, f.n_terms, T
    )
    assert (squares <= np.array(limits) * 1.2 + 1e-15).all()
    assert squares.max() > 0


def test_what_they_are_about(f):
    with pytest.raises(TypeError, match="gradient must be SAGA, LSVRG, PAGE or Momentum"):
        theory.frank_wolfe(f, SETS[0], gradients.CSFW()).bound(3)
    wave = adafw.UserSum(1, lambda x: 0.0, lambda x, batch: x)
    known = theory.Constants(1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="these rates are about convex objectives"):
        theory.sliding(wave, SETS[0], known=known)


def test_variances_follow_what_changes_with_t():
    """The recursions of the docstring, of batch sizes, chances and steps that differ at each t."""
    m, T = 20, 6
    c = theory.Constants(smoothness=3.0, gradient_bound=2.0, diameter=5.0)
    size, chance = (lambda t: t + 2), (lambda t: 0.1 * (t + 1))
    gamma = adafw.schedules.OpenLoop()

    def found(gradient):
        return theory.rates.variances(gradient, gamma, c, m, T)

    a = [0.0] + [15.0 * gamma(t) for t in range(T - 1)]
    y, saga = 4.0, []
    for t in range(T):
        q = 1 - (1 - 1 / m) ** size(t - 1)
        y = y if t == 0 else q * a[t] ** 2 + (1 - q) * (y**0.5 + a[t]) ** 2
        saga.append(y / size(t))
    np.testing.assert_allclose(found(gradients.SAGA(size)), saga)
    y, lsvrg = 0.0, [0.0]
    for t in range(1, T):
        p = 1.0 if t == 1 else chance(t - 1)
        y = p * a[t] ** 2 + (1 - p) * (y**0.5 + a[t]) ** 2
        lsvrg.append((1 - chance(t)) * y / size(t))
    np.testing.assert_allclose(found(gradients.LSVRG(size, probability=chance)), lsvrg)
    s, page = 0.0, [0.0]
    for t in range(1, T):
        s = (1 - chance(t)) * (s + a[t] ** 2 / size(t))
        page.append(s)
    np.testing.assert_allclose(found(gradients.PAGE(size, probability=chance)), page)
    s, momentum = 0.0, []
    for t in range(T):
        before = 2.0 if t == 0 else s**0.5 + a[t]
        s = (1 - chance(t)) ** 2 * before**2 + chance(t) ** 2 * 4 / size(t)
        momentum.append(s)
    np.testing.assert_allclose(found(gradients.Momentum(size, forgetting=chance)), momentum)
    y, lsvrg = 0.0, [0.0]
    for t in range(1, T):
        p = 1.0 if t == 1 else size(t - 1) / m  # where no chance is given
        y = p * a[t] ** 2 + (1 - p) * (y**0.5 + a[t]) ** 2
        lsvrg.append((1 - size(t) / m) * y / size(t))
    np.testing.assert_allclose(found(gradients.LSVRG(size)), lsvrg)
    assert found(gradients.LSVRG(30))[1:] == [0.0] * (T - 1)  # a chance of 30 / 20 is one of 1
    usual = 1 - min(1, 4 / m)
    one = found(gradients.LSVRG(4))[1]
    assert one == pytest.approx(usual * a[1] ** 2 / 4)
    one = found(gradients.PAGE(4))[1]
    assert one == pytest.approx((1 - 4 / (m + 4)) * a[1] ** 2 / 4)


KNOWN = theory.Constants(smoothness=2.0, gradient_bound=6.0, diameter=1.5)
RATIO = 6.0 / (2.0 * 1.5)


def test_what_sliding_asks_for(f):
    """The formulas of its corollaries, written out."""
    for stochastic in (False, True):
        g = theory.sliding(f, SETS[0], stochastic=stochastic, known=KNOWN)
        assert (g.constants, g.kappa) == (KNOWN, 1.0)
        step = g.algorithm.step
        assert (step.rule, step.L, step.diameter) == (steps.LanZhou(stochastic), 2.0, 1.5)
        for t in (1, 2, 9):
            first, both = 6 / (t + 2) ** 2, (t + 1) * (t + 2)
            wanted = first + 9 / (2 * both) if stochastic else 15 / (2 * both)
            assert g.bound(t) == pytest.approx(2.0 * 1.5**2 * wanted, rel=1e-14)
        with pytest.raises(ValueError, match="t must be an integer >= 1, got 0"):
            g.bound(0)
    for t in (0, 1, 7):
        assert g.algorithm.gradient.b(t, 10) == RATIO**2 * (t + 3) ** 3  # no cap
    assert isinstance(g.algorithm.gradient, gradients.Minibatch)
    assert isinstance(theory.sliding(f, SETS[0], known=KNOWN).algorithm.gradient, gradients.Full)


def test_what_storc_asks_for(f):
    g = theory.storc(f, SETS[0], known=KNOWN)
    step = g.algorithm.step
    assert (step.rule, step.L, step.diameter) == (steps.HazanLuo(), 2.0, 1.5)
    begin = 0
    for stage in range(1, 5):
        length = int(np.ceil(2 ** (stage / 2 + 2)))
        for k in range(1, length + 1):
            t = begin + k - 1
            assert g.algorithm.gradient.b(t, 10) == length * (700 + 24 * RATIO * (k + 1))
            assert g.algorithm.gradient.is_snapshot(t) == (k == 1)
            assert g.bound(t) == 2.0 * 1.5**2 / 2**stage
        begin += length


@pytest.mark.parametrize("gradient", [gradients.Momentum(4, forgetting=0.3), gradients.PAGE(5)])
def test_what_frank_wolfe_sums(f, gradient):
    """h_{t+1} = (1 - gamma) h_t + gamma D s_t + gamma^2 L D^2 / 2, from h_0 = G D."""
    gamma = lambda t: 1 / (t + 3)  # noqa: E731
    g = theory.frank_wolfe(f, SETS[0], gradient, step_size=gamma, known=KNOWN)
    squares = theory.rates.variances(gradient, gamma, KNOWN, f.n_terms, 6)
    h = [6.0 * 1.5]
    for t in range(6):
        curved = gamma(t) ** 2 * 2.0 * 1.5**2 / 2
        h.append((1 - gamma(t)) * h[-1] + gamma(t) * 1.5 * squares[t] ** 0.5 + curved)
    np.testing.assert_allclose([g.bound(t) for t in range(7)], h, rtol=1e-14)
    assert g.algorithm.gradient is gradient
    assert [g.algorithm.step.step_size(t) for t in range(4)] == [gamma(t) for t in range(4)]
