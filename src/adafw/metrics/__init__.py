"""Metrics: the diagonal matrices H_t of adaptive gradients."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adafw.metrics.exports import *  # noqa: F403
else:
    from adafw.later import later

    __getattr__, __dir__ = later("adafw.metrics.exports")
