"""adafw: projection-free optimisation with adaptive gradients."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At once, as the function has the name of its module: whoever imported that first would win.
from adafw.minimize import minimize as minimize

if TYPE_CHECKING:
    from adafw.exports import *  # noqa: F403

__version__ = "0.1.0"

#: Modules that are imported when first asked for.
_MODULES = (
    "datasets", "experiments", "gradients", "losses", "metrics", "objectives", "schedules",
    "sklearn", "steps", "theory", "torch",
)  # fmt: skip

if not TYPE_CHECKING:
    from adafw.later import later

    _get, _names = later("adafw.exports")

    def __getattr__(name: str) -> Any:
        # Modules by themselves: `from adafw import losses` needs none of the other names.
        if name in _MODULES:
            return import_module(f"adafw.{name}")
        return _get(name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_names(), *_MODULES})
