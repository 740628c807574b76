"""Single precision near the minimum."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.steps.corrective.precise import DOUBLE, in_double, last_gap


def odd_units(seed, intercept=False, dtype=np.float32):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((176, 42)) * 10.0 ** rng.uniform(-3, 3, 42)
    y = np.where(rng.random(176) < 0.5, 1.0, -1.0)
    f = adafw.LinearModel(A.astype(np.float32).astype(dtype), y, losses.Logistic())
    return WithIntercept(f) if intercept else f


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_only_the_rounding_of_x_is_left_of_a_gap(seed, intercept):
    """Steps along columns of large units, which single precision cannot see, left 10^2 as much."""
    ball = adafw.L2Ball(100.0)
    exact = odd_units(seed, intercept, np.float64)
    best = adafw.minimize(
        exact, ball, adafw.Corrective(), gap_tolerance=1e-11, max_iterations=60, progress=False
    )
    assert best.status == "converged"
    x = best.x.astype(np.float32).astype(np.float64)
    rounded = ball.gap(x, exact.gradient(x))
    r = adafw.minimize(
        odd_units(seed, intercept), ball, adafw.Corrective(), max_iterations=30, progress=False
    )
    assert r.x.dtype == np.float32
    assert ball.contains(r.x)
    assert r.gap <= 4 * rounded


def test_steps_are_double_from_where_gaps_hardly_fall():
    f, ball = odd_units(0), adafw.L2Ball(100.0)
    x, g = np.zeros(42, np.float32), np.ones(42, np.float32)
    first = last_gap(ball, x, g, np.inf)
    assert first == pytest.approx(100 * 42**0.5)
    less = last_gap(ball, x, np.float32(0.4) * g, first)
    assert less == pytest.approx(0.4 * first)
    assert last_gap(ball, x, np.float32(0.3) * g, less) == DOUBLE
    assert last_gap(ball, x, np.float32(1e-9) * g, DOUBLE) == DOUBLE  # and stay so

    class Half:
        """Goes half the way to 0, and tells of its kind of numbers."""

        def improve(self, f, constraint, x, g, t, state):
            assert (x.dtype, g.dtype) == (np.float64, np.float64)
            return x / 2, {"predictions": x, "gap": 1.0}

    new, kept = in_double(Half(), f, ball, np.ones(42, np.float32), 3, {})
    assert new.dtype == np.float32
    assert (new == 0.5).all()
    assert kept == {"gap": 1.0, "last": DOUBLE}


def test_such_a_run_goes_on_bit_for_bit():
    def run(iterations, state=None):
        return adafw.minimize(
            odd_units(1), adafw.L2Ball(100.0), adafw.Corrective(), max_iterations=iterations,
            state=state, progress=False,
        )  # fmt: skip

    whole = run(24)
    assert whole.state.step["last"] == DOUBLE
    for cut in (3, 12):
        assert run(24, run(cut).state).x.tobytes() == whole.x.tobytes()


@pytest.mark.parametrize(("kind", "seed"), [("box", 18), ("groups", 13)])
def test_points_that_were_rounded_out_of_the_set_are_taken_back(kind, seed):
    """From outside the best point of a model inside is no way down, and steps stayed short."""
    rng = np.random.default_rng(seed)
    A = (rng.standard_normal((4000, 20)) + 5).astype(np.float32)
    y = A @ rng.standard_normal(20) / 5 + rng.standard_normal(4000)
    if kind == "box":
        ball = adafw.Box(-0.13 * rng.random(20), 0.13 * rng.random(20))
    else:
        ball = adafw.GroupBall(0.7, np.arange(20) // 4)
    f = adafw.LinearModel(A, y, losses.Huber(1.0))
    r = adafw.minimize(f, ball, adafw.Corrective(), max_iterations=14, record_every=1)
    assert min(record.gap for record in r.trace) <= 1e-7


def test_groups_of_rows_of_a_matrix_are_taken_in_double_precision_too():
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((400, 12)) * 10.0 ** rng.uniform(-2, 2, 12)).astype(np.float32)
    f = adafw.objectives.MatrixModel(A, rng.integers(0, 3, 400), losses.Softmax())
    ball = adafw.GroupBall(20.0, np.repeat(np.arange(12)[:, None], 3, 1))
    r = adafw.minimize(f, ball, adafw.Corrective(), max_iterations=12)
    assert r.x.dtype == np.float32
    assert ball.contains(r.x)
    assert r.gap <= 1e-5 * r.value
