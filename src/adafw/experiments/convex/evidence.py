"""Comparisons of curves by their medians and quartile bands, and the words for them."""

import math

import numpy as np

from adafw.experiments.convex.measures import seconds_to
from adafw.experiments.outcome import Curve
from adafw.experiments.spread import median, quartile_band, quartiles
from adafw.experiments.verdicts import FAILS, HOLDS, UNDECIDED

_UNITS = {"epoch": ("epoch", "epochs"), "cpu_seconds": ("CPU second", "CPU seconds")}


def compare(ours: Curve, theirs: Curve, column: str) -> int:
    """1 if ours is smaller beyond the bands, -1 if theirs is, 0 if they overlap or are points."""
    if min(len(ours.traces), len(theirs.traces)) < 2:
        return 0
    a, b = quartiles(ours.final(column)), quartiles(theirs.final(column))
    if a["upper"] < b["lower"]:
        return 1
    return -1 if b["upper"] < a["lower"] else 0


def against(ours: list[Curve], others: list[Curve], column: str) -> tuple[str, Curve, Curve]:
    """The verdict on "ours has the smaller median than every other", and the two closest."""
    mine = min(ours, key=lambda curve: median(curve.final(column)))
    rival = min(others, key=lambda curve: median(curve.final(column)))
    signs = [compare(mine, other, column) for other in others]
    verdict = HOLDS if min(signs) > 0 else FAILS if compare(mine, rival, column) < 0 else UNDECIDED
    return verdict, mine, rival


def numbers(curve: Curve, column: str, shift: float = 0.0) -> str:
    """A curve's end: median [quartiles]."""
    q = quartiles(curve.final(column) - shift)
    return f"{curve.label} {q['median']:.2e} [{q['lower']:.2e}, {q['upper']:.2e}]"


def faster(ours: Curve, theirs: Curve) -> str:
    """How long each took to the gap that theirs ended with."""
    # Of an even number the larger of the middle two, which is a gap that most of theirs reached.
    goal = float(np.quantile(theirs.final("gap"), 0.5, method="higher"))
    mine, other = seconds_to(ours, goal), seconds_to(theirs, goal)
    if math.isinf(mine):
        return f"{ours.label} never reached {theirs.label}'s final gap"
    return f"to {theirs.label}'s final gap {mine:.2g} CPU s instead of {other:.2g}"


def ahead(
    ours: Curve, others: list[Curve], column: str, shift: float = 0.0, x: str = "epoch"
) -> str:
    """In which epochs, or other x, the median of ours is the smallest."""
    unit, units = _UNITS[x]
    bands = [quartile_band(c.traces.values(), x, column, shift) for c in [ours, *others]]
    known = [(np.log(band[0]), np.log(band[1])) for band in bands if band is not None]
    if bands[0] is None or len(known) < 2:
        return f"{units} not comparable"
    low, high = max(x[0] for x, _ in known), min(x[-1] for x, _ in known)
    if not low < high:
        return f"{units} not comparable"
    grid = np.linspace(low, high, 400)
    mine, *theirs = (np.interp(grid, x, y) for x, y in known)
    leads = mine <= np.min(theirs, axis=0)
    if leads.all() or not leads.any():
        which = "every" if leads.all() else "no"
        return f"ahead in {which} {unit} from {np.exp(low):.2g} to {np.exp(high):.2g}"
    edges = np.diff(np.concatenate([[0], leads.astype(int), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    longest = sorted(np.argsort(starts - ends, kind="stable")[:3])
    spans = [f"{np.exp(grid[starts[i]]):.2g} to {np.exp(grid[ends[i]]):.2g}" for i in longest]
    rest = len(starts) - 3
    more = f" and {rest} shorter span{'s' * (rest > 1)}" if rest > 0 else ""
    return f"ahead in {units} {', '.join(spans)}{more} of {np.exp(high):.2g}"


def gap_at(curve: Curve, epoch: float) -> float:
    """The median gap in this epoch."""
    gaps = [np.interp(epoch, trace["epoch"], trace["gap"]) for trace in curve.traces.values()]
    return float(np.median(gaps))
