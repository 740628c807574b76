"""Steps: Template 1, Template 3 and projection."""

from adafw.steps.adaptive import AdaptiveStep, short_step
from adafw.steps.base import Step
from adafw.steps.frank_wolfe import FrankWolfeStep
from adafw.steps.projected import ProjectedStep

__all__ = ["AdaptiveStep", "FrankWolfeStep", "ProjectedStep", "Step", "short_step"]
