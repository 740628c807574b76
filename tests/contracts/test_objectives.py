"""What every objective promises. A new one is one line in OBJECTIVES."""

import json

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import LinearModel, MatrixModel, Quadratic, WithIntercept
from adafw.objectives.base import FiniteSum, SeparableSum, Unavailable

M, N = 24, 5
RNG = np.random.default_rng(0)
A = np.where(RNG.random((M, N)) < 0.7, RNG.normal(size=(M, N)), 0.0)
SIGNS = np.where(RNG.random(M) < 0.5, 1.0, -1.0)
NUMBERS, COUNTS = RNG.normal(size=M), RNG.poisson(2.0, M).astype(float)
LABELS = np.arange(M) % 3
W = RNG.integers(0, 3, M).astype(float)
TWO = np.column_stack([NUMBERS, SIGNS])


class Rounded(losses.Loss):
    """A loss of the user's, which no kernel knows."""

    curvature = 1.0

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2)

    def slope(self, z, y):
        return (z - y) / np.sqrt(1 + (z - y) ** 2)

    def second(self, z, y):
        return (1 + (z - y) ** 2) ** -1.5


def user_sum():
    def gradient(x, batch):
        some = slice(None) if batch is None else batch
        return 2 * (A[some] @ x - NUMBERS[some]) @ A[some] / len(A[some])

    return adafw.UserSum(M, lambda x: np.mean((A @ x - NUMBERS) ** 2), gradient, convex=True)


def completion():
    r, c = RNG.integers(0, 4, M), RNG.integers(0, 3, M)
    return adafw.MatrixCompletion(r, c, NUMBERS, (4, 3))


OBJECTIVES = {
    "squared": LinearModel(A, NUMBERS, losses.Squared()),
    "logistic, weighted, sparse": LinearModel(sparse.csr_array(A), SIGNS, losses.Logistic(), W),
    "hinge of float32": LinearModel(A.astype(np.float32), SIGNS, losses.SquaredHinge(), W),
    "huber": LinearModel(A, NUMBERS, losses.Huber(0.3), W),
    "poisson": LinearModel(A, COUNTS, losses.Poisson()),
    "own loss": LinearModel(A, NUMBERS, Rounded(), W),
    "intercept": WithIntercept(LinearModel(A, SIGNS, losses.Logistic(), W)),
    "intercept of float32": WithIntercept(
        LinearModel(A.astype(np.float32), SIGNS, losses.Logistic())
    ),
    "intercept, own loss": WithIntercept(LinearModel(A, NUMBERS, Rounded(), W)),
    "classes": MatrixModel(A, LABELS, losses.Softmax(), W + 1, intercept=True),
    "classes of float32": MatrixModel(A.astype(np.float32), LABELS, losses.Softmax(), W + 1),
    "targets": MatrixModel(sparse.csr_array(A), TWO, losses.Outputs(losses.Huber(0.5)), W),
    "targets and intercepts": MatrixModel(A, TWO, losses.Outputs(losses.Squared()), W,
                                          intercept=True),
    "completion": completion(),
    "quadratic": Quadratic(RNG.normal(size=N), RNG.normal(size=N), A.T @ A),
    "user's": user_sum(),
    "counted": adafw.Counted(LinearModel(A, SIGNS, losses.Logistic(), W)),
}  # fmt: skip
every_objective = pytest.mark.parametrize("name", OBJECTIVES)
SEPARABLE = [name for name, f in OBJECTIVES.items() if f.separable]


def point(f, seed=1):
    rng = np.random.default_rng(seed)
    return (0.4 * rng.normal(size=f.shape or (N,))).astype(f.dtype)


def digits(f):
    return 1e-11 if f.dtype == np.float64 else 1e-4


def test_every_objective_is_held_to_it(nothing_left_out):
    where = "OBJECTIVES of tests/contracts/test_objectives.py"
    nothing_left_out(FiniteSum, "objectives", list(OBJECTIVES.values()), where)


@every_objective
def test_value_and_gradient_are_those_of_the_parts(name):
    f = OBJECTIVES[name]
    x = point(f)
    value, gradient = f.value_and_gradient(x)
    assert type(value) is type(f.value(x)) is float
    assert value == f.value(x)
    np.testing.assert_array_equal(gradient, f.gradient(x))
    assert (gradient.dtype, gradient.shape) == (f.dtype, x.shape)
    step = 1e-6 if f.dtype == np.float64 else 1e-2
    d = point(f, 2)
    rise = (f.value(x + step * d) - f.value(x - step * d)) / (2 * step)
    assert np.vdot(gradient, d) == pytest.approx(rise, rel=1e-4, abs=1e-6 if step < 1e-3 else 1e-3)
    assert f.value(x) >= f.lower_bound


@every_objective
def test_batches_of_all_terms_make_up_the_gradient(name):
    """A term drawn twice counts twice; where an intercept is needed, the one that was set."""
    f = OBJECTIVES[name]
    x = point(f)
    if hasattr(f, "best_intercept"):
        f.intercept = f.best_intercept(x)
    if name == "quadratic":
        return
    parts = [f.gradient(x, batch) for batch in np.split(np.arange(M)[::-1], 4)]
    np.testing.assert_allclose(np.mean(parts, axis=0), f.gradient(x), atol=digits(f))
    one, other = (f.gradient(x, np.array([i])) for i in (3, 7))
    twice = f.gradient(x, np.array([3, 7, 3]))
    np.testing.assert_allclose(twice, (2 * one + other) / 3, atol=digits(f))
    assert twice.dtype == f.dtype


@every_objective
def test_what_is_remembered_is_nobody_elses(name):
    """Neither a gradient changed by its owner nor a point moved in place is mistaken for it."""
    f = OBJECTIVES[name]
    x = point(f)
    value, gradient = f.value(x), f.gradient(x)
    kept = gradient.copy()
    gradient += 1
    np.testing.assert_array_equal(f.gradient(x), kept)
    assert f.value(x) == value
    there = point(f, 5)
    wanted = f.value(there), f.gradient(there)
    f.value(x)
    x[...] = there
    assert f.value(x) == wanted[0]
    np.testing.assert_array_equal(f.gradient(x), wanted[1])
    line = f.along(x, point(f, 6))
    assert line.value(0.0) == pytest.approx(wanted[0], rel=digits(f))
    zero = np.zeros_like(x)
    assert f.value(zero) == pytest.approx(f.value(zero + 1e-12), rel=1e-6)
    assert f.gradient(zero).dtype == f.dtype


@pytest.mark.parametrize("name", [n for n, f in OBJECTIVES.items() if hasattr(f, "remember")])
def test_predictions_that_someone_else_made_are_taken(name):
    f = OBJECTIVES[name]
    x, other = point(f), point(f, 8)
    z = f.predictions(x)[0].copy()
    value, gradient = f.value(x), f.gradient(x)
    f.value(other)
    f.remember(x, z)
    assert f.predictions(x)[0] is z
    assert f.value(x) == value
    np.testing.assert_array_equal(f.gradient(x), gradient)
    x[...] = other  # what was remembered stays with the old point
    assert f.value(x) != value
    far = 2 * f.predictions(point(f))[0]
    f.remember(point(f), far)
    assert f.value(point(f)) != value  # it is not checked
    f.remember(point(f), z)


@every_objective
def test_a_point_of_another_precision_is_another(name):
    f = OBJECTIVES[name]
    x = point(f)
    f.value(x)
    narrow, wide = x.astype(np.float32), x.astype(np.float32).astype(np.float64)
    first = f.gradient(narrow)
    second = f.gradient(wide)
    assert second.dtype == np.float64
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-4)
    again = f.gradient(narrow)
    assert again.dtype == first.dtype
    np.testing.assert_allclose(again, first, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SEPARABLE)
def test_terms_of_one_prediction_each(name):
    """Slopes, their sums, and the change of a table of them."""
    f = OBJECTIVES[name]
    x, batch = point(f), np.array([2, 11, 5])
    if hasattr(f, "best_intercept"):
        f.intercept = f.best_intercept(x)
    slopes = f.slopes(x)
    np.testing.assert_allclose(f.slopes(x, batch), slopes[batch], atol=digits(f))
    z = f.rows.dot(x)
    np.testing.assert_allclose(f.slopes_at(z), slopes, atol=digits(f))
    np.testing.assert_allclose(f.slopes_at(z[batch], batch), slopes[batch], atol=digits(f))
    np.testing.assert_allclose(f.combine(slopes) / M, f.gradient(x), atol=digits(f))
    alpha = np.linspace(-1, 1, 3).astype(f.dtype)
    for refresh in (f.refresh, lambda *a: SeparableSum.refresh(f, *a)):
        fresh, change = refresh(x, alpha, batch)
        np.testing.assert_allclose(fresh, slopes[batch] / M, atol=digits(f))
        wanted = f.combine(slopes[batch] / M - alpha, batch)
        np.testing.assert_allclose(change, wanted, atol=digits(f))
        assert fresh.dtype == change.dtype == f.dtype


@pytest.mark.parametrize(
    "name", [n for n, f in OBJECTIVES.items() if n not in ("quadratic", "user's", "poisson")]
)
def test_smoothness_is_that_of_a_quadratic_with_its_curvature(name):
    """curvature ||W^(1/2) A||^2 / m, the weights being of mean 1."""
    f = OBJECTIVES[name]
    model = getattr(f, "objective", getattr(f, "model", f))
    data = np.zeros((M, 12)) if name == "completion" else A
    if name == "completion":
        data[np.arange(M), f.rows.places] = 1
    weights = np.ones(M) if model.sample_weight is None else model.sample_weight
    root = np.sqrt(weights * M / weights.sum())[:, None]
    wanted = model.loss.curvature * np.linalg.norm(root * data, 2) ** 2 / M
    assert f.smoothness == pytest.approx(wanted, rel=1e-6)


@every_objective
def test_a_counted_objective_says_what_the_objective_says(name):
    f = OBJECTIVES[name]
    counted = adafw.Counted(f)
    x, d = point(f), point(f, 3)
    for fact in ("n_terms", "convex", "separable", "has_hessian", "shape", "dtype", "remote",
                 "lower_bound"):  # fmt: skip
        assert getattr(counted, fact) == getattr(f, fact)
    assert counted.describe() == f.describe()
    assert counted.status() == f.status()
    assert counted.along(x, d).curvature == f.along(x, d).curvature
    if f.separable:
        assert (counted.rows, counted.curvature) == (f.rows, f.curvature)
        np.testing.assert_array_equal(counted.combine(f.slopes(x)), f.combine(f.slopes(x)))
    else:
        with pytest.raises(TypeError, match="no sum of functions phi_i"):
            _ = counted.rows
    if f.has_hessian and not isinstance(f, MatrixModel):
        tried = [20 * d]
        np.testing.assert_array_equal(counted.hessian(x, tried), f.hessian(x, tried))
        assert counted.hessians == 1


def test_what_is_counted():
    f = adafw.Counted(OBJECTIVES["huber"])
    x, batch = point(f), np.array([1, 1, 4])
    asks = [
        (lambda: f.value(x), (1, 0, 0)),
        (lambda: f.gradient(x), (0, M, 0)),
        (lambda: f.gradient(x, batch), (0, 3, 0)),
        (lambda: f.value_and_gradient(x), (1, M, 0)),
        (lambda: f.slopes(x), (0, M, 0)),
        (lambda: f.slopes(x, batch), (0, 3, 0)),
        (lambda: f.slopes_at(np.zeros(3), batch), (0, 3, 0)),
        (lambda: f.refresh(x, np.zeros(3), batch), (0, 3, 0)),
        (lambda: f.combine(np.zeros(M)), (0, 0, 0)),
        (lambda: f.hessian(x), (0, 0, 1)),
        (lambda: f.hessian_product(x), (0, 0, 0)),
        (lambda: f.hessian_product(x)(x), (0, 0, 1)),
        (lambda: f.along(x, x).value(0.1), (1, 0, 0)),
        (lambda: f.along(x, x).slope(0.1), (0, M, 0)),
    ]
    for ask, wanted in asks:
        before = np.array([f.values, f.gradients, f.hessians])
        ask()
        after = np.array([f.values, f.gradients, f.hessians])
        assert tuple((after - before).tolist()) == wanted


def test_descriptions_tell_objectives_apart():
    """By the loss with its parameters, every part of the data, and what is made of it."""
    other, y = A.copy(), NUMBERS.copy()
    other[-1, -1] += 1
    y[-1] += 1
    models = [
        LinearModel(A, NUMBERS, losses.Huber(0.3)), LinearModel(A, NUMBERS, losses.Huber(0.4)),
        LinearModel(A, NUMBERS, losses.Squared()), LinearModel(other, NUMBERS, losses.Huber(0.3)),
        LinearModel(A, y, losses.Huber(0.3)), LinearModel(A, NUMBERS, losses.Huber(0.3), W),
        LinearModel(A, NUMBERS, losses.Huber(0.3), W + 1),
        LinearModel(sparse.csr_array(A), NUMBERS, losses.Huber(0.3)),
        WithIntercept(LinearModel(A, NUMBERS, losses.Huber(0.3))),
        MatrixModel(A, LABELS, losses.Softmax()),
        MatrixModel(A, LABELS, losses.Softmax(), n_outputs=4),
        MatrixModel(A, LABELS, losses.Softmax(), intercept=True),
        MatrixModel(A, LABELS, losses.Softmax(), W + 1),
        MatrixModel(A, LABELS[::-1].copy(), losses.Softmax()),
        adafw.UserSum(3, abs, abs), adafw.UserSum(4, abs, abs),
        adafw.UserSum(3, abs, abs, convex=True),
    ]  # fmt: skip
    told = [json.dumps(f.describe(), sort_keys=True) for f in models]
    assert len(set(told)) == len(models)
    again = LinearModel(A.copy(), NUMBERS.copy(), losses.Huber(0.3))
    assert json.dumps(again.describe(), sort_keys=True) == told[0]


def test_functions_of_the_user_get_and_give_copies():
    """What they keep, or write to, is theirs."""
    kept = {}

    def value(x):
        x += 1
        return np.float32(2.5)

    def gradient(x, batch):
        x += 1
        return kept.setdefault("g", np.array([1, 2], np.float32))

    f, x = adafw.UserSum(2, value, gradient), np.zeros(2, np.float32)
    assert (f.value(x), type(f.value(x))) == (2.5, float)
    g = f.gradient(x)
    np.testing.assert_array_equal(x, [0, 0])
    assert g.dtype == np.float32
    kept["g"][:] = 9
    g[0] = 7
    np.testing.assert_array_equal(g, [7, 2])
    np.testing.assert_array_equal(kept["g"], [9, 9])
    assert f.gradient(x.astype(float)).dtype == np.float64
    with pytest.raises(ValueError, match=r"shape of x, \(3,\), got \(2,\)"):
        f.gradient(np.zeros(3))
    with pytest.raises(ValueError, match=r"shape of x, \(1, 2\), got \(2,\)"):
        f.gradient(np.zeros((1, 2)))
    for bad in ((2, 3.0, gradient), (2, value, None)):
        with pytest.raises(TypeError, match="must be a function, got"):
            adafw.UserSum(*bad)
    assert not adafw.UserSum(2, value, gradient).convex


def test_a_counted_objective_is_as_far_away_as_the_objective():
    class Far(LinearModel):
        remote = True

        def __init__(self, *parts):
            super().__init__(*parts)
            self.remote = True

        def status(self):
            return "3 of 4 machines"

    f = Far(A, NUMBERS, losses.Squared())
    for outer in (adafw.Counted(f), WithIntercept(f)):
        assert outer.remote
        assert outer.status() == "3 of 4 machines"
    assert not adafw.Counted(OBJECTIVES["squared"]).remote


def test_what_is_not_convex_is_never_said_to_be():
    class Wavy(Rounded):
        convex = False

    f = LinearModel(A, NUMBERS, Wavy())
    joint = MatrixModel(A, TWO, losses.Outputs(Wavy()))
    for g in (f, WithIntercept(f), joint, adafw.Counted(f), adafw.Counted(joint)):
        assert not g.convex
    assert MatrixModel(A, TWO, losses.Outputs(Rounded())).convex


def test_data_that_are_gone_say_what_helps():
    assert str(Unavailable("two of four left")).startswith("two of four left; connect again, make")
    assert str(Unavailable("no answer", "start them anew")).startswith("no answer; start them anew")
    assert Unavailable("no answer").state is None
