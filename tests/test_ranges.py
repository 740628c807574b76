"""The ranges of numbers that users give: their ends are taken or refused as they should be."""

import math
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import adafw
from adafw import constraints, datasets, gradients, losses, metrics, schedules, steps, theory
from adafw.steps import rules

TINY = 5e-324


class Number(NamedTuple):
    name: str  # as messages have it
    make: object
    allowed: tuple
    refused: tuple


def positive(name, make):
    return Number(name, make, (TINY, 1e300), (0.0, -1.0, math.inf, math.nan))


def share(name, make):
    return Number(name, make, (0.0, 1.0), (-TINY, math.nextafter(1, 2), math.nan))


def count(name, make, least):
    return Number(name, make, (least, least + 3), (least - 1, least + 0.5))


NUMBERS = [
    positive("offset", lambda v: metrics.AdaGrad(offset=v)),
    positive("offset", lambda v: metrics.AMSGrad(offset=v)),
    positive("offset", lambda v: metrics.Adam(offset=v)),
    positive("offset", lambda v: metrics.RMSProp(offset=v)),
    positive("epsilon", lambda v: metrics.AdaDelta(epsilon=v)),
    Number("beta", lambda v: metrics.RMSProp(beta=v), (0.0, 0.999), (-TINY, 1.0)),
    Number("beta", lambda v: metrics.AdaDelta(beta=v), (0.0, 0.999), (-TINY, 1.0)),
    positive("delta", losses.Huber),
    positive("width", losses.SmoothedHinge),
    share("forgetting", lambda v: gradients.Momentum(forgetting=v)),
    share("forgetting", lambda v: gradients.ORGFW(forgetting=v)),
    share("forgetting", lambda v: gradients.LuFreund(forgetting=v)),
    Number("step_size", lambda v: gradients.LuFreund(step_size=v), (TINY, 1.0), (0.0, 1.1)),
    share("probability", lambda v: gradients.PAGE(probability=v)),
    share("probability", lambda v: gradients.LSVRG(probability=v)),
    Number("batch_size", lambda v: gradients.CSFW(v), (TINY, 1e9), (0, -1, math.inf)),
    count("k0", lambda v: gradients.SVRF(k0=v), 0),
    count("k", lambda v: constraints.KSparse(1.0, v), 1),
    Number("radius", adafw.L1Ball, (TINY, 1e151), (0.0, -1.0, 1.1e151, math.inf, math.nan)),
    Number("p", lambda v: adafw.L1Ball(1.0).diameter(3, v), (1, 2.5, math.inf), (0.99, -1)),
    share("step_size", lambda v: steps.FrankWolfeStep(step_size=v)),
    share("averaging", lambda v: steps.FrankWolfeStep(averaging=v)),
    share("step_size", lambda v: steps.BoostedStep(step_size=v)),
    share("step_size", lambda v: steps.PreconditionedStep(step_size=v)),
    count("rounds", lambda v: steps.BoostedStep(rounds=v), 1),
    Number("improvement", lambda v: steps.BoostedStep(improvement=v), (TINY, 0.999), (0.0, 1.0)),
    count("inner_steps", lambda v: steps.AdaptiveStep(1.0, inner_steps=v), 1),
    share("max_step", lambda v: steps.AdaptiveStep(1.0, max_step=v)),
    Number("inner_gap", lambda v: steps.AdaptiveStep(1.0, inner_gap=v), (0.0, 9.0), (-TINY,)),
    Number("learning_rate", steps.AdaptiveStep, (TINY, math.inf), (0.0, -1.0, math.nan)),
    count("inner_steps", lambda v: steps.NewtonStep(inner_steps=v), 1),
    count("memory", lambda v: steps.SpectralStep(memory=v), 1),
    count("inner_steps", lambda v: steps.SlidingStep(inner_steps=v), 1),
    positive("L", lambda v: rules.ShortStep(L=v)),
    Number("increase", lambda v: rules.Backtracking(increase=v), (1.1, 9.0), (1.0, 0.5)),
    Number("decrease", lambda v: rules.Backtracking(decrease=v), (TINY, 1.0), (0.0, 1.1)),
    count("m", lambda v: datasets.support_vector(v, 2), 1),
    count("n", lambda v: datasets.support_vector(2, v), 1),
    count("m", lambda v: datasets.text_like(v, 3, 2.0), 1),
    Number("nonzeros", lambda v: datasets.text_like(2, 3, v), (0.1, 3), (0, -1)),
    count("n", lambda v: datasets.correlated_regression(3, v), 1),
    count("rank", lambda v: datasets.low_rank(3, v), 1),
    share("share", lambda v: datasets.low_rank(3, 1, v)),
    Number("noise", lambda v: datasets.low_rank(3, 1, noise=v), (0.0, 2.0), (-TINY,)),
    count("features", lambda v: datasets.matching(3, v), 1),
    Number("noise", lambda v: datasets.matching(3, 1, v), (0.0, 2.0), (-TINY,)),
    count("size", lambda v: constraints.group_ball.consecutive(6, v), 1),
    count("n", lambda v: constraints.group_ball.consecutive(v, 2), 1),
    count("n_terms", lambda v: adafw.UserSum(v, lambda x: 0.0, lambda x, batch: x), 1),
]


def optimizer(name, **options):
    """One of adafw.torch, on one parameter in a ball."""
    torch = pytest.importorskip("torch")
    import adafw.torch

    p = torch.nn.Parameter(torch.zeros(3, 2))
    group = {"params": [p], "constraint": adafw.LInfBall(1.0)}
    return getattr(adafw.torch, name)([group], **{"lr": 0.1, **options})


def guarantee(name, **options):
    return getattr(theory, name)(MODEL, adafw.L1Ball(1.0), lower=1.0, upper=2.0, **options)


def minimize(**options):
    return adafw.minimize(MODEL, adafw.L1Ball(1.0), adafw.FW(), **{"max_iterations": 1, **options})


def classify(**options):
    from sklearn.exceptions import ConvergenceWarning

    from adafw.sklearn import FrankWolfeClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # tol=0 may be out of reach
        return FrankWolfeClassifier(**options).fit(np.eye(4), [0, 1, 0, 1])


MODEL = adafw.LinearModel(np.eye(3), np.array([1.0, -1.0, 1.0]), losses.Logistic())
BETA = (0.0, 0.999), (-0.1, 1.0)
NUMBERS += [
    *(count("inner_steps", lambda v, name=name: guarantee(name, inner_steps=v), 1)
      for name in ("theorem_3_1", "theorem_3_3", "theorem_3_5", "theorem_3_7")),
    Number("nu", lambda v: guarantee("theorem_3_3", nu=v), (TINY, 0.499), (0.0, 0.5)),
    count("horizon", lambda v: guarantee("theorem_3_3", horizon=v), 1),
    Number("initial_error", lambda v: guarantee("theorem_3_3", initial_error=v), (0.0, 2), (-1,)),
    count("k0", lambda v: guarantee("theorem_3_5", k0=v), 0),
    count("batch_size", lambda v: guarantee("theorem_3_7", batch_size=v), 1),
    count("t", guarantee("theorem_3_1").bound, 1),
    count("t", guarantee("theorem_3_3").bound, 0),
    Number("smoothness", lambda v: theory.Constants(v, 1.0, 1.0), (TINY, 9.0), (0.0, -1.0)),
    Number("gap_tolerance", lambda v: minimize(gap_tolerance=v), (0.0, 1.0), (-TINY, math.nan)),
    Number("max_epochs", lambda v: minimize(max_epochs=v), (0.0, math.inf), (-TINY, math.nan)),
    Number("max_seconds", lambda v: minimize(max_seconds=v), (0.0, math.inf), (-TINY,)),
    count("record_every", lambda v: minimize(record_every=v), 1),
    Number("tol", lambda v: classify(tol=v), (0.0, 0.1), (-TINY, math.inf)),
    Number("max_epochs", lambda v: classify(max_epochs=v), (9, 30.5), (0.0, -1.0)),
    Number("max_seconds", lambda v: classify(max_seconds=v), (0.5, 3), (0.0, -1.0)),
    Number("momentum", lambda v: optimizer("SFW", momentum=v), *BETA),
    Number("b1", lambda v: optimizer("SFW", betas=(v, 0.5)), *BETA),
    Number("b2", lambda v: optimizer("SFW", betas=(0.5, v)), *BETA),
    Number("radius_scale", lambda v: optimizer("SFW", radius_scale=v), (TINY, 9.0), (0.0, -1.0)),
    count("inner_steps", lambda v: optimizer("AdaSFW", inner_steps=v), 1),
    count("inner_steps", lambda v: optimizer("AdamSFW", inner_steps=v), 1),
    share("max_step", lambda v: optimizer("AdaSFW", max_step=v)),
    *(positive("offset", lambda v, name=name: optimizer(name, offset=v))
      for name in ("AdaSFW", "AdamSFW", "AdaGrad", "AMSGrad")),
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_ends_of_a_range(number):
    for value in number.allowed:
        number.make(value)
    for value in (*number.refused, True, "1"):
        with pytest.raises((ValueError, TypeError), match=number.name):
            number.make(value)


@pytest.mark.parametrize("metric", [metrics.Adam, metrics.AMSGrad])
def test_betas(metric):
    for betas in ((0.0, TINY), (0.0, 0.999), (0.9, 0.82)):
        metric(betas=betas)
    for betas, name in (((-0.1, 0.5), 0), ((1.1, 0.5), 0), ((0.5, -0.1), 1), ((0.5, 1.1), 1)):
        with pytest.raises(ValueError, match=rf"betas\[{name}\] must be a number"):
            metric(betas=betas)
    for betas in ((0.0, 0.0), (0.9, 0.81), (0.9, 0.5), (0.5, 1.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="betas must satisfy"):
            metric(betas=betas)
    for betas in (0.9, (0.9,), (0.9, 0.9, 0.9)):
        with pytest.raises(TypeError, match="betas must be a pair"):
            metric(betas=betas)


def test_a_function_of_t_is_held_to_the_same_range():
    rule = schedules.as_schedule(lambda t: t / 2, "it", 0, 1)
    assert [rule(t) for t in (0, 1, 2)] == [0, 0.5, 1]
    with pytest.raises(ValueError, match=r"it at t = 3 must be a number >= 0 and <= 1, got 1\.5"):
        rule(3)


def test_groups_of_consecutive_coordinates():
    np.testing.assert_array_equal(constraints.group_ball.consecutive(7, 3), [0, 0, 0, 1, 1, 1, 2])


@pytest.mark.parametrize(
    ("slope", "d", "eta", "bound", "size"),
    [
        ([-1.0, 0], [1.0, 0], 1.0, 1.0, 0.5),
        ([-1.0, 0], [1.0, 0], 4.0, 1.0, 1.0),  # cut
        ([-1.0, 0], [1.0, 0], 4.0, 2.0, 2.0),
        ([-1.0, 0], [1.0, 0], math.inf, 1.0, 1.0),
        ([0.0, 1], [1.0, 0], math.inf, 1.0, 0.0),  # level, not inf * 0
        ([0.0, 1], [1.0, 0], 1.0, 1.0, 0.0),
        ([1.0, 0], [1.0, 0], 1.0, 1.0, 0.0),  # uphill
        ([-1.0, 0], [0.0, 0], 1.0, 1.0, 0.0),
        ([-1.0, 0], [1.0, 0], 1.0, 0.0, 0.0),
        ([-3.0, 1], [2.0, 2], 0.5, 9.0, 0.5 * 4 / 24),
    ],
)
def test_short_steps(slope, d, eta, bound, size):
    """The minimiser of <slope, d> gamma + <d, H d> gamma^2 / (2 eta) on [0, bound]."""
    h = np.array([2.0, 4.0])
    assert steps.short_step(np.array(slope), np.array(d), h, eta, bound) == pytest.approx(size)


def test_a_learning_rate_of_torch():
    for lr in (0.0, 1.0):
        optimizer("SFW", lr=lr)
    for lr in (-TINY, math.inf, math.nan):
        with pytest.raises(ValueError, match="lr must be a number that is finite and >= 0"):
            optimizer("SFW", lr=lr)
