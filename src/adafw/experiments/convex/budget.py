"""The budget of a run of `minimize`."""

from adafw.experiments.keys import only
from adafw.typing import Json, JsonTable

#: Limits of `minimize` that a budget may set.
_LIMITS = ("max_iterations", "max_epochs", "max_seconds", "max_cpu_seconds", "max_lmo_calls")


def check_budget(table: Json, source: str) -> JsonTable:
    """A table with a limit, perhaps a tolerance and how often to record."""
    if not isinstance(table, dict) or not any(key in _LIMITS for key in table):
        raise ValueError(f"budget must set one of {', '.join(_LIMITS)} in {source}, got {table!r}.")
    only(table, (*_LIMITS, "gap_tolerance", "record_every"), f"budget of {source}")
    return table
