"""Constrained optimizers for torch: Frank-Wolfe with and without adaptive gradients."""

from adafw.torch.feasible import make_feasible
from adafw.torch.layers import Rule, constrain
from adafw.torch.optimizers import SFW, AdaGrad, AdamSFW, AdaSFW, AMSGrad

__all__ = [
    "SFW",
    "AMSGrad",
    "AdaGrad",
    "AdaSFW",
    "AdamSFW",
    "Rule",
    "constrain",
    "make_feasible",
]
