"""Sets of matrices on tensors: shapes, and cheap linear minimisation without any decomposition.

The core's NuclearBall and SpectralBall are exact, by singular value decomposition. The two balls
here hold the same points and never leave them, but their LMO is approximate and made of products
with the matrix only, which accelerators do fast.
"""

import copy
import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from adafw import arrays, checks
from adafw.constraints import (
    Birkhoff,
    ColumnBall,
    Constraint,
    NuclearBall,
    RowBall,
    SpectralBall,
    projections,
)
from adafw.constraints.base import RadialSet, excess
from adafw.torch import polar
from adafw.torch.polar import positive as _positive
from adafw.typing import AnyArray as Array
from adafw.typing import AnyDType, Shape

#: The core's sets that hold matrices.
_MATRIX_SETS = (NuclearBall, SpectralBall, RowBall, ColumnBall, Birkhoff)


def matrix_shape(constraint: Constraint, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape a set wants points in: (out, rest) for sets of matrices, the same for others.

    A set made for one shape gets that shape, if the sizes agree.
    """
    own = constraint.shape
    if own is not None:
        return own if math.prod(own) == math.prod(shape) else shape
    if isinstance(constraint, SpectralNormBall):
        return constraint.stacked(shape)
    if isinstance(constraint, (MatrixBall, *_MATRIX_SETS)):
        return (shape[0], math.prod(shape[1:])) if shape else (1, 1)
    return shape


def as_points(constraint: Constraint, x: Tensor) -> Tensor:
    """x in the shape that the set wants."""
    return x.reshape(matrix_shape(constraint, tuple(x.shape)))


def with_radius(constraint: Constraint, radius: float) -> Constraint:
    """The same set with another radius."""
    other = copy.copy(constraint)
    object.__setattr__(other, "radius", checks.radius(radius))
    return other


def lmo(constraint: Constraint, g: Tensor) -> Tensor:
    """A minimiser of <g, v> over the set, shaped as g."""
    return constraint.lmo(as_points(constraint, g)).reshape(g.shape)


def gap(constraint: Constraint, x: Tensor, g: Tensor) -> float:
    """max <g, x - v> over v in the set, exactly."""
    return constraint.gap(as_points(constraint, x), as_points(constraint, g))


@dataclass(frozen=True, eq=False)
class MatrixBall(RadialSet):
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

    def start(self, shape: Shape, dtype: AnyDType = float) -> Array:
        return arrays.zeros(shape, dtype)

    def violation(self, x: Array) -> float:
        if not bool(torch.isfinite(x).all()):
            return math.nan
        return excess(self.norm(x.double()) - self.radius, self.radius)

    def project(self, x: Array, h: Array | None = None) -> Array:
        if h is not None:
            raise TypeError(f"{type(self).__name__} has no projection in a metric h; leave h out.")
        u, s, vt = torch.linalg.svd(arrays.finite(x, "x").double(), full_matrices=False)
        return ((u * self.shrink(s)[..., None, :]) @ vt).to(x.dtype)


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
class SpectralNormBall(MatrixBall):
    """{X : largest singular value <= radius}, or the same for each of `split` matrices in a stack.

    A tensor (split, rows, ...) is a stack as it is, as the weights of experts are; any other one
    has its rows cut into `split` equal parts, as the query, key and value of attention are, or
    its heads.
    """

    split: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "split", checks.integer(self.split, "split", 1))

    def polar(self, x: Tensor) -> Tensor:
        """The polar factor of a matrix, or of each of a batch; maybe slightly short of it."""
        raise NotImplementedError

    def lmo(self, g: Array) -> Array:
        return -self.radius * self.polar(arrays.finite(g, "g"))

    def norm(self, x: Tensor) -> Tensor:
        return torch.linalg.svdvals(x).amax()

    def dual_norm(self, g: Tensor) -> Tensor:
        return torch.linalg.svdvals(g).sum()

    def shrink(self, s: Tensor) -> Tensor:
        return s.clamp(max=self.radius)

    def stacked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape (split, rows, columns) of a tensor, (rows, columns) where split is 1."""
        rows, rest = (shape[0], math.prod(shape[1:])) if shape else (1, 1)
        if self.split == 1:
            return rows, rest
        if len(shape) >= 3 and rows == self.split:
            return rows, shape[1], math.prod(shape[2:])
        if rows % self.split:
            raise ValueError(
                f"split must divide the rows of a tensor, got split={self.split} for shape {shape}."
            )
        return self.split, rows // self.split, rest

    def diameter(self, shape: Shape, p: float = 2) -> float:
        *count, m, n = arrays.as_shape(shape)
        if p == 2:
            return 2 * self.radius * math.sqrt(math.prod(count) * min(m, n))
        raise ValueError(f"p must be 2 for {type(self).__name__} of shape {(m, n)}, got {p}.")


@dataclass(frozen=True, eq=False)
class NewtonSchulzBall(SpectralNormBall):
    """{X : largest singular value <= radius}, its LMO by odd polynomials in the matrix.

    lmo: -radius p(G / s), p made of `iterations` quintic steps (at least 4) and a cubic one, with
    s >= ||G||_2; 3 * iterations + 2 products. p maps [0, 1] into [0, 1], so that no vertex leaves
    the ball, and singular values above s / 100 to 0.99 or more: <G, lmo(G)> is 99 % of the
    minimum for nearly every matrix with six steps, 99.7 % with eight. The coefficients are those
    of a minimax schedule (Amsel et al., arXiv:2505.16932) that ends in the cubic of Newton and
    Schulz.
    `split`: see `SpectralNormBall`. `bf16`: all but the last two products in bfloat16, for
    accelerators; on most CPUs it is slower.
    """

    iterations: int = 6
    bf16: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        count = checks.integer(self.iterations, "iterations", polar.LEAST)
        object.__setattr__(self, "iterations", count)

    def polar(self, x: Tensor) -> Tensor:
        return polar.feasible(x, self.iterations, self.bf16)


@dataclass(frozen=True, eq=False)
class DecomposedBall(SpectralNormBall):
    """The same ball, its LMO exact, by singular value decomposition."""

    def polar(self, x: Tensor) -> Tensor:
        return polar.exact(x)


@dataclass(frozen=True, eq=False)
class MuonBall(SpectralNormBall):
    """The same ball with Muon's own Newton-Schulz iteration, whose points lie up to 20 % outside.

    `coefficients`, `steps`, `eps`: as `torch.optim.Muon` has them.
    """

    coefficients: tuple[float, float, float] = polar.MUON
    steps: int = 5
    eps: float = 1e-7

    def polar(self, x: Tensor) -> Tensor:
        return polar.muon(x, self.coefficients, self.steps, self.eps)


@lru_cache(maxsize=64)
def _starts(n: int) -> Tensor:
    rng = torch.Generator().manual_seed(n)
    return torch.randn(n, 4, generator=rng, dtype=torch.float64, device="cpu")
