"""Spectral and Newton steps: they stay in the set, reach the minimum, and go on bit for bit."""

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

import adafw
from adafw.gradients import Full
from adafw.objectives import LinearModel, Quadratic, WithIntercept
from adafw.steps import NewtonStep, SpectralStep

SETS = [
    adafw.L1Ball(2.0),
    adafw.L2Ball(1.5),
    adafw.LInfBall(0.3),
    adafw.Simplex(2.0),
    adafw.UnitSimplex(1.0),
    adafw.Box(-0.2, 0.5),
]
STEPS = {
    "newton": NewtonStep(),
    "spectral": SpectralStep(),
    "scaled": SpectralStep(np.geomspace(1, 1e4, 8)),
}


def badly_scaled(loss=adafw.losses.Logistic(), seed=0):
    """Columns of spreads 1 to 100."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(80, 8)) * np.geomspace(1, 100, 8)
    y = np.where(A @ rng.normal(size=8) + 20 * rng.normal(size=80) > 0, 1.0, -1.0)
    return WithIntercept(LinearModel(A, y, loss))


@pytest.mark.parametrize("constraint", SETS, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("name", STEPS)
def test_gap_goes_to_zero(constraint, name):
    f = badly_scaled()
    algorithm = adafw.Algorithm(Full(), STEPS[name])
    iterations, tolerance = (40, 1e-9) if name == "newton" else (1500, 1e-5)
    r = adafw.minimize(
        f, constraint, algorithm, max_iterations=iterations, gap_tolerance=tolerance,
        record_every=10,
    )  # fmt: skip
    assert r.status == "converged"
    assert max(record.violation for record in r.trace) <= 1e-12


def test_newton_needs_no_projection():
    """With an LMO alone it reaches what it reaches with a projection."""
    f = badly_scaled()
    ball = adafw.L1Ball(2.0)
    bare = adafw.UserSet(ball.lmo, lambda shape, dtype: np.zeros(shape, dtype), ball.contains)
    results = [
        adafw.minimize(f, c, adafw.Algorithm(Full(), NewtonStep()), max_iterations=30,
                       gap_tolerance=1e-9)
        for c in (ball, bare)
    ]  # fmt: skip
    assert [r.status for r in results] == ["converged"] * 2
    np.testing.assert_allclose(results[0].x, results[1].x, atol=1e-5)


def test_newton_solves_a_quadratic_at_once():
    """On least squares its model is f itself: what is left is the inner tolerance."""
    rng = np.random.default_rng(1)
    A, y = rng.normal(size=(50, 6)), rng.normal(size=50)
    f, ball = LinearModel(A, y, adafw.losses.Squared()), adafw.L1Ball(0.3)
    r = adafw.minimize(f, ball, adafw.Algorithm(Full(), NewtonStep()), max_iterations=1)
    best = scipy_minimize(
        lambda u: f.value(u[:6] - u[6:]), np.zeros(12), bounds=[(0, None)] * 12, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda u: 0.3 - u.sum()}, options={"ftol": 1e-14},
    )  # fmt: skip
    assert best.fun - 1e-8 <= r.value <= best.fun + 0.1 * r.trace[0].gap
    assert r.gap <= 0.11 * r.trace[0].gap


@pytest.mark.parametrize("name", STEPS)
def test_resume_is_exact(name, tmp_path):
    f, ball = badly_scaled(), adafw.L1Ball(2.0)
    algorithm = adafw.Algorithm(Full(), STEPS[name])
    whole = adafw.minimize(f, ball, algorithm, max_iterations=9)
    half = adafw.minimize(badly_scaled(), ball, algorithm, max_iterations=4)
    half.state.save(tmp_path / "s.npz")
    state = adafw.State.load(tmp_path / "s.npz")
    rest = adafw.minimize(badly_scaled(), ball, algorithm, state=state, max_iterations=9)
    np.testing.assert_array_equal(whole.x, rest.x)


@pytest.mark.parametrize("name", STEPS)
def test_nothing_to_move_for(name):
    """At an exact minimum, and with a gradient of 0, x stays where it is."""
    f = LinearModel(np.eye(8), np.zeros(8), adafw.losses.Squared())
    algorithm = adafw.Algorithm(Full(), STEPS[name])
    r = adafw.minimize(f, adafw.L2Ball(1.0), algorithm, max_iterations=3)
    np.testing.assert_array_equal(r.x, np.zeros(8))


def test_exponentially_small_values():
    """Separable data: steps stay long where slopes are 1e-15."""
    x = np.linspace(1, 2, 20)
    f = WithIntercept(LinearModel(np.r_[x, -x][:, None], np.sign(np.r_[x, -x]),
                                  adafw.losses.Logistic()))  # fmt: skip
    for step in (NewtonStep(), SpectralStep()):
        r = adafw.minimize(f, adafw.L1Ball(40.0), adafw.Algorithm(Full(), step), max_iterations=100)
        np.testing.assert_allclose(r.x, 40.0)


@pytest.mark.parametrize("step", [NewtonStep(), SpectralStep()])
def test_estimates_are_refused(step):
    algorithm = adafw.Algorithm(adafw.gradients.CSFW(), step)
    with pytest.raises(TypeError, match="needs exact gradients"):
        adafw.minimize(badly_scaled(), adafw.L1Ball(1.0), algorithm)


def test_what_they_need_is_said():
    bare = adafw.UserSet(lambda g: -np.sign(g), np.zeros(8))
    with pytest.raises(TypeError, match="needs a set with a projection"):
        adafw.minimize(badly_scaled(), bare, adafw.Algorithm(Full(), SpectralStep()))
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, b: 0 * x)
    with pytest.raises(TypeError, match="objective with a Hessian"):
        adafw.minimize(f, bare, adafw.Algorithm(Full(), NewtonStep()))
    with pytest.raises(ValueError, match="scale must be positive"):
        SpectralStep([1.0, 0.0])
    with pytest.raises(ValueError, match="memory must be an integer >= 1"):
        SpectralStep(memory=0)
    with pytest.raises(ValueError, match="inner_steps must be an integer >= 1"):
        NewtonStep(0)


def test_quadratic_model():
    rng = np.random.default_rng(2)
    B = rng.normal(size=(4, 4))
    q = Quadratic(rng.normal(size=4), rng.normal(size=4), B @ B.T)
    x, d = rng.normal(size=(2, 4))
    line = q.along(x, d)
    for gamma in (0.0, 0.3, 1.0):
        assert line.value(gamma) == pytest.approx(q.value(x + gamma * d))
        assert line.slope(gamma) == pytest.approx(q.gradient(x + gamma * d) @ d)
    assert line.curvature == pytest.approx(d @ B @ B.T @ d)
    assert q.describe() == {"name": "Quadratic", "n": 4}
