"""What is no thing of the kind that is asked for is refused in one sentence, at once."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import gradients, losses, metrics, objectives, rows, schedules, steps, theory
from adafw.constraints.base import Constraint

A, Y = np.eye(3), np.array([1.0, -1.0, 1.0])
MODEL = adafw.LinearModel(A, Y, losses.Logistic())
BALL = adafw.L1Ball(1.0)
SUM = adafw.UserSum(3, lambda x: 0.0, lambda x, batch=None: x)


def run(step, gradient=None, f=MODEL, constraint=BALL, **how):
    algorithm = adafw.Algorithm(gradient or gradients.Full(), step)
    return adafw.minimize(f, constraint, algorithm, max_iterations=2, **how)


def user_set(**how):
    return adafw.UserSet(**{"lmo": BALL.lmo, "start": np.zeros(3), **how})


REFUSED = [
    (lambda: adafw.Algorithm("CSFW", steps.FrankWolfeStep()), "gradient must be one of adafw.grad"),
    (lambda: adafw.Algorithm(gradients.CSFW(), "step"), "step must be one of adafw.steps"),
    (lambda: adafw.AdaGrad(0.1, batch_size=3, gradient=gradients.CSFW()), "give batch_size to the"),
    (lambda: adafw.Box([0.0, 1], [1.0, 2, 3]), r"must have shapes that fit, got \(2,\) and \(3,\)"),
    (lambda: adafw.Box([0.0, 3], [1.0, 2]), "lower must be <= upper in every entry, got 3 > 2 at "),
    (lambda: adafw.Box(0.0, 1e200), r"lower and upper must be at most 1e\+151 in size"),
    (lambda: adafw.Columns("l1"), "Columns must be made of a set of vectors"),
    (lambda: adafw.Columns(BALL).start((3,)), "this Columns holds matrices"),
    (lambda: adafw.Monotone(1.0).lmo(np.ones((2, 2))), "this Monotone holds vectors"),
    (lambda: user_set(lmo=3), "lmo must be a function of g, got int"),
    (lambda: user_set(start="here"), "start must be"),
    (lambda: user_set(lmo=lambda g: g[:1]).lmo(np.ones(3)), "lmo must return an array of the shap"),
    (lambda: user_set().diameter(3), "a UserSet does not know its diameter"),
    (lambda: metrics.Clipped("adagrad", 1.0, 2.0), "metric must be one of adafw.metrics"),
    (lambda: steps.AdaptiveStep(1.0, metric="adagrad"), "metric must be one of adafw.metrics"),
    (lambda: steps.ProjectedStep(1.0, metric="adagrad"), "metric must be one of adafw.metrics"),
    (lambda: steps.PreconditionedStep(metric="adagrad"), "metric must be one of adafw.metrics"),
    (lambda: steps.PreconditionedStep(step_size=steps.LineSearch()), "step_size must be a sch"),
    (lambda: steps.FrankWolfeStep(steps.LineSearch(), averaging=0.5), "must be a schedule where a"),
    (lambda: steps.AdaptiveStep(1.0, inner="newton"), "inner must be .frank_wolfe. or .corr"),
    (lambda: steps.AdaptiveStep(1.0, max_step=0.5, inner="corrective"), "max_step must be left ou"),
    (lambda: steps.SlidingStep("LanZhou"), "rule must be steps.LanZhou"),
    (lambda: steps.SpectralStep(np.array([1.0, 0.0])), "scale must be positive in every entry"),
    (lambda: run(steps.SpectralStep(), gradients.CSFW()), "SpectralStep needs exact gradients"),
    (lambda: run(steps.SpectralStep(), constraint=user_set()), "SpectralStep needs a set with a p"),
    (lambda: run(steps.NewtonStep(), gradients.CSFW()), "NewtonStep needs exact gradients"),
    (lambda: run(steps.CorrectiveStep(), gradients.CSFW()), "CorrectiveStep needs exact gradients"),
    (lambda: run(steps.FrankWolfeStep(steps.LineSearch()), gradients.CSFW()), "needs exact gradie"),
    (lambda: steps.FrankWolfeStep().with_rate(1.0), "FrankWolfeStep has no learning rate to chang"),
    (lambda: run(steps.FrankWolfeStep(), x0=3.0), "x0 must have at least one dimension"),
    (lambda: run(steps.FrankWolfeStep(), x0=[1.0, 2]), r"x0 must have shape \(3,\), got \(2,\)"),
    (lambda: run(steps.FrankWolfeStep(), x0=[0, 0, np.nan]), "x0 must be finite"),
    (lambda: run(steps.FrankWolfeStep(), constraint=adafw.GroupBall(1.0, [0, 1])), "points of sha"),
    (lambda: adafw.UserSum(3, "value", lambda x, batch: x), "value must be a function"),
    (lambda: adafw.UserSum(3, lambda x: 0.0, None), "gradient must be a function"),
    (lambda: adafw.LinearModel(1j * A, Y, losses.Logistic()), "A must be an array of real numbers"),
    (lambda: rows.as_rows(sparse.csr_array(1j * A)), "A must be a matrix of real numbers"),
    (lambda: adafw.LinearModel(A, Y, losses.Logistic(), np.ones(2)), "must have one entry per row"),
    (lambda: objectives.MatrixModel(A, [0, 1, 1], losses.Softmax(), np.ones(2)), "one entry per r"),
    (lambda: losses.Outputs(losses.Squared()).probabilities(A), "Outputs knows no probabilities"),
    (lambda: losses.Outputs(losses.Squared()).targets([1.0, 2], float), "one column a target"),
    (lambda: losses.Outputs(losses.Squared()).targets([[np.inf]], float), "y must be finite"),
    (lambda: losses.Softmax().targets([0.5, 1], float), "Softmax takes class numbers"),
    (lambda: losses.Softmax().targets([-1, 1], float), "Softmax takes class numbers"),
    (lambda: rows.as_rows(np.ones((2, 0))), "at least one"),
    (lambda: schedules.LuFreundStep(0), "parts must be a number that is finite and > 0, got 0"),
    (lambda: schedules.LuFreundStep(np.nan), "parts must be a number that is finite and > 0"),
    (lambda: schedules.OpenLoop("x"), "numerator must be a number, got str"),
    (lambda: schedules.OpenLoop(2, 0), "shift must be a number that is finite and > 0, got 0"),
    (lambda: schedules.Power(1.0, -0.5, shift=0), "shift must be a number that is finite and > 0"),
    (lambda: schedules.Power(1.0, None), "exponent must be a number, got NoneType"),
    (lambda: schedules.Scaled(3, 2.0), "rule must be a function of t, got 3"),
    (lambda: schedules.Capped(None, 2.0), "rule must be a function of t, got None"),
    (lambda: schedules.Share(0), "parts must be an integer >= 1, got 0"),
    (lambda: adafw.AdaCSFW(None), 'number, a function of t or "auto", got N'),
    (lambda: adafw.AdaGrad("fast"), 'learning_rate must be a number, a function of t or "auto"'),
    (lambda: adafw.CSFW(None), "step_size must be a number or a function of t, got None"),
    (lambda: adafw.CSFW(batch_size="x"), "batch_size must be a number or a function of t"),
    (lambda: adafw.BPCG(lazy="x"), "lazy must be True or False, got 'x'"),
    (lambda: adafw.AFW(lazy=np.array([True])), "lazy must be True or False, got array"),
    (lambda: adafw.AdaFW(inner=np.ones(2)), "inner must be .frank_wolfe. or .corrective., got"),
    (lambda: adafw.AdaFW(inner_steps=10**400), r"must be an integer <= 2\^63 - 1, got 1"),
    (lambda: gradients.SVRF(k0=63), "k0 must be at most 62"),
    (lambda: run(steps.FrankWolfeStep(), gradients.CSFW(1e300)), "must be at most 1099511627776"),
    (lambda: theory.storc(MODEL, BALL, known=3), "known must be a theory.Constants, or None"),
    (lambda: theory.sliding(MODEL, 3), "constraint must be a set such as adafw.L1Ball"),
    (lambda: theory.constants(None, BALL), "f must be an objective such as adafw.Linear"),
    (
        lambda: theory.theorem_3_7(MODEL, BALL, lower=1, upper=2, constants=3),
        "constants must be a theory.DataConstants, or None",
    ),
    (
        lambda: theory.frank_wolfe(MODEL, BALL, gradients.CSFW()),
        "gradient must be SAGA, LSVRG, PAGE or Momentum, got CSFW",
    ),
    (lambda: run(steps.SlidingStep(), f=SUM), r"give one that holds on the set, as in CGS\(L=10"),
    (
        lambda: run(steps.SlidingStep(), constraint=user_set()),
        r"needs the diameter of the set, which UserSet.* as in CGS\(diameter=2",
    ),
    (
        lambda: run(steps.FrankWolfeStep(0.1), gradients.LuFreund()),
        r"own step_size, OpenLoop.*, got 0\.1: give both the same, as LuFreundFW",
    ),
    (
        lambda: run(steps.FrankWolfeStep(lambda t: 1.0), gradients.LuFreund(step_size=0.5)),
        "LuFreund follows steps of its own step_size, 0.5, got",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("attempt", "told"), REFUSED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_refused(attempt, told):
    with pytest.raises((TypeError, ValueError), match=told):
        attempt()


def test_what_is_at_the_border_is_taken():
    adafw.Box([0.0, 2], [1.0, 2])
    adafw.Box(0.0, 1e151)
    assert isinstance(adafw.Columns(BALL), Constraint)
    run(steps.FrankWolfeStep(), x0=np.array([1.0, 0, 0]))
    run(steps.FrankWolfeStep(0.5), gradients.LuFreund(step_size=0.5))
    half = schedules.OpenLoop(1, 2)
    run(steps.FrankWolfeStep(schedules.OpenLoop(1, 2)), gradients.LuFreund(step_size=half))
    run(steps.FrankWolfeStep(lambda t: 0.5), gradients.LuFreund(step_size=lambda t: 0.5))
    run(steps.FrankWolfeStep(lambda t: 2 / (t + 2)), gradients.LuFreund())
    run(steps.SlidingStep(L=2.0), f=SUM, x0=np.zeros(3))
    run(steps.SlidingStep(diameter=2.0), constraint=user_set())
    assert adafw.AFW(lazy=np.bool_(True)).step.lazy is True
    assert adafw.BoostFW(improvement=1e-320).step.most_lmo_calls > 10**18
    assert run(steps.FrankWolfeStep(), gradients.Minibatch(1e300)).status == "max_iterations"
    assert schedules.Power(1.0, 0.5, shift=0)(4) == 2.0
    assert schedules.Power(2.0, 500.0)(1e3) == np.inf
