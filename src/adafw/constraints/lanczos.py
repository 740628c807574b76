"""The largest singular value of a large matrix, and a proven bound of it."""

import numpy as np
from numpy.typing import NDArray

from adafw import arrays
from adafw.arrays import namespace
from adafw.lanczos import golub_kahan
from adafw.typing import AnyArray

#: Steps before a restart from the best vector so far: memory for that many vectors is needed.
_STEPS = 300


def leading_triplet(a: AnyArray) -> tuple[AnyArray, float, AnyArray]:
    """u, s, v with a v = s u and a^T u = s v, about, for the largest singular value.

    Golub and Kahan's bidiagonalisation with full reorthogonalisation (Golub and Kahan 1965,
    Simon and Zha 2000), in the library and dtype of a; two products with a per step, 10 to 100
    steps. Stops when the residual r = ||a^T u - s v|| is at most 1e-7 s and says that s is within
    1e-10 s (8 eps below float64) of a singular value: r bounds its error, and so does
    r^2 / (s - s_2), if s_2, the next Ritz value, is the next singular value. It starts from a
    fixed dense vector, so that the same a gives the same bits.
    """
    xp = namespace(a)
    largest = float(xp.max(xp.abs(a)))
    if largest == 0:
        return a[:, 0], 0.0, a[0]
    a = a / largest  # squares must neither overflow nor vanish
    v = arrays.like(np.random.default_rng(0).standard_normal(a.shape[1]), a)
    tolerance = max(1e-10, 8 * float(xp.finfo(a.dtype).eps))
    for _ in range(20):
        u, s, v, settled = _bidiagonalise(a, v, tolerance)
        if settled:
            break
    return u, s * largest, v


def _bidiagonalise(
    a: AnyArray, v: AnyArray, tolerance: float
) -> tuple[AnyArray, float, AnyArray, bool]:
    """The best triplet in the Krylov space of v, and whether it is within the tolerance."""
    steps = min(*a.shape, _STEPS)
    left, right = (arrays.empty((steps, n), a) for n in a.shape)
    small = np.zeros((steps, steps))
    check, last = 4, 0.0
    numbers = golub_kahan(lambda v: a @ v, lambda u: u @ a, v, (left, right))
    for k, (alpha, beta) in zip(range(steps), numbers, strict=False):
        small[k, k] = alpha
        if k:
            small[k - 1, k] = last
        last = beta
        # The Krylov space is exhausted where nothing but rounding is left of a new vector.
        over = k + 1 == steps or min(alpha, beta) <= 1e-15 * small.max()
        if k + 1 == check or over:
            check = k + 5 + k // 4
            x, s, yt = np.linalg.svd(small[: k + 1, : k + 1])
            miss = beta * abs(x[k, 0])
            apart = s[0] - s[1] if k else s[0]
            # The error of s is below the residual, and of its square over the distance to the next:
            # but
            # that holds only once the residual itself is small, else s may belong to another
            # vector.
            settled = miss <= max(1e-7, tolerance) * s[0] and (
                min(miss, miss**2 / (apart or 1.0)) <= tolerance * s[0]
            )
            if settled or over:
                break
    u = arrays.like(x[:, 0], a) @ left[: k + 1]
    v = arrays.like(yt[0], a) @ right[: k + 1]
    return u / arrays.norm(u), float(s[0]), v / arrays.norm(v), settled


def spectral_norm_bound(a: NDArray[np.float64], below: float) -> float:
    """A number >= the largest singular value s of a, rounding included, given one <= s.

    Residuals cannot prove that no larger singular value was missed. But t > s^2 if t - a^T a (or
    t - a a^T, whichever is smaller) has a Cholesky factor; t is tried from below^2 upwards. The
    products are wrong by at most n eps ||a||_F^2, and a factor that exists proves positivity up
    to k^2 eps t (Rump 2006). O(m n min(m, n)), some 10 times less than singular values cost.
    """
    scale = float(np.abs(a).max())
    if scale == 0:
        return 0.0
    a, below = a / scale, below / scale
    gram = a.T @ a if a.shape[1] <= a.shape[0] else a @ a.T
    k, frobenius, eps = len(gram), float(np.trace(gram)), float(np.finfo(np.float64).eps)
    diagonal = np.diag(gram).copy()
    least, excess = max(below**2, 0.5 * frobenius / k), 0.0
    while least * (1 + excess) < frobenius:
        t = least * (1 + excess)
        slack = eps * (k * (k + 3) * t + (max(a.shape) + 2) * frobenius)
        np.fill_diagonal(gram, diagonal - (t + 2 * slack))
        try:
            np.linalg.cholesky(-gram)
            return scale * float(np.sqrt(t + 3 * slack)) * (1 + 4 * eps)
        except np.linalg.LinAlgError:
            # `below` is mostly right to rounding, so that little more is enough.
            excess = max(1e-12, 10 * excess)
    return scale * float(np.sqrt(frobenius * (1 + (a.size + 2) * eps)))
