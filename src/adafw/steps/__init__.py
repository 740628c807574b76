"""Steps: Template 1, Template 3 and projection, and the step sizes of Template 1."""

from adafw.steps.adaptive import AdaptiveStep, short_step
from adafw.steps.base import Step
from adafw.steps.corrective import CorrectiveStep, corrects_on
from adafw.steps.frank_wolfe import FrankWolfeStep
from adafw.steps.newton import NewtonStep
from adafw.steps.preconditioned import PreconditionedStep
from adafw.steps.projected import ProjectedStep
from adafw.steps.rules import Backtracking, LineSearch, ShortStep, StepRule
from adafw.steps.spectral import SpectralStep

__all__ = [
    "AdaptiveStep",
    "Backtracking",
    "CorrectiveStep",
    "FrankWolfeStep",
    "LineSearch",
    "NewtonStep",
    "PreconditionedStep",
    "ProjectedStep",
    "ShortStep",
    "SpectralStep",
    "Step",
    "StepRule",
    "corrects_on",
    "short_step",
]
