"""The theorems' schedules and bounds, against their formulas written out."""

import math
from itertools import product

import numpy as np
import pytest

import adafw
from adafw import gradients, losses, metrics, theory
from adafw.steps import AdaptiveStep

C = theory.Constants(smoothness=2.0, gradient_bound=6.0, diameter=1.5)
L, G, D = 2.0, 6.0, 1.5
BOUNDS = {"lower": lambda t: 2 - 1 / (t + 1), "upper": lambda t: 4 + 2 / (t + 1)}
KAPPA = 6.0
TIMES = (0, 1, 2, 7, 100)


def model(loss=None, seed=0):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((12, 3)), rng.choice([-1.0, 1.0], 12)
    return adafw.LinearModel(A, y, loss or losses.Squared())


def parts(guarantee):
    gradient, step = guarantee.algorithm.gradient, guarantee.algorithm.step
    assert isinstance(step, AdaptiveStep)
    assert isinstance(step.metric, metrics.Clipped)
    assert step.inner_gap is None
    assert guarantee.kappa == KAPPA
    for t in TIMES:
        assert step.metric.lower(t) == BOUNDS["lower"](t)
        assert step.metric.upper(t) == BOUNDS["upper"](t)
    return gradient, step


def test_theorem_3_1():
    g = theory.theorem_3_1(model(), adafw.L1Ball(1.0), inner_steps=3, constants=C, **BOUNDS)
    gradient, step = parts(g)
    assert type(gradient) is gradients.Minibatch
    for t in TIMES:
        batch = gradient.batch_size(t, 12)
        assert batch - 1 < (G * (t + 2) / (L * D)) ** 2 <= batch
        assert step.max_step(t) == 2 / (t + 2)
        assert step.learning_rate(t) == pytest.approx(BOUNDS["lower"](t) / L, rel=1e-15)
        if t >= 1:
            bound = 2 * L * D**2 * (3 + 1 + KAPPA) / (t + 1)
            assert g.bound(t) == pytest.approx(bound, rel=1e-14)
    assert gradient.batch_size(100, 12) > 12  # no cap
    assert (step.inner_steps, g.theorem, g.constants) == (3, "3.1", C)


@pytest.mark.parametrize("nu", [0.05, 0.3])
def test_theorem_3_3_with_open_end(nu):
    g = theory.theorem_3_3(
        model(), adafw.L1Ball(1.0), nu=nu, initial_error=2.5, constants=C, **BOUNDS
    )
    gradient, step = parts(g)
    # S by its first terms and the integral of the rest, which is off by less than one term.
    S = sum((s + 1) ** -(1 + nu) for s in range(10**5)) + (10**5 + 0.5) ** -nu / nu
    for t in TIMES:
        batch = gradient.batch_size(t, 12)
        assert batch - 1 < (G / (L * D)) ** 2 * (t + 1) <= batch
        assert step.max_step(t) == pytest.approx((t + 1) ** -(0.5 + nu), rel=1e-15)
        assert step.learning_rate(t) == pytest.approx(BOUNDS["lower"](t) / L, rel=1e-15)
        bound = (2.5 + L * D**2 * (5 + 1 + KAPPA / 2) * S) / (t + 1) ** (0.5 - nu)
        assert g.bound(t) == pytest.approx(bound, rel=1e-8)
    if nu == 0.05:
        assert pytest.approx(20.6, abs=0.05) == S  # the remark after the theorem


def test_theorem_3_3_with_a_horizon():
    T = 50
    g = theory.theorem_3_3(
        model(), adafw.L1Ball(1.0), horizon=T, initial_error=2.5, constants=C, **BOUNDS
    )
    gradient, step = parts(g)
    for t in (0, 1, T - 1):
        assert gradient.batch_size(t, 12) == math.ceil((G / (L * D)) ** 2 * T)
        assert step.max_step(t) == 1 / math.sqrt(T)
        assert step.learning_rate(t) == pytest.approx(BOUNDS["lower"](t) / L, rel=1e-15)
    bound = (2.5 + L * D**2 * (5 + 1 + KAPPA / 2)) / math.sqrt(T)
    assert g.bound(T - 1) == pytest.approx(bound, rel=1e-14)
    assert g.bound(0) > g.bound(20) > g.bound(T - 1)
    with pytest.raises(ValueError, match="t must be < horizon = 50, got 50"):
        g.bound(T)


def test_the_initial_error_of_theorem_3_3_is_bounded_by_the_gap():
    f, constraint = model(), adafw.L1Ball(1.0)
    x0 = np.array([0.2, -0.3, 0.0])
    grad = f.gradient(x0)
    gap = grad @ x0 + np.abs(grad).max()
    nonconvex = adafw.UserSum(f.n_terms, f.value, f.gradient, convex=False)
    make = {"horizon": 100, "constants": C, "x0": x0, **BOUNDS}
    known = theory.theorem_3_3(f, constraint, initial_error=gap, **make).bound(99)
    assert theory.theorem_3_3(f, constraint, **make).bound(99) == pytest.approx(known, rel=1e-14)
    more = theory.theorem_3_3(nonconvex, constraint, **make).bound(99)
    assert more == pytest.approx(known + L * D**2 / 2 / 10, rel=1e-13)


def test_a_start_beyond_the_minimum_by_rounding_has_no_initial_error():
    """The gap there is below 0 by rounding, too: nothing is left to gain."""
    f, constraint = model(), adafw.L1Ball(1.0)
    v = constraint.lmo(f.gradient(np.zeros(3)))
    x0 = v * (1 + 1e-13)
    slope = adafw.UserSum(1, lambda x: -float(v @ x), lambda x, batch=None: -v, convex=True)
    assert slope.gradient(x0) @ (x0 - constraint.lmo(slope.gradient(x0))) < 0
    make = {"horizon": 100, "constants": C, **BOUNDS}
    known = theory.theorem_3_3(slope, constraint, initial_error=0.0, **make).bound(99)
    assert theory.theorem_3_3(slope, constraint, x0=x0, **make).bound(99) == known


@pytest.mark.parametrize(("k0", "factor"), [(0, 24), (1, 40), (4, 264)])
def test_theorem_3_5(k0, factor):
    g = theory.theorem_3_5(model(), adafw.L1Ball(1.0), k0=k0, inner_steps=2, constants=C, **BOUNDS)
    gradient, step = parts(g)
    assert type(gradient) is gradients.SVRF
    snapshots = [t for t in range(200) if gradient.is_snapshot(t)]
    assert snapshots == [s for k in range(9) if (s := 2 ** (k + k0) - 2**k0) < 200]
    for t in TIMES:
        batch = factor * (2 + 1 + KAPPA) * (t + 2)
        assert gradient.batch_size(t, 12) == math.ceil(batch)
        assert step.max_step(t) == 2 / (t + 2)
        assert step.learning_rate(t) == pytest.approx(BOUNDS["lower"](t) / L, rel=1e-15)
        if t >= 1:
            bound = 2 * L * D**2 * (2 + 1 + KAPPA) / (t + 2)
            assert g.bound(t) == pytest.approx(bound, rel=1e-14)


def test_theorem_3_7():
    f, constraint = model(losses.Logistic()), adafw.L1Ball(1.0)
    c = theory.data_constants(f, constraint)
    K, m, b = 2, 12, 5
    g = theory.theorem_3_7(f, constraint, batch_size=b, inner_steps=K, **BOUNDS)
    gradient, step = parts(g)
    assert type(gradient) is gradients.CSFW
    assert g.constants == c
    be = m * (1 - (1 - 1 / m) ** b)
    A2, D1, Dinf, D2, Lc = c.operator_norm, c.data_diameter_1, c.data_diameter_inf, c.diameter, 0.25
    start = (1 - be / m) * np.abs(f.slopes(np.zeros(3))).sum() / m
    for t in TIMES:
        assert gradient.batch_size(t, m) == b
        assert step.max_step(t) == 2 / (t + 2)
        eta = m * BOUNDS["lower"](t) / (Lc * A2**2)
        assert step.learning_rate(t) == pytest.approx(eta, rel=1e-14)
        if t >= 1:
            first = 4 * K * (K + 1) * D1 * Dinf * (1 / be - 1 / m) + KAPPA * A2**2 * D2**2 / m
            second = 2 * (K + 1) * Dinf * (m / be) ** 2 / (t * (t + 1))
            bound = 2 * Lc / (t + 1) * first + second * (start + 16 * K * Lc * D1 / be)
            assert g.bound(t) == pytest.approx(bound, rel=1e-13)
    assert theory.theorem_3_7(f, constraint, **BOUNDS).algorithm.gradient.batch_size(0, m) == 1


def test_effective_batch_is_the_mean_number_of_different_draws():
    for m, b in ((1, 3), (2, 1), (3, 4), (5, 3)):
        mean = np.mean([len(set(batch)) for batch in product(range(m), repeat=b)])
        assert theory.effective_batch(b, m) == pytest.approx(mean, rel=1e-13)
    assert theory.effective_batch(3, 10**12) == pytest.approx(3, rel=1e-11)


def test_the_algorithms_run_and_can_be_resumed():
    f, constraint = model(losses.Logistic()), adafw.L2Ball(1.0)
    for theorem in (theory.theorem_3_1, theory.theorem_3_3, theory.theorem_3_5, theory.theorem_3_7):
        algorithm = theorem(f, constraint, lower=1.0, upper=2.0).algorithm
        whole = adafw.minimize(f, constraint, algorithm, max_iterations=6)
        half = adafw.minimize(f, constraint, algorithm, max_iterations=3)
        rest = adafw.minimize(f, constraint, algorithm, max_iterations=6, state=half.state)
        np.testing.assert_array_equal(rest.x, whole.x)
        assert str(algorithm).split()[-1] in theorem.__name__.replace("_", ".")


NONCONVEX = adafw.UserSum(3, lambda x: 0.0, lambda x, batch: x)
WIDTH = {"lower": 1.0, "upper": 2.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.theorem_3_1(NONCONVEX, adafw.L1Ball(1), **WIDTH), "about convex"),
        (lambda: theory.theorem_3_5(NONCONVEX, adafw.L1Ball(1), **WIDTH), "about convex"),
        (
            lambda: theory.theorem_3_7(
                adafw.UserSum(3, lambda x: 0.0, lambda x, batch: x, convex=True),
                adafw.L1Ball(1),
                **WIDTH,
            ),
            "CSFW needs an objective of terms",
        ),
        (
            lambda: theory.theorem_3_1(model(), adafw.L1Ball(1), metric=metrics.Adam(), **WIDTH),
            "steps without momentum, which Adam",
        ),
        (
            lambda: theory.theorem_3_1(model(), adafw.L1Ball(1), lower=2.0, upper=1.0),
            "lower must stay <= upper",
        ),
        (
            lambda: theory.theorem_3_3(model(), adafw.L1Ball(1), nu=0.5, **WIDTH),
            "nu must be a number > 0 and < 0.5, got 0.5",
        ),
        (
            lambda: theory.theorem_3_3(NONCONVEX, adafw.L1Ball(1), constants=C, **WIDTH),
            "x0 must be given: neither",
        ),
        (
            lambda: theory.theorem_3_1(model(), adafw.L1Ball(1), **WIDTH).bound(0),
            "t must be an integer >= 1, got 0",
        ),
        (
            lambda: theory.theorem_3_7(model(), adafw.L1Ball(1), batch_size=0, **WIDTH),
            "batch_size must be an integer >= 1, got 0",
        ),
    ],
)
def test_refuses_what_the_theorems_do_not_cover(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


class Wave(losses.Loss):
    """Not convex."""

    curvature = 1.0
    convex = False

    def value(self, z, y):
        return np.cos(z)

    def slope(self, z, y):
        return -np.sin(z)


def test_terms_that_are_not_convex_are_left_to_theorem_3_3():
    known = theory.DataConstants(1.0, 1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"Theorem 3\.7 is about convex objectives"):
        theory.theorem_3_7(model(Wave()), adafw.L1Ball(1), constants=known, **WIDTH)
    assert theory.theorem_3_3(model(Wave()), adafw.L1Ball(1), constants=C, **WIDTH).bound(3) > 0
