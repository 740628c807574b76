"""Where two algorithms of the paper must be one and the same."""

from dataclasses import replace

import numpy as np
import pytest

import adafw
from adafw import gradients, metrics, steps
from adafw.schedules import OpenLoop
from tests.paper.conftest import paths_of

SETS = [adafw.L1Ball(2.0), adafw.LInfBall(0.4), adafw.L2Ball(1.0), adafw.Box(-0.3, 0.5),
        adafw.Simplex(2.0), adafw.UnitSimplex(2.0)]  # fmt: skip
ESTIMATORS = [gradients.Full(), gradients.Minibatch(), gradients.SVRF(), gradients.SPIDER(),
              gradients.ORGFW(), gradients.CSFW(), gradients.SAGA(), gradients.LSVRG(7),
              gradients.PAGE(7), gradients.LuFreund(forgetting=OpenLoop(2, 1))]  # fmt: skip


class EveryIndex:
    """An index source that always returns the whole range, in some order."""

    def integers(self, low, high, size):
        if size is None:  # a coin that never asks for an exact gradient
            return high - 1
        return np.random.default_rng(size).permutation(high)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("gradient", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_with_every_index_in_the_batch_each_estimator_is_frank_wolfe(
    gradient, constraint, logistic
):
    algorithm = adafw.Algorithm(gradient, steps.FrankWolfeStep())
    fw = adafw.minimize(logistic, constraint, adafw.FW(), max_iterations=60)
    for path in paths_of(logistic, constraint, algorithm):
        r = adafw.minimize(
            logistic, constraint, algorithm, seed=EveryIndex(), max_iterations=60, path=path
        )
        assert np.abs(r.x - fw.x).max() <= 1e-9 * constraint.scale


@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_momentum_of_every_index_is_a_heavy_ball(constraint, logistic):
    momentum = gradients.Momentum(forgetting=OpenLoop())
    heavy = steps.FrankWolfeStep(averaging=OpenLoop())
    a, b = (
        adafw.minimize(logistic, constraint, algorithm, seed=EveryIndex(), max_iterations=60)
        for algorithm in (adafw.Algorithm(momentum, steps.FrankWolfeStep()),
                          adafw.Algorithm(gradients.Full(), heavy))
    )  # fmt: skip
    assert np.abs(a.x - b.x).max() <= 1e-9 * constraint.scale


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("gradient", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("step_size", [lambda t: 2 / (t + 2), lambda t: 1 / (t + 1), 0.1])
def test_template_1_is_template_3_with_one_step_and_infinite_rate(
    gradient, constraint, step_size, logistic
):
    if isinstance(gradient, gradients.LuFreund):  # it follows the steps that it knows of
        gradient = replace(gradient, step_size=step_size)
    template_1 = steps.FrankWolfeStep(step_size)
    template_3 = steps.AdaptiveStep(np.inf, inner_steps=1, max_step=step_size)
    pair = [adafw.Algorithm(gradient, step) for step in (template_1, template_3)]
    for path in paths_of(logistic, constraint, pair[0]):
        xs = [
            adafw.minimize(logistic, constraint, algorithm, seed=2, max_iterations=40, path=path).x
            for algorithm in pair
        ]
        assert np.array_equal(*xs)


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize("metric", [metrics.AdaGrad(), metrics.AMSGrad()], ids=["ada", "ams"])
def test_many_inner_steps_approach_the_projected_step(constraint, metric, logistic):
    x = constraint.start((12,), float)
    g = logistic.gradient(x)
    far = steps.ProjectedStep(0.2, metric)
    exact, _ = far.update(logistic, constraint, x, g, 0, far.init(x))
    errors = []
    for k in (1, 10, 100, 3000):
        near = steps.AdaptiveStep(0.2, inner_steps=k, metric=metric)
        y, _ = near.update(logistic, constraint, x, g, 0, near.init(x))
        errors.append(np.abs(y - exact).max())
    assert errors[-1] <= 2e-2 * constraint.scale
    assert errors[-1] <= errors[0] + 1e-12
    assert errors[-1] <= errors[1] + 1e-12


@pytest.mark.parametrize("constraint", SETS, ids=repr)
@pytest.mark.parametrize(
    "algorithm",
    [adafw.FW(), adafw.SFW(), adafw.CSFW(), adafw.AdaSVRF(0.1), adafw.AdaCSFW(0.1),
     adafw.AdamSFW(0.01), adafw.AdaGrad(0.1), adafw.AMSGrad(0.01)],
    ids=str,
)  # fmt: skip
def test_the_gap_bounds_the_distance_to_the_minimum(algorithm, constraint, logistic):
    best = adafw.minimize(
        logistic, constraint, adafw.AdaGrad(0.5, gradient=gradients.Full()), max_iterations=3000
    )
    for path in paths_of(logistic, constraint, algorithm):
        r = adafw.minimize(
            logistic, constraint, algorithm, max_epochs=30, record_every=1, path=path
        )
        gap, value = r.trace["gap"], r.trace["value"]
        assert (gap >= 0).all()
        assert (value - best.value <= gap + 1e-12).all()
        assert r.lower_bound <= best.value + 1e-12
        assert (r.trace["violation"] <= 1e-14).all()
        assert np.array_equal(r.trace["lower_bound"], np.maximum.accumulate(value - gap))


def test_an_estimate_of_zero_moves_nothing():
    f = adafw.UserSum(4, lambda x: 0.0, lambda x, batch: np.zeros_like(x), convex=True)
    x0 = np.array([0.3, -0.2])
    for algorithm in (adafw.FW(), adafw.SFW(), adafw.AdaSFW(1.0), adafw.AdaGrad(1.0)):
        r = adafw.minimize(f, adafw.L1Ball(1.0), algorithm, x0=x0, max_iterations=5)
        assert np.array_equal(r.x, x0)
        assert r.gap == 0


def test_gradient_of_csfw_stays_the_sum_of_its_slopes():
    """Repeated indices in a batch would make g drift from sum alpha_i a_i (Algorithm 6)."""
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(9, 4)), rng.normal(size=9)
    f = adafw.LinearModel(A, y, adafw.losses.Squared())
    ball, algorithm = adafw.L1Ball(1.0), adafw.CSFW(batch_size=20)
    for path in paths_of(f, ball, algorithm):
        r = adafw.minimize(f, ball, algorithm, max_iterations=199, path=path)
        state = r.state.gradient
        assert np.allclose(state["gradient"], state["alpha"] @ A, rtol=0, atol=1e-13)
