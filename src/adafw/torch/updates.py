"""The optimizers' updates of one tensor, in place and in plain torch.

An update is a metric (of the gradient g and the tensor's state: the linear term m and the
diagonal h) and a move of the weights x (float32 or float64) in their set, None being the whole
space. `options` are those of the parameter group. Nothing here makes the host wait for an
accelerator: there, step sizes stay tensors without dimensions. The mathematics is that of
`adafw.steps` and `adafw.metrics`, proven equal by the tests.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor
from torch.nn import Parameter

from adafw.constraints import Constraint, LInfBall
from adafw.torch import matrices
from adafw.torch.typing import Options, State

#: A number where the host computes, else a tensor without dimensions.
Scalar = TypeVar("Scalar", float, Tensor)
#: The diagonal h, or None in updates that have none.
H = TypeVar("H", Tensor, None)

_KEPT = 1 << 22  # entries of working memory kept from one update to the next
_PART = 1 << 16  # entries of a part: six of them fit the second cache
_memory = threading.local()


@dataclass(frozen=True)
class Update(Generic[H]):
    """The update of one tensor: its metric, then its move."""

    metric: Callable[[Tensor, State, Options], tuple[Tensor, H]]
    move: Callable[[Tensor, Tensor, H, Constraint | None, Options], None]

    def __call__(self, x: Tensor, g: Tensor, state: State, options: Options) -> None:
        """Changes x and state in place."""
        m, h = self.metric(g, state, options)
        self.move(x, m, h, options["constraint"], options)


def plain_gradient(g: Tensor, state: State, options: Options) -> tuple[Tensor, None]:
    """(g, None): Template 1 has no metric."""
    return g, None


def weights_of(options: Options) -> tuple[float, float]:
    """(b1, b2) of the one form: `betas`, or (b, b) of a momentum b, (b^2, b) with Nesterov's."""
    if options.get("betas") is not None:
        return options["betas"]
    b = options["momentum"]
    return (b * b if options["nesterov"] else b), b


def one_form(g: Tensor, state: State, options: Options) -> tuple[Tensor, None]:
    """(d, None) with d = b1 m + (1 - b1) g, then m <- b2 m + (1 - b2) g; g where there is no m.

    The first m is g, or 0 with `start="zero"`. Nesterov's b m' + (1 - b) g, with the new
    m' = b m + (1 - b) g, is the same as b1 = b^2.
    """
    if "momentum" not in state:
        return g, None
    m, (b1, b2) = state["momentum"], weights_of(options)
    if state["step"] == 0 and options["start"] == "gradient":
        return m.copy_(g), None
    if b1 == b2:
        return m.lerp_(g, 1 - b1), None
    d = torch.lerp(m, g, 1 - b1, out=scratch(g, 4)[3])  # the others are the move's
    m.lerp_(g, 1 - b2)
    return d, None


def kept_form(g: Tensor, state: State, options: Options) -> Tensor:
    """d of `one_form`, in memory of its own or of the state where it stays as it is."""
    d, _ = one_form(g, state, options)
    return d if d is g or d is state.get("momentum") else d.clone()


def adagrad_metric(g: Tensor, state: State, options: Options) -> tuple[Tensor, Tensor]:
    """(g, h) with h = offset + sqrt(sum of g^2); see `adafw.metrics.AdaGrad`."""
    h = scratch(g, 4)[3]  # the other three are the move's
    for new, total, root in _cut([g, state["sum_squares"], h]):
        total.addcmul_(new, new)
        torch.sqrt(total, out=root).add_(options["offset"])
    return g, h


def amsgrad_metric(g: Tensor, state: State, options: Options) -> tuple[Tensor, Tensor]:
    """(m, h) of lines 5 to 8 of Algorithm 7; see `adafw.metrics.AMSGrad`."""
    beta_m, beta_s = options["betas"]
    m, s, most = state["momentum"], state["mean_squares"], state["max_squares"]
    h = scratch(g, 4)[3]
    for new, mean, square, largest, root in _cut([g, m, s, most, h]):
        mean.lerp_(new, 1 - beta_m)
        square.mul_(beta_s).addcmul_(new, new, value=1 - beta_s)
        torch.maximum(largest, square, out=largest)
        torch.sqrt(largest, out=root).add_(options["offset"])
    return m, h


def frank_wolfe(
    x: Tensor, m: Tensor, h: None, constraint: Constraint | None, options: Options
) -> None:
    """Template 1, line 4. Without a set, the gradient step x <- x - lr m."""
    if constraint is None:
        x.add_(m, alpha=-options["lr"])
        return
    d = direction(constraint, m, x, out=scratch(m, 1)[0])
    # Every point minimises <0, v>: where m is 0 everywhere there is nothing to move for.
    x.addcmul_(d, step_size(m, d, constraint, options) * m.any(), value=-1)


def toward(x: Tensor, d: Tensor, ball: Constraint, keep: float, length: float) -> None:
    """x <- keep x + length lmo(d), the ball having radius 1."""
    if type(ball) is LInfBall:
        x.mul_(keep).sub_(torch.sign(d, out=scratch(d, 1)[0]), alpha=length)
    else:
        x.mul_(keep).add_(matrices.lmo(ball, d), alpha=length)


def step_size(
    m: Tensor, d: Tensor, constraint: Constraint, options: Options,
    shape: tuple[int, ...] | None = None,
) -> Tensor:  # fmt: skip
    """gamma = lr, or as `rescale` says: see `SFW`; `shape`: of the whole, where d is a part."""
    lr, rescale = options["lr"], options["rescale"]
    # Sums in float64 round to what shards find from theirs; not every accelerator has it.
    wide = torch.float64 if d.is_cpu else d.dtype
    if rescale == "short":
        flat, away = m.reshape(-1).to(wide), d.reshape(-1).to(wide)
        gamma = lr * (torch.dot(flat, away) / torch.dot(away, away))
        return gamma.nan_to_num(0.0, posinf=1.0).clamp(0.0, 1.0).to(d.dtype)
    if rescale == "gradient":
        sizes = [torch.linalg.vector_norm(a, dtype=wide) for a in (m, d)]
        gamma = lr * sizes[0] / sizes[1]
        return gamma.nan_to_num(0.0, posinf=1.0).clamp(max=1.0).to(d.dtype)
    if rescale == "diameter":
        diameter = constraint.diameter(matrices.matrix_shape(constraint, shape or tuple(d.shape)))
        lr = min(1.0, lr / diameter) if diameter > 0 else 1.0
    return torch.full((), lr, dtype=d.dtype, device=d.device)


def adaptive(
    x: Tensor, m: Tensor, h: Tensor, constraint: Constraint | None, options: Options
) -> None:
    """K Frank-Wolfe steps on Q(y) = <m, y> + ||y - x||_H^2 / (2 lr), from y = x (Template 3).

    With d = y - v and y <- y - gamma d the gradient of Q becomes G - (gamma / lr) h d, so that x
    itself need not be kept. Without a set, the minimiser of Q is x - lr m / h.
    """
    eta, inner_steps = options["lr"], options["inner_steps"]
    if constraint is None:
        x.addcdiv_(m, h, value=-eta)
        return
    grad_q, d, hd = scratch(m, 3)
    tensors = [x, m, grad_q, h, d, hd]
    parts = _cut(tensors) if type(constraint) is LInfBall else [tuple(tensors)]
    room = parts[0][-1]  # h d of a part is used at once: its room stays in the cache
    gamma: float | Tensor = 0.0
    for k in range(inner_steps):
        slopes, curvatures = [], []
        for y, linear, q, metric, away, _ in parts:
            scaled = room if room.shape == y.shape else room[: len(y)]
            if k > 0:  # the last step, done here as the part is then in the cache
                old = linear if k == 1 else q
                if isinstance(gamma, Tensor):
                    _minus(old, gamma / eta, scaled, out=q)
                else:
                    torch.addcmul(old, metric, away, value=-gamma / eta, out=q)
                _minus(y, gamma, away, out=y)
            new = q if k > 0 else linear  # at y = x the gradient of Q is m
            direction(constraint, new, y, out=away)
            torch.mul(metric, away, out=scaled)
            slopes.append(_dot(new, away))
            curvatures.append(_dot(scaled, away))
        gamma = short_step(sum(slopes), sum(curvatures), eta, options["max_step"])
    _minus(x, gamma, d, out=x)


def _cut(tensors: list[Tensor]) -> list[tuple[Tensor, ...]]:
    """The tensors cut into flat parts that fit the cache, for what is done entry by entry."""
    if tensors[0].device.type != "cpu" or not all(t.is_contiguous() for t in tensors):
        return [tuple(tensors)]
    flat = [t.view(-1) for t in tensors]
    if flat[0].numel() <= _PART:
        return [tuple(flat)]
    return list(zip(*(torch.split(t, _PART) for t in flat), strict=True))


def _dot(a: Tensor, b: Tensor) -> Any:
    """<a, b>: a number where the host computes, else a tensor, so that the host need not wait."""
    product = torch.dot(a, b) if a.dim() == 1 else torch.dot(a.reshape(-1), b.reshape(-1))
    return product.item() if product.device.type == "cpu" else product


def _minus(a: Tensor, gamma: float | Tensor, b: Tensor, out: Tensor) -> None:
    """out <- a - gamma b."""
    if isinstance(gamma, Tensor):
        torch.addcmul(a, b, gamma, value=-1, out=out)
    else:
        torch.sub(a, b, alpha=gamma, out=out)


def short_step(slope: Scalar, curvature: Scalar, eta: float, bound: float) -> Scalar:
    """min(eta slope / curvature, bound), 0 when slope <= 0 or d = 0; NaN is handed on, to be seen.

    Of numbers or of tensors. For these, the smallest normal number changes no curvature but 0,
    and makes 0 / 0 a 0.
    """
    if isinstance(slope, Tensor):
        tiny = torch.finfo(curvature.dtype).tiny
        return (slope / (curvature + tiny)).mul_(eta).clamp_(0.0, bound)
    return 0.0 if slope <= 0 or curvature <= 0 else min(eta * (slope / curvature), bound)


def scratch(like: Tensor, count: int) -> list[Tensor]:
    """At most four uninitialised tensors for use within one update.

    On the CPU their memory is kept from one update to the next, unless it is large, as fresh
    pages are dear there; accelerators have their caching allocators.
    """
    plain = type(like) in (Tensor, Parameter) and like.device.type == "cpu"
    if not plain or like.numel() > _KEPT:
        return [torch.empty_like(like) for _ in range(count)]
    kept = cast(dict[torch.dtype, list[Tensor]], _memory.__dict__)
    rooms = kept.get(like.dtype)
    if rooms is None or rooms[0].numel() < like.numel():
        rooms = [torch.empty(like.numel(), dtype=like.dtype, device="cpu") for _ in range(4)]
        kept[like.dtype] = rooms
    return [room[: like.numel()].view(like.shape) for room in rooms[:count]]


def projected(
    x: Tensor, m: Tensor, h: Tensor, constraint: Constraint | None, options: Options
) -> None:
    """x <- the point of the set nearest to x - lr m / h in the norm of diag(h)."""
    eta = options["lr"]
    if constraint is None:
        x.addcdiv_(m, h, value=-eta)
    elif type(constraint) is LInfBall:
        x.addcdiv_(m, h, value=-eta).clamp_(-constraint.radius, constraint.radius)
    elif m.any():  # a point projected again would only be rounded
        z, metric = (matrices.as_points(constraint, t) for t in (x - eta * m / h, h))
        x.copy_(constraint.project(z, metric).reshape(x.shape))


def direction(constraint: Constraint, g: Tensor, y: Tensor, out: Tensor) -> Tensor:
    """d = y - lmo(g), written to `out`."""
    if type(constraint) is LInfBall:
        torch.sign(g, out=out)
        return torch.add(y, out, alpha=constraint.radius, out=out)
    return torch.sub(y, matrices.lmo(constraint, g), out=out)
