"""Sets: what can be minimised over, each with its linear minimisation and its projection."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adafw.constraints.exports import *  # noqa: F403
else:
    from adafw.later import later

    __getattr__, __dir__ = later("adafw.constraints.exports")
