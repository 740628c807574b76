import math
from dataclasses import dataclass

import pytest
from fused_problems import linear_model

import adafw
from adafw import gradients, losses, metrics, paths, steps
from adafw.objectives import WithIntercept
from adafw.rows import CSRRows

F = linear_model(30, 20)
BALL = adafw.L1Ball(1.0)


@dataclass(frozen=True, eq=False)
class MyBall(adafw.L1Ball):
    pass


class MyModel(adafw.LinearModel):
    pass


class MyLoss(losses.Logistic):
    pass


class MyRows(CSRRows):
    pass


class MyGradient(gradients.CSFW):
    pass


class MyStep(steps.FrankWolfeStep):
    pass


class MyMetric(metrics.AdaGrad):
    pass


@pytest.mark.parametrize(
    ("f", "constraint", "algorithm"),
    [
        (adafw.Counted(F), BALL, adafw.CSFW()),
        (F, MyBall(1.0), adafw.CSFW()),
        (F, adafw.Simplex(1.0), adafw.CSFW()),
        (F, BALL, adafw.SFW()),
        (F, BALL, adafw.AMSGrad(0.1)),
        (F, BALL, adafw.AdaGrad(0.1)),
        (MyModel(F.rows, F.y, F.loss), BALL, adafw.CSFW()),
        (adafw.LinearModel(F.rows, F.y, MyLoss()), BALL, adafw.CSFW()),
        (adafw.LinearModel(MyRows(F.rows.matrix), F.y, F.loss), BALL, adafw.CSFW()),
        (WithIntercept(F), BALL, adafw.SVRF()),
        (F, BALL, adafw.Algorithm(MyGradient(), steps.FrankWolfeStep())),
        (F, BALL, adafw.Algorithm(gradients.CSFW(), steps.FrankWolfeStep(averaging=0.5))),
        (F, BALL, adafw.Algorithm(gradients.CSFW(), MyStep())),
        (F, BALL, adafw.Algorithm(gradients.CSFW(), steps.AdaptiveStep(1.0, inner_gap=0.1))),
        (F, BALL, adafw.Algorithm(gradients.CSFW(), steps.AdaptiveStep(1.0, metric=MyMetric()))),
        (F, BALL, adafw.Algorithm(gradients.CSFW(), steps.ProjectedStep(1.0, metrics.AMSGrad()))),
        (F, BALL, adafw.AdaCSFW(1.0, 7, inner="corrective")),
        (F, BALL, adafw.AdaCSFW(lambda t: 1 / (t + 1), inner="corrective")),
        (F, BALL, adafw.AdaCSFW(math.inf, inner="corrective")),
        (
            F,
            BALL,
            adafw.Algorithm(
                gradients.CSFW(),
                steps.AdaptiveStep(1.0, 5, 1.0, metrics.Clipped(metrics.AdaGrad(), 1, 2)),
            ),
        ),
    ],
)
def test_what_no_kernel_knows_is_left_to_the_one_loop(f, constraint, algorithm):
    assert paths.find(f, constraint, algorithm).name == "generic"
    with pytest.raises(ValueError, match="there is no fused path for"):
        paths.find(f, constraint, algorithm, "fused")


def test_paths_are_named():
    with pytest.raises(ValueError, match="path must be one of auto, generic, fused, lazy, got 'x'"):
        adafw.minimize(F, BALL, adafw.CSFW(), path="x")
    with pytest.raises(ValueError, match="there is no lazy path for SVRF"):
        adafw.minimize(F, BALL, adafw.SVRF(), path="lazy")
    for path in ("generic", "fused", "lazy"):
        assert adafw.minimize(F, BALL, adafw.CSFW(), path=path, max_iterations=1).path == path
