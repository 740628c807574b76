"""Linear models whose rows are on the workers of a Dask cluster (extra: adafw[dask])."""

from typing import TYPE_CHECKING, Any

from adafw.objectives.base import Unavailable as ClusterLost

if TYPE_CHECKING:
    from adafw.distributed.cluster import local_client
    from adafw.distributed.local_steps import LocalCSFW
    from adafw.distributed.model import DistributedLinearModel
    from adafw.distributed.rows import DistributedRows

__all__ = [
    "ClusterLost",
    "DistributedLinearModel",
    "DistributedRows",
    "LocalCSFW",
    "local_client",
]

_PLACES = {
    "DistributedLinearModel": "model",
    "DistributedRows": "rows",
    "LocalCSFW": "local_steps",
    "local_client": "cluster",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for, or says which extra is missing."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"adafw.distributed.{_PLACES[name]}"), name)
    except ModuleNotFoundError as missing:
        if missing.name not in ("dask", "distributed"):
            raise
        raise ModuleNotFoundError(
            f"adafw.distributed needs Dask, and {missing.name} is not installed; "
            "run pip install 'adafw[dask]'.",
            name=missing.name,
        ) from None
