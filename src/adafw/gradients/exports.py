"""The public names of adafw.gradients, imported when the first of them is asked for."""

from adafw.gradients.base import GradientEstimator, draw
from adafw.gradients.csfw import CSFW
from adafw.gradients.full import Full
from adafw.gradients.lsvrg import LSVRG
from adafw.gradients.lu_freund import LuFreund
from adafw.gradients.minibatch import Minibatch
from adafw.gradients.momentum import Momentum
from adafw.gradients.orgfw import ORGFW
from adafw.gradients.page import PAGE
from adafw.gradients.saga import SAGA
from adafw.gradients.spider import SPIDER
from adafw.gradients.staged import StagedSVRG
from adafw.gradients.svrf import SVRF

__all__ = [
    "CSFW",
    "LSVRG",
    "ORGFW",
    "PAGE",
    "SAGA",
    "SPIDER",
    "SVRF",
    "Full",
    "GradientEstimator",
    "LuFreund",
    "Minibatch",
    "Momentum",
    "StagedSVRG",
    "draw",
]
