"""The optimizers of an experiment on networks, each with its groups; needs torch."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Union

import torch
from torch import nn

import adafw.torch
from adafw.constraints import Constraint, KSparse, LInfBall
from adafw.experiments.networks.case import NetworkMethod
from adafw.experiments.values import REGISTRIES
from adafw.torch.layers import Rule
from adafw.torch.typing import Closure, Group, Packed
from adafw.typing import Json

Groups = list[Group]


#: What trains a network.
Trained = Union[torch.optim.Optimizer, "TorchMuon"]


def make_optimizer(model: nn.Module, method: NetworkMethod, default: Mapping[str, Json]) -> Trained:
    """The optimizer of a method; `default`: the set where the method has none of its own."""
    kind, options = method.maker, method.arguments
    if method.optimizer == "TorchMuon":
        return TorchMuon(model, **options)
    if method.optimizer == "AdamW":
        return torch.optim.AdamW(model.parameters(), **options)
    made = getattr(adafw.torch, method.optimizer)
    if kind.groups == "plain":
        return made(list(model.named_parameters()), **options)
    if kind.groups == "recipe":
        recipe = method.optimizer.lower()
        return made(adafw.torch.constrain(model, recipe=recipe, show=False), **options)
    groups = set_groups(model, method.set or default)
    adafw.torch.make_feasible(groups)
    return made(groups, **options)


def set_groups(model: nn.Module, table: Mapping[str, Json]) -> Groups:
    """Every tensor in the set of a table (see `case.check_set`)."""
    if not {"rest", "share"} & table.keys():
        size = {key: table[key] for key in ("diameter", "radius") if key in table}
        return adafw.torch.constrain(model, _family(table, 1), show=False, **size)
    rest, groups = LInfBall(table["rest"]) if "rest" in table else None, []
    for group in adafw.torch.constrain(model, recipe="muon", show=False):
        for name, p in zip(group["names"], group["params"], strict=True):
            rule = Rule(_family(table, p.numel()), table.get("diameter"), table.get("radius"))
            held = rest if rest is not None and group.get("adamw") else rule(p, name)
            groups.append({"params": [p], "names": [name], "constraint": held})
    return groups


def _family(table: Mapping[str, Json], size: int) -> Callable[[float], Constraint]:
    """radius -> set, for a tensor of this size."""
    if table["name"] == "KSparse":
        k = max(1, round(table["share"] * size))
        return lambda radius: KSparse(radius, k)
    if table["name"] == "NewtonSchulzBall":
        return adafw.torch.NewtonSchulzBall
    return REGISTRIES["set"].find(table["name"]).make


class TorchMuon:
    """`torch.optim.Muon` on hidden matrices and `torch.optim.AdamW` on the rest, as one.

    Which tensor is which, and AdamW's options, are those of `constrain(model, recipe="muon")`.
    """

    def __init__(
        self, model: nn.Module, lr: float, weight_decay: float = 0.1, **options: Any
    ) -> None:
        groups = adafw.torch.constrain(model, recipe="muon", show=False)
        rest = [
            {"params": g["params"], "lr": g["lr"], "weight_decay": g["weight_decay"]}
            for g in groups if g.get("adamw")
        ]  # fmt: skip
        hidden = [p for g in groups if not g.get("adamw") for p in g["params"]]
        self.parts = [
            torch.optim.Muon(hidden, lr=lr, weight_decay=weight_decay, **options),
            torch.optim.AdamW(rest, betas=(0.9, 0.95), fused=True),
        ]

    @property
    def param_groups(self) -> Groups:
        """Those of both."""
        return [group for part in self.parts for group in part.param_groups]

    def zero_grad(self) -> None:
        """Forgets all gradients."""
        for part in self.parts:
            part.zero_grad()

    def step(self, closure: Closure) -> Any:
        """A step of both on the gradients of one closure."""
        loss = closure()
        for part in self.parts:
            part.step()
        return loss

    def state_dict(self) -> Packed:
        """The states of both."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: Packed) -> None:
        """Goes on from both states."""
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)


def violation(optimizer: Trained) -> float:
    """How far outside its set the worst parameter is, relative to its size; 0 without any set.

    Muon and its kin start outside their balls and are drawn into them.
    """
    if not isinstance(optimizer, adafw.torch.base.ConstrainedOptimizer):
        return 0.0
    worst = 0.0
    for group in optimizer.held_groups():
        held = group["constraint"]
        if held is not None:
            (p,) = group["params"]
            found = float(held.violation(adafw.torch.matrices.as_points(held, p.detach().double())))
            worst = math.nan if math.isnan(found) else max(worst, found)
    return worst
