"""Which algorithm for which data and set, and the learning rate where one is needed."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from adafw.algorithms import CSFW as constant_batch
from adafw.algorithms import FW, AdaCSFW, AdaGrad, Algorithm
from adafw.constraints.base import Constraint
from adafw.fitting.names import algorithm_named, takes_rate
from adafw.fitting.problem import Problem
from adafw.gradients import CSFW, Full
from adafw.schedules import OpenLoop, Schedule
from adafw.steps import FrankWolfeStep, LineSearch, NewtonStep, SpectralStep
from adafw.tuning import tune

#: Up to so many features, and so many multiplications for a Hessian, Newton steps are best.
NEWTON_FEATURES, NEWTON_WORK = 500, 4e9
#: Up to so many stored entries, passes over all data are cheap enough.
FULL_PASSES = 5e7
#: Rows, and epochs of a trial, of the search for a learning rate.
SAMPLE, TRIAL_EPOCHS = 10_000, 5


@dataclass(frozen=True)
class Choice:
    """An algorithm and its learning rate, eta of Template 3.

    Frank-Wolfe steps are Template 3 with eta = inf, Newton steps with eta = 1 and the Hessian for
    the metric; nan stands for one that changes with t.
    """

    algorithm: Algorithm
    learning_rate: float


def choose(
    problem: Problem,
    constraint: Constraint,
    algorithm: Any,
    learning_rate: Any,
    find_rate: Callable[[Callable[..., Algorithm]], float],
) -> Choice:
    """An Algorithm as it is; a name or a preset with its rate; "auto" as said in `automatic`.

    `find_rate` finds the learning rate of a preset where that is "auto".
    """
    if isinstance(algorithm, Algorithm):
        if learning_rate != "auto":
            raise ValueError(
                "learning_rate must be 'auto' where algorithm is an Algorithm, which has its own; "
                "or give the preset by name, as in algorithm='AdaCSFW'."
            )
        return Choice(algorithm, rate_of(algorithm))
    if algorithm == "auto":
        make = automatic(problem, constraint, learning_rate)
    else:
        make = algorithm_named(algorithm) if isinstance(algorithm, str) else algorithm
        if not callable(make):
            raise TypeError(
                "algorithm must be 'auto', a name, an adafw.Algorithm or a preset such as "
                f"adafw.AdaCSFW, got {algorithm!r}."
            )
    if not takes_rate(make):
        if learning_rate != "auto":
            raise ValueError(f"{algorithm!r} has no learning rate: leave learning_rate at 'auto'.")
        chosen = make()
        return Choice(chosen, rate_of(chosen))
    if learning_rate == "auto":
        learning_rate = find_rate(make)
    chosen = make(learning_rate=learning_rate)
    return Choice(chosen, rate_of(chosen))


def automatic(
    problem: Problem, constraint: Constraint, learning_rate: Any
) -> Callable[..., Algorithm]:
    """A function that makes the algorithm; it takes `learning_rate` if the algorithm has one.

    Few features (500, and 4e9 multiplications a Hessian): Newton steps over the set. Else, up to
    5e7 stored entries, exact gradients: spectral steps where the set has a projection,
    Frank-Wolfe with line search where not. Above that, or if a learning rate is given, CSFW's
    estimate: AdaGrad with it where the set has a projection in a metric, else AdaCSFW.
    """
    stored, n = problem.rows.stored, problem.rows.shape[1]
    if learning_rate == "auto":
        if problem.f.has_hessian and n <= NEWTON_FEATURES and stored * n <= NEWTON_WORK:
            return lambda: Algorithm(Full(), NewtonStep(), "Newton")
        if stored <= FULL_PASSES:
            if constraint.projection == "metric":
                scale = problem.scale()
                return lambda: Algorithm(Full(), SpectralStep(scale), "Spectral")
            if constraint.projection == "euclidean":
                return lambda: Algorithm(Full(), SpectralStep(), "Spectral")
            return lambda: FW(LineSearch())
        if constraint.projection is None:
            return lambda: constant_batch(OpenLoop(1, 1))
    if constraint.projection == "metric":
        return lambda learning_rate: AdaGrad(learning_rate, gradient=CSFW())
    return AdaCSFW


def search(problem: Problem, constraint: Constraint, make: Callable[..., Algorithm]) -> float:
    """The half-decade search of section 3.6, judged by the gap, a few epochs each."""
    found = tune(
        problem.f, constraint, lambda eta: make(learning_rate=eta), max_epochs=TRIAL_EPOCHS,
        record_every=10**9, progress=False,
    )  # fmt: skip
    return found.learning_rate


def rate_of(algorithm: Algorithm) -> float:
    """eta of Template 3 if it is one number, else nan."""
    if isinstance(algorithm.step, FrankWolfeStep):
        return math.inf
    if isinstance(algorithm.step, NewtonStep):
        return 1.0
    rate = getattr(algorithm.step, "learning_rate", None)
    rule = rate.rule if isinstance(rate, Schedule) else rate
    return rule if isinstance(rule, float) else math.nan
