"""Steps by a matrix of some of the rows, which the gradients of all correct on the way."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.objectives import WithIntercept
from adafw.objectives.kinds import Linear
from adafw.objectives.line import Line
from adafw.rows import Rows
from adafw.steps.corrective.base import Memory
from adafw.steps.corrective.curvature import Predictions, Vector, View
from adafw.steps.corrective.gram import STALE
from adafw.steps.corrective.nearly import SAMPLE, few_bend
from adafw.steps.corrective.sampled import Sampled, sampled
from adafw.steps.spectral import backtrack
from adafw.typing import Array

Matrix = NDArray[np.float64]

#: Rows of a sample whose matrix costs less than a pass over all rows: so many times m / n. Of so
#: many rows a column, more tell hardly more.
_PASS, _ENOUGH = 12, 50
#: Share of the last gap above which a step hardly helped; after so many of them in turn, one with
#: all rows is made. Gaps of ill-conditioned data rise now and then while f falls.
_HARDLY, STUCK = 0.9, 3
#: The same where few rows weigh nearly all: which of them bend changes from step to step.
_HEAVY = 0.7, 1
#: Share of the last gap above which a matrix that has become old is made anew.
_SLOW = 0.3
_ARMIJO = 1e-4  # share of the descent promised that a whole step must reach
_SHORT = 0.1  # as in `damped`
#: Share of what the matrix expects below which a change of slopes is flat, or rounding.
_FLAT, _ROUNDING = 1e-3, 1e4
_ROUNDS = 4  # until the shares of rows that are drawn fill their number


def stride(rows: Rows) -> int:
    """Every how many-th row is in the sample."""
    m, n = rows.shape
    return max(1, m // max(SAMPLE * n, min(_PASS * m // n, _ENOUGH * n)))


def followed(
    seen: View, x: Array, g: Array, gap: float, weights: Vector, state: Memory,
    minimiser: Callable[[Sampled], Array],
) -> Array | None:  # fmt: skip
    """`minimiser` over the set of the model with P for H, or what of the way to it descends.

    P is H of a sample, corrected by what the slopes did on the last steps (Broyden, Fletcher,
    Goldfarb, Shanno 1970), so that a step needs one pass over the rows, that of the next gradient.
    None where all rows should make a model: gaps hardly fell, few rows bend, or f did not descend.
    """
    if not (isinstance(seen, Predictions) and seen.guided):
        return None
    f, last = seen.f, state.get("gap", 0.0)
    value, _, bends = f.curves(x)
    hardly, most = (_HARDLY, STUCK) if f.rows.heavy is None else _HEAVY
    stuck = int(state.get("stuck", 0)) + 1 if gap > hardly * last > 0 else 0
    state["stuck"] = stuck % most
    if stuck >= most or few_bend(f.rows, bends):
        _forget(state)
        return None
    P = _corrected(f, weights, bends, x, g, gap > _SLOW * last, state)
    y = minimiser(Sampled(P))
    d = y - x
    slope = float(np.vdot(g, d))
    if not slope < 0:
        _forget(state)
        return None
    state["gap"], state["before"], state["slopes"] = gap, x.copy(), g.copy()
    state.pop("predictions", None)  # those of the next x are a product
    state.pop("reach", None)
    z = f.predictions(x)[0]
    noise = 4 * float(np.finfo(x.dtype).eps) * abs(value)
    if f.value_and_gradient(y)[0] <= value + _ARMIJO * slope + noise:
        return y
    move = f.predictions(y)[0] - z
    line = Line(lambda gamma: seen.value(z + gamma * move), lambda _: np.nan)
    gamma = backtrack(line, value, value, slope, x.dtype)
    if gamma < _SHORT:
        _forget(state)
        state["gap"] = last
        return None
    return x + gamma * d


def _forget(state: Memory) -> None:
    """The next step begins with a matrix of its own."""
    for name in ("gram", "bends", "before", "slopes"):
        state.pop(name, None)  # type: ignore[misc]


def _corrected(
    f: Linear, weights: Vector, bends: Vector, x: Array, g: Array, slow: bool, state: Memory
) -> Matrix:
    """P of before or of now, and what the last step told of it."""
    every, n = stride(f.rows), x.size
    w = _weights(f.rows, bends, every)
    P, known = state.get("gram"), state.get("bends")
    if P is None or known is None or (P.shape, known.shape) != ((n, n), w.shape):
        P = None
    elif not float(P.diagonal().min()) > 0:
        P = None  # no run leaves such a one, but a file may hold it
    elif slow and (state.get("alone") or _moved(w, known)):
        P = None  # columns tell of each other after all, or it is of another place
    if P is None:
        alone = "alone" not in state and f.rows.unrelated(isinstance(f, WithIntercept))
        state["alone"], state["bends"] = int(alone), w
        if alone or f.rows.heavy is None:
            P = _made(f, weights, w, every, alone)
        else:
            P = _drawn(f, weights, bends.astype(np.float64), w, -(-f.n_terms // every))
    before, slopes = state.get("before"), state.get("slopes")
    if before is not None and slopes is not None and before.shape == slopes.shape == x.shape:
        P = secant(P, x.astype(np.float64) - before, g.astype(np.float64) - slopes, g)
    state["gram"] = P
    return P


def _weights(rows: Rows, bends: Vector, every: int) -> Matrix:
    """The bends of a sample; of rows of which few weigh nearly all, what each adds to H."""
    if rows.heavy is not None:
        return np.asarray(bends * rows.heavy, np.float64)
    w: Matrix = bends[::every].astype(np.float64)
    w *= float(bends.sum(dtype=np.float64)) / (float(w.sum()) or 1.0)
    return w


def _moved(w: Matrix, known: Matrix) -> bool:
    """Whether bends have changed by more than a factor."""
    share = float(w.sum()) / (float(known.sum()) or np.inf)
    return float(np.abs(w - share * known).sum()) > STALE * float(w.sum())


def _made(f: Linear, weights: Vector, w: Matrix, every: int, alone: bool) -> Matrix:
    """P from a sample; a diagonal if columns are `alone`: they tell of each other only noise."""
    follows = isinstance(f, WithIntercept)
    scale = weights.astype(np.float64) * (float(w.sum()) or 1.0)
    if alone or not w.any():
        return np.diag(scale)
    P = f.rows.some_moments(every, w, np.sqrt(weights.astype(np.float64)), follows)
    return sampled(P, scale).P if np.isfinite(P).all() else np.diag(scale)


def _drawn(f: Linear, weights: Vector, bends: Vector, adds: Matrix, count: int) -> Matrix:
    """P from about so many rows, more of those that add more to H: all that add most.

    They count for more the fewer there are of their kind (Horvitz, Thompson 1952).
    """
    share = adds * (count / (float(adds.sum()) or 1.0))
    for _ in range(_ROUNDS):
        rest = share < 1
        room = count - int(np.count_nonzero(~rest))
        share = np.where(rest, share * (room / (float(share[rest].sum()) or 1.0)), 1.0)
    share = np.minimum(share, 1.0)
    ends = np.floor(np.cumsum(share) + 0.5)
    chosen = np.flatnonzero(np.diff(ends, prepend=0.0) > 0)
    if not chosen.size:
        return np.diag(weights.astype(np.float64))
    w, lengths = bends[chosen] / share[chosen], np.sqrt(weights.astype(np.float64))
    P = f.rows.take(chosen).some_moments(1, w, lengths, isinstance(f, WithIntercept))
    if not np.isfinite(P).all():
        return np.diag(weights.astype(np.float64) * (float(bends.sum()) or 1.0))
    # Of rows that weigh much few may bend: what columns weigh says nothing of their curvature.
    scale = weights * (float((P.diagonal() / weights).mean()) or 1.0)
    return sampled(P, scale).P


def secant(P: Matrix, s: Vector, y: Vector, g: NDArray[Any]) -> Matrix:
    """P + y y^T / <s, y> - P s s^T P / <s, P s>, for which P s = y; P where y is rounding."""
    image = P @ s
    bend, seen = float(s @ image), float(s @ y)
    noise = _ROUNDING * float(np.finfo(g.dtype).eps) * float(np.linalg.norm(g) * np.linalg.norm(s))
    if not (bend > 0 and seen > max(_FLAT * bend, noise)):
        return P
    both = np.array([y / np.sqrt(seen), image / np.sqrt(bend)])
    return P + (both.T * [1.0, -1.0]) @ both
