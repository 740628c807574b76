"""Stopping anywhere and going on changes no bit: every preset, on every path there is for it."""

import numpy as np
import pytest

import adafw
from adafw import gradients, names, steps
from tests.paper.conftest import paths_of

#: All presets as they are, then those that have more to remember with other settings.
PRESETS = {
    entry.name: entry.make(learning_rate=0.1) if names.takes_rate(entry.make) else entry.make()
    for entry in names.ALGORITHMS
}
ALGORITHMS = PRESETS | {
    "MSFW": adafw.MSFW(batch_size=3),
    "LSVRFW": adafw.LSVRFW(batch_size=3, probability=0.2),
    "PAGEFW": adafw.PAGEFW(batch_size=3, probability=0.2),
    "LuFreundFW": adafw.LuFreundFW(batch_size=3),
    "heavy ball": adafw.Algorithm(gradients.CSFW(3), steps.FrankWolfeStep(averaging=0.3)),
    "SAGA, Template 3": adafw.Algorithm(gradients.SAGA(3), steps.AdaptiveStep(0.1)),
    "SCGS": adafw.SCGS(batch_size=5),
    "STORC": adafw.STORC(batch_size=5),
    "BoostFW, backtracking": adafw.BoostFW(steps.Backtracking()),
    "BoostCSFW": adafw.BoostCSFW(batch_size=5),
    "AFW, lazy, backtracking": adafw.AFW(steps.Backtracking(), lazy=True),
    "PFW, lazy": adafw.PFW(lazy=True),
    "BPCG, lazy": adafw.BPCG(lazy=True),
    "LSVRG, projected": adafw.Algorithm(gradients.LSVRG(3), steps.ProjectedStep(0.1)),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ball", [adafw.L1Ball(2.0), adafw.LInfBall(0.3)], ids=repr)
def test_a_saved_state_goes_on_bit_for_bit(name, ball, logistic, tmp_path):
    algorithm = ALGORITHMS[name]
    for path in paths_of(logistic, ball, algorithm):
        whole = adafw.minimize(logistic, ball, algorithm, seed=5, max_iterations=60, path=path)
        for stop in (1, 2, 17):
            part = adafw.minimize(logistic, ball, algorithm, seed=5, max_iterations=stop, path=path)
            part.state.save(tmp_path / "state.npz")
            state = adafw.State.load(tmp_path / "state.npz")
            rest = adafw.minimize(
                logistic, ball, algorithm, state=state, max_iterations=60, path=path
            )
            assert_same(rest, whole)


def assert_same(a, b):
    assert np.array_equal(a.x, b.x)
    assert a.trace[-1].gradient_evaluations == b.trace[-1].gradient_evaluations
    assert a.trace[-1].lmo_calls == b.trace[-1].lmo_calls
    for one, other in ((a.state.gradient, b.state.gradient), (a.state.step, b.state.step)):
        assert one.keys() == other.keys()
        for key in one:
            assert np.array_equal(one[key], other[key]), key


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
