"""The public names of adafw.steps, imported when the first of them is asked for."""

from adafw.steps.active_set import ActiveSet
from adafw.steps.adaptive import AdaptiveStep, short_step
from adafw.steps.atomic import AtomicStep
from adafw.steps.away import AwayStep
from adafw.steps.base import Step
from adafw.steps.boosted import BoostedStep
from adafw.steps.corrective import CorrectiveStep, corrects_atoms, corrects_jointly, corrects_on
from adafw.steps.frank_wolfe import FrankWolfeStep
from adafw.steps.newton import NewtonStep
from adafw.steps.pairwise import BlendedPairwiseStep, PairwiseStep
from adafw.steps.preconditioned import PreconditionedStep
from adafw.steps.projected import ProjectedStep
from adafw.steps.rules import Backtracking, LineSearch, ShortStep, StepRule
from adafw.steps.sliding import HazanLuo, LanZhou, SlidingStep
from adafw.steps.spectral import SpectralStep

__all__ = [
    "ActiveSet",
    "AdaptiveStep",
    "AtomicStep",
    "AwayStep",
    "Backtracking",
    "BlendedPairwiseStep",
    "BoostedStep",
    "CorrectiveStep",
    "FrankWolfeStep",
    "HazanLuo",
    "LanZhou",
    "LineSearch",
    "NewtonStep",
    "PairwiseStep",
    "PreconditionedStep",
    "ProjectedStep",
    "ShortStep",
    "SlidingStep",
    "SpectralStep",
    "Step",
    "StepRule",
    "corrects_atoms",
    "corrects_jointly",
    "corrects_on",
    "short_step",
]
