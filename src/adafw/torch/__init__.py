"""Constrained optimizers for torch: Frank-Wolfe with and without adaptive gradients."""

from adafw.torch.feasible import make_feasible
from adafw.torch.layers import Rule, constrain
from adafw.torch.matrices import NewtonSchulzBall, PowerNuclearBall
from adafw.torch.measures import gap
from adafw.torch.monitor import Monitor
from adafw.torch.optimizers import SFW, AdaGrad, AdamSFW, AdaSFW, AMSGrad
from adafw.torch.presets import Lion, Muon, Scion, Signum
from adafw.torch.radius_schedule import RadiusSchedule
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
    "Lion",
    "Monitor",
    "Muon",
    "NewtonSchulzBall",
    "PowerNuclearBall",
    "RadiusSchedule",
    "Rule",
    "Scion",
    "Signum",
    "constrain",
    "gap",
    "make_feasible",
]
