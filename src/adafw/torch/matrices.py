"""Sets of matrices on tensors: shapes, and cheap linear minimisation without any decomposition.

The core's NuclearBall and SpectralBall are exact, by singular value decomposition. The two balls
here hold the same points and never leave them, but their LMO is approximate and made of products
with the matrix only, which accelerators do fast.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from adafw import arrays, checks
from adafw.constraints import Birkhoff, Constraint, NuclearBall, SpectralBall, projections
from adafw.constraints.base import excess
from adafw.typing import AnyArray as Array
from adafw.typing import Shape

#: The core's sets that hold matrices.
_MATRIX_SETS = (NuclearBall, SpectralBall, Birkhoff)


def matrix_shape(constraint: Constraint, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape a set wants points in: (out, rest) for sets of matrices, the same for others.

    A set made for one shape gets that shape, if the sizes agree.
    """
    own = constraint.shape
    if own is not None:
        return own if math.prod(own) == math.prod(shape) else shape
    if isinstance(constraint, (MatrixBall, *_MATRIX_SETS)):
        return (shape[0], math.prod(shape[1:])) if shape else (1, 1)
    return shape


def as_points(constraint: Constraint, x: Tensor) -> Tensor:
    """x in the shape that the set wants."""
    return x.reshape(matrix_shape(constraint, tuple(x.shape)))


def lmo(constraint: Constraint, g: Tensor) -> Tensor:
    """A minimiser of <g, v> over the set, shaped as g."""
    return constraint.lmo(as_points(constraint, g)).reshape(g.shape)


def gap(constraint: Constraint, x: Tensor, g: Tensor) -> float:
    """max <g, x - v> over v in the set, exactly."""
    return constraint.gap(as_points(constraint, x), as_points(constraint, g))


@dataclass(frozen=True, eq=False)
class MatrixBall(Constraint):
    """A ball of matrices whose norm is one of the singular values, on tensors only."""

    radius: float
    projection = "euclidean"

    def __post_init__(self) -> None:
        object.__setattr__(self, "radius", checks.radius(self.radius))

    def norm(self, x: Tensor) -> Tensor:
        """The norm that the radius bounds."""
        raise NotImplementedError

    def dual_norm(self, g: Tensor) -> Tensor:
        """max <g, v> over the unit ball."""
        raise NotImplementedError

    def shrink(self, s: Tensor) -> Tensor:
        """The singular values of the projection of a matrix with singular values s."""
        raise NotImplementedError

    def gap(self, x: Array, g: Array) -> float:
        """max <g, x - v> over v in the ball, by a decomposition: the lmo would fall short of it."""
        return float((g * x).sum() + self.radius * self.dual_norm(g))

    def start(self, shape: Shape, dtype: Any = float) -> Array:
        return arrays.zeros(shape, dtype)

    def violation(self, x: Array) -> float:
        if not bool(torch.isfinite(x).all()):
            return math.nan
        return excess(self.norm(x.double()) - self.radius, self.radius)

    def project(self, x: Array, h: Array | None = None) -> Array:
        if h is not None:
            raise TypeError(f"{type(self).__name__} has no projection in a metric h; leave h out.")
        u, s, vt = torch.linalg.svd(arrays.finite(x, "x").double(), full_matrices=False)
        return ((u * self.shrink(s)) @ vt).to(x.dtype)


@dataclass(frozen=True, eq=False)
class PowerNuclearBall(MatrixBall):
    """{X : sum of singular values <= radius}, its LMO by the power method.

    lmo: -radius u v^T with unit vectors u = G v / ||G v|| and v the best of four random starts
    (seeded) after k products with G^T G. One start misses a relative error e of ||G v||^2 with
    probability at most 0.824 sqrt(n) (1 - e)^(k - 1/2) (Kuczynski, Wozniakowski 1992, theorem
    4.1), n the smaller side; k makes that 0.1, so that <g, lmo(g)> is within the relative
    `accuracy` of the minimum but for a chance of 1e-4. O(k m n), against O(m n min(m, n)).
    """

    accuracy: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        accuracy = checks.real(self.accuracy, "accuracy", 0, 0.99, above=True)
        object.__setattr__(self, "accuracy", accuracy)

    def products(self, n: int) -> int:
        """k for matrices whose smaller side is n."""
        error = 1 - (1 - self.accuracy) ** 2  # of the square of the singular value
        return math.ceil(0.5 + math.log(8.24 * math.sqrt(n)) / -math.log1p(-error))

    def lmo(self, g: Array) -> Array:
        g = arrays.finite(g, "g")
        is_tall = g.shape[0] >= g.shape[1]
        tall = g if is_tall else g.mT
        tall = tall / _positive(tall.abs().amax())  # squares neither overflow nor vanish
        n = tall.shape[1]
        v = _starts(n).to(device=g.device, dtype=g.dtype)
        for _ in range(self.products(n)):
            v = tall.mT @ (tall @ v)
            v = v / _positive(torch.linalg.vector_norm(v, dim=0))
        u = tall @ v
        best = torch.linalg.vector_norm(u, dim=0).argmax().reshape(1)
        u, v = u.index_select(1, best), v.index_select(1, best)
        vertex = (u / _positive(torch.linalg.vector_norm(u))) @ v.mT
        return -self.radius * (vertex if is_tall else vertex.mT)

    def norm(self, x: Tensor) -> Tensor:
        return torch.linalg.svdvals(x).sum()

    def dual_norm(self, g: Tensor) -> Tensor:
        return torch.linalg.svdvals(g).amax()

    def shrink(self, s: Tensor) -> Tensor:
        return projections.l1_ball(s, None, self.radius)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        m, n = arrays.as_shape(shape)
        if p == 2:
            return 2 * self.radius
        raise ValueError(f"p must be 2 for {type(self).__name__} of shape {(m, n)}, got {p}.")


@dataclass(frozen=True, eq=False)
class NewtonSchulzBall(MatrixBall):
    """{X : largest singular value <= radius}, its LMO by Newton-Schulz iterations.

    lmo: -radius p(p(... G / s)), p(X) = 1.875 X - 1.25 X X^T X + 0.375 X (X^T X)^2, `iterations`
    times. p increases on [0, 1] with p(1) = 1, so that singular values rise towards 1 and never
    pass it, unlike with the faster coefficients that leave the ball. s >= ||G||_2 is the smaller
    of the Frobenius norm and sqrt(||G||_1 ||G||_inf). Singular values below s / 1.875^iterations
    stay short of 1. O(iterations m n min(m, n)) in products only.
    """

    iterations: int = 15

    def __post_init__(self) -> None:
        super().__post_init__()
        count = checks.integer(self.iterations, "iterations", 1)
        object.__setattr__(self, "iterations", count)

    def lmo(self, g: Array) -> Array:
        g = arrays.finite(g, "g")
        x = g if g.shape[0] <= g.shape[1] else g.mT
        x = x / _positive(x.abs().amax())
        sides = (x.abs().sum(0).amax() * x.abs().sum(1).amax()).sqrt()
        x = x / _positive(torch.minimum(torch.linalg.vector_norm(x), sides))
        for _ in range(self.iterations):
            a = x @ x.mT
            x = 1.875 * x + (0.375 * (a @ a) - 1.25 * a) @ x
        return -self.radius * (x if g.shape[0] <= g.shape[1] else x.mT)

    def norm(self, x: Tensor) -> Tensor:
        return torch.linalg.svdvals(x).amax()

    def dual_norm(self, g: Tensor) -> Tensor:
        return torch.linalg.svdvals(g).sum()

    def shrink(self, s: Tensor) -> Tensor:
        return s.clamp(max=self.radius)

    def diameter(self, shape: Shape, p: float = 2) -> float:
        m, n = arrays.as_shape(shape)
        if p == 2:
            return 2 * self.radius * math.sqrt(min(m, n))
        raise ValueError(f"p must be 2 for {type(self).__name__} of shape {(m, n)}, got {p}.")


def _positive(length: Tensor) -> Tensor:
    """A length to divide by: 1 in place of 0, which leaves 0 as it is."""
    return torch.where(length > 0, length, torch.ones_like(length))


@lru_cache(maxsize=64)
def _starts(n: int) -> Tensor:
    rng = torch.Generator().manual_seed(n)
    return torch.randn(n, 4, generator=rng, dtype=torch.float64, device="cpu")
