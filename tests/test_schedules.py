import numpy as np
import pytest

import adafw
from adafw import metrics, schedules, steps
from adafw.schedules import as_batch_size, as_schedule


def test_named_schedules():
    assert [schedules.OpenLoop()(t) for t in (0, 2)] == [1.0, 0.5]
    assert schedules.OpenLoop(1, 1)(3) == 0.25
    assert schedules.Power(3.0, -0.5)(3) == 1.5


@pytest.mark.parametrize(
    ("rule", "sizes"),
    [
        (schedules.Share(100), {(0, 1): 1, (5, 250): 2, (9, 20242): 202}),
        (schedules.QuadraticGrowth(), {(0, 100): 1, (7, 100): 5, (10, 100): 10, (99, 100): 100}),
        (schedules.LinearGrowth(), {(0, 100): 1, (7, 100): 7, (70, 100): 10, (70, 5): 1}),
        (schedules.Doubling(), {(0, 99): 1, (1, 99): 2, (6, 99): 4, (7, 99): 8, (200, 99): 99}),
        (as_batch_size(2.2, None), {(0, 1): 3}),
        (as_batch_size(lambda t: t + 0.5, None), {(0, 10): 1, (11, 10): 12}),
    ],
    ids=repr,
)
def test_batch_sizes(rule, sizes):
    assert {key: rule(*key) for key in sizes} == sizes


def test_ranges_are_checked_for_numbers_at_once_and_for_functions_when_called():
    with pytest.raises(ValueError, match=r"step_size must be a number >= 0 and <= 1, got 1\.5"):
        steps.FrankWolfeStep(1.5)
    with pytest.raises(ValueError, match="learning_rate must be a number that is finite and > 0"):
        steps.ProjectedStep(0.0)
    with pytest.raises(ValueError, match="learning_rate must be"):
        steps.AdaptiveStep(float("nan"))
    with pytest.raises(ValueError, match="learning_rate must be"):
        steps.ProjectedStep(float("inf"))
    with pytest.raises(ValueError, match='number, a function of t or "auto", got'):
        steps.AdaptiveStep("fast")
    with pytest.raises(ValueError, match=r"inner_steps must be an integer >= 1, got 0\."):
        adafw.AdaCSFW(1.0, inner_steps=0)
    with pytest.raises(ValueError, match="max_step must be"):
        adafw.AdaCSFW(1.0, max_step=-0.1)
    with pytest.raises(ValueError, match="offset must be"):
        adafw.AdaCSFW(1.0, offset=0)
    with pytest.raises(ValueError, match="batch_size must be"):
        adafw.CSFW(batch_size=0)
    rule = as_schedule(lambda t: 1 - t, "max_step", 0, 1)
    assert rule(0) == 1
    with pytest.raises(ValueError, match=r"max_step at t = 2 must be .*, got -1"):
        rule(2)
    assert as_schedule(np.float32(0.5), "x", 0)(3) == 0.5


def test_a_learning_rate_is_auto_unless_given():
    for preset in (adafw.AdaFW, adafw.AdaSFW, adafw.AdaSVRF, adafw.AdaSPIDERFW, adafw.AdaORGFW,
                   adafw.AdaCSFW, adafw.AdamSFW, adafw.AdaGrad, adafw.AMSGrad):  # fmt: skip
        assert preset().step.learning_rate == "auto"
        assert preset(0.5).step.learning_rate(3) == 0.5


def test_clipping_bounds_are_checked():
    base = metrics.AdaGrad()
    with pytest.raises(ValueError, match="lower must be"):
        metrics.Clipped(base, 0.0, 1.0)
    with pytest.raises(ValueError, match="lower must stay <= upper"):
        metrics.Clipped(base, 2.0, 1.0)
    x = np.zeros(2)
    for wrong in (
        metrics.Clipped(base, lambda t: 1 / (t + 1), 5.0),
        metrics.Clipped(base, 0.1, lambda t: 1.0 + t),
        metrics.Clipped(metrics.Clipped(base, 0.1, lambda t: 1.0 + t), 0.2, 0.3),
    ):
        _, _, state = wrong.update(x, 0, wrong.init(x))
        with pytest.raises(ValueError, match="lower must not decrease, upper must not increase"):
            wrong.update(x, 1, state)
    one_sided = metrics.Clipped(base, 0.5, float("inf"))
    assert np.array_equal(one_sided.update(x, 0, one_sided.init(x))[1], [0.5, 0.5])
    late = metrics.Clipped(base, lambda t: 0.5 if t == 7 else 1.0, 5.0)
    state = late.init(x)
    for t in range(7):
        _, _, state = late.update(x, t, state)
    with pytest.raises(ValueError, match="lower must not decrease"):
        late.update(x, 7, state)


def test_clipping_acts_on_what_is_used_and_not_on_what_is_accumulated():
    g = np.array([0.1, 3.0, 100.0])
    plain, clipped = metrics.AdaGrad(), metrics.Clipped(metrics.AdaGrad(), 1.0, 10.0)
    one, two = plain.init(g), clipped.init(g)
    for t in range(3):
        _, h, one = plain.update(g, t, one)
        _, h_clipped, two = clipped.update(g, t, two)
        assert np.array_equal(h_clipped, np.clip(h, 1, 10))
    assert np.array_equal(one["sum_squares"], two["sum_squares"])


@pytest.mark.parametrize("betas", [(0.9, 0.5), (0.99, 0.98), (1.0, 1.0), (-0.1, 0.9), (0.9,), 0.9])
def test_betas_are_checked(betas):
    with pytest.raises((ValueError, TypeError), match="betas"):
        adafw.AdamSFW(0.1, betas=betas)


def test_open_loops_of_every_order():
    """l / (t + l), the logarithmic one between them, and Lu and Freund's weights 2 p + t."""
    t = np.arange(1, 2000)
    log = np.array([schedules.LogOpenLoop()(k) for k in t])
    assert (log >= [schedules.OpenLoop(2, 2)(k) for k in t]).all()
    assert (log <= [schedules.OpenLoop(10, 10)(k) for k in t]).all()
    assert schedules.LogOpenLoop()(0) == schedules.OpenLoop(4, 4)(0) == 1
    weight, mean = schedules.LuFreundStep(7), np.zeros(50)
    for k in range(50):  # x_{t+1} = (1 - gamma) x_t + gamma v_t with v_t the t-th unit vector
        mean = (1 - weight(k)) * mean + weight(k) * np.eye(50)[k]
    assert np.allclose(mean, (14 + np.arange(50)) / (14 + np.arange(50)).sum(), atol=1e-15)
    assert schedules.Capped(lambda t: t, 3.0)(2) == 2
    assert schedules.Capped(lambda t: t, 3.0)(5) == 3


def test_schedules_in_numbers():
    log = schedules.LogOpenLoop()
    assert [log(t) for t in (0, 1, 10)] == pytest.approx(
        [1.0, (2 + np.log(2)) / (3 + np.log(2)), (2 + np.log(11)) / (12 + np.log(11))]
    )
    assert [schedules.LuFreundStep(3)(t) for t in (0, 4)] == pytest.approx([1.0, 2 * 10 / (5 * 16)])
    assert [schedules.Power(3.0, -0.5)(t) for t in (0, 8)] == [3.0, 1.0]
    assert schedules.Power(2.0, 2.0, 3.0)(1) == 32
    assert schedules.Scaled(schedules.OpenLoop(), 0.25)(2) == 0.125
    assert [schedules.Stages().around(t) for t in (0, 5, 6, 13, 14, 25, 26, 42)] == [
        (0, 6), (0, 6), (6, 8), (6, 8), (14, 12), (14, 12), (26, 16), (42, 23),
    ]  # fmt: skip
    assert schedules.Share()(0, 1000) == 10
    assert [schedules.Doubling()(t, 10**9) for t in range(8)] == [1, 2, 2, 4, 4, 4, 4, 8]
    assert [schedules.QuadraticGrowth()(t, 100) for t in (1, 3, 4, 31, 32)] == [1, 1, 2, 97, 100]


def test_a_schedule_takes_the_range_of_where_it_is_put():
    wide = as_schedule(np.inf, "upper", 0, infinite=True)
    assert wide(0) == np.inf
    with pytest.raises(ValueError, match="step_size must be a number >= 0 and <= 1, got inf"):
        as_schedule(wide, "step_size", 0, 1)
    growing = as_schedule(lambda t: t, "a", 0)
    assert as_schedule(growing, "b", 1, 9).rule is growing.rule
    with pytest.raises(ValueError, match="b at t = 0 must be"):
        as_schedule(growing, "b", 0, above=True)(0)
    for wrong, name in ((1.1, "probability"), (-0.1, "probability")):
        with pytest.raises(ValueError, match=f"{name} must be a number >= 0 and <= 1"):
            schedules.as_probability(wrong)
    assert schedules.as_probability(None) is None
    assert [schedules.as_probability(p)(3) for p in (0, 0.5, 1)] == [0, 0.5, 1]
    nothing = as_batch_size(lambda t: t, None)
    with pytest.raises(ValueError, match="batch_size at t = 0 must be"):
        nothing(0, 9)
    assert as_batch_size(None, schedules.Share(3)) == schedules.Share(3)
    assert as_batch_size(schedules.Doubling(), None) == schedules.Doubling()
    assert schedules.as_rate("auto") == "auto"
    assert schedules.as_rate(np.inf, infinite=True)(0) == np.inf
    for wrong in (0, -1.0, np.inf):
        with pytest.raises(ValueError, match="learning_rate must be"):
            schedules.as_rate(wrong)
    assert schedules.at(schedules.as_rate(lambda t: 1 / (t + 1)), 3) == 0.25
    with pytest.raises(TypeError, match="which minimize alone can do without"):
        schedules.at("auto", 0)


def test_how_schedules_are_written():
    def falling(t):
        return 1 / (t + 1)

    assert repr(as_schedule(0.25, "a", 0)) == "0.25"
    assert repr(as_schedule(falling, "a", 0)) == "falling"
    assert repr(as_schedule(schedules.OpenLoop(), "a", 0)) == "OpenLoop(numerator=2.0, shift=2.0)"
    assert repr(as_batch_size(7, None)) == "7"
