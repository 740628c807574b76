"""Local iterations by hand, without a cluster: what a part is asked for, and what it does."""

import numpy as np
import pytest

import adafw
from adafw.constraints.counted import CountedSet
from adafw.distributed import DistributedLinearModel
from adafw.distributed.local_run import _FromExact, run_locally
from adafw.distributed.local_steps import ExactAndLocal, LocalCSFW, LocalSteps
from adafw.gradients.base import draw
from adafw.schedules import OpenLoop
from adafw.steps import FrankWolfeStep

BALL = adafw.L1Ball(2.0)
STEP = FrankWolfeStep(OpenLoop())


def model():
    rng = np.random.default_rng(0)
    return adafw.LinearModel(rng.normal(size=(12, 4)), rng.normal(size=12), adafw.losses.Squared())


@pytest.mark.parametrize("t", [0, 5])
def test_schedules_go_on_from_round_to_round(t):
    asked = {}

    class Far:
        def local_points(self, x, how):
            asked.update(how)
            return x + 1

    counted = CountedSet(BALL)
    step = LocalSteps(STEP, iterations=7, share=0.2, seed=3)
    new, _ = step.update(Far(), counted, np.zeros(4), np.ones(4), t, {})
    assert new.tolist() == [1, 1, 1, 1]
    assert asked["t"] == 7 * t
    assert (asked["iterations"], asked["share"], asked["seed"]) == (7, 0.2, 3)
    assert asked["constraint"] is BALL
    assert counted.lmo_calls == step.most_lmo_calls == 7


def local(f, x, g, number=0, **changes):
    how = dict(share=1.0, step=STEP, t=0, gradient=g, seed=0, constraint=BALL, iterations=1)
    return run_locally(f, x, how | changes, number)


@pytest.mark.parametrize("t", [0, 8])
def test_the_first_step_follows_the_gradient_of_all_rows(t):
    """Which need not be that of the part's own: the estimate starts there."""
    f, x, g = model(), np.array([0.5, 0.0, -0.25, 0.0]), np.array([0.1, -3.0, 0.2, 1.0])
    gamma = 2 / (t + 2)
    np.testing.assert_allclose(local(f, x, g, t=t), x + gamma * (BALL.lmo(g) - x), rtol=1e-15)


def test_later_steps_follow_what_has_changed_in_the_part():
    """g_t = g + sum (fresh_i - alpha_i) a_i / m, alpha_i being the slope when i was drawn last."""
    f, x, g = model(), np.array([0.5, 0.0, -0.25, 0.0]), np.array([0.1, -3.0, 0.2, 1.0])
    found = [local(f, x, g, t=8, share=0.5, iterations=n) for n in range(1, 7)]
    rng, alpha = np.random.default_rng([0, 8, 0]), f.slopes(x) / 12
    for t, point in enumerate(found, 8):
        batch = np.unique(draw(rng, 12, 6))
        fresh = f.slopes(x, batch) / 12
        g = g + f.combine(fresh - alpha[batch], batch)
        alpha[batch] = fresh
        x = x + 2 / (t + 2) * (BALL.lmo(g) - x)
        np.testing.assert_allclose(point, x, rtol=1e-12, atol=1e-15)


def test_parts_and_rounds_draw_batches_of_their_own():
    f, x, g = model(), np.full(4, 0.1), np.ones(4) / 9
    few = dict(share=0.1, iterations=6)
    points = [local(f, x, g, number, t=t, seed=s, **few)
              for number, t, s in ((0, 6, 0), (1, 6, 0), (0, 6, 1))]  # fmt: skip
    np.testing.assert_array_equal(points[0], local(f, x, g, 0, t=6, **few))
    assert not np.array_equal(points[0], points[1])
    assert not np.array_equal(points[0], points[2])
    assert all(BALL.contains(point) for point in points)


@pytest.mark.filterwarnings("ignore:Running on a single-machine scheduler")
def test_weights_of_dask_arrays_go_with_their_rows():
    da = pytest.importorskip("dask.array")
    import dask

    from adafw.distributed.blocks import dask_recipes

    rng = np.random.default_rng(1)
    X, y, w = rng.normal(size=(10, 3)), rng.normal(size=10), rng.random(10)
    for weight in (w, da.from_array(w, chunks=3), None):
        recipes = dask_recipes(da.from_array(X, chunks=(4, 2)), y, weight)
        with dask.config.set(scheduler="synchronous"):
            blocks = [part.make(*dask.compute(*part.arguments())) for part in recipes]
        assert [len(block.y) for block in blocks] == [4, 4, 2]
        np.testing.assert_array_equal(np.concatenate([block.X for block in blocks]), X)
        np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
        found = [block.weight for block in blocks]
        if weight is None:
            assert found == [None] * 3
        else:
            np.testing.assert_array_equal(np.concatenate(found), w)


def test_ends_of_the_share_of_rows():
    for share in (1e-9, 1.0):
        LocalSteps(STEP, share=share)
    for share in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"share must be a number in \]0, 1\]"):
            LocalSteps(STEP, share=share)
    assert [_FromExact(0.25).evaluations(0, m) for m in (1, 8, 9)] == [1, 2, 3]


def test_what_a_round_costs_and_what_it_needs():
    """The exact gradient, and as many local batches as there are iterations, rounded up."""
    assert [ExactAndLocal(7, 0.25).evaluations(0, m) for m in (1, 8, 9)] == [8, 22, 30]
    algorithm = LocalCSFW(7, 0.5, share=0.25, seed=2)
    assert algorithm.gradient == ExactAndLocal(7, 0.25)
    assert algorithm.step == LocalSteps(FrankWolfeStep(0.5), 7, 0.25, 2)
    for wrong in ({"iterations": 0}, {"seed": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            LocalSteps(STEP, **wrong)
    with pytest.raises(TypeError, match="LocalSteps need a DistributedLinearModel"):
        LocalSteps(STEP).check(model(), BALL, adafw.gradients.Full())
    far = DistributedLinearModel.__new__(DistributedLinearModel)
    LocalSteps(STEP).check(far, BALL, adafw.gradients.Full())
    with pytest.raises(TypeError, match="LocalSteps need exact gradients, got those of Minibatch"):
        LocalSteps(STEP).check(far, BALL, adafw.gradients.Minibatch())


def test_targets_of_dask_arrays_are_cut_as_their_rows_are():
    da = pytest.importorskip("dask.array")
    import dask

    from adafw.distributed.blocks import dask_recipes

    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
    rows = da.from_array(X, chunks=(4, 3))
    for target in (y, da.from_array(y, chunks=((3, 3, 4), (1, 1))), da.from_array(y, chunks=5)):
        recipes = dask_recipes(rows, target, outputs=True)
        with dask.config.set(scheduler="synchronous"):
            blocks = [part.make(*dask.compute(*part.arguments())) for part in recipes]
        assert [block.y.shape for block in blocks] == [(4, 2), (4, 2), (2, 2)]
        np.testing.assert_array_equal(np.concatenate([block.y for block in blocks]), y)
    for target in (y, da.from_array(y, chunks=5), y[:, 0][:9], da.from_array(y[:9, 0], chunks=3)):
        with pytest.raises(ValueError, match=r"y must have one entry per row of X, shape \(10,\)"):
            dask_recipes(rows, target)
    some = rows[rows[:, 0] > 0]  # of blocks whose sizes no one knows
    assert len(dask_recipes(some, da.from_array(y[:, 0], chunks=4))) == 3
    for chunks in (5, 3):
        with pytest.raises(ValueError, match="y must have as many blocks as X, 3, got"):
            dask_recipes(some, da.from_array(y[:, 0], chunks=chunks))
    with pytest.raises(ValueError, match="sample_weight must be a dask array where the sizes"):
        dask_recipes(some, da.from_array(y[:, 0], chunks=4), y[:, 0])
