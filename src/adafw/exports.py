"""The public names of adafw, imported when the first of them is asked for.

Sets are listed in `constraints.exports`; everything else is one line here.
"""

from typing import TYPE_CHECKING

from adafw import gradients as gradients
from adafw import losses as losses
from adafw import metrics as metrics
from adafw import objectives as objectives
from adafw import schedules as schedules
from adafw import steps as steps
from adafw.algorithm import Algorithm as Algorithm
from adafw.algorithms import AFW as AFW
from adafw.algorithms import BPCG as BPCG
from adafw.algorithms import CGS as CGS
from adafw.algorithms import CSFW as CSFW
from adafw.algorithms import FW as FW
from adafw.algorithms import LSVRFW as LSVRFW
from adafw.algorithms import MSFW as MSFW
from adafw.algorithms import ORGFW as ORGFW
from adafw.algorithms import PAGEFW as PAGEFW
from adafw.algorithms import PFW as PFW
from adafw.algorithms import SAGAFW as SAGAFW
from adafw.algorithms import SCGS as SCGS
from adafw.algorithms import SFW as SFW
from adafw.algorithms import SPIDERFW as SPIDERFW
from adafw.algorithms import STORC as STORC
from adafw.algorithms import SVRF as SVRF
from adafw.algorithms import AdaCSFW as AdaCSFW
from adafw.algorithms import AdaFW as AdaFW
from adafw.algorithms import AdaGrad as AdaGrad
from adafw.algorithms import AdamSFW as AdamSFW
from adafw.algorithms import AdaORGFW as AdaORGFW
from adafw.algorithms import AdaSFW as AdaSFW
from adafw.algorithms import AdaSPIDERFW as AdaSPIDERFW
from adafw.algorithms import AdaSVRF as AdaSVRF
from adafw.algorithms import AMSGrad as AMSGrad
from adafw.algorithms import BoostCSFW as BoostCSFW
from adafw.algorithms import BoostFW as BoostFW
from adafw.algorithms import Corrective as Corrective
from adafw.algorithms import LuFreundFW as LuFreundFW
from adafw.constraints.exports import *  # noqa: F403
from adafw.later import public
from adafw.minimize import minimize as minimize
from adafw.objectives import Counted as Counted
from adafw.objectives import LinearModel as LinearModel
from adafw.objectives import MatrixCompletion as MatrixCompletion
from adafw.objectives import MatrixModel as MatrixModel
from adafw.objectives import UserSum as UserSum
from adafw.random import Blocks as Blocks
from adafw.recorder import Record as Record
from adafw.recorder import Trace as Trace
from adafw.recorder import every as every
from adafw.result import Result as Result
from adafw.solver import State as State
from adafw.tuning import Tuning as Tuning
from adafw.tuning import tune as tune
from adafw.versions import show_versions as show_versions

if not TYPE_CHECKING:  # type checkers go by `as`
    _MODULES = ["gradients", "losses", "metrics", "objectives", "schedules", "steps"]
    __all__ = sorted([*public(vars(), but=("TYPE_CHECKING", "public")), *_MODULES])
