"""Every preset is the pair that it is called for, and hands each argument to the right part."""

import inspect

import pytest

import adafw
from adafw import gradients, metrics, steps
from adafw.names import ALGORITHMS
from adafw.schedules import Doubling, LinearGrowth, OpenLoop, QuadraticGrowth, Share
from adafw.steps import FrankWolfeStep, HazanLuo, LanZhou, LineSearch, ShortStep, SlidingStep

FW = FrankWolfeStep(OpenLoop(2.0, 2.0))
ADAGRAD = metrics.AdaGrad(1e-8)
AMSGRAD = metrics.AMSGrad((0.9, 0.99), 1e-8)


def adaptive(metric, rate="auto", inner_steps=None, max_step=1.0, inner="frank_wolfe"):
    return steps.AdaptiveStep(rate, inner_steps, max_step, metric, inner=inner)


#: Name -> (gradient, step) without any argument.
PLAIN = {
    "FW": (gradients.Full(), FW),
    "SFW": (gradients.Minibatch(QuadraticGrowth()), FW),
    "SVRF": (gradients.SVRF(LinearGrowth()), FW),
    "SPIDERFW": (gradients.SPIDER(Doubling()), FW),
    "ORGFW": (gradients.ORGFW(Share(100)), FW),
    "CSFW": (gradients.CSFW(Share(100)), FW),
    "Corrective": (gradients.Full(), steps.CorrectiveStep()),
    "SAGAFW": (gradients.SAGA(Share(100)), FW),
    "MSFW": (gradients.Momentum(Share(100)), FW),
    "LSVRFW": (gradients.LSVRG(Share(100)), FW),
    "PAGEFW": (gradients.PAGE(Share(100)), FW),
    "LuFreundFW": (gradients.LuFreund(Share(100), OpenLoop()), FW),
    "AFW": (gradients.Full(), steps.AwayStep(LineSearch(), False)),
    "PFW": (gradients.Full(), steps.PairwiseStep(LineSearch(), False)),
    "BPCG": (gradients.Full(), steps.BlendedPairwiseStep(LineSearch(), False)),
    "BoostFW": (gradients.Full(), steps.BoostedStep(ShortStep(), None, 1e-3)),
    "BoostCSFW": (gradients.CSFW(Share(100)), steps.BoostedStep(OpenLoop(), None, 1e-3)),
    "CGS": (gradients.Full(), SlidingStep(LanZhou(), None, None)),
    "SCGS": (gradients.Minibatch(Share(100)), SlidingStep(LanZhou(stochastic=True), None, None)),
    "STORC": (gradients.StagedSVRG(Share(100)), SlidingStep(HazanLuo(), None, None)),
    "AdaFW": (gradients.Full(), adaptive(ADAGRAD)),
    "AdaSFW": (gradients.Minibatch(QuadraticGrowth()), adaptive(ADAGRAD)),
    "AdaSVRF": (gradients.SVRF(LinearGrowth()), adaptive(ADAGRAD)),
    "AdaSPIDERFW": (gradients.SPIDER(Doubling()), adaptive(ADAGRAD)),
    "AdaORGFW": (gradients.ORGFW(Share(100)), adaptive(ADAGRAD)),
    "AdaCSFW": (gradients.CSFW(Share(100)), adaptive(ADAGRAD)),
    "AdamSFW": (gradients.Minibatch(Share(100)), adaptive(AMSGRAD)),
    "AdaGrad": (gradients.Minibatch(Share(100)), steps.ProjectedStep("auto", ADAGRAD)),
    "AMSGrad": (gradients.Minibatch(Share(100)), steps.ProjectedStep("auto", AMSGRAD)),
}
CONSTANT = FrankWolfeStep(0.3)
FAR = adaptive(metrics.AdaGrad(1e-3), 0.7, 9, 0.4)
SLID = (3.0, 5.0)
#: The same with all of their arguments given, in their order.
GIVEN = {
    "FW": ((0.3,), gradients.Full(), CONSTANT),
    "SFW": ((0.3, 7), gradients.Minibatch(7), CONSTANT),
    "SVRF": ((0.3, 7), gradients.SVRF(7), CONSTANT),
    "SPIDERFW": ((0.3, 7), gradients.SPIDER(7), CONSTANT),
    "ORGFW": ((0.3, 7), gradients.ORGFW(7), CONSTANT),
    "CSFW": ((0.3, 7), gradients.CSFW(7), CONSTANT),
    "Corrective": ((), gradients.Full(), steps.CorrectiveStep()),
    "SAGAFW": ((0.3, 7), gradients.SAGA(7), CONSTANT),
    "MSFW": ((0.3, 7), gradients.Momentum(7), CONSTANT),
    "LSVRFW": ((0.3, 7, 0.2), gradients.LSVRG(7, 0.2), CONSTANT),
    "PAGEFW": ((0.3, 7, 0.2), gradients.PAGE(7, 0.2), CONSTANT),
    "LuFreundFW": ((0.3, 7), gradients.LuFreund(7, 0.3), CONSTANT),
    "AFW": ((ShortStep(), True), gradients.Full(), steps.AwayStep(ShortStep(), True)),
    "PFW": ((ShortStep(), True), gradients.Full(), steps.PairwiseStep(ShortStep(), True)),
    "BPCG": ((ShortStep(), True), gradients.Full(), steps.BlendedPairwiseStep(ShortStep(), True)),
    "BoostFW": ((0.3, 4, 0.1), gradients.Full(), steps.BoostedStep(0.3, 4, 0.1)),
    "BoostCSFW": ((0.3, 4, 0.1, 7), gradients.CSFW(7), steps.BoostedStep(0.3, 4, 0.1)),
    "CGS": (SLID, gradients.Full(), SlidingStep(LanZhou(), *SLID)),
    "SCGS": ((*SLID, 7), gradients.Minibatch(7), SlidingStep(LanZhou(stochastic=True), *SLID)),
    "STORC": ((*SLID, 7), gradients.StagedSVRG(7), SlidingStep(HazanLuo(), *SLID)),
    "AdaFW": ((0.7, 9, 0.4, 1e-3, "frank_wolfe"), gradients.Full(), FAR),
    "AdaSFW": ((0.7, 9, 0.4, 1e-3, 7, "frank_wolfe"), gradients.Minibatch(7), FAR),
    "AdaSVRF": ((0.7, 9, 0.4, 1e-3, 7, "frank_wolfe"), gradients.SVRF(7), FAR),
    "AdaSPIDERFW": ((0.7, 9, 0.4, 1e-3, 7, "frank_wolfe"), gradients.SPIDER(7), FAR),
    "AdaORGFW": ((0.7, 9, 0.4, 1e-3, 7, "frank_wolfe"), gradients.ORGFW(7), FAR),
    "AdaCSFW": ((0.7, 9, 0.4, 1e-3, 7, "frank_wolfe"), gradients.CSFW(7), FAR),
    "AdamSFW": ((0.7, 9, 0.4, 1e-3, 7, (0.5, 0.8), "frank_wolfe"), gradients.Minibatch(7),
                adaptive(metrics.AMSGrad((0.5, 0.8), 1e-3), 0.7, 9, 0.4)),
    "AdaGrad": ((0.7, 1e-3, 7), gradients.Minibatch(7),
                steps.ProjectedStep(0.7, metrics.AdaGrad(1e-3))),
    "AMSGrad": ((0.7, 1e-3, 7, None, (0.5, 0.8)), gradients.Minibatch(7),
                steps.ProjectedStep(0.7, metrics.AMSGrad((0.5, 0.8), 1e-3))),
}  # fmt: skip


def test_no_preset_is_left_out():
    names = [entry.name for entry in ALGORITHMS]
    assert sorted(PLAIN) == sorted(GIVEN) == sorted(names)


@pytest.mark.parametrize("name", PLAIN)
def test_without_arguments(name):
    algorithm, (gradient, step) = getattr(adafw, name)(), PLAIN[name]
    assert algorithm.describe() == adafw.Algorithm(gradient, step).describe()
    assert (algorithm.gradient, algorithm.step) == (gradient, step)
    assert str(algorithm) == algorithm.name == name


@pytest.mark.parametrize("name", GIVEN)
def test_with_all_arguments_by_place_and_by_name(name):
    preset, (values, gradient, step) = getattr(adafw, name), GIVEN[name]
    names = [n for n in inspect.signature(preset).parameters if n != "gradient"]
    given = dict(zip(inspect.signature(preset).parameters, values, strict=False))
    assert set(given) | {"gradient"} == set(names) | {"gradient"}
    for algorithm in (preset(*values), preset(**given)):
        assert algorithm.describe() == adafw.Algorithm(gradient, step).describe()
        assert (algorithm.gradient, algorithm.step) == (gradient, step)
        assert str(algorithm) == name


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in PLAIN
        if name in ALGORITHMS and "inner" in inspect.signature(getattr(adafw, name)).parameters
    ],
)
def test_corrective_inner_steps(name):
    algorithm = getattr(adafw, name)(0.7, 9, inner="corrective")
    metric = AMSGRAD if name == "AdamSFW" else ADAGRAD
    assert algorithm.step == adaptive(metric, 0.7, 9, inner="corrective")
    assert algorithm.gradient == PLAIN[name][0]


@pytest.mark.parametrize("name", ["AdaGrad", "AMSGrad"])
def test_a_gradient_in_the_place_of_minibatches(name):
    algorithm = getattr(adafw, name)(gradient=gradients.SAGA(7))
    assert algorithm.gradient == gradients.SAGA(7)
    assert algorithm.step == PLAIN[name][1]
    with pytest.raises(ValueError, match="give batch_size to the gradient estimator"):
        getattr(adafw, name)(gradient=gradients.SAGA(7), batch_size=3)


def test_parts_without_a_name_are_called_by_their_types():
    algorithm = adafw.Algorithm(gradients.SAGA(), steps.ProjectedStep(0.1))
    assert str(algorithm) == "SAGA + ProjectedStep"
    assert algorithm == adafw.Algorithm(gradients.SAGA(), steps.ProjectedStep(0.1), "mine")
    for wrong in ((FW, gradients.Full()), (gradients.Full(), "step")):
        with pytest.raises(TypeError, match=r"must be one of adafw\.(gradients|steps), got"):
            adafw.Algorithm(*wrong)
