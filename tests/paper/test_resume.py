"""Stopping anywhere and going on changes no bit: every estimator and step that is new here."""

import numpy as np
import pytest

import adafw
from adafw import gradients, steps

ALGORITHMS = {
    "SAGAFW": adafw.SAGAFW(),
    "MSFW": adafw.MSFW(batch_size=3),
    "LSVRFW": adafw.LSVRFW(batch_size=3, probability=0.2),
    "PAGEFW": adafw.PAGEFW(batch_size=3, probability=0.2),
    "LuFreundFW": adafw.LuFreundFW(batch_size=3),
    "SFW": adafw.SFW(),
    "heavy ball": adafw.Algorithm(gradients.CSFW(3), steps.FrankWolfeStep(averaging=0.3)),
    "SAGA, Template 3": adafw.Algorithm(gradients.SAGA(3), steps.AdaptiveStep(0.1)),
    "CGS": adafw.CGS(),
    "SCGS": adafw.SCGS(batch_size=5),
    "STORC": adafw.STORC(batch_size=5),
    "BoostFW": adafw.BoostFW(),
    "BoostFW, backtracking": adafw.BoostFW(steps.Backtracking()),
    "BoostCSFW": adafw.BoostCSFW(batch_size=5),
    "AFW": adafw.AFW(),
    "AFW, lazy, backtracking": adafw.AFW(steps.Backtracking(), lazy=True),
    "PFW": adafw.PFW(),
    "PFW, lazy": adafw.PFW(lazy=True),
    "BPCG": adafw.BPCG(),
    "BPCG, lazy": adafw.BPCG(lazy=True),
    "LSVRG, projected": adafw.Algorithm(gradients.LSVRG(3), steps.ProjectedStep(0.1)),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ball", [adafw.L1Ball(2.0), adafw.LInfBall(0.3)], ids=repr)
@pytest.mark.parametrize("stop", [1, 2, 17])
def test_a_saved_state_goes_on_bit_for_bit(name, stop, ball, logistic, tmp_path):
    algorithm = ALGORITHMS[name]
    whole = adafw.minimize(logistic, ball, algorithm, seed=5, max_iterations=60)
    part = adafw.minimize(logistic, ball, algorithm, seed=5, max_iterations=stop)
    part.state.save(tmp_path / "state.npz")
    state = adafw.State.load(tmp_path / "state.npz")
    rest = adafw.minimize(logistic, ball, algorithm, state=state, max_iterations=60)
    assert np.array_equal(rest.x, whole.x)
    assert rest.trace[-1].gradient_evaluations == whole.trace[-1].gradient_evaluations
    assert rest.trace[-1].lmo_calls == whole.trace[-1].lmo_calls
    for part_a, part_b in ((rest.state.gradient, whole.state.gradient),
                           (rest.state.step, whole.state.step)):  # fmt: skip
        assert part_a.keys() == part_b.keys()
        for key in part_a:
            assert np.array_equal(part_a[key], part_b[key]), key


def test_a_heavy_ball_takes_no_fast_path(logistic):
    """The kernels know steps without memory only."""
    ball = adafw.L1Ball(2.0)
    xs = [
        adafw.minimize(
            logistic, ball, adafw.Algorithm(gradients.CSFW(5), step), max_iterations=30
        ).x
        for step in (steps.FrankWolfeStep(), steps.FrankWolfeStep(averaging=0.1))
    ]
    assert np.abs(xs[0] - xs[1]).max() > 1e-3
    with pytest.raises(TypeError, match="step_size must be a schedule where averaging is one"):
        steps.FrankWolfeStep(steps.LineSearch(), averaging=0.1)
