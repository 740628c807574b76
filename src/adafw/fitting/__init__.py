"""Linear models under a constraint, fitted to a tolerance: what the front ends share.

`Settings` (names) -> `Plan` (objects); data -> `Design`, targets -> `Targets`; `fit_targets` of
these three gives `Fitted`: certified fits, a predictor, and notices for the user.
"""

from adafw.fitting.checkpoint import Checkpoint
from adafw.fitting.core import Deadline, Fitted, fit_targets
from adafw.fitting.design import Design, Risk
from adafw.fitting.linear import Fit, fit_linear
from adafw.fitting.model import LinearModelFile
from adafw.fitting.notices import Notice
from adafw.fitting.predictor import LinearPredictor
from adafw.fitting.settings import Plan, Settings
from adafw.fitting.targets import Targets

__all__ = [
    "Checkpoint",
    "Deadline",
    "Design",
    "Fit",
    "Fitted",
    "LinearModelFile",
    "LinearPredictor",
    "Notice",
    "Plan",
    "Risk",
    "Settings",
    "Targets",
    "fit_linear",
    "fit_targets",
]
