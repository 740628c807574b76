"""What a checkpoint holds beside torch's own, and whether it fits."""

from collections import defaultdict
from itertools import chain
from typing import Protocol

from torch import Tensor

from adafw.constraints import Constraint
from adafw.torch import masters
from adafw.torch.groups import FLAGS, state_dtype
from adafw.torch.typing import Group, Packed, State
from adafw.typing import Plain


class Saved(Protocol):
    """What is asked of an optimizer here; `base` stands above."""

    defaults: Packed
    param_groups: list[Group]
    state: defaultdict[Tensor, State]

    def buffers_known(self) -> tuple[str, ...]: ...


def described(constraint: Constraint | None) -> Plain:
    """A set as names and plain numbers."""
    return None if constraint is None else constraint.describe()


def check(optimizer: Saved, packed: Packed, sets: list[Constraint | None]) -> None:
    """Refuses a checkpoint with options or state of another optimizer, or with other sets."""
    for i, (saved, live) in enumerate(zip(packed["param_groups"], sets, strict=False)):
        wrong = optimizer.defaults.keys() - FLAGS.keys() - saved.keys()
        for key in saved["params"]:
            known = {"step", "begun", masters.NAME, *optimizer.buffers_known()}
            wrong |= packed["state"].get(key, {}).keys() - known
        if wrong:
            raise ValueError(
                f"the checkpoint was not made by {type(optimizer).__name__}: parameter group {i} "
                f"differs in {', '.join(sorted(wrong))}; load it into the optimizer that made it."
            )
        if saved.get("constraint") != described(live):
            raise ValueError(
                f"parameter group {i} is held to {live!r}, but the checkpoint was made with "
                f"{saved.get('constraint')}; construct the optimizer with the same sets."
            )


def restore(optimizer: Saved, packed: Packed, sets: list[Constraint | None]) -> None:
    """The live sets and the state in its own precision, after torch has loaded the rest."""
    for group, live in zip(optimizer.param_groups, sets, strict=True):
        group["constraint"] = live
        for flag in FLAGS:
            group.setdefault(flag, optimizer.defaults[flag])
    ids = chain.from_iterable(group["params"] for group in packed["param_groups"])
    params = chain.from_iterable(group["params"] for group in optimizer.param_groups)
    for i, p in zip(ids, params, strict=True):
        for key, value in packed["state"].get(i, {}).items():
            if isinstance(value, Tensor) and key == "step":
                optimizer.state[p][key] = value.clone()  # torch hands on the saved one itself
            elif isinstance(value, Tensor):
                optimizer.state[p][key] = _loaded(value, p)


def _loaded(value: Tensor, p: Tensor) -> Tensor:
    copy = value.to(device=p.device, dtype=state_dtype(p), copy=True)
    # Laid out as the parameter is now: compiled updates walk through both side by side.
    return copy.contiguous() if p.is_contiguous() else copy
