"""Runs that begin far from where their loss bends."""

import warnings

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.steps import CorrectiveStep
from adafw.steps.corrective.stretched import FAR, finite_start, stretch

CORNERS = np.vstack([np.eye(30), -np.eye(30)])


def counts(intercept=False):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 30))
    f = adafw.LinearModel(A, rng.poisson(np.exp(A[:, 0] / 2)).astype(float), losses.Poisson())
    return WithIntercept(f) if intercept else f


def certified(f, constraint, tolerance=1e-7, **more):
    """A run to a relative gap; a warning of numpy's is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return adafw.minimize(
            f, constraint, adafw.Corrective(), record_every=1, progress=False,
            callbacks=[lambda s, record: record.gap <= tolerance * abs(record.value)],
            **{"max_iterations": 40, **more},
        )  # fmt: skip


def sets_of(size):
    return [
        adafw.L1Ball(size), adafw.L2Ball(size), adafw.LInfBall(size), adafw.Simplex(size),
        adafw.UnitSimplex(size), adafw.Hull(size * CORNERS), adafw.Box(-size, size),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [100.0, 300.0])
@pytest.mark.parametrize("number", range(7))
def test_counts_from_hundreds_of_e_folds_above_the_minimum(size, number):
    """A Newton step on exp comes down by one e-fold."""
    f, constraint = counts(), sets_of(size)[number]
    x0 = size * np.eye(30)[0]
    z = f.rows.dot(x0)
    assert z.max() > 2 * size
    r = certified(f, constraint, x0=x0)
    assert r.status == "callback"
    assert r.trace[-1].iteration <= 15


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("size", [100.0, 1000.0])
def test_counts_from_a_vertex_where_their_loss_is_infinite(size, intercept):
    rng = np.random.default_rng(1)
    hull = adafw.Hull(size * rng.standard_normal((40, 30)))
    f = counts(intercept)
    for constraint in (hull, adafw.Simplex(size)):
        with np.errstate(over="ignore", invalid="ignore"):
            infinite = not np.isfinite(f.value(constraint.start((30,))))
        assert infinite or size < 1000 or intercept
        r = certified(f, constraint)
        assert r.status == "callback"
        assert r.trace[-1].iteration <= 25
        assert constraint.contains(r.x)


def test_an_infinite_value_that_no_point_avoids_is_said():
    f = adafw.LinearModel(np.full((3, 1), 1e4), np.zeros(3), losses.Poisson())
    r = certified(f, adafw.Simplex(1.0))
    assert r.status == "diverged"
    assert r.message == (
        "diverged: the value at the start is infinite or NaN; give an x0 where it is finite, or a "
        "smaller set"
    )
    assert r.trace[-1].value == np.inf


def test_a_finite_start_is_kept():
    f, ball = counts(), adafw.L1Ball(1.0)
    x = np.zeros(30)
    assert CorrectiveStep().begin(f, ball, x) is x
    far = 100 * CORNERS[0]
    corrector = None  # not asked
    assert finite_start(corrector, f, adafw.L1Ball(100.0), far) is far


@pytest.mark.parametrize("delta", [0.1, 1e-3])
@pytest.mark.parametrize(("m", "n", "vertices"), [(60, 10, 10), (100, 20, 40), (200, 100, 100)])
def test_residuals_a_thousand_deltas_away(m, n, vertices, delta):
    """Where all but a few residuals are beyond delta, few rows bend, and steps were cut short."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((m, n)), 100 * rng.standard_normal(m)
    hull = adafw.Hull(100 * rng.standard_normal((vertices, n)))
    r = certified(adafw.LinearModel(A, y, losses.Huber(delta)), hull)
    assert r.status == "callback"
    assert r.trace[-1].iteration <= 30


def test_who_is_far():
    f = counts()
    assert stretch(f, np.zeros(30)) == 0.0
    assert stretch(f, 100 * CORNERS[0]) > FAR
    assert stretch(WithIntercept(f.model if isinstance(f, WithIntercept) else f), np.zeros(30)) == 0
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((50, 30)), np.where(rng.random(50) < 0.5, 1.0, -1.0)
    for loss in (losses.Logistic(), losses.SmoothedHinge(0.1), losses.Huber(0.1)):
        f = adafw.LinearModel(A, y, loss)
        assert stretch(f, 1e4 * CORNERS[0]) > FAR
        assert stretch(f, 1e-3 * CORNERS[0]) <= 10
    for loss in (losses.Squared(), losses.SquaredHinge()):
        assert stretch(adafw.LinearModel(A, y, loss), 1e4 * CORNERS[0]) == 0.0


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_what_is_stretched_goes_on_bit_for_bit(cut):
    """The state knows how many times the loss is stretched next."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((60, 10)), 100 * rng.standard_normal(60)
    hull = adafw.Hull(100 * rng.standard_normal((10, 10)))

    def run(iterations, state=None):
        f = adafw.LinearModel(A, y, losses.Huber(0.1))
        return adafw.minimize(
            f, hull, adafw.Corrective(), max_iterations=iterations, state=state, progress=False
        )

    whole, part = run(8), run(cut)
    assert part.state.step["stretch"] > 1
    assert run(8, part.state).x.tobytes() == whole.x.tobytes()
