"""learning_rate="auto" is not to end above where it began: a run that is found there begins anew.

A first rate far too large throws x across the set in a few iterations, and what adaptive steps and
tables have gathered there stays with them: a smaller rate alone needs dozens of epochs to come
back. The beginning is not far by then. So f is held against f(x_0), on a few terms and ever more
seldom, and if it is above, all is forgotten but x_0 and that the rate was too large. What the
numbers are, and why: docs/learning_rate.md.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adafw.arrays import dot
from adafw.integrity import expect, expect_number
from adafw.measured_rate import SEED, left_of, way
from adafw.objectives.base import FiniteSum
from adafw.recorder import Record
from adafw.solver import State
from adafw.typing import Array, StateDict


@dataclass(frozen=True)
class Look:
    """A look at f(x) - f(x_0), due `first` epochs after the beginning and then `apart` times later.

    But not in the first iterations, `patience` of them, which may cost an epoch each. It asks
    `share` of the terms evaluated since the last one, at least `few`, in `groups`, and what they
    say must be known to `sure` standard errors.

    The slope of a convex f grows on the line from x_0 to x. So sums of slopes at x, halfway, and at
    up to `halvings` halves bound its rise: mostly the first says that there is none. If none does,
    the slope at x_0 is asked, too, and the sums are taken for the rise itself.

    Where few terms cannot tell, as those of sparse data or of heavy tails, and the rise may be
    `doubt` times f(x_0), all of them are asked.

    What a few terms say all of them must confirm, unless the rise is `beyond` f(x_0) itself: of
    many looks one would be wrong some day, and forget a whole run.

    The rate that begins anew is that of the last beginning times the share of the line on which f
    falls: at most `most`, and `nowhere` if it falls nowhere; it is held to `most` of the last
    beginning's for as many iterations as have failed.

    If a look had found that all was well, the rate of then is trusted, where there is a table: at
    least `most` of it begins anew, and it is held to that rate.
    """

    first: float = 1.0
    patience: int = 4
    apart: float = 1.25
    share: float = 0.01
    few: int = 32
    groups: int = 4
    sure: float = 1.5
    halvings: int = 8
    beyond: float = 1.0
    doubt: float = 1.0
    most: float = 1 / 3
    nowhere: float = 1 / 10


LOOK = Look()
_VALUE = Record._fields.index("value")
#: Fresh starts that are counted: after so many, one more changes nothing.
_MANY = 100


def begin(s: State, rate: float, starts: int = 0) -> None:
    """A search that begins at s, with what it must know to begin anew; after so many others."""
    work = s.gradient_evaluations
    s.search = {"rate": rate, "begun": rate, "highest": rate, "looked": work}
    s.search |= {"start.x": s.x.copy(), "start.work": work, "starts": min(starts, _MANY)}


def again(search: StateDict, share: float, remembers: bool) -> tuple[float, float]:
    """The rate to begin anew with, and that which it is held to at first."""
    rate, trusted = search["begun"] * share, search.get("trusted")
    if not (trusted and remembers):
        return rate, search["begun"] * LOOK.most
    roof = min(trusted, search["highest"] * LOOK.most)
    return min(max(rate, trusted * LOOK.most), roof), roof


def hold(search: StateDict, rate: float, t: int) -> None:
    """Up to iteration t no rate is to rise above this one."""
    search |= {"held.rate": rate, "held.t": t}


def held(search: StateDict, wanted: float, t: int) -> float:
    """The rate that is wanted, unless it would rise to what is forbidden."""
    if t >= search.get("held.t", 0):
        return wanted
    return min(wanted, max(search["rate"], search["held.rate"]))


def check(search: StateDict, x: Array) -> None:
    """Refuses what no run leaves."""
    expect(search.get("start.x"), "search.start.x", x)
    expect_number(search.get("begun"), "search.begun", float, 1e-300, 1e300)
    expect_number(search.get("highest"), "search.highest", float, 1e-300, 1e300)
    expect_number(search.get("trusted", 1.0), "search.trusted", float, 1e-300, 1e300)
    expect_number(search.get("starts"), "search.starts", int, 0, _MANY)
    for name in ("start.work", "looked"):
        expect_number(search.get(name), f"search.{name}", int, 0, 2**62)
    if "held.t" in search or "held.rate" in search:
        expect_number(search.get("held.t"), "search.held.t", int, 1, 2**62)
        expect_number(search.get("held.rate"), "search.held.rate", float, 1e-300, 1e300)


def overshot(f: FiniteSum, s: State) -> float:
    """The share of the way from x_0 that was right, if a look is due and finds f above; else 0."""
    begun, looked = s.search["start.work"], s.search["looked"]
    now = s.gradient_evaluations
    due = max(LOOK.first * f.n_terms, LOOK.apart * (looked - begun))
    if s.t < LOOK.patience or now - begun < due:
        return 0.0
    size = min(f.n_terms, max(LOOK.few, int(LOOK.share * (now - looked))))
    rng = np.random.default_rng([SEED, now])
    terms = np.array_split(rng.choice(f.n_terms, size, replace=False), min(size, LOOK.groups))
    with np.errstate(over="ignore", invalid="ignore"):
        shares, slopes, rise = _walk(f, s, terms)
        asked, above, first = len(shares) * size, rise > 0, _first_value(f, s)
        most = float(slopes[0].mean()) + _error(slopes[0], left_of(terms, f.n_terms))
        unsure = not above and not most <= LOOK.doubt * abs(first)
        if (above or unsure) and size < f.n_terms and not rise > LOOK.beyond * abs(first):
            above = not f.value(s.x) <= first
            asked += f.n_terms
    s.gradient_evaluations += asked  # last: what cannot be reached is asked again
    s.search["looked"] = s.gradient_evaluations  # with its own: so none is due at once
    if not above:
        s.search |= {"trusted": s.search["rate"], "highest": s.search["rate"]}
        return 0.0
    falling = [share for share, slope in zip(shares, slopes, strict=True) if slope.mean() <= 0]
    return min(LOOK.most, max(falling, default=0.0) or LOOK.nowhere)


def _first_value(f: FiniteSum, s: State) -> float:
    """f(x_0), which the first record tells."""
    known = s.records and s.records[0][0] == 0
    return s.records[0][_VALUE] if known else f.value(s.search["start.x"])


def _walk(
    f: FiniteSum, s: State, terms: list[NDArray[np.intp]]
) -> tuple[list[float], list[NDArray[np.float64]], float]:
    """Shares of the way and f's slopes there, by groups, from x back; and how far f is above."""
    x0, left = s.search["start.x"], left_of(terms, f.n_terms)
    d = way(s.x, x0)

    def slope(share: float) -> NDArray[np.float64]:
        x = s.x if share == 1.0 else (x0 + share * d).astype(s.x.dtype)
        return np.array([float(dot(f.gradient(x, group), d)) for group in terms])

    shares, slopes = [1.0], [slope(1.0)]
    while _rise((np.dot(shares, slopes) + shares[-1] * slopes[-1]) / 2, left):
        shares.append(shares[-1] / 2 if len(shares) < LOOK.halvings else 0.0)
        slopes.append(slope(shares[-1]))
        if not shares[-1]:
            return shares, slopes, _rise(np.asarray(-np.trapezoid(slopes, shares, axis=0)), left)
    return shares, slopes, 0.0


def _rise(rises: NDArray[np.float64], left: float) -> float:
    """What the mean of groups is surely above 0; inf if it cannot be compared."""
    rise = float(rises.mean()) - _error(rises, left)
    return max(rise, 0.0) if math.isfinite(rise) else math.inf


def _error(values: NDArray[np.float64], left: float) -> float:
    """By how much the mean of groups may be off."""
    return LOOK.sure * left * float(values.std(ddof=1)) if left else 0.0
