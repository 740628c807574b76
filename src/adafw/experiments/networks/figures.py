"""Figures of trained networks: losses and accuracies against epochs and CPU time."""

from typing import Any

import numpy as np

from adafw.experiments.drawing import draw_line, plain
from adafw.experiments.figures import explain, styles_of
from adafw.experiments.networks.problem import NetworkProblem
from adafw.experiments.results import Column, Line, Outcome, mean_curve

_ROWS = (("epoch", "epochs"), ("cpu_seconds", "CPU time (s)"))
_COLUMNS = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")


def draw_problem(part: Any, outcome: Outcome, problem: NetworkProblem) -> None:
    """A row against epochs and a row against CPU time; means and one standard deviation."""
    axes = part.subplots(len(_ROWS), len(_COLUMNS))
    lines = outcome.of(problem)
    styles = styles_of(lines)
    for row, (x, label) in zip(axes, _ROWS, strict=True):
        for axis, quantity in zip(row, _COLUMNS, strict=True):
            for line in lines:
                draw_line(axis, mean_band(line, x, quantity), styles[line.label])
            axis.set(xlabel=label, ylabel=quantity.replace("_", " "))
            axis.set(yscale="log" if quantity.endswith("loss") else "linear")
            plain(axis)
    explain(part, outcome, problem, styles)


def mean_band(line: Line, x: str, y: str) -> tuple[Column, Column, Column, Column]:
    """(mean of x, mean of y, mean - deviation, mean + deviation of y) over seeds.

    From epoch 1 on, since random weights tell nothing.
    """
    values = np.array([trace[y][1:] for trace in line.traces.values()])
    middle = values.mean(axis=0)
    deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(middle)
    low = middle - deviation
    if y.endswith("loss"):  # drawn on a logarithmic axis
        low = np.maximum(low, values.min(axis=0))
    return mean_curve(line, x)[1:], middle, low, middle + deviation
