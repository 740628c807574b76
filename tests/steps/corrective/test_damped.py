"""What second-order correctors share: weights, positions, damped steps, how exact models are."""

from typing import Any

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.objectives import Line
from adafw.steps.corrective.curvature import Hessian, View, view
from adafw.steps.corrective.damped import at, descend, forcing, weighed
from adafw.steps.spectral import backtrack


def model():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 5))
    return adafw.LinearModel(A, np.where(rng.random(40) < 0.5, 1.0, -1.0), losses.Logistic())


def test_a_position_knows_its_predictions_and_its_value():
    f, x = model(), np.arange(5.0)
    here = at(view(f), x)
    assert here.x is x
    np.testing.assert_allclose(here.z, f.rows.array @ x)
    assert here.value == f.value(x)


def test_weights_are_computed_once_and_anew_where_a_state_holds_others():
    f, x, state = model(), np.zeros(5), {}
    found = weighed(view(f), x, state)
    np.testing.assert_allclose(found, np.mean(f.rows.array**2, axis=0))
    assert state["weights"] is found
    mine = np.arange(1.0, 6.0)
    assert weighed(view(f), x, {"weights": mine}) is mine
    damaged: list[Any] = [
        np.ones(4), np.ones(5, np.float32), np.array([1.0, 1, 0, 1, 1]), -mine, "words", 3.0,
    ]  # fmt: skip
    for other in damaged:
        state = {"weights": other}
        np.testing.assert_array_equal(weighed(view(f), x, state), found)
        np.testing.assert_array_equal(state["weights"], found)


def test_models_are_the_more_exact_the_faster_gaps_fall():
    state: Any = {}
    assert forcing(8.0, state) == 0.3
    for gap, share in ((4.0, 0.3), (0.8, 0.2), (0.004, 0.03), (0.003, 1e-3), (0.0015, 0.3)):
        assert forcing(gap, state) == pytest.approx(share)
        assert state["gap"] == gap
    for last in (0.0, -1.0):
        assert forcing(1.0, {"gap": last}) == 0.3


class Hinge(View):
    """f = z^2 / 2, of z < 0 800 z^2, with z = 2 x + 1: models do not know what they will meet."""

    def __init__(self):
        self.models: list[Any] = []
        self.predicted = 0

    def weights(self, x):
        return np.ones_like(x)

    def predict(self, x):
        self.predicted += 1
        return 2 * x

    def predictions(self, x):
        return 2 * x + 1

    def value(self, z):
        return float(np.where(z > 0, z**2, (40 * z) ** 2).sum() / 2)

    def gradient(self, z):
        return 2 * np.where(z > 0, z, 1600 * z)

    def hessian(self, z, weights, moves=()):
        self.models.append([np.array(move) for move in moves])
        return Hessian(lambda d: (4 * d, 2 * d), weights)


def run(ways, x=1.0, moves="known"):
    """`descend` from x where the n-th model is minimised at the n-th of `ways`."""
    seen, ways = Hinge(), iter(ways)
    here = at(seen, np.array([x]))

    def minimise(h):
        y = np.array([next(ways)])
        known = {"known": 2 * (y - here.x), "none": None, "empty": np.empty(0)}
        return y, known[moves]

    g = seen.gradient(here.z)
    return seen, here, descend(seen, adafw.LInfBall(3.0), here, g, np.ones(1), minimise)


@pytest.mark.parametrize("moves", ["known", "none", "empty"])
def test_a_step_that_descends_is_taken_whole(moves):
    seen, _, there = run([-0.4], moves=moves)
    assert there.x.tolist() == [-0.4]  # as it is, not x + (y - x)
    np.testing.assert_allclose(there.z, [0.2])
    assert there.value == pytest.approx(0.02)
    assert seen.models == [[]]
    assert seen.predicted == (moves != "known")


def test_a_step_that_goes_too_far_is_cut():
    _, here, there = run([-0.7])  # z = -0.4 is as high as 16
    assert there.value < here.value
    gamma = float((there.x[0] - 1) / -1.7)
    assert 0.1 <= gamma < 1
    np.testing.assert_allclose(there.z, 2 * there.x + 1)
    assert there.value == pytest.approx(Hinge().value(there.z))


def test_curvature_met_where_a_step_is_cut_short_is_told_to_the_next_model():
    """Three times as far as f descended, at most the whole step; four models, the last is taken."""
    seen, here, there = run([-60.0, -30.0, -20.0, -15.0, 0.0])
    assert [len(moves) for moves in seen.models] == [0, 1, 2, 3]
    for y, told in zip((-60.0, -30.0, -20.0), seen.models[3], strict=True):
        move, slope = 2 * (y - 1), 2 * 3.0 * (y - 1)
        line = Line(lambda gamma, move=move: seen.value(here.z + gamma * move), lambda gamma: 0.0)
        gamma = backtrack(line, here.value, here.value, slope, np.dtype(float))
        assert 0 < gamma < 0.1
        assert told[0] == pytest.approx(3 * gamma * move)
    assert there.value < here.value
    assert there.x[0] == pytest.approx(1 + (there.z[0] - 3) / 2)


def test_where_a_model_is_no_way_down_the_vertex_is():
    _, _, there = run([2.0])
    assert -0.6 < there.x[0] < 0.5  # towards -3, as far as f descends
    np.testing.assert_allclose(there.z, 2 * there.x + 1)


def test_where_there_is_no_way_down_nothing_moves():
    seen = Hinge()
    here = at(seen, np.array([-3.0]))
    there = descend(
        seen, adafw.LInfBall(3.0), here, np.array([7.0]), np.ones(1),
        lambda h: (np.array([-2.0]), None),
    )  # fmt: skip
    assert there is here


def test_a_slope_that_is_never_kept_is_no_way_down():
    class Kink(Hinge):
        def value(self, z):
            return float(np.abs(z).sum())

    seen = Kink()
    here = at(seen, np.array([-0.5]))  # z = 0, its lowest point
    there = descend(
        seen, adafw.LInfBall(3.0), here, np.ones(1), np.ones(1), lambda h: (-np.ones(1), None)
    )
    assert there is here
    assert len(seen.models) == 4
