"""Which algorithm for which data and set, and the learning rate where one is needed."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from adafw.algorithm import Algorithm
from adafw.algorithms import CSFW as constant_batch
from adafw.algorithms import FW, AdaCSFW, AdaGrad, AdaSVRF, Corrective
from adafw.constraints import Box, LInfBall, NuclearBall, SpectralBall
from adafw.constraints.base import Constraint
from adafw.fitting.design import Design
from adafw.fitting.settings import Plan
from adafw.gradients import CSFW, SVRF, Full
from adafw.losses import JointLoss
from adafw.names import ALGORITHMS, takes_rate
from adafw.objectives import FiniteSum
from adafw.rows import Rows
from adafw.schedules import OpenLoop, Schedule
from adafw.steps import (
    FrankWolfeStep,
    LineSearch,
    NewtonStep,
    SpectralStep,
    corrects_atoms,
    corrects_jointly,
    corrects_on,
)
from adafw.tuning import tune

#: Up to so many features, and so many multiplications for a Hessian, Newton steps are best.
NEWTON_FEATURES, NEWTON_WORK = 500, 4e9
#: Up to so many features they are taken on every set but boxes and polytopes whose vertices have
#: one entry: the last digits come for free.
NEWTON_ALWAYS = 50
#: Up to so many coefficients of several outputs, too.
NEWTON_JOINT = 150
#: Up to so many stored entries, passes over all data are cheap enough.
FULL_PASSES = 5e7
#: Rows, and epochs of a trial, of the search for a learning rate.
SAMPLE, TRIAL_EPOCHS = 10_000, 5

#: A function that makes an algorithm; it takes `learning_rate` if the algorithm has one.
Preset = Callable[..., Algorithm]


@dataclass(frozen=True)
class Choice:
    """An algorithm and its learning rate, eta of Template 3.

    Frank-Wolfe steps are Template 3 with eta = inf, Newton steps with eta = 1 and the Hessian for
    the metric; nan stands for one that changes with t.
    """

    algorithm: Algorithm
    learning_rate: float


def choose(design: Design, plan: Plan, find_rate: Callable[[Preset], float]) -> Choice:
    """An Algorithm as it is; a name or a preset with its rate; "auto" as said in `automatic`.

    `find_rate` finds the learning rate of a preset where that is "auto".
    """
    wanted, rate = plan.settings.algorithm, plan.settings.learning_rate
    if isinstance(wanted, Algorithm):
        if rate != "auto":
            raise ValueError(
                "learning_rate must be 'auto' where algorithm is an Algorithm, which has its own; "
                "or give the preset by name, as in algorithm='AdaCSFW'."
            )
        return Choice(wanted, rate_of(wanted))
    if wanted == "auto":
        preset = automatic(design, plan)
    else:
        preset = ALGORITHMS.find(wanted).make if isinstance(wanted, str) else wanted
    if not takes_rate(preset):
        if rate != "auto":
            raise ValueError(f"{wanted!r} has no learning rate: leave learning_rate at 'auto'.")
        chosen = preset()
    else:
        chosen = preset(learning_rate=find_rate(preset) if rate == "auto" else rate)
    return Choice(chosen, rate_of(chosen))


def automatic(design: Design, plan: Plan) -> Preset:
    """What `exact` says, if no learning rate is given: corrective steps for any size of data where
    they are known, else up to 5e7 stored entries.

    Else CSFW's estimate: AdaGrad with it where the set has a projection in a metric, else AdaCSFW,
    or plain CSFW where there is neither a projection nor a learning rate. Data that exceed memory
    follow the same rule: full passes are read in order at the disk's speed, and batches are then
    blocks of neighbouring rows (docs/large_data.md). Models fitted jointly, which CSFW does not
    know, take exact gradients, or with a learning rate SVRF's.
    """
    if isinstance(plan.loss, JointLoss):
        return _automatic_joint(design, plan)
    constraint = plan.constraint
    second = plan.loss.has_second
    if plan.settings.learning_rate == "auto":
        few = second and (_corrects(design, constraint) or _few_features(design.rows))
        if few or design.rows.stored <= FULL_PASSES:
            return lambda: exact(design, constraint, second)
        if constraint.projection is None:
            return lambda: constant_batch(OpenLoop(1, 1))
    if constraint.projection == "metric":
        return lambda learning_rate: AdaGrad(learning_rate, gradient=CSFW())
    return AdaCSFW


def exact(design: Design, constraint: Constraint, has_hessian: bool) -> Algorithm:
    """The best method with exact gradients.

    Corrective steps where the set and the loss allow them, but for up to 50 features, whose Hessian
    costs nothing, on sets other than the l1 ball, the simplices and boxes. Else, few features (500,
    and 4e9 multiplications a Hessian): Newton steps over the set. Else spectral steps where the set
    has a projection, Frank-Wolfe with line search where not.
    """
    quick = corrects_atoms(constraint) or isinstance(constraint.bare, LInfBall | Box)
    small = _is_small(design.rows) and not quick
    if has_hessian and _corrects(design, constraint) and not small:
        return Corrective()
    if has_hessian and _few_features(design.rows):
        return Algorithm(Full(), NewtonStep(), "Newton")
    if constraint.projection is None:
        return FW(LineSearch())
    # The metric is one for vectors.
    scaled = constraint.projection == "metric" and len(design.rows.shape) == 2
    return Algorithm(Full(), SpectralStep(design.scale if scaled else None), "Spectral")


def _automatic_joint(design: Design, plan: Plan) -> Preset:
    constraint = plan.constraint
    if plan.settings.learning_rate != "auto":
        if constraint.projection == "metric":
            return lambda learning_rate: AdaGrad(learning_rate, gradient=SVRF())
        return AdaSVRF
    if design.rows.shape[1] * plan.outputs <= NEWTON_JOINT:
        return lambda: Algorithm(Full(), NewtonStep(), "Newton")
    if design.rows.by_coordinates and corrects_jointly(constraint):
        return Corrective
    if constraint.projection is None:
        return lambda: FW(LineSearch())
    scale = None
    # In a metric, a projection of singular values is some hundred decompositions.
    if constraint.projection == "metric" and not isinstance(
        constraint.bare, NuclearBall | SpectralBall
    ):
        scale = np.repeat(design.scale[:, None], plan.outputs, axis=1)
    return lambda: Algorithm(Full(), SpectralStep(scale), "Spectral")


def search(
    f: FiniteSum, constraint: Constraint, preset: Preset, seconds: float = math.inf
) -> float:
    """The half-decade search of section 3.6, judged by the gap, a few epochs each."""
    found = tune(
        f, constraint, lambda eta: preset(learning_rate=eta), max_epochs=TRIAL_EPOCHS,
        record_every=10**9, progress=False, total_seconds=seconds,
    )  # fmt: skip
    return found.learning_rate


def rate_of(algorithm: Algorithm) -> float:
    """eta of Template 3 if it is one number, else nan."""
    if isinstance(algorithm.step, FrankWolfeStep):
        return math.inf
    if isinstance(algorithm.step, NewtonStep):
        return 1.0
    rate = algorithm.step.rate
    rule = rate.rule if isinstance(rate, Schedule) else None
    return rule if isinstance(rule, float) else math.nan


def _corrects(design: Design, constraint: Constraint) -> bool:
    return design.rows.by_coordinates and corrects_on(constraint)


def _is_small(rows: Rows) -> bool:
    return len(rows.shape) == 2 and rows.shape[1] <= NEWTON_ALWAYS and _few_features(rows)


def _few_features(rows: Rows) -> bool:
    n = int(np.prod(rows.shape[1:]))
    return len(rows.shape) == 2 and n <= NEWTON_FEATURES and rows.stored * n <= NEWTON_WORK
