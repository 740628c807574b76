"""The intercept that is minimised out: against brute force, and as part of a certificate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize

import adafw
from adafw import losses
from adafw.objectives import LinearModel, WithIntercept

LOSSES = [
    losses.Logistic(),
    losses.SquaredHinge(),
    losses.SmoothedHinge(0.5),
    losses.Squared(),
    losses.Huber(0.7),
    losses.Poisson(),
]


def targets(loss, z, rng):
    if isinstance(loss, losses.Squared | losses.Huber):
        return z + rng.normal(size=len(z))
    if isinstance(loss, losses.Poisson):
        return rng.poisson(np.exp(np.clip(z, -3, 3))).astype(float)
    y = np.where(z + rng.normal(size=len(z)) > 0, 1.0, -1.0)
    y[:2] = 1, -1
    return y


def problem(loss, seed=0, m=60, n=5, weighted=False, make=np.asarray):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)) + 0.7
    y = targets(loss, A @ rng.normal(size=n), rng)
    weight = rng.integers(0, 4, m).astype(float) if weighted else None
    if weight is not None:
        weight[:2] = 1
    return WithIntercept(LinearModel(make(A), y, loss, weight)), A, y, weight


def joint(loss, A, y, weight, x, b):
    w = np.ones(len(y)) if weight is None else weight
    return float(np.average(loss.value(A @ x + b, y), weights=w))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_value_is_the_minimum_over_b(loss, weighted, make):
    f, A, y, weight = problem(loss, 1, weighted=weighted, make=make)
    for x in np.random.default_rng(2).normal(size=(5, 5)):
        b = f.best_intercept(x)
        around = b + np.concatenate([np.linspace(-3, 3, 401), 1e-5 * np.linspace(-1, 1, 41)])
        values = [joint(loss, A, y, weight, x, c) for c in around]
        assert f.value(x) == pytest.approx(joint(loss, A, y, weight, x, b), rel=1e-13)
        assert f.value(x) <= min(values) + 1e-14 * abs(min(values))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_derivative_in_b_is_rounding(loss):
    """Only then is the gap of F one of the joint problem."""
    f, *_ = problem(loss, 3)
    for scale in (0, 1e-8, 1, 5):
        x = scale * np.random.default_rng(4).normal(size=5)
        slopes = f.slopes(x)
        assert abs(slopes.sum()) <= 1e-13 * np.abs(slopes).sum()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_gradient_and_hessian_against_differences(loss):
    f, *_ = problem(loss, 5, weighted=True)
    rng = np.random.default_rng(6)
    x, d = 0.3 * rng.normal(size=5), rng.normal(size=5)
    h = 1e-6
    slope = (f.value(x + h * d) - f.value(x - h * d)) / (2 * h)
    assert f.gradient(x) @ d == pytest.approx(slope, rel=1e-5, abs=1e-7)
    line = f.along(x, d)
    assert line.value(0.0) == f.value(x)
    assert line.value(0.5) == pytest.approx(f.value(x + 0.5 * d), rel=1e-12)
    assert line.slope(0.5) == pytest.approx(f.gradient(x + 0.5 * d) @ d, rel=1e-9, abs=1e-12)
    # Losses with a kink in the slope have no exact Hessian where a row crosses it: keep h small.
    bend = (f.gradient(x + 1e-7 * d) - f.gradient(x - 1e-7 * d)) / 2e-7
    np.testing.assert_allclose(f.hessian(x) @ d, bend, rtol=1e-4, atol=1e-5)


@given(
    st.lists(st.floats(-800, 800), min_size=2, max_size=12),
    st.sampled_from([losses.Logistic(), losses.SquaredHinge(), losses.SmoothedHinge()]),
)
def test_extreme_predictions(predictions, loss):
    """Flat and exponentially small stretches included, the root is found."""
    z = np.array(predictions)
    y = np.where(np.arange(len(z)) % 2 == 0, 1.0, -1.0)
    f = WithIntercept(LinearModel(z[:, None], y, loss))
    b = f.best_intercept(np.ones(1))
    value = loss.value(z + b, y).mean()
    grid = np.concatenate([np.linspace(-900, 900, 901), b + np.linspace(-1, 1, 201)])
    assert value <= min(loss.value(z + c, y).mean() for c in grid) * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize(
    "loss",
    [losses.Logistic(), losses.SquaredHinge(), losses.Poisson(), losses.Huber(0.5)],
    ids=lambda loss: type(loss).__name__,
)
@pytest.mark.parametrize("radius", [0.5, 2.0])
def test_gap_is_a_certificate_for_the_joint_problem(loss, radius):
    """value - gap is below the minimum over x and b that another solver finds, value above it."""
    f, A, y, _ = problem(loss, 7)
    n = A.shape[1]

    def split(u):  # x = p - q with p, q >= 0 and sum p + q <= radius, and a free b
        x, b = u[:n] - u[n : 2 * n], u[-1]
        slopes = loss.slope(A @ x + b, y) / len(y)
        g = A.T @ slopes
        return joint(loss, A, y, None, x, b), np.concatenate([g, -g, [slopes.sum()]])

    best = scipy_minimize(
        split, np.zeros(2 * n + 1), jac=True, method="SLSQP",
        bounds=[(0, None)] * (2 * n) + [(None, None)],
        constraints={"type": "ineq", "fun": lambda u: radius - u[: 2 * n].sum()},
        options={"ftol": 1e-15, "maxiter": 1000},
    )  # fmt: skip
    ball = adafw.L1Ball(radius)
    algorithm = adafw.FW(adafw.steps.LineSearch())
    result = adafw.minimize(f, ball, algorithm, max_iterations=60, record_every=1)
    for record in result.trace:
        assert record.value - record.gap <= best.fun + 1e-9
        assert record.value >= best.fun - 1e-9
    newton = adafw.Algorithm(adafw.gradients.Full(), adafw.steps.NewtonStep())
    result = adafw.minimize(f, ball, newton, max_iterations=30, gap_tolerance=1e-9)
    assert result.status == "converged"
    assert result.value == pytest.approx(best.fun, abs=2e-8)


def test_batches_use_the_intercept_that_was_set():
    f, A, y, _ = problem(losses.Logistic(), 8)
    x, batch = np.ones(5), np.array([3, 3, 10])
    f.intercept = 0.25
    expected = losses.Logistic().slope(A[batch] @ x + 0.25, y[batch])
    np.testing.assert_allclose(f.slopes(x, batch), expected)
    np.testing.assert_allclose(f.gradient(x, batch), expected @ A[batch] / 3)


def test_no_finite_intercept_is_refused():
    A = np.ones((3, 1))
    for loss, y in ((losses.Logistic(), np.ones(3)), (losses.Poisson(), np.zeros(3))):
        with pytest.raises(ValueError, match="more than one kind"):
            WithIntercept(LinearModel(A, y, loss))


def test_float32_stays():
    f, *_ = problem(losses.Logistic(), 9, make=lambda a: a.astype(np.float32))
    x = np.ones(5, np.float32)
    assert f.gradient(x).dtype == np.float32
    assert f.value(x) == pytest.approx(problem(losses.Logistic(), 9)[0].value(np.ones(5)), rel=1e-5)


def test_repr_and_description():
    f, *_ = problem(losses.Logistic())
    assert repr(f) == "WithIntercept(LinearModel(60 x 5 dense, Logistic))"
    assert f.describe()["model"]["name"] == "LinearModel"
    assert f.smoothness == f.model.smoothness


@pytest.mark.parametrize("seed", [1912, 2293, 497, 634])
def test_guesses_that_do_not_get_nearer_give_way(seed):
    """Newton's method alone creeps along the bends of these losses, for 40 passes and more."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 20))
    y = np.round(5 * rng.standard_cauchy(m), 1)
    passes = []

    class Watched(LinearModel):
        def sides_at(self, z, b):
            passes.append(b)
            return super().sides_at(z, b)

    model = Watched(np.zeros((m, 1)), y, losses.Huber(0.7))
    f = WithIntercept(model)
    passes.clear()
    z = np.round(3 * rng.normal(size=m), 1)
    b = f.shift(z)
    assert len(passes) <= 12
    assert abs(model.slopes_at(z + b).sum()) <= 1e-12


def test_rows_without_weight_do_not_move_it():
    """Not even where a stretch of intercepts is best, of which one has to be chosen."""
    z = np.array([1000.0, 900.0, 800.0, 700.0, 2.5, -2.0])  # their mean is far from that stretch
    y = np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0])
    loss = losses.SquaredHinge()
    alone = WithIntercept(LinearModel(z[:, None], y, loss)).best_intercept(np.ones(1))
    assert loss.value(z + alone, y).sum() == 0
    for far, label in ((100.0, 1.0), (-3000.0, -1.0), (40.0, -1.0)):
        data, labels = np.append(z, far)[:, None], np.append(y, label)
        weighted = LinearModel(data, labels, loss, [1.0] * 6 + [0.0])
        assert WithIntercept(weighted).best_intercept(np.ones(1)) == pytest.approx(alone, rel=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_hessian_meets_the_curvature_on_the_way_of_steps_that_were_tried(weighted):
    """phi'' is no less than its mean between both ends, each with the intercept of its own."""
    f, A, y, weight = problem(losses.SquaredHinge(), 10, weighted=weighted)
    rng = np.random.default_rng(11)
    x, tried = rng.normal(size=5), list(3 * rng.normal(size=(2, 5)))
    w = np.ones(60) if weight is None else weight * 60 / weight.sum()
    here = A @ x + f.best_intercept(x)
    loss = losses.SquaredHinge()
    bends = loss.second(here, y)
    for d in tried:
        there = A @ (x + d) + f.best_intercept(x + d)
        mean = (loss.slope(there, y) - loss.slope(here, y)) / (there - here)
        bends = np.maximum(bends, mean)
    bends = w * bends / 60
    mixed = bends @ A
    wanted = (A * bends[:, None]).T @ A - np.outer(mixed, mixed) / bends.sum()
    np.testing.assert_allclose(f.hessian(x, tried), wanted, atol=1e-10)
    assert not np.allclose(f.hessian(x), wanted, rtol=1e-3)


def test_one_kind_that_outweighs_the_other_by_far_has_an_intercept():
    """The slopes die out on the way there, but they turn."""
    for share in (1e3, 1e12, 1e30):
        model = LinearModel(np.zeros((2, 1)), [1.0, -1.0], losses.Logistic(), [share, 1.0])
        assert WithIntercept(model).constant == pytest.approx(np.log(share), rel=1e-9)
        turned = LinearModel(np.zeros((2, 1)), [-1.0, 1.0], losses.Logistic(), [share, 1.0])
        assert WithIntercept(turned).constant == pytest.approx(-np.log(share), rel=1e-9)
