"""Objectives: finite sums f = (1/m) sum_i f_i."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adafw.objectives.exports import *  # noqa: F403
else:
    from adafw.later import later

    __getattr__, __dir__ = later("adafw.objectives.exports")
