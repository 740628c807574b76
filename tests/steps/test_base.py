"""What all steps promise: settings that stay, plain numbers, limits on LMO calls, rates."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import adafw
from adafw import steps
from adafw.steps import (
    AdaptiveStep,
    AwayStep,
    Backtracking,
    BlendedPairwiseStep,
    BoostedStep,
    CorrectiveStep,
    FrankWolfeStep,
    HazanLuo,
    LanZhou,
    LineSearch,
    NewtonStep,
    PairwiseStep,
    PreconditionedStep,
    ProjectedStep,
    ShortStep,
    SlidingStep,
    SpectralStep,
)

STEPS = [
    FrankWolfeStep(), AdaptiveStep(0.1), PreconditionedStep(), ProjectedStep(0.1), AwayStep(),
    PairwiseStep(), BlendedPairwiseStep(), BoostedStep(), SlidingStep(), SpectralStep(),
    NewtonStep(), CorrectiveStep(),
]  # fmt: skip
RULES = [ShortStep(), LineSearch(), Backtracking(), LanZhou(), HazanLuo()]


@pytest.mark.parametrize("one", [*STEPS, *RULES], ids=lambda one: type(one).__name__)
def test_settings_do_not_change(one):
    """A run would not be the one that its algorithm describes."""
    for field in fields(one):
        with pytest.raises(FrozenInstanceError):
            setattr(one, field.name, 1)
    with pytest.raises(FrozenInstanceError):
        one.other = 1
    assert one == type(one)(*(getattr(one, field.name) for field in fields(one)))


def test_all_steps_are_here():
    named = {getattr(steps, name) for name in steps.__all__}
    kinds = {one for one in named if isinstance(one, type) and issubclass(one, steps.Step)}
    assert kinds - {steps.Step, steps.AtomicStep} == {type(s) for s in STEPS}


@pytest.mark.parametrize(
    ("step", "calls"),
    [
        (FrankWolfeStep(), 1), (AdaptiveStep(0.1), 5), (AdaptiveStep(0.1, inner_steps=7), 7),
        (AdaptiveStep(0.1, inner="corrective"), 1000), (PreconditionedStep(), 1),
        (AdaptiveStep(0.1, inner="corrective", inner_steps=3), 3), (ProjectedStep(0.1), 0),
        (AwayStep(), 1), (PairwiseStep(), 1), (BlendedPairwiseStep(lazy=True), 1),
        (BoostedStep(), 2001), (BoostedStep(rounds=4), 4), (BoostedStep(rounds=40_000), 2001),
        (BoostedStep(improvement=0.5), 5), (SlidingStep(), 10_000), (SlidingStep(inner_steps=9), 9),
        (SpectralStep(), 0), (NewtonStep(), 1 + 8 * 402), (NewtonStep(10), 1 + 8 * 112),
        (CorrectiveStep(), 1),
    ],
)  # fmt: skip
def test_lmo_calls_of_an_iteration_at_most(step, calls):
    assert step.most_lmo_calls == calls


def test_settings_are_plain_numbers():
    """Which can be described, and written into files."""
    single, number = np.float32(0.5), np.int64(3)
    for found, value in [
        (ShortStep(single).L, 0.5), (Backtracking(np.float32(1.5)).increase, 1.5),
        (Backtracking(decrease=single).decrease, 0.5), (SlidingStep(L=single).L, 0.5),
        (SlidingStep(diameter=single).diameter, 0.5),
        (SlidingStep(inner_steps=number).inner_steps, 3),
        (BoostedStep(rounds=number).rounds, 3), (BoostedStep(improvement=single).improvement, 0.5),
        (SpectralStep(memory=number).memory, 3), (NewtonStep(number).inner_steps, 3),
        (AdaptiveStep(0.1, inner_steps=number).inner_steps, 3),
    ]:  # fmt: skip
        assert type(found) is type(value)
        assert found == value


def test_defaults_are_those_of_the_papers():
    assert [FrankWolfeStep().step_size.rule(t) for t in range(3)] == [1, 2 / 3, 0.5]
    assert FrankWolfeStep().averaging is None
    assert PreconditionedStep().step_size.rule(2) == 0.5
    assert BoostedStep().step_size.rule(2) == 0.5
    assert (BoostedStep().rounds, BoostedStep().improvement) == (None, 1e-3)
    assert (Backtracking().increase, Backtracking().decrease) == (2.0, 0.9)
    assert (ShortStep().L, SlidingStep().L, SlidingStep().diameter) == (None, None, None)
    assert SlidingStep().rule == LanZhou(stochastic=False)
    assert (SlidingStep().inner_steps, SpectralStep().memory) == (10_000, 10)
    assert SpectralStep().scale is None
    assert NewtonStep().inner_steps == 300
    step = AdaptiveStep(0.1)
    assert (step.inner_steps, step.max_step.rule, step.inner_gap) == (5, 1.0, None)
    assert step.inner == "frank_wolfe"
    for one in (step, ProjectedStep(0.1), PreconditionedStep()):
        assert one.metric == adafw.metrics.AdaGrad()
    for one in (AwayStep(), PairwiseStep(), BlendedPairwiseStep()):
        assert (one.step_size, one.lazy) == (LineSearch(), False)


@pytest.mark.parametrize("step", STEPS, ids=lambda one: type(one).__name__)
def test_rates_are_those_of_steps_that_have_one(step):
    if isinstance(step, AdaptiveStep | ProjectedStep):
        assert step.rate.rule == 0.1
        other = step.with_rate(0.5)
        assert other.rate.rule == 0.5
        assert type(other) is type(step)
        assert other.metric == step.metric
        return
    assert step.rate is None
    with pytest.raises(TypeError, match=f"{type(step).__name__} has no learning rate to change"):
        step.with_rate(0.5)


def test_rates_that_change_leave_the_rest():
    step = AdaptiveStep(
        0.1, 7, 0.5, adafw.metrics.Adam(), inner_gap=0.25, inner="frank_wolfe"
    ).with_rate(2.0)
    assert step == AdaptiveStep(2.0, 7, 0.5, adafw.metrics.Adam(), 0.25)


def test_only_corrective_steps_are_dear():
    assert {type(s) for s in STEPS if s.dear} == {CorrectiveStep}
    assert {type(s) for s in STEPS if s.numbers} == {CorrectiveStep}


def test_layouts_of_states():
    """What a state holds at iteration t: nothing before the first step."""
    x = np.zeros(3)
    averaging = FrankWolfeStep(averaging=0.5)
    assert (averaging.layout(x, 0), averaging.layout(x, 1)) == ({}, {"average": x})
    assert FrankWolfeStep().layout(x, 5) == {}
    assert (SlidingStep().layout(x, 0), SlidingStep().layout(x, 2)) == ({}, {"centre": x})
    assert AwayStep().layout(x, 3) == {}
    found = AdaptiveStep(0.1).layout(x, 3)
    assert {name: part.shape for name, part in found.items()} == {
        name: part.shape for name, part in AdaptiveStep(0.1).init(x).items()
    }


@pytest.mark.parametrize("step", STEPS, ids=lambda one: type(one).__name__)
def test_x_and_its_gradient_are_only_read(step):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 5))
    f = adafw.LinearModel(A, np.where(rng.random(30) < 0.5, 1.0, -1.0), adafw.losses.Logistic())
    ball = adafw.L2Ball(1.0)
    x = np.array([0.1, -0.2, 0.3, 0.0, 0.05])
    step.check(f, ball, adafw.gradients.Full())
    state = step.init(x)
    for t in range(4):
        g = f.gradient(step.query(x, t, state))
        kept = x.copy(), g.copy()
        x.flags.writeable = g.flags.writeable = False
        new, state = step.update(f, ball, x, g, t, state)
        np.testing.assert_array_equal(x, kept[0])
        np.testing.assert_array_equal(g, kept[1])
        assert new is not x
        assert ball.violation(new) <= 1e-12
        x = new.copy()


@pytest.mark.parametrize("make", [AdaptiveStep, ProjectedStep, PreconditionedStep])
def test_metrics_are_prepared_before_the_clock_runs(make):
    asked = []

    class Watched(adafw.metrics.Metric):
        def init(self, x):
            return {"h": np.ones_like(x)}

        def prepare(self, x):
            asked.append(x)

        def update(self, g, t, state):
            return g, state["h"], state

    step, x = make(0.5, metric=Watched()), np.zeros(3)
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: x)
    assert step.init(x)["h"].tolist() == [1, 1, 1]
    assert asked == []
    step.prepare(f, adafw.L2Ball(1.0), x, step.init(x))
    assert len(asked) == 1
    assert asked[0] is x
