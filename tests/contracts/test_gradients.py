"""What every gradient estimator promises. A new one is one line in the list."""

import numpy as np
import pytest

import adafw
from adafw import gradients

ESTIMATORS = [
    gradients.Full(),
    gradients.Minibatch(),
    gradients.Minibatch(7),
    gradients.SVRF(),
    gradients.SVRF(batch_size=3, k0=0),
    gradients.SPIDER(),
    gradients.ORGFW(),
    gradients.ORGFW(5, forgetting=0.3),
    gradients.CSFW(),
    gradients.CSFW(100),
    gradients.SAGA(),
    gradients.SAGA(7),
    gradients.Momentum(),
    gradients.Momentum(3, forgetting=0.2),
    gradients.LSVRG(),
    gradients.LSVRG(5, probability=0.3),
    gradients.PAGE(),
    gradients.PAGE(5, probability=lambda t: 1 / (t + 2)),
    gradients.LuFreund(),
    gradients.LuFreund(7, forgetting=0.5),
    gradients.StagedSVRG(),
    gradients.StagedSVRG(5),
    gradients.Minibatch(lambda t: 3 * (t + 1)),  # exact from t = 19 on
]
IDS = [repr(e) for e in ESTIMATORS]


def test_every_estimator_is_held_to_it(nothing_left_out):
    where = "ESTIMATORS of tests/contracts/test_gradients.py"
    nothing_left_out(gradients.GradientEstimator, "gradients", ESTIMATORS, where)


class Watched:
    """An index source that notes every call."""

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.calls = []
        self.coins = 0

    def integers(self, low, high, size):
        if size is None:
            assert (low, high) == (0, 2**53)
            assert not self.calls  # the coin comes before the batch
            self.coins += 1
        else:
            self.calls.append((low, high, size))
        return self.rng.integers(low, high, size=size)


def iterate(gradient, f, rng, T=40):
    """Estimates along a path that does not depend on them."""
    path = np.random.default_rng(1).normal(size=(T, 12)).cumsum(axis=0) / 20
    state = gradient.init(f, path[0])
    for t, x in enumerate(path):
        g, state = gradient.update(f, x, t, state, rng)
        yield t, x, g, state


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_at_most_one_draw_of_b_t_indices_an_iteration(gradient, logistic):
    rng = Watched()
    tossing = isinstance(gradient, gradients.LSVRG | gradients.PAGE)
    for t, _, _, state in iterate(gradient, logistic, rng):
        assert len(rng.calls) <= 1
        assert rng.coins == (t + 1 if tossing else 0)
        spent = gradient.spent(t, 60, state)
        assert spent <= gradient.evaluations(t, 60)
        if rng.calls:
            low, high, size = rng.calls.pop()
            assert (low, high) == (0, 60)
            assert spent in (size, 2 * size)
        else:
            assert spent == 60


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_inputs_and_former_estimates_are_left_alone(gradient, logistic):
    seen = []
    for _, x, g, _ in iterate(gradient, logistic, np.random.default_rng(0)):
        seen.append((x, x.copy(), g, g.copy()))
    for x, x_copy, g, g_copy in seen:
        assert np.array_equal(x, x_copy)
        assert np.array_equal(g, g_copy)


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_the_state_is_arrays_and_numbers(gradient, logistic):
    for *_, state in iterate(gradient, logistic, np.random.default_rng(0)):
        for value in state.values():
            assert isinstance(value, np.ndarray | int | float)


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=IDS)
def test_dtype_and_shape_are_those_of_x(gradient, regression):
    A, y = regression
    f = adafw.LinearModel(A.astype(np.float32), y, adafw.losses.Squared())
    x = np.zeros(12, np.float32)
    state, rng = gradient.init(f, x), np.random.default_rng(0)
    for t in range(20):
        g, state = gradient.update(f, x, t, state, rng)
        assert (g.dtype, g.shape) == (np.float32, (12,))


@pytest.mark.parametrize(
    "gradient",
    [gradients.Minibatch(2), gradients.SVRF(2), gradients.SPIDER(2), gradients.SAGA(6),
     gradients.LSVRG(2, probability=0.3), gradients.PAGE(2, probability=0.3)],
    ids=repr,
)  # fmt: skip
def test_the_mean_over_many_seeds_is_the_gradient(gradient, logistic):
    """Unbiased given the path; ORGFW, CSFW, Momentum and LuFreund are not."""
    mean, runs, rng = np.zeros((6, 12)), 2500, np.random.default_rng(0)
    for _ in range(runs):
        for t, _, g, _ in iterate(gradient, logistic, rng, T=6):
            mean[t] += g / runs
    path = iterate(gradient, logistic, rng, T=6)
    exact = np.array([logistic.gradient(x) for _, x, _, _ in path])
    assert np.abs(mean - exact).max() <= 0.02


@pytest.mark.parametrize("gradient", [gradients.SAGA(3), gradients.LuFreund(3)], ids=repr)
def test_the_kept_gradient_stays_the_sum_of_its_slopes(gradient, regression):
    A, y = regression
    f = adafw.LinearModel(A, y, adafw.losses.Squared())
    *_, (*_, state) = iterate(gradient, f, np.random.default_rng(0), T=200)
    assert np.allclose(state["gradient"], state["alpha"] @ A, rtol=0, atol=1e-12)
    assert (state["alpha"] != 0).all()


def test_an_exact_minibatch_draws_nothing_and_costs_m(logistic):
    """b_t >= m: the exact gradient, on an index stream that goes on as if nothing had happened."""
    grown = gradients.Minibatch(lambda t: 10 if t != 3 else 61)
    rng, same = np.random.default_rng(0), np.random.default_rng(0)
    for t, x, g, _ in iterate(grown, logistic, rng, T=6):
        batch = None if t == 3 else same.integers(0, 60, size=10)
        assert np.array_equal(g, logistic.gradient(x, batch))
        assert grown.evaluations(t, 60) == (60 if t == 3 else 10)


def test_saga_beyond_what_has_rows():
    f = adafw.UserSum(3, lambda x: 0.0, lambda x, batch: x)
    for algorithm, name in ((adafw.SAGAFW(), "SAGA"), (adafw.LuFreundFW(), "LuFreund")):
        with pytest.raises(TypeError, match=f"{name} needs an objective of terms"):
            adafw.minimize(f, adafw.L1Ball(1.0), algorithm, x0=np.zeros(2))


@pytest.mark.parametrize("kind", [gradients.LSVRG, gradients.PAGE])
def test_a_probability_is_one(kind):
    with pytest.raises(ValueError, match=r"probability must be a number >= 0 and <= 1, got 1\.5"):
        kind(probability=1.5)


@pytest.mark.parametrize("kind", [gradients.LSVRG, gradients.PAGE])
def test_counts_and_limits_follow_the_coin(kind, logistic):
    """The trace counts m where the coin asked for it; a limit on epochs is hardly exceeded."""
    algorithm = adafw.Algorithm(kind(4, probability=0.2), adafw.steps.FrankWolfeStep())
    counted = adafw.Counted(logistic)
    r = adafw.minimize(counted, adafw.L1Ball(1.0), algorithm, max_epochs=20, record_every=1)
    # The exact gradient and the value of each record are measured, not counted.
    measured = 60 * len(r.trace)
    assert r.trace[-1].gradient_evaluations == counted.gradients - measured
    assert 20 <= r.trace[-1].epoch < 21
    steps = np.diff(r.trace["gradient_evaluations"])
    assert set(steps.tolist()) == {8, 60}


@pytest.mark.parametrize("make", [gradients.LSVRG, gradients.PAGE])
def test_what_tossed_estimates_cost(make):
    """At most an exact gradient or two batches, whichever is more; in truth what the coin said."""
    small, large = make(3), make(30)
    assert [g.evaluations(1, 40) for g in (small, large)] == [40, 60]
    assert small.spent(1, 40, {"exact": 1}) == 40
    assert small.spent(1, 40, {"exact": 0}) == 6


def test_the_coin_of_lsvrg():
    by_size, given = gradients.LSVRG(10), gradients.LSVRG(10, probability=lambda t: t / 10)
    assert [by_size.is_exact(1, 40, toss) for toss in (0.2499, 0.25)] == [True, False]
    assert [given.is_exact(t, 40, 0.15) for t in (0, 1, 2)] == [True, False, True]
    assert by_size.is_exact(0, 40, 0.99)
