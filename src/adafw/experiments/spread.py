"""Numbers over seeds: medians and quartiles, means and deviations, bands of curves."""

from collections.abc import Iterable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from adafw.recorder import AnyRecords

Column = NDArray[np.float64]
Band = tuple[Column, Column, Column, Column]


def quartiles(values: Column) -> dict[str, float]:
    """Median and quartiles."""
    # Between infinite values (diverged runs) there is nothing to interpolate.
    method: Literal["linear", "nearest"] = "linear" if np.isfinite(values).all() else "nearest"
    lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75], method=method)
    return {"median": float(middle), "lower": float(lower), "upper": float(upper)}


def median(values: Column) -> float:
    """The median, also of infinite values."""
    return quartiles(values)["median"]


def mean_and_deviation(values: Column) -> dict[str, float]:
    """Mean and standard deviation (n - 1 in the denominator); 0 for a single number."""
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "deviation": float(deviation)}


def mean_curve(traces: Iterable[AnyRecords], column: str) -> Column:
    """The mean of a column, record by record; for runs of equally many records."""
    return np.mean([trace[column] for trace in traces], axis=0)


def quartile_band(traces: Iterable[AnyRecords], x: str, y: str, shift: float = 0.0) -> Band | None:
    """(x, median, lower and upper quartile of y - shift) on a common grid of x.

    Curves are interpolated in logarithms, over the range of x that every trace has covered; None
    if there is nothing positive to show.
    """
    logs = []
    for trace in traces:
        at, values = trace[x].astype(float), trace[y] - shift
        keep = (at > 0) & (values > 0) & np.isfinite(values)
        # A grid value needs increasing x: of records at one x the last counts.
        at, values = at[keep], values[keep]
        last = np.append(np.diff(at) > 0, True) if at.size else np.zeros(0, bool)
        logs.append((np.log(at[last]), np.log(values[last])))
    if any(len(at) < 2 for at, _ in logs):
        return None
    low, high = max(at[0] for at, _ in logs), min(at[-1] for at, _ in logs)
    if low >= high:
        return None
    grid = np.unique(np.concatenate([at[(at >= low) & (at <= high)] for at, _ in logs]))
    if len(grid) > 150:
        grid = np.linspace(low, high, 150)
    table = np.exp([np.interp(grid, at, values) for at, values in logs])
    lower, middle, upper = np.quantile(table, [0.25, 0.5, 0.75], axis=0)
    return np.exp(grid), middle, lower, upper


def deviation_band(traces: Iterable[AnyRecords], x: str, y: str) -> Band:
    """(mean of x, mean of y, mean - deviation, mean + deviation of y), record by record.

    From the second record on, since random weights tell nothing.
    """
    runs = list(traces)
    values = np.array([trace[y][1:] for trace in runs])
    middle = values.mean(axis=0)
    deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(middle)
    low = middle - deviation
    if y.endswith("loss"):  # drawn on a logarithmic axis
        low = np.maximum(low, values.min(axis=0))
    return mean_curve(runs, x)[1:], middle, low, middle + deviation
