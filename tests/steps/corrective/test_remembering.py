"""Predictions that steps lead along: what is kept, what is trusted, and what is forgotten."""

from typing import Any

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.steps.corrective.remembering import SAME, SHRUNK, keep, led, reach, recall


def model(dtype=np.float64):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 4)).astype(dtype)
    return adafw.LinearModel(A, np.where(rng.random(20) < 0.5, 1, -1), losses.Logistic())


def knows(f, x, z):
    """Whether f takes z for A x."""
    return np.array_equal(f.predictions(x)[0], z)


@pytest.mark.parametrize("intercept", [False, True])
def test_what_is_kept_is_what_the_objective_goes_on_with(intercept):
    f, x, state = model(), np.arange(4.0), {}
    z = f.rows.dot(x) * (1 + 1e-12)
    keep(WithIntercept(f) if intercept else f, x, z, state)
    assert knows(f, x, z)
    np.testing.assert_array_equal(state["predictions"], z)


def test_curves_that_are_known_are_kept_too():
    f, x = model(), np.arange(4.0)
    keep(f, x, f.rows.dot(x), {}, (7.0, np.zeros(20), np.zeros(20)))
    assert f.value(x) == 7.0


def test_predictions_reach_as_far_as_they_have_been():
    """Since they were a product: having come down to less than half of it, they are no longer."""
    f, x = model(), np.arange(4.0)
    far = float(np.abs(f.rows.dot(x)).max())
    for share, precise in ((2.0, True), (1.0, True), (0.51, True), (0.49, False)):
        z = np.zeros(20)
        z[3] = -share * far
        assert reach(f, x, z, {}) == ((max(share, 1.0) if precise else share) * far, precise)
        # A state that has been farther counts, not where the step began.
        assert reach(f, 0 * x, z, {"reach": far}) == reach(f, x, z, {})
    assert SHRUNK == 2.0


@pytest.mark.parametrize("rough", [False, True])
def test_steps_lead_their_predictions_along(rough):
    f, x, new = model(), np.zeros(4), np.ones(4)
    z, state = f.rows.dot(new) + 1e-12, {"predictions": np.ones(20)}
    led(f, x, new, z, state, rough)
    assert knows(f, new, z) is not rough
    assert ("predictions" in state) is not rough
    assert state["reach"] == np.abs(z).max()
    if not rough:
        np.testing.assert_array_equal(state["predictions"], z)
    down = z / 10  # of predictions that come down from ten times as large ones, digits are lost
    led(f, new, 0.1 * new, down, state)
    assert not knows(f, 0.1 * new, down)
    assert "predictions" not in state
    assert state["reach"] == np.abs(down).max()


def test_rough_products_forget_how_far_they_have_been():
    f, x = model(), np.zeros(4)
    z, state = -f.rows.dot(np.ones(4)), {"reach": 1.5 * np.abs(f.rows.dot(np.ones(4))).max()}
    led(f, x, -np.ones(4), z, state, True)
    assert state["reach"] == np.abs(z).max()


def test_single_precision_and_other_objectives_are_not_led_along():
    f, state = model(np.float32), {"predictions": np.ones(20)}
    led(f, np.zeros(4, np.float32), np.ones(4, np.float32), np.ones(20), state)
    assert state == {}
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    led(f, np.zeros(4), np.ones(4), np.ones(4), state)
    assert state == {}


def test_predictions_of_a_state_are_taken_where_they_are_those_of_x():
    f, x = model(), np.arange(4.0)
    z = f.rows.dot(x)
    size = float(np.abs(z).max())
    for off, far, same in (
        (0.9, 0.0, True),
        (1.1, 0.0, False),
        (1.1, 2.0, True),
        (2.2, 2.0, False),
    ):
        f, moved = model(), z.copy()
        moved[5] -= off * SAME * size
        state: Any = {"predictions": moved, "reach": far * size}
        recall(f, x, state)
        assert knows(f, x, moved) is same
    for other in (z[:-1], z.astype(np.float32), list(z)):
        f = model()
        recall(f, x, {"predictions": other})  # type: ignore[typeddict-item]
        assert knows(f, x, f.rows.dot(x))


def memory() -> Any:
    return {"chosen": np.array([2, 0]), "gram": np.eye(2), "bends": np.ones(20), "level": 0.5}


def test_a_matrix_that_kernels_can_take_is_left_alone():
    state = memory()
    recall(model(), np.zeros(4), state)
    assert set(state) == {"chosen", "gram", "bends", "level"}
    some: Any = {"gram": np.eye(4), "bends": np.ones(20)}
    recall(model(), np.zeros(4), some)
    assert set(some) == {"gram", "bends"}


@pytest.mark.parametrize(
    ("name", "damaged"),
    [
        ("chosen", np.array([2.0, 0.0])), ("chosen", np.array([2, 4])),
        ("chosen", np.array([-1, 0])),
        ("chosen", np.array([1, 1])), ("chosen", np.array([[2, 0]])), ("chosen", np.zeros(0, int)),
        ("chosen", [2, 0]), ("gram", np.eye(2, dtype=np.float32)), ("gram", np.eye(4)[::2, ::2]),
        ("gram", 1.0), ("bends", np.ones(20, int)), ("bends", np.ones(40)[::2]),
    ],
)  # fmt: skip
def test_what_no_run_leaves_is_forgotten(name, damaged):
    state = memory()
    state[name] = damaged
    recall(model(), np.zeros(4), state)
    assert set(state) == {"level"}
    fixed = memory()
    fixed["gram"].flags.writeable = False
    recall(model(), np.zeros(4), fixed)
    assert set(fixed) == {"level"}


def test_all_columns_may_be_chosen():
    state = memory()
    state["chosen"] = np.array([3, 0])
    recall(model(), np.zeros(4), state)
    assert "chosen" in state


@pytest.mark.parametrize("intercept", [False, True])
def test_predictions_are_a_product_again_every_sixteen_iterations(intercept):
    """What each step rounds adds up: after 300 a gap was told that was 3 000 times too small."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((72, 42)) * np.geomspace(1, 1e4, 42)
    f: Any = adafw.LinearModel(A, 1e3 * rng.standard_normal(72), losses.Huber(10.0))
    f = WithIntercept(f) if intercept else f
    off = {}
    for t in (14, 15, 16):
        x, state = np.full(42, 1e-3), {"predictions": f.rows.dot(np.full(42, 1e-3))}
        step = adafw.steps.CorrectiveStep()
        x, state = step.update(f, adafw.L1Ball(1.0), x, f.gradient(x), t, state)
        off[t] = np.abs(state["predictions"] - A @ x).max()
        np.testing.assert_array_equal(state["predictions"], f.predictions(x)[0])
        if t == 15:
            np.testing.assert_array_equal(state["predictions"], f.rows.dot(x))
            assert state["reach"] == np.abs(state["predictions"]).max()
    assert off[15] <= min(off[14], off[16])


def test_objectives_without_predictions_have_none_to_recall():
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    state = {**memory(), "predictions": np.ones(20)}
    recall(f, np.zeros(4), state)
    assert set(state) == {"chosen", "gram", "bends", "level", "predictions"}
