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


def test_newton_where_the_losses_are_flat():
    """Far out logistic losses have no curvature left: the model must learn it on the way.

    A reference by coordinates on the two-point simplex: golden-section search on its one number.
    """
    from scipy.optimize import minimize_scalar

    rng = np.random.default_rng(3)
    A = rng.normal(size=(60, 2)) * [1000.0, 10.0] + 500
    score = A[:, 0] - 30 * A[:, 1] + 300 * rng.normal(size=60)
    y = np.where(score > np.median(score), 1.0, -1.0)
    f, radius = WithIntercept(LinearModel(A, y, adafw.losses.Logistic())), 1000.0
    r = adafw.minimize(
        f, adafw.Simplex(radius), adafw.Algorithm(Full(), NewtonStep()), max_iterations=300,
        gap_tolerance=1e-6, record_every=1,
    )  # fmt: skip
    assert r.status == "converged"
    best = minimize_scalar(
        lambda share: f.value(radius * np.array([share, 1 - share])), bounds=(0, 1),
        method="bounded", options={"xatol": 1e-12},
    )  # fmt: skip
    assert r.lower_bound <= best.fun + 1e-9
    assert r.value <= best.fun + 1e-6


def test_newton_on_a_separable_problem_ends_at_zero():
    """The value 0 is reached inside the ball, not crept up to."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(100, 8)) * np.geomspace(1e-1, 1e3, 8)
    f = WithIntercept(
        LinearModel(A, np.sign(A @ (1 / np.geomspace(1e-1, 1e3, 8))), adafw.losses.SquaredHinge())
    )
    r = adafw.minimize(
        f, adafw.L2Ball(1e4), adafw.Algorithm(Full(), NewtonStep()), max_iterations=30
    )  # fmt: skip
    assert r.value < 1e-20


@pytest.mark.parametrize("loss", [adafw.losses.Logistic(), adafw.losses.SquaredHinge()])
def test_curvature_met_on_the_way(loss):
    """Between x and x + d the mean of phi'' is the difference of the slopes over the move."""
    f = badly_scaled(loss).model
    rng = np.random.default_rng(1)
    x, d = rng.normal(size=8), 30 * rng.normal(size=8)
    z, move = f.rows.dot(x), f.rows.dot(d)
    secant = (f.slopes_at(z + move) - f.slopes_at(z)) / move
    bends = np.maximum(f.seconds_at(z), secant)
    A = f.rows.array
    np.testing.assert_allclose(f.hessian(x, [d]), A.T @ (A * bends[:, None]) / 80, rtol=1e-9)
    assert np.linalg.eigvalsh(f.hessian(x, [d]) - f.hessian(x)).min() > -1e-9 * np.trace(
        f.hessian(x)
    )


@pytest.mark.parametrize(
    "constraint", [adafw.L1Ball(3.0), adafw.Simplex(3.0)], ids=["l1", "simplex"]
)
@pytest.mark.parametrize("scale", [None, np.linspace(0.5, 2, 400)], ids=["plain", "scaled"])
def test_spectral_steps_go_on_to_the_last_digit(constraint, scale):
    """On a face <g, d> is what is left of terms that cancel: its sign must not end the run."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(150, 400))
    y = np.where(A[:, :5].sum(axis=1) + rng.normal(size=150) > 0, 1.0, -1.0)
    f = WithIntercept(LinearModel(A, y, adafw.losses.Logistic()))
    r = adafw.minimize(
        f, constraint, adafw.Algorithm(Full(), SpectralStep(scale)), max_iterations=1000,
        gap_tolerance=1e-14, record_every=10,
    )  # fmt: skip
    assert r.status == "converged"


@pytest.mark.parametrize("shape", [(60, 7), (5, 12), (12, 1)], ids=["tall", "wide", "one"])
@pytest.mark.parametrize("radius", [1e-6, 0.3, 1e3])
def test_a_quadratic_on_an_l2_ball_takes_one_newton_step(shape, radius):
    rng = np.random.default_rng(1)
    f = LinearModel(rng.normal(size=shape), rng.normal(size=shape[0]) + 1, adafw.losses.Squared())
    r = adafw.minimize(
        f, adafw.L2Ball(radius), adafw.Algorithm(Full(), NewtonStep()), max_iterations=1
    )
    assert r.gap <= 1e-13 * f.value(np.zeros(shape[1])) * max(1.0, radius)
