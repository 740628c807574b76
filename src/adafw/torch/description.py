"""What an optimizer does to each parameter, as a table."""

import math
from typing import Protocol

import torch
from torch import Tensor

from adafw.constraints import Constraint
from adafw.torch import matrices, sharded
from adafw.torch.feasible import contains, plain_name
from adafw.torch.typing import Group

HEAD = ("parameter", "shape", "set", "radius", "gamma", "as (lr, weight decay)", "weights")


class Held(Protocol):
    """What is asked of an optimizer here; `base` stands above."""

    param_groups: list[Group]

    def gamma_of(self, group: Group) -> float | None: ...
    def set_of(self, group: Group, p: Tensor) -> Constraint | None: ...
    def shape_factor(self, group: Group, p: Tensor) -> float: ...


@torch.no_grad()
def table(optimizer: Held) -> str:
    """One line for each parameter of an optimizer of this package.

    gamma is the step size of the next step. A Frank-Wolfe step of size gamma in a ball of radius r
    is the step of length lr a = gamma r along the unit ball's vertex with weight decay a / r, where
    a is the factor that the method has for the shape (1 if it has none).
    """
    rows: list[tuple[str, ...]] = [HEAD]
    for group in optimizer.param_groups:
        gamma = optimizer.gamma_of(group)
        for i, p in enumerate(group["params"]):
            held = optimizer.set_of(group, p)
            shape = "x".join(map(str, p.shape)) or "scalar"
            factor = optimizer.shape_factor(group, p)
            row = _row(group, held, gamma, factor)
            rows.append((plain_name(group, i), shape, *row, where(held, p)))
    return columns(rows)


def columns(rows: list[tuple[str, ...]]) -> str:
    """Rows as lines with aligned columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _row(
    group: Group, held: Constraint | None, gamma: float | None, factor: float
) -> tuple[str, str, str, str]:
    """Set, radius, gamma and the equivalent pair."""
    lr = float(group["lr"])
    if group.get("adamw"):
        return "none (AdamW)", "", "", f"({lr:.4g}, {group['weight_decay']:.4g})"
    found = "" if gamma is None else f"{gamma:.4g}"
    if held is None:
        scale = group.get("scale", 1.0)
        return "none", "", found, f"({lr * scale:.4g}, 0)"
    radius = held.scale if held.radial else math.nan  # of a set without, no pair is known
    name = type(held).__name__ if radius == radius else repr(held)
    if gamma is None or radius != radius:
        return name, _number(radius), found or "in the step", ""
    return name, _number(radius), found, f"({gamma * radius / factor:.4g}, {factor / radius:.4g})"


def _number(x: float) -> str:
    return "" if math.isnan(x) else f"{x:.6g}"


def where(held: Constraint | None, p: Tensor) -> str:
    """Whether the weights lie in the set; all ranks must ask for a sharded parameter."""
    if held is None or p.numel() == 0 or p.device.type == "meta":
        return ""
    x = sharded.full(p).detach()
    if contains(held, x):
        return "inside"
    violation = held.violation(matrices.as_points(held, x.double()))
    return f"outside by {100 * violation:.3g} %"
