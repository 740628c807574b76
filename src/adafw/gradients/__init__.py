"""Gradient estimators: Table 1 of the paper, one row a file."""

from adafw.gradients.base import GradientEstimator, draw
from adafw.gradients.csfw import CSFW
from adafw.gradients.full import Full
from adafw.gradients.minibatch import Minibatch
from adafw.gradients.orgfw import ORGFW
from adafw.gradients.spider import SPIDER
from adafw.gradients.svrf import SVRF

__all__ = ["CSFW", "ORGFW", "SPIDER", "SVRF", "Full", "GradientEstimator", "Minibatch", "draw"]
