"""Compiled runs of common combinations: the signature, the state and the results of solver.run.

Deleting this folder changes nothing but time.
"""

from adafw.fused.registry import PATHS

__all__ = ["PATHS"]
