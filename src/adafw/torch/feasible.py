"""Whether parameters lie in their sets, and how to bring them there."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from adafw.constraints import Constraint, Simplex, UnitSimplex
from adafw.torch import matrices, sharded
from adafw.torch.typing import Options


def name_of(group: Options, i: int) -> str:
    """How to call the i-th parameter of a group in a message."""
    if _names(group):
        return f"parameter {_names(group)[i]!r}"
    return f"parameter {i} of shape {tuple(group['params'][i].shape)}"


def plain_name(group: Options, i: int) -> str:
    """The name of the i-th parameter of a group, or its number where it has none."""
    return _names(group)[i] if _names(group) else f"parameter {i}"


def _names(group: Options) -> Sequence[str]:
    """The names that `constrain` gave, or torch where it was handed named parameters."""
    return group.get("names") or group.get("param_names") or ()


def contains(constraint: Constraint, x: Tensor) -> bool:
    """Whether x lies in the set, up to the rounding of its dtype."""
    eps = torch.finfo(x.dtype).eps
    tolerance = eps if eps > 1e-4 else None  # half precision is coarser than the set's own
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    return constraint.contains(matrices.as_points(constraint, x), tolerance)


@torch.no_grad()
def check_start(p: Tensor, group: Options, i: int) -> None:
    """Refuses a parameter outside its set. Parameters without data (meta) are left for later."""
    constraint = group["constraint"]
    if constraint is None or p.numel() == 0 or p.device.type == "meta":
        return
    x = sharded.full(p).detach()
    if not contains(constraint, x):
        raise ValueError(
            f"{name_of(group, i)} starts outside {constraint!r}: {_how_far(constraint, x)}; call "
            "adafw.torch.make_feasible(groups) first, or take a larger set."
        )


def _how_far(constraint: Constraint, x: Tensor) -> str:
    points = matrices.as_points(constraint, x.double())
    violation = constraint.violation(points)
    is_ball = constraint.radial and not isinstance(constraint, Simplex | UnitSimplex)
    if is_ball:
        return f"its norm is {constraint.scale * (1 + violation):.6g}"
    norm = float(torch.linalg.vector_norm(points))
    return f"it is {constraint.scale * violation:.6g} away from it, with an l2 norm of {norm:.6g}"


@torch.no_grad()
def make_feasible(groups: Iterable[Options]) -> list[str]:
    """Moves every parameter that lies outside its set into it; returns the names of those moved.

    The Euclidean projection where the set knows it, else the last point of the set on the way
    from its start point to the parameter. `groups`: of `constrain`, or an optimizer's. A sharded
    parameter is gathered, moved on every rank alike, and cut again; so all ranks must call this.
    """
    moved = []
    for group in groups:
        constraint, params = group.get("constraint"), group["params"]
        if not isinstance(params, list | tuple):
            raise TypeError(
                f"params must be a list, got {type(params).__name__}, which can be read only once."
            )
        for i, p in enumerate(params):
            if constraint is None or p.numel() == 0:
                continue
            if p.device.type == "meta":
                raise ValueError(
                    f"{name_of(group, i)} must have data, got the device meta; call to_empty and "
                    "initialise the model first."
                )
            x = sharded.full(p)
            if not contains(constraint, x):
                sharded.assign(p, _nearest(constraint, x))
                moved.append(_names(group)[i] if _names(group) else name_of(group, i))
    return moved


def _nearest(constraint: Constraint, p: Tensor) -> Tensor:
    x = matrices.as_points(constraint, p.double())
    if constraint.projection is not None:
        return constraint.project(x).reshape(p.shape)
    start = constraint.start(tuple(x.shape), x.dtype).to(x.device)
    inside, outside = 0.0, 1.0
    for _ in range(60):  # halves the interval to the last bit
        middle = (inside + outside) / 2
        if constraint.contains(start + middle * (x - start), 0.0):
            inside = middle
        else:
            outside = middle
    return (start + inside * (x - start)).reshape(p.shape)
