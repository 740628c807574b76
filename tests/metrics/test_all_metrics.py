"""Every metric against its textbook loop, and what all of them have in common."""

import dataclasses
import math

import numpy as np
import pytest

from adafw import metrics
from adafw.arrays import LONG

T = 12


def reference(name, gradients, p):
    """(m_t, h_t) for every t, one coordinate at a time in Python floats."""
    columns = [[float(g[i]) for g in gradients] for i in range(len(gradients[0]))]
    results = [list(SCALAR[name](column, p)) for column in columns]
    return [
        (np.array([r[t][0] for r in results]), np.array([r[t][1] for r in results]))
        for t in range(len(gradients))
    ]


def adagrad(gs, p):
    for t, g in enumerate(gs):
        yield g, p["offset"] + math.sqrt(sum(x * x for x in gs[: t + 1]))


def rmsprop(gs, p):
    for t, g in enumerate(gs):
        terms = [(1 - p["beta"]) * p["beta"] ** (t - k) * gs[k] ** 2 for k in range(t + 1)]
        yield g, p["offset"] + math.sqrt(sum(terms))


def adadelta(gs, p):
    s = u = 0.0
    for g in gs:
        s = p["beta"] * s + (1 - p["beta"]) * g * g
        step = math.sqrt(u + p["epsilon"]) / math.sqrt(s + p["epsilon"]) * g
        yield g, math.sqrt(s + p["epsilon"]) / math.sqrt(u + p["epsilon"])
        u = p["beta"] * u + (1 - p["beta"]) * step * step


def average(values, beta, t):
    return sum((1 - beta) * beta ** (t - k) * values[k] for k in range(t + 1))


def adam(gs, p):
    beta_m, beta_s = p["betas"]
    for t in range(len(gs)):
        m = average(gs, beta_m, t) / (1 - beta_m ** (t + 1))
        s = average([g * g for g in gs], beta_s, t) / (1 - beta_s ** (t + 1))
        yield m, p["offset"] + math.sqrt(s)


def amsgrad(gs, p):
    beta_m, beta_s = p["betas"]
    squares = [g * g for g in gs]
    for t in range(len(gs)):
        largest = max(average(squares, beta_s, k) for k in range(t + 1))
        yield average(gs, beta_m, t), p["offset"] + math.sqrt(largest)


def adabound(gs, p):
    for t, (m, h) in enumerate(adam(gs, p)):
        yield m, 1 / min(max(1 / h, p["lower"](t)), p["upper"](t))


def lower_rate(t):
    return 0.3 - 0.3 / (0.5 * (t + 1) + 1)


def upper_rate(t):
    return 0.3 + 0.3 / (0.5 * (t + 1))


SCALAR = {
    "AdaGrad": adagrad,
    "RMSProp": rmsprop,
    "AdaDelta": adadelta,
    "Adam": adam,
    "AMSGrad": amsgrad,
    "AdaBound": adabound,
}
CASES = [
    ("AdaGrad", {"offset": 1e-8}),
    ("AdaGrad", {"offset": 0.5}),
    ("RMSProp", {"beta": 0.9, "offset": 1e-8}),
    ("RMSProp", {"beta": 0.0, "offset": 0.1}),
    ("AdaDelta", {"beta": 0.95, "epsilon": 1e-6}),
    ("AdaDelta", {"beta": 0.5, "epsilon": 1e-2}),
    ("Adam", {"betas": (0.9, 0.99), "offset": 1e-8}),
    ("Adam", {"betas": (0.0, 0.5), "offset": 1e-3}),
    ("AMSGrad", {"betas": (0.9, 0.99), "offset": 1e-8}),
    (
        "AdaBound",
        {"lower": lower_rate, "upper": upper_rate, "betas": (0.9, 0.99), "offset": 1e-8},
    ),
]
DEFAULTS = {
    "AdaGrad": metrics.AdaGrad(),
    "RMSProp": metrics.RMSProp(),
    "AdaDelta": metrics.AdaDelta(),
    "Adam": metrics.Adam(),
    "AMSGrad": metrics.AMSGrad(),
    "AdaBound": metrics.AdaBound(lower_rate, upper_rate),
    "Clipped": metrics.Clipped(metrics.RMSProp(), 0.5, 2.0),
}


def sequence(seed=0, n=6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    scales = np.array([1e-6, 1.0, 1e3, 1.0, 1.0, 1e-3])[:n]
    gradients = rng.standard_normal((T, n)) * scales
    gradients[:, 3] = 0.0  # a coordinate that never moves
    gradients[::2, 4] = 0.0  # and one that rests every other time
    return gradients.astype(dtype)


def run(metric, gradients):
    state = metric.init(np.zeros_like(gradients[0]))
    out = []
    for t, g in enumerate(gradients):
        m, h, state = metric.update(g, t, state)
        out.append((m.copy(), h.copy()))
    return out


def test_every_metric_is_tested(nothing_left_out):
    where = "DEFAULTS of tests/metrics/test_all_metrics.py"
    nothing_left_out(metrics.Metric, "metrics", DEFAULTS.values(), where)


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_equals_the_textbook_loop(name, parameters):
    gradients = sequence()
    got = run(getattr(metrics, name)(**parameters), gradients)
    for (m, h), (m_ref, h_ref) in zip(got, reference(name, gradients, parameters), strict=True):
        np.testing.assert_allclose(m, m_ref, rtol=1e-12, atol=0)
        np.testing.assert_allclose(h, h_ref, rtol=1e-12, atol=0)


def test_defaults_are_those_of_the_design():
    assert metrics.RMSProp() == metrics.RMSProp(0.9, 1e-8)
    assert metrics.AdaDelta() == metrics.AdaDelta(0.95, 1e-6)
    assert metrics.Adam() == metrics.Adam((0.9, 0.99), 1e-8)
    assert metrics.AMSGrad() == metrics.AMSGrad((0.9, 0.99), 1e-8)
    assert metrics.AdaGrad() == metrics.AdaGrad(1e-8)
    assert metrics.AdaBound(0.1, 2.0) == metrics.AdaBound(0.1, 2.0, (0.9, 0.99), 1e-8)


@pytest.mark.parametrize("name", DEFAULTS)
def test_never_changes_and_can_be_a_key(name):
    """A run keeps what it was told; equal ones are found by one another."""
    metric = DEFAULTS[name]
    field = dataclasses.fields(metric)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(metric, field, 0.5)
    assert {metric: 1}[dataclasses.replace(metric)] == 1


@pytest.mark.parametrize("name", DEFAULTS)
def test_acts_on_each_coordinate_alone(name):
    gradients = sequence()
    whole = run(DEFAULTS[name], gradients)
    for part in (slice(0, 1), slice(1, 6), np.array([4, 2, 0])):
        for (m, h), (m_part, h_part) in zip(
            whole, run(DEFAULTS[name], gradients[:, part]), strict=True
        ):
            np.testing.assert_array_equal(m[part], m_part)
            np.testing.assert_array_equal(h[part], h_part)


@pytest.mark.parametrize("name", DEFAULTS)
def test_is_odd_in_m_and_even_in_h(name):
    gradients = sequence()
    for (m, h), (m_minus, h_minus) in zip(
        run(DEFAULTS[name], gradients), run(DEFAULTS[name], -gradients), strict=True
    ):
        np.testing.assert_array_equal(m, -m_minus)
        np.testing.assert_array_equal(h, h_minus)


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_h_is_positive_and_keeps_dtype_and_shape(name, dtype):
    gradients = sequence(dtype=dtype).reshape(T, 2, 3)
    for m, h in run(DEFAULTS[name], gradients):
        assert m.dtype == h.dtype == dtype
        assert m.shape == h.shape == (2, 3)
        assert (h > 0).all()
        assert np.isfinite(h).all()


@pytest.mark.parametrize("name", DEFAULTS)
def test_momentum_is_declared_truly(name):
    gradients = sequence()
    momenta = np.array([m for m, _ in run(DEFAULTS[name], gradients)])
    assert np.array_equal(momenta, gradients) is not DEFAULTS[name].momentum


@pytest.mark.parametrize("name", DEFAULTS)
def test_leaves_the_gradient_alone(name):
    gradients = sequence()
    kept = gradients.copy()
    run(DEFAULTS[name], gradients)
    np.testing.assert_array_equal(gradients, kept)


@pytest.mark.parametrize("name", DEFAULTS)
def test_clipping_wide_changes_nothing_and_clipping_acts_on_h_alone(name):
    gradients = sequence()
    plain = run(DEFAULTS[name], gradients)
    wide = run(metrics.Clipped(DEFAULTS[name], 1e-300, 1e300), gradients)
    narrow = run(metrics.Clipped(DEFAULTS[name], 0.7, 0.9), gradients)
    for (m, h), (m_wide, h_wide), (m_narrow, h_narrow) in zip(plain, wide, narrow, strict=True):
        np.testing.assert_array_equal(h, h_wide)
        np.testing.assert_array_equal(np.clip(h, 0.7, 0.9), h_narrow)
        np.testing.assert_array_equal(m, m_wide)
        np.testing.assert_array_equal(m, m_narrow)


def test_adam_starts_without_bias():
    g = np.array([2.0, -3.0, 0.0])
    for metric in (metrics.Adam(offset=1e-3), metrics.AdaBound(1e-9, 1e9, offset=1e-3)):
        m, h, _ = metric.update(g, 0, metric.init(g))
        np.testing.assert_allclose(m, g, rtol=1e-15)
        np.testing.assert_allclose(h, 1e-3 + np.abs(g), rtol=1e-15)


def test_adabound_closes_in_on_one_rate():
    metric = metrics.AdaBound(lambda t: 0.5 - 0.4 / (t + 1), lambda t: 0.5 + 0.4 / (t + 1))
    state = metric.init(np.zeros(6))
    for t, g in enumerate(np.tile(sequence(), (200, 1))):
        _, h, state = metric.update(g, t, state)
    np.testing.assert_allclose(1 / h, 0.5, rtol=1e-3)


def test_adagrad_never_shrinks_and_rmsprop_forgets():
    gradients = np.vstack([np.full((1, 1), 10.0), np.full((T, 1), 0.1)])
    h = [h[0] for _, h in run(metrics.AdaGrad(), gradients)]
    assert h == sorted(h)
    h = [h[0] for _, h in run(metrics.RMSProp(), gradients)]
    assert h == sorted(h, reverse=True)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: metrics.RMSProp(beta=1.0), "beta must be a number >= 0 and < 1, got 1.0"),
        (lambda: metrics.RMSProp(offset=0.0), "offset must be a number that is finite and > 0"),
        (lambda: metrics.AdaDelta(beta=-0.1), "beta must be a number >= 0 and < 1, got -0.1"),
        (lambda: metrics.AdaDelta(epsilon=0), "epsilon must be a number that is finite and > 0"),
        (
            lambda: metrics.Adam(betas=(0.9, 0.81)),
            r"beta_m < sqrt\(beta_s\) < 1, got \(0.9, 0.81\)",
        ),
        (lambda: metrics.AdaBound(0.1, 1, betas=(0.5, 1.0)), r"beta_m < sqrt\(beta_s\) < 1"),
        (lambda: metrics.AdaBound(0.0, 1.0), "lower must be a number that is finite and > 0"),
        (lambda: metrics.AdaBound(2.0, 1.0), "at t = 0 they are 2 and 1"),
    ],
)
def test_refuses_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_beta_m_may_exceed_beta_s():
    """It is the root of beta_s that bounds it."""
    for betas in ((0.9, 0.85), (0.5, 0.26), (0.0, 1e-9)):
        assert metrics.AMSGrad(betas=betas).betas == betas
    for betas in ((0.93, 0.85), (0.5, 0.25), (0.0, 0.0)):
        with pytest.raises(ValueError, match="beta_m < sqrt"):
            metrics.AMSGrad(betas=betas)


def test_adabound_refuses_bounds_that_part_later():
    metric = metrics.AdaBound(0.1, lambda t: 1.0 if t != 3 else 2.0)
    with pytest.raises(ValueError, match=r"at t = 3 they are 0\.1 and 2, at t = 2 0\.1 and 1"):
        run(metric, np.ones((5, 1)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_adagrad_of_long_vectors_is_that_of_short_ones(dtype):
    """From some length on one pass does it all; offset, squares and their sum are the same."""
    rng = np.random.default_rng(0)
    metric, x = metrics.AdaGrad(offset=0.5), np.zeros(LONG + 3, dtype)
    metric.prepare(x)
    state, squares = metric.init(x), np.zeros_like(x)
    for t in range(3):
        g = rng.standard_normal(x.size).astype(dtype)
        m, h, state = metric.update(g, t, state)
        squares += g * g
        assert h.dtype == dtype
        np.testing.assert_array_equal(m, g)
        np.testing.assert_allclose(state["sum_squares"], squares, rtol=1e-6)
        np.testing.assert_allclose(h, 0.5 + np.sqrt(squares), rtol=1e-6)
    strided = rng.standard_normal((x.size, 2)).astype(dtype)[:, 0]
    _, h, state = metric.update(strided, 3, state)
    np.testing.assert_allclose(h, 0.5 + np.sqrt(squares + strided**2), rtol=1e-6)


def test_what_a_clipped_metric_needs_is_prepared():
    told = []

    class Slow(metrics.RMSProp):
        def prepare(self, x):
            told.append(x)

    x = np.zeros(3)
    metrics.Clipped(Slow(), 1.0, 2.0).prepare(x)
    assert [each is x for each in told] == [True]
    assert metrics.RMSProp().prepare(x) is None


def test_wide_bounds_leave_adam_with_the_same_parameters():
    how = {"betas": (0.5, 0.7), "offset": 0.01}
    ours, adam = metrics.AdaBound(1e-9, 1e9, **how), metrics.Adam(**how)
    states = ours.init(np.zeros(3)), adam.init(np.zeros(3))
    for t, g in enumerate(np.random.default_rng(0).normal(size=(5, 3))):
        m, h, _ = ours.update(g, t, states[0])
        wanted_m, wanted_h, _ = adam.update(g, t, states[1])
        np.testing.assert_array_equal(m, wanted_m)
        np.testing.assert_array_equal(h, wanted_h)
