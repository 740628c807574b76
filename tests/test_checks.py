import math
from fractions import Fraction

import numpy as np
import pytest

import adafw
from adafw import checks, gradients, losses, steps


def test_any_finite_number_is_real_unless_a_range_is_given():
    for value in (-3, -1e300, 0.0, 5e-324, np.float32(2.5), Fraction(1, 3)):
        assert checks.real(value, "it") == float(value)
    for value in (math.inf, -math.inf, math.nan, 10**400, -(10**400)):
        with pytest.raises(ValueError, match="it must be a number that is finite, got"):
            checks.real(value, "it")
    assert checks.real(-math.inf, "it", infinite=True) == -math.inf
    assert checks.real(10**400, "it", 0, infinite=True) == math.inf


@pytest.mark.parametrize(
    "value", [-(10**400), Fraction(-(10**400), 3)], ids=["integer", "fraction"]
)
def test_numbers_below_all_floats_keep_their_sign(value):
    assert checks.real(value, "it", infinite=True) == -math.inf
    with pytest.raises(ValueError, match=r"it must be a number that is finite and >= 0, got -"):
        checks.real(value, "it", 0, infinite=True)
    problem = adafw.LinearModel(np.eye(2), np.ones(2), losses.Squared()), adafw.L1Ball(1.0)
    for limit in ("max_iterations", "max_epochs", "max_seconds", "max_lmo_calls"):
        with pytest.raises(ValueError, match=f"{limit} must be a number"):
            adafw.minimize(*problem, adafw.FW(), **{"max_cpu_seconds": 0.0, limit: value})


def test_ranges_are_told():
    for how, told in (
        ({"low": 0}, "finite and >= 0"), ({"low": 0, "above": True}, "finite and > 0"),
        ({"low": 0, "high": 1}, ">= 0 and <= 1"),
        ({"low": 0, "high": 1, "above": True, "below": True}, "> 0 and < 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"it must be a number .*{told}, got -2"):
            checks.real(-2, "it", **how)


def test_long_numbers_are_cut_in_messages():
    with pytest.raises(ValueError, match=r"got 1{20}\.\.\. \(41 digits\)"):
        checks.real(int("1" * 41), "it", 0, 1)
    with pytest.raises(ValueError, match=r"got 1{40}\."):
        checks.real(int("1" * 40), "it", 0, 1)
    with pytest.raises(ValueError, match="got one with thousands of digits"):
        checks.real(10**5000, "it", 0, 1)


@pytest.mark.parametrize(
    ("step", "calls"),
    [
        (steps.FrankWolfeStep(), 1), (steps.PreconditionedStep(), 1), (steps.CorrectiveStep(), 1),
        (steps.AwayStep(), 1), (steps.BlendedPairwiseStep(), 1), (steps.SpectralStep(), 0),
        (steps.ProjectedStep(0.1), 0), (steps.AdaptiveStep(0.1, inner_steps=7), 7),
        (steps.BoostedStep(rounds=9), 9), (steps.SlidingStep(inner_steps=6), 6),
    ],
)  # fmt: skip
def test_most_calls_of_the_lmo(step, calls):
    assert step.most_lmo_calls == calls


def test_estimates_cost_what_their_papers_say():
    m = 40
    costs = [
        (gradients.Full(), 40), (gradients.Minibatch(3), 3), (gradients.CSFW(3), 3),
        (gradients.SAGA(3), 3), (gradients.Momentum(3), 3), (gradients.ORGFW(3), 6),
    ]  # fmt: skip
    for estimate, cost in costs:
        assert estimate.evaluations(1, m) == cost


def test_softmax_counts_its_classes():
    assert losses.Softmax().outputs(np.array([0, 2, 1])) == 3
