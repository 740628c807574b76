"""The tables of a report on series."""

import math
from html import escape

from adafw.experiments.html import html_table
from adafw.experiments.outcome import Outcome
from adafw.experiments.series.advantage import Ratio, Size, per_iteration, sizes, step_costs
from adafw.experiments.spread import median

RULE = (
    "The relative gap is the Frank-Wolfe gap over f(x₀) - the best lower bound that any run "
    "proved. The advantage grows if at the largest dimension the Frank-Wolfe method is faster by a "
    "factor whose quartile band lies above that at the smallest, and is not monotone if a band in "
    "between lies below an earlier one. There is no advantage if at the largest dimension "
    "projection is faster, and it is reversed if the factor has fallen, too. Undecided: only a "
    "bound is known, which does not tell."
)


def series_tables(outcome: Outcome) -> list[str]:
    """What a step costs on either side, and how long it takes to the goals."""
    series = sizes(outcome)
    goals = outcome.spec.goals
    costs = html_table(
        ["Set", "n", "Step: Frank-Wolfe", "Step: projected", "Ratio", "Iteration: Frank-Wolfe",
         "Iteration: projected", "Ratio"],
        [_cost(name, size) for name, row in series.items() for size in row],
        numbers=range(1, 8),
    )  # fmt: skip
    times = html_table(
        ["Set", "n", *(f"{goal:g}: {side}" for goal in goals
                       for side in ("Frank-Wolfe", "projected", "ratio"))],
        [_times(name, size) for name, row in series.items() for size in row],
        numbers=range(1, 2 + 3 * len(goals)),
    )  # fmt: skip
    return [
        "<h2>What a step costs</h2>",
        "<p>CPU time, medians over seeds. A step is K linear minimisations, or one projection in "
        "the metric, with the vector work around it, timed by itself at the end of each run of "
        "generic code; compiled runs have no steps to time. An iteration is a step and the "
        "gradient estimate, on average over the run.</p>",
        costs,
        "<h2>CPU time to a relative gap</h2>",
        "<p>Medians over seeds; of the ratio projected / Frank-Wolfe also quartiles. ≥ and ≤ mark "
        "bounds: one side never got there within the budget.</p>",
        times,
    ]


def _cost(name: str, size: Size) -> list[str]:
    cells = [escape(name), str(size.n)]
    for costs in (
        [step_costs(curve) for curve in (size.ours, size.theirs)],
        [per_iteration(curve) for curve in (size.ours, size.theirs)],
    ):
        ours, theirs = (median(values) for values in costs)
        ratio = theirs / ours
        cells += [_time(ours), _time(theirs), f"{ratio:.2g}" if math.isfinite(ratio) else "-"]
    return cells


def _times(name: str, size: Size) -> list[str]:
    cells = [escape(name), str(size.n)]
    for ratio in size.ratios:
        cells += [_time(ratio.ours["median"]), _time(ratio.theirs["median"]), _spread(ratio)]
    return cells


def _spread(ratio: Ratio) -> str:
    if not ratio.known:
        return "-"
    low, high = ratio.ratio["lower"], ratio.ratio["upper"]
    return f"{ratio}<br><small>[{low:.2g}, {high:.2g}]</small>"


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "never" if seconds == math.inf else "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.2g} µs"
