"""Constrained optimizers for torch: Frank-Wolfe with and without adaptive gradients."""

from adafw.torch.feasible import make_feasible
from adafw.torch.layers import Rule, constrain
from adafw.torch.matrices import NewtonSchulzBall, PowerNuclearBall
from adafw.torch.measures import gap
from adafw.torch.optimizers import SFW, AdaGrad, AdamSFW, AdaSFW, AMSGrad
from adafw.torch.variance_reduction import ORGFW, SPIDERFW, SVRF

__all__ = [
    "ORGFW",
    "SFW",
    "SPIDERFW",
    "SVRF",
    "AMSGrad",
    "AdaGrad",
    "AdaSFW",
    "AdamSFW",
    "NewtonSchulzBall",
    "PowerNuclearBall",
    "Rule",
    "constrain",
    "gap",
    "make_feasible",
]
