"""What every loss promises, and that what it declares is so. A new loss is one line in LOSSES."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from adafw import losses, names
from adafw.describe import describe
from adafw.losses.scalar import Stretched, StretchedPoisson

# With the targets it is tried on.
SIGNS, NUMBERS, COUNTS = [-1.0, 1.0], [-2.0, 0.0, 0.3, 7.0], [0.0, 0.5, 1.0, 30.0]
LOSSES = [
    (losses.Squared(), NUMBERS),
    (losses.Logistic(), SIGNS),
    (losses.SquaredHinge(), SIGNS),
    (losses.Huber(), NUMBERS),
    (losses.Huber(0.2), NUMBERS),
    (losses.SmoothedHinge(), SIGNS),
    (losses.SmoothedHinge(0.1), SIGNS),
    (losses.Poisson(), COUNTS),
]
#: What others are stretched to, which no one else makes (tests/test_losses.py).
WIDER = {Stretched, StretchedPoisson}
Z = np.linspace(-8.003, 8.001, 401)  # off the kinks

every_loss = pytest.mark.parametrize(("loss", "targets"), LOSSES, ids=lambda v: repr(v))
each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def grid(targets, dtype=np.float64):
    """Every z with every target."""
    z, y = np.meshgrid(Z, targets)
    return z.ravel().astype(dtype), y.ravel().astype(dtype)


def test_every_loss_is_held_to_it(nothing_left_out):
    tried = [loss for loss, _ in LOSSES]
    where = "LOSSES of tests/contracts/test_losses.py"
    nothing_left_out(losses.Loss, "losses", tried, where, WIDER)
    fewer = [loss for loss in tried if not isinstance(loss, losses.Poisson)]
    with pytest.raises(AssertionError, match=f"add a line for Poisson to {where}"):
        nothing_left_out(losses.Loss, "losses", fewer, where, WIDER)


def test_every_loss_has_a_name_in_the_front_ends(nothing_left_out):
    tried = [entry.make() for entry in names.LOSSES]
    nothing_left_out(losses.Loss, "losses", tried, "LOSSES of src/adafw/names.py", WIDER)


@every_loss
def test_slope_is_the_derivative(loss, targets):
    z, y = grid(targets)
    h = 1e-6
    difference = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.slope(z, y), difference, rtol=1e-7, atol=1e-6)


@each_dtype
@every_loss
def test_dtype_is_kept(loss, targets, dtype):
    z, y = grid(targets, dtype)
    assert loss.value(z, y).dtype == loss.slope(z, y).dtype == loss.mean(z).dtype == dtype
    if loss.has_second:
        assert loss.second(z, y).dtype == dtype


@every_loss
def test_second_is_the_derivative_of_the_slope_and_within_the_curvature(loss, targets):
    z, y = grid(targets)
    h = 1e-5
    difference = (loss.slope(z + h, y) - loss.slope(z - h, y)) / (2 * h)
    assert (difference <= loss.curvature * (1 + 1e-6) + 1e-9).all()
    if loss.has_second:
        np.testing.assert_allclose(loss.second(z, y), difference, rtol=1e-5, atol=1e-6)


@every_loss
def test_convexity_is_as_declared(loss, targets):
    z, y = grid(targets)
    rise = loss.slope(z + 0.1, y) - loss.slope(z, y)
    assert (rise.min() >= -1e-12) == loss.convex


@every_loss
def test_no_value_is_below_the_least_and_some_are_near(loss, targets):
    y = np.array(targets)
    least = loss.least(y)
    assert least.shape == y.shape
    assert (least >= loss.lower_bound).all()
    for low, target in zip(least, targets, strict=True):
        y = np.array([target])
        at = minimize_scalar(lambda z, y=y: loss.value(np.array([z]), y)[0], bounds=(-60, 60))
        z, many = np.append(Z, at.x), np.full(len(Z) + 1, target)
        reached = loss.value(z, many).min()
        assert low <= reached
        assert np.isneginf(low) or reached <= low + 1e-9


@every_loss
def test_quadratic_and_residual_are_as_declared(loss, targets):
    z, y = grid(targets)
    third = loss.slope(z + 1, y) - 2 * loss.slope(z, y) + loss.slope(z - 1, y)
    assert (np.abs(third).max() < 1e-9) == loss.quadratic
    moved = np.abs(loss.value(z + 0.5, y + 0.5) - loss.value(z, y)).max()
    assert (moved < 1e-9) == loss.residual


@every_loss
def test_targets_are_those_of_the_task(loss, targets):
    loss.check(np.array(targets))
    assert min(targets) >= loss.least_target
    if loss.task == "classification":
        with pytest.raises(ValueError, match=r"takes labels -1 and \+1, got 0.5"):
            loss.check(np.array([1.0, 0.5]))
    if np.isfinite(loss.least_target):
        with pytest.raises(ValueError, match=f"targets y >= {loss.least_target:g}, got"):
            loss.check(np.array([loss.least_target - 1]))


@every_loss
def test_mean_is_where_a_regression_loss_is_least(loss, targets):
    """At targets y the best prediction z has mean(z) = y."""
    if loss.task == "classification":
        return
    for target in targets:
        if target > loss.least_target:
            y = np.array([target])
            best = minimize_scalar(lambda z, y=y: loss.value(np.array([z]), y)[0], bounds=(-9, 9))
            assert loss.mean(np.array([best.x]))[0] == pytest.approx(target, abs=1e-3)


@every_loss
def test_probabilities_are_those_that_make_the_loss_a_likelihood(loss, targets):
    if not loss.has_probabilities:
        with pytest.raises(TypeError, match="knows no probabilities; Logistic does"):
            loss.probabilities(Z)
        return
    chances = loss.probabilities(Z)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    for k, label in enumerate(SIGNS):
        value = loss.value(Z, np.full_like(Z, label))
        np.testing.assert_allclose(-np.log(chances[:, k]), value, rtol=1e-9)
    several = loss.probabilities(np.stack([Z, -Z, 0 * Z], axis=1))
    np.testing.assert_allclose(several.sum(axis=1), 1)
    assert (several.argmax(axis=1) == np.where(Z > 0, 0, 1)).all()


@every_loss
def test_description_is_plain_and_names_the_loss(loss, targets):
    assert json.loads(json.dumps(describe(loss)))["name"] == type(loss).__name__


class Bare(losses.Loss):
    """What a loss must define, and no more."""

    curvature = 1.0

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2)

    def slope(self, z, y):
        return (z - y) / np.sqrt(1 + (z - y) ** 2)


def test_what_is_not_declared_is_not_claimed():
    loss, y = Bare(), np.ones(3)
    assert loss.lower_bound == -np.inf
    assert np.isneginf(loss.least(y)).all()
    declared = (loss.has_second, loss.has_probabilities, loss.quadratic, loss.residual)
    assert declared == (False,) * 4
    with pytest.raises(TypeError, match="Bare does not know its second derivative"):
        loss.second(y, y)


def test_defining_it_declares_it():
    class Rich(Bare):
        def second(self, z, y):
            return (1 + (z - y) ** 2) ** -1.5

    class Richer(Rich):
        pass

    assert Richer.has_second
    assert not Richer.has_probabilities


def test_scores_that_say_nothing_are_shared_among_the_classes():
    """Where every probability vanishes; in float32 as well."""
    z = np.array([[-800.0, -800.0, -800.0], [0.0, -800.0, -800.0]])
    for dtype in (np.float64, np.float32):
        chances = losses.Logistic().probabilities(z.astype(dtype))
        np.testing.assert_allclose(chances, [[1 / 3] * 3, [1, 0, 0]], rtol=1e-6)
        assert chances.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_count_is_below_its_least_value_by_rounding(dtype):
    """Of a thousand counts, also where y - y ln y is rounded up."""
    y = np.exp(np.random.default_rng(0).uniform(-9, 9, 1000)).astype(dtype)
    least = losses.Poisson().least(y)
    assert least.dtype == np.float64
    wide = y.astype(np.longdouble)
    assert (least <= wide - wide * np.log(wide)).all()
    assert (losses.Poisson().value(np.log(y.astype(float)), y.astype(float)) >= least).all()
    np.testing.assert_allclose(least, (wide - wide * np.log(wide)).astype(float), rtol=1e-6)


def test_several_outputs_take_what_their_loss_takes():
    for loss, bad in (
        (losses.Poisson(), -1.0),
        (losses.Logistic(), 0.5),
        (losses.Squared(), np.nan),
    ):
        y = np.ones((3, 2))
        outputs = losses.Outputs(loss)
        taken = outputs.targets(y, np.float32)
        assert taken.dtype == np.float32
        assert outputs.outputs(taken) == 2
        y[1, 1] = bad
        with pytest.raises(ValueError, match=r"takes|finite"):
            outputs.targets(y, np.float64)
    with pytest.raises(ValueError, match=r"one column a target, got float64 of shape \(3,\)"):
        outputs.targets(np.ones(3), np.float64)
    for bad in ([["a", "b"]], [[1j, 2.0]], [[None, 1.0]], [[np.datetime64("2020-01-01")]]):
        with pytest.raises(ValueError, match="Outputs takes numbers"):
            outputs.targets(np.array(bad), np.float64)


def test_what_several_outputs_say_is_what_their_loss_says():
    class Low(Bare):
        lower_bound = -2.0

    class High(Bare):
        lower_bound = 0.5

    bounds = [losses.Outputs(loss()).lower_bound for loss in (Low, High, Bare, losses.Huber)]
    assert bounds == [-np.inf, 0.0, -np.inf, 0.0]  # how many there are is not known
    poisson, z = losses.Outputs(losses.Poisson()), np.array([[0.0, 1.0], [2.0, -1.0]])
    y = np.array([[1.0, 2.0], [0.0, 5.0]])
    np.testing.assert_allclose(poisson.mean(z), np.exp(z))
    np.testing.assert_allclose(poisson.value(z, y), (np.exp(z) - y * z).sum(axis=1))
    np.testing.assert_allclose(poisson.least(y), losses.Poisson().least(y).sum(axis=1))
    np.testing.assert_allclose(poisson.slope(z, y), np.exp(z) - y)
    assert (poisson.curvature, poisson.task) == (np.inf, "regression")
    assert losses.Outputs(losses.Logistic()).task == "classification"
    with pytest.raises(TypeError, match="Outputs knows no probabilities; Softmax does"):
        poisson.probabilities(z)


def test_class_numbers_are_taken_whatever_their_width():
    softmax = losses.Softmax()
    for dtype in (np.uint8, np.int8, np.int32, np.uint64):
        y = softmax.targets(np.array([0, 2, 1], dtype), np.float32)
        assert y.dtype == np.int64
        assert softmax.outputs(y) == 3
    for bad in ([-1, 0], [0.0, 1.0], [[0, 1]], ["a", "b"], [True, False]):
        with pytest.raises(ValueError, match="Softmax takes class numbers"):
            softmax.targets(np.array(bad), np.float64)


def test_the_second_derivative_of_classes_is_that_of_their_slope():
    rng, h = np.random.default_rng(1), 1e-6
    z, y, d = rng.normal(size=(6, 3)), rng.integers(0, 3, 6), rng.normal(size=(6, 3))
    softmax = losses.Softmax()
    bend = (softmax.slope(z + h * d, y) - softmax.slope(z - h * d, y)) / (2 * h)
    np.testing.assert_allclose(softmax.curve(softmax.second(z, y), d), bend, atol=1e-8)
    rise = (softmax.value(z + h * d, y) - softmax.value(z - h * d, y)) / (2 * h)
    np.testing.assert_allclose((softmax.slope(z, y) * d).sum(axis=1), rise, atol=1e-8)
    outputs, t = losses.Outputs(losses.Logistic()), np.where(rng.random((6, 3)) < 0.5, -1.0, 1.0)
    bend = (outputs.slope(z + h * d, t) - outputs.slope(z - h * d, t)) / (2 * h)
    np.testing.assert_allclose(outputs.curve(outputs.second(z, t), d), bend, atol=1e-8)


def test_what_a_loss_of_several_predictions_does_not_declare_is_not_claimed():
    class Own(losses.JointLoss):
        """What one must define, and no more."""

        curvature = 2.0

        def value(self, z, y):
            return ((z - y) ** 2).sum(axis=1)

        def slope(self, z, y):
            return 2 * (z - y)

        def second(self, z, y):
            return np.full_like(z, 2.0)

        def targets(self, y, dtype):
            return np.asarray(y, dtype)

        def outputs(self, y):
            return y.shape[1]

    loss, z = Own(), np.arange(6.0).reshape(3, 2)
    assert loss.lower_bound == -np.inf
    assert loss.least(z).tolist() == [-np.inf] * 3
    assert (loss.convex, loss.task, loss.has_probabilities) == (True, "regression", False)
    assert not loss.coupled
    np.testing.assert_array_equal(loss.curve(loss.second(z, z), z), 2 * z)
    np.testing.assert_array_equal(loss.mean(z), z)
    with pytest.raises(TypeError, match="Own knows no probabilities; Softmax does"):
        loss.probabilities(z)
    softmax = losses.Softmax()
    declared = (softmax.lower_bound, softmax.task, softmax.has_probabilities, softmax.coupled)
    assert declared == (0.0, "classification", True, True)
