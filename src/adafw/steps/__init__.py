"""Steps: Template 1, Template 3, projection and their kin, and the step sizes of Template 1."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adafw.steps.exports import *  # noqa: F403
else:
    from adafw.later import later

    __getattr__, __dir__ = later("adafw.steps.exports")
