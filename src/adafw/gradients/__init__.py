"""Gradient estimators: Table 1 of the paper and what came after it, one row a file."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adafw.gradients.exports import *  # noqa: F403
else:
    from adafw.later import later

    __getattr__, __dir__ = later("adafw.gradients.exports")
