"""Completing a matrix from observed entries, by factors, to a certified gap."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.constraints.lanczos import leading_triplet, spectral_norm_bound
from adafw.fitting.core import Deadline
from adafw.lanczos import golub_kahan
from adafw.losses import Loss
from adafw.steps.corrective.factors import FactoredView, balanced
from adafw.steps.corrective.nuclear import improved
from adafw.typing import MatrixLike

Matrix = NDArray[Any]

#: Entries up to which a matrix may be written out.
DENSE = 10**7
#: Observations that an offset of 0 counts as, and alternations that find the offsets.
SHRINK, SWEEPS = 5.0, 30
#: Probability that the bound of a large matrix's norm fails, and Lanczos steps for it at most.
_FAILURE, _STEPS = 1e-12, 2000
#: Singular pairs that join at least, and products that look for them.
_PAIRS, _KRYLOV = 8, 3
#: Iterations without progress after which a fit has stalled.
_PATIENCE = 5


@dataclass(frozen=True)
class Offsets:
    """mean + row_r + col_c: what an entry is before the matrix adds to it."""

    mean: float
    rows: Matrix
    cols: Matrix

    def at(self, rows: NDArray[Any], cols: NDArray[Any]) -> Matrix:
        """Of these entries; a number of -1 stands for a row or column that was never seen."""
        row = np.where(rows >= 0, self.rows[rows], 0.0)
        return np.asarray(self.mean + row + np.where(cols >= 0, self.cols[cols], 0.0))


@dataclass(frozen=True)
class Completion:
    """Factors with X = left right^T in the ball, and what is certified about them."""

    left: Matrix
    right: Matrix
    value: float
    gap: float
    lower_bound: float
    n_iter: int
    status: str


def fit_offsets(
    rows: NDArray[Any], cols: NDArray[Any], shape: tuple[int, int], y: Matrix, loss: Loss
) -> Offsets:
    """argmin of the sum of losses of mean + a_r + b_c plus c SHRINK (|a|^2 + |b|^2) / 2.

    c is the loss's curvature: of squares, an offset is the mean of the residuals with SHRINK zeros
    added. Alternating steps on a quadratic upper bound; each lowers it. O(observations) a sweep.
    """
    mean, a, b = 0.0, np.zeros(shape[0]), np.zeros(shape[1])
    bend = loss.curvature
    counts = [np.bincount(rows, minlength=shape[0]), np.bincount(cols, minlength=shape[1])]
    z = np.zeros(len(y))
    for _ in range(SWEEPS):
        step = -float(loss.slope(z, y).mean()) / bend
        mean, z = mean + step, z + step
        largest = abs(step)
        for which, offset, count in ((rows, a, counts[0]), (cols, b, counts[1])):
            slope = np.bincount(which, loss.slope(z, y), minlength=len(offset)) / bend
            change = -(slope + SHRINK * offset) / (count + SHRINK)
            offset += change
            z = z + change[which]
            largest = max(largest, float(np.abs(change).max()))
        if largest <= 1e-6 * (1e-300 + abs(mean) + float(np.abs(a).max()) + float(np.abs(b).max())):
            break
    return Offsets(mean, a, b)


def complete(
    seen: FactoredView, radius: float, tol: float, deadline: Deadline, *,
    start: tuple[Matrix, Matrix] | None = None, max_iter: int = 200,
) -> Completion:  # fmt: skip
    """Minimises the mean loss over the nuclear ball until gap <= tol * max(|value|, 1e-12).

    One iteration: the gradient's leading singular pairs join the factors, which Newton steps then
    move (`steps.corrective.nuclear`). The gap <G, X> + radius s_1(G) has s_1 from above.
    `seen`: a `FactoredView` that knows the `least` value. `start`: factors to start from, scaled
    into the ball.
    """
    m, n = seen.shape
    left, right = np.zeros((m, 0)), np.zeros((n, 0))
    if start is not None:
        left, right = balanced(*start, radius)
    best, idle, status = math.inf, 0, "max_iter"
    for t in range(max_iter + 1):
        z = seen.predict(left, right)
        value, slopes = seen.value(z), seen.slopes(z)
        matrix, floor = seen.matrix(slopes), max(abs(value), 1e-12)
        # As many pairs again as there are: the rank of a good radius is reached in few iterations.
        pairs = leading_pairs(matrix, right, max(_PAIRS, left.shape[1]))
        inner = float(slopes @ z)
        gap = inner + radius * float(pairs[1][0])  # from below; what can stop is from above
        idle = 0 if value < best - 1e-9 * abs(best) or not math.isfinite(best) else idle + 1
        best = min(best, value)
        over = next(
            (why for why, true in (("max_iter", t == max_iter), ("stalled", idle >= _PATIENCE),
                                   ("max_seconds", deadline.left == 0)) if true), "",
        )  # fmt: skip
        if gap <= 0.9 * tol * floor or over:
            above = norm_from_above(matrix, float(pairs[1][0]), 0.05 * tol * floor / radius)
            gap = min(max(inner + radius * above, 0.0), value - seen.least)
            status = "converged" if gap <= tol * floor else over
            if status:
                break
        left, right = improved(seen, left, right, radius, pairs)
    return Completion(left, right, value, gap, value - gap, t, status)


def leading_pairs(matrix: MatrixLike, right: Matrix, count: int) -> tuple[Matrix, Matrix, Matrix]:
    """(U, s, V): about the largest singular values, each from below, by a block Krylov space.

    It begins with V = right, near a solution a part of the space wanted, and random vectors. ARPACK
    does not converge there: at a solution the largest singular values are all the same.
    """
    m, n = matrix.shape
    random = np.random.default_rng(0).standard_normal((n, count + _PAIRS))
    block = matrix @ np.hstack([right, random])
    blocks = []
    for _ in range(_KRYLOV):
        block = np.linalg.qr(block)[0]
        blocks.append(block)
        block = matrix @ (matrix.T @ block)
    basis = np.linalg.qr(np.hstack(blocks)[:, : max(m, 1)])[0]
    u, s, vt = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)
    count = min(count, len(s))
    return basis @ u[:, :count], s[:count], vt[:count].T


def norm_from_above(matrix: MatrixLike, below: float, slack: float) -> float:
    """A number >= the largest singular value, given one <= it; about `slack` above where possible.

    Proven by a Cholesky factor where the matrix may be written out (10^7 entries). Else from
    Lanczos steps with a random start, whose relative error after s of them exceeds
    (ln(1.648 sqrt(n) / p) / (2 s - 1))^2 with probability p = 1e-12 at most (Kuczynski and
    Wozniakowski 1992): as many steps as the slack asks for.
    """
    m, n = matrix.shape
    if m * n <= DENSE:
        dense = matrix.toarray()
        bound = spectral_norm_bound(dense, below)
        if bound > below + slack:  # a bound is as sharp as what it is tried from
            u, _, v = leading_triplet(dense)
            bound = min(bound, spectral_norm_bound(dense, float(u @ dense @ v)))
        return bound
    from scipy.linalg import eigh_tridiagonal

    size = min(m, n)
    relative = min(0.5, max(slack / max(below, 1e-300), 1e-6))  # of the norm; twice that squared
    chance = math.log(1.648 * math.sqrt(size) / _FAILURE)
    steps = min(size, _STEPS, math.ceil((chance / math.sqrt(2 * relative) + 1) / 2))
    sides = (lambda v: matrix @ v, lambda u: matrix.T @ u)
    v = np.random.default_rng(1).standard_normal(size)
    numbers = np.zeros((steps, 2))
    for k, pair in zip(
        range(steps), golub_kahan(*(sides if n <= m else sides[::-1]), v), strict=False
    ):
        numbers[k] = pair
        if min(pair) <= 1e-14 * numbers[0, 0]:
            break
    a, b = numbers[: k + 1].T
    # The largest eigenvalue of B B^T, B being bidiagonal with a and, right of it, b.
    ritz = float(
        eigh_tridiagonal(
            a**2 + np.append(b[:-1], 0.0) ** 2, b[:-1] * a[1:], eigvals_only=True, select="i",
            select_range=(k, k),
        )[0]
    )  # fmt: skip
    error = (chance / (2 * (k + 1) - 1)) ** 2 if k + 1 < size else 0.0
    return math.sqrt(max(ritz, below**2) / max(1 - error, 1e-3)) * (1 + 1e-12)


def smallest_radius(seen: FactoredView, share: float) -> float:
    """That which lowers the objective by about this share at most, as the gradient at 0 tells."""
    nothing = np.zeros((seen.shape[0], 0)), np.zeros((seen.shape[1], 0))
    z = seen.predict(*nothing)
    steep = float(leading_pairs(seen.matrix(seen.slopes(z)), nothing[1], 1)[1][0])
    return share * (seen.value(z) - seen.least) / max(steep, 1e-300)
