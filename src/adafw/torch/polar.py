"""The polar factor U V^T of a matrix G = U S V^T, or of each of a batch, in three ways.

It minimises -<G, V> over the ball of the spectral norm. The first way needs products only and
never leaves the ball, the second is what Muon does and leaves it by up to 20 %, the third is exact.
"""

import torch
from torch import Tensor

#: Odd polynomials a x + b x^3 + c x^5, to be applied one after the other to singular values in
#: [0, 1]: small ones grow fast, and all end within 0.0012 of 1 or below. From the fourth on the
#: largest value is below sqrt(3), so that a cubic step brings it into [0, 1]. The last repeats.
QUINTICS = (
    (8.2051, -22.9019, 16.4607),
    (4.0664, -2.8612, 0.5184),
    (3.9096, -2.8234, 0.5250),
    (3.2856, -2.4153, 0.4853),
    (2.2779, -1.6198, 0.3985),
    (1.8726, -1.2307, 0.3585),
    (1.8564, -1.2132, 0.3568),
    (1.875, -1.25, 0.375),
)
LEAST = 4  # quintic steps that must come before the cubic one
SMALL = 1 << 14  # entries up to which stacks of matrices are quicker than one by one
HALVED = 384  # rows from which on it pays to make a symmetric product by blocks
FAR = 8  # times as long as wide, from where on the Gram matrix pays
MUON = (3.4445, -4.7750, 2.0315)


def feasible(g: Tensor, iterations: int = 6, bf16: bool = False) -> Tensor:
    """The polar factor by quintic steps and a cubic one; no singular value exceeds 1.

    1.5 X - 0.5 X X^T X maps [0, sqrt(3)] into [0, 1], so it ends any schedule inside the ball.
    3 * iterations + 2 products; with `bf16` all but the last two are made in bfloat16. Of float32
    matrices far from square on the CPU, by `gram_factor` and two long products.
    """
    if g.dim() == 2 and g.numel() <= SMALL:  # rounded as in a stack, whoever makes one
        return feasible(g[None], iterations, bf16)[0]
    is_wide = g.shape[-2] <= g.shape[-1]
    if is_far(g.shape) and g.is_cpu and g.dtype is torch.float32 and not bf16:
        x = _by_gram(g.mT if is_wide else g, iterations)
        return x.mT if is_wide else x
    x = _scaled(g if is_wide else g.mT)
    dtype = x.dtype
    x = x.bfloat16() if bf16 else x
    for i in range(iterations):
        a, b, c = QUINTICS[min(i, len(QUINTICS) - 1)]
        gram = _gram(x)
        x = _added(x, _quadratic(gram, b, c), x, a, 1.0)
    x = x.to(dtype)
    x = _added(x, _gram(x), x, 1.5, -0.5)
    return x if is_wide else x.mT


def is_far(shape: torch.Size | tuple[int, ...]) -> bool:
    """Whether matrices of this shape are far from square."""
    least, most = sorted(shape[-2:])
    return most >= FAR * least > 0


def _by_gram(x: Tensor, iterations: int) -> Tensor:
    """feasible(X) of long matrices in float32, by A = X^T X in float64."""
    exact, size = x.double(), x.double().abs()
    columns, rows = size.sum(-2).amax(-1), size.sum(-1).amax(-1)
    return (exact @ gram_factor(exact.mT @ exact, columns * rows, iterations)).to(x.dtype)


def gram_factor(a: Tensor, sides: Tensor, iterations: int = 6) -> Tensor:
    """Q with feasible(X) = X Q, from A = X^T X and ||X||_1 ||X||_inf.

    x p(x^2) is made of steps x <- x P(A), after which A is P A P: all of them polynomials in one
    matrix, which commute. To be made in float64: A has the squares of the singular values.
    """
    # The square of the same bound on the largest singular value as in `_scaled`.
    trace = a.diagonal(dim1=-2, dim2=-1).sum(-1)
    square = positive(torch.minimum(trace, sides))[..., None, None]
    a = a / square
    one = torch.eye(a.shape[-1], dtype=a.dtype, device=a.device)
    q = one
    for i in range(iterations + 1):
        if i < iterations:
            c1, c3, c5 = QUINTICS[min(i, len(QUINTICS) - 1)]
            step = c1 * one + c3 * a + c5 * (a @ a)
        else:
            step = 1.5 * one - 0.5 * a
        q, a = q @ step, step @ a @ step
        a = (a + a.mT) / 2  # rounding would let it drift from what is symmetric
    return q / square.sqrt()


def muon(g: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Muon's Newton-Schulz iteration: one quintic, `steps` times, in bfloat16."""
    a, b, c = coefficients
    is_wide = g.shape[-2] <= g.shape[-1]
    x = (g if is_wide else g.mT).bfloat16()
    x = x / torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = _added(x, _added(gram, gram, gram, b, c), x, a, 1.0)
    return (x if is_wide else x.mT).to(g.dtype)


def exact(g: Tensor) -> Tensor:
    """The polar factor by singular values; those at rounding level of the largest count as 0."""
    u, s, vt = torch.linalg.svd(g, full_matrices=False)
    least = torch.finfo(s.dtype).eps * max(g.shape[-2:]) * s[..., :1]
    return (u * (s > least).to(s.dtype)[..., None, :]) @ vt


def _scaled(x: Tensor) -> Tensor:
    """x over a bound on its largest singular value; 0 stays 0.

    The bound is the smaller of the Frobenius norm and sqrt(||x||_1 ||x||_inf), of the matrix
    divided by its largest entry first, so that squares neither overflow nor vanish.
    """
    size = x.abs()
    largest = positive(size.amax((-2, -1), keepdim=True))
    x, size = x / largest, size / largest
    sides = (size.sum(-2, keepdim=True).amax(-1, keepdim=True)
             * size.sum(-1, keepdim=True).amax(-2, keepdim=True)).sqrt()  # fmt: skip
    length = torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True)
    return x / positive(torch.minimum(length, sides))


def positive(length: Tensor) -> Tensor:
    """A length to divide by: 1 in place of 0, which leaves 0 as it is."""
    return torch.where(length > 0, length, torch.ones_like(length))


def _gram(x: Tensor) -> Tensor:
    """X X^T. Of a large matrix on the CPU, the block above the diagonal is that below it."""
    half = x.shape[-2] // 2
    if x.dim() > 2 or 2 * half < HALVED or not x.is_cpu:
        return x @ x.mT
    top, bottom = x[:half], x[half:]
    below = bottom @ top.mT
    return torch.cat([torch.cat([_gram(top), below.mT], 1), torch.cat([below, _gram(bottom)], 1)])


def _quadratic(a: Tensor, b: float, c: float) -> Tensor:
    """b A + c A A, A being symmetric."""
    if a.dim() > 2 or a.shape[-1] < HALVED or not a.is_cpu:
        return _added(a, a, a, b, c)
    return torch.add(b * a, _gram(a), alpha=c)


def _added(c: Tensor, a: Tensor, b: Tensor, beta: float, alpha: float) -> Tensor:
    """beta c + alpha a b in one pass, for a matrix or a batch of them."""
    if c.dim() == 2:
        return torch.addmm(c, a, b, beta=beta, alpha=alpha)
    return torch.baddbmm(c, a, b, beta=beta, alpha=alpha)
