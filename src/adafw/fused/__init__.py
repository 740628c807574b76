"""Compiled runs of common combinations: the signature, the state and the results of solver.run.

Deleting this folder may change nothing but time.
"""

from adafw.fused.lazy import settle
from adafw.fused.problem import warm_up
from adafw.fused.registry import PATHS, Run, find

__all__ = ["PATHS", "Run", "find", "settle", "warm_up"]
