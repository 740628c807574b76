"""Targets as the losses take them, and weights of classes."""

import numpy as np
import pytest
from sklearn.utils.class_weight import compute_sample_weight

from adafw import losses
from adafw.fitting import LinearPredictor, Targets
from adafw.fitting.targets import decide_task, looks_like_classes


def test_one_against_rest():
    two = Targets.of_classes(np.array(["b", "a", "b"]))
    assert two.classes.tolist() == ["a", "b"]
    assert [v.tolist() for v in two.vectors] == [[1, -1, 1]]
    three = Targets.of_classes(np.array([5, 7, 9, 5]))
    assert [v.tolist() for v in three.vectors] == [[1, -1, -1, 1], [-1, 1, -1, -1], [-1, -1, 1, -1]]
    assert three.task == "classification"
    joint = Targets.of_classes(np.array([5, 7, 9, 5]), joint=True)
    assert ([v.tolist() for v in joint.vectors], joint.scores) == ([[0, 1, 2, 0]], 3)
    assert Targets.of_classes(np.array([5, 7, 7]), joint=True).outputs == 0
    part = Targets.of_classes(np.array([9, 9]), np.array([5, 7, 9]))
    assert [v.tolist() for v in part.vectors] == [[-1, -1], [-1, -1], [1, 1]]


def test_numbers_one_or_several():
    one = Targets.of_numbers(np.array([1, 2]), np.float32)
    assert one.vectors[0].dtype == np.float32
    assert one.task == "regression"
    both = Targets.of_numbers(np.array([[1.0, 2.0], [3.0, 4.0]]), float)
    assert [v.tolist() for v in both.vectors] == [[[1, 2], [3, 4]]]
    assert (both.outputs, both.scores, one.outputs, one.scores) == (2, 2, 0, 1)
    with pytest.raises(ValueError, match="targets of a regression must be numbers, got"):
        Targets.of_numbers(np.array(["a"]), float)


@pytest.mark.parametrize("wanted", ["balanced", {0: 2.0, 1: 0.5, 2: 3.0}, {1: 4.0}])
def test_class_weights_are_scikit_learn_s(wanted):
    y = np.random.default_rng(0).integers(0, 3, 50)
    got = Targets.of_classes(y).weights(wanted, None, float)
    np.testing.assert_allclose(got, compute_sample_weight(wanted, y))


def test_balanced_weights_count_sample_weights():
    rng = np.random.default_rng(1)
    y, w = rng.integers(0, 3, 60), rng.integers(1, 4, 60)
    targets = Targets.of_classes(y)
    weights = targets.weights("balanced", w, float)
    repeated = Targets.of_classes(y.repeat(w)).weights("balanced", None, float)
    np.testing.assert_allclose(weights / w, np.array([repeated[y.repeat(w) == k][0] for k in y]))
    sums = [weights[y == k].sum() for k in range(3)]
    np.testing.assert_allclose(sums, sums[0])


@pytest.mark.parametrize("wanted", ["balanced", {0: 2.0, 1: 0.5, 2: 3.0}])
@pytest.mark.parametrize("kinds", [[0, 2], [1], [0, 1, 2]])
def test_classes_that_do_not_occur_take_no_weight_from_the_others(wanted, kinds):
    """A stream may meet them later; weights of those that are there have the mean 1 if balanced."""
    y = np.random.default_rng(2).choice(kinds, 40)
    got = Targets.of_classes(y, np.arange(3)).class_weights(wanted, None, float)
    np.testing.assert_allclose(got, compute_sample_weight(wanted, y))
    if wanted == "balanced":
        assert got.mean() == pytest.approx(1)


def test_a_class_without_weight_takes_none_from_the_others():
    y = np.array([0, 1, 1, 2, 2, 2])
    w = np.array([2.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    got = Targets.of_classes(y).class_weights("balanced", w, np.float32)
    np.testing.assert_allclose(got, w)  # two and two already
    assert got.dtype == np.float32


def test_bad_weights_are_named():
    y = np.array([0, 1, 1])
    targets = Targets.of_classes(y)
    with pytest.raises(ValueError, match="class_weight must be None, 'balanced' or a dict"):
        targets.weights("balance", None, float)
    with pytest.raises(ValueError, match="class_weight must name classes of y, got 7"):
        targets.weights({7: 1.0}, None, float)
    np.testing.assert_array_equal(targets.weights({0: 1, 1: 2, 7: 3}, None, float), [1, 2, 2])
    with pytest.raises(ValueError, match="at least two classes with positive weight, got 1 class"):
        targets.weights({0: 0.0}, None, float)
    with pytest.raises(ValueError, match="at least two classes"):
        Targets.of_classes(np.ones(3)).weights(None, None, float)


def test_task():
    numbers, labels = np.linspace(0, 1, 30), np.array([0.0, 1.0])
    assert decide_task(numbers) == "regression"
    assert decide_task(labels) == decide_task(np.array(["a"])) == "classification"
    assert decide_task(labels, "regression") == decide_task(labels, loss="Huber") == "regression"
    assert decide_task(numbers, loss=losses.Logistic()) == "classification"
    with pytest.raises(ValueError, match="loss logistic does not fit the task regression"):
        decide_task(labels, "regression", "logistic")


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.arange(20.0), True),
        (np.arange(21.0), False),
        (np.arange(19.0) + 0.5, False),
        (np.array([0.5, 1.5, 0.5]), True),
        (np.array([0.5, 1.5, 2.5]), False),
        (np.array([True, False, True]), True),
        (np.arange(30).astype(str), True),
    ],
)
def test_what_looks_like_classes(y, classes):
    assert looks_like_classes(y) is classes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_have_the_dtype_of_the_model(dtype):
    X = np.ones((3, 2), dtype)
    for outputs in (1, 3):
        coef, b = np.ones((outputs, 2), dtype), np.zeros(outputs, dtype)
        numbers = LinearPredictor(coef, b, None, losses.Squared())
        assert numbers.decision(X).dtype == numbers.predict(X).dtype == dtype
    two = LinearPredictor(coef[:1], b[:1], np.array([0, 1]), losses.Logistic())
    assert two.predict_proba(X).dtype == dtype


def test_predictions_mean_what_the_loss_says():
    X = np.array([[1.0, 2.0], [0.0, -1.0]])
    coef, b = np.ones((1, 2)), np.array([0.5])
    z = np.array([3.5, -0.5])
    poisson = LinearPredictor(coef, b, None, losses.Poisson())
    np.testing.assert_allclose(poisson.predict(X), np.exp(z))
    np.testing.assert_allclose(LinearPredictor(coef, b, None, losses.Huber()).predict(X), z)
    labels = np.array(["no", "yes"])
    two = LinearPredictor(coef, b, labels, losses.Logistic())
    assert two.predict(X).tolist() == ["yes", "no"]
    assert two.predict(np.array([[0.0, -0.5]])).tolist() == ["no"]  # a score of 0 says nothing
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], 1 / (1 + np.exp(-z)))
    np.testing.assert_allclose(
        two.losses(X, np.array(["yes", "yes"])), losses.Logistic().value(z, np.ones(2))
    )
    with pytest.raises(ValueError, match="loss logistic only"):
        LinearPredictor(coef, b, labels, losses.SquaredHinge()).predict_proba(X)
    with pytest.raises(ValueError, match="loss logistic only"):
        poisson.predict_proba(X)
