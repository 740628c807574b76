"""Which update of one tensor is compiled: chosen here once, for all optimizers."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from torch import Tensor
from torch.nn import Parameter

from adafw.constraints import Box, KSparse, L1Ball, L2Ball, LInfBall
from adafw.torch.feasible import name_of

#: Sets that the compiled updates know; adaptive steps know some more.
KNOWN = (LInfBall,)
ADAPTIVE = (LInfBall, Box, L1Ball, L2Ball, KSparse)


def update(
    kernel: str | None, x: Tensor, g: Tensor, options: Mapping[str, Any]
) -> Callable[..., None] | None:
    """The compiled update for a tensor, or None where only plain torch will do."""
    if kernel is None or options["fused"] is False or not _is_plain(x, g):
        return None
    if not _knows(kernel, options):
        return None
    general = kernel == "sfw" and _is_general(options)
    return _chosen("one_form" if general else kernel, type(options["constraint"]) is LInfBall)


@cache  # asked for every tensor in every step, with few answers
def _chosen(kernel: str, signs: bool) -> Callable[..., None] | None:
    modules = _kernels()
    if modules is None:
        return None
    if not signs:
        return getattr(modules.set_kernels, kernel)
    special = kernel in ("decayed", "one_form")
    return getattr(modules.sign_kernels if special else modules.kernels, kernel)


def check_asked(kernel: str | None, group: Mapping[str, Any], name: str) -> None:
    """Refuses fused=True where there is no compiled update."""
    if group["fused"]:
        why = f"{name} has none" if kernel is None else _why_not(kernel, group)
        if why or _kernels() is None:
            raise ValueError(
                f"fused=True needs a compiled update, but {why or 'numba is not installed'}; leave "
                "fused at None, which takes one where there is one."
            )


def check_taken(p: Tensor, g: Tensor, group: Mapping[str, Any], i: int) -> None:
    """Refuses, in a group with fused=True, a tensor that the compiled updates do not take."""
    if not _is_plain(p, g):
        raise ValueError(
            f"fused=True needs contiguous tensors on the CPU, but {name_of(group, i)} or its "
            f"gradient is none (device {p.device}, strides {p.stride()} and {g.stride()}); leave "
            "fused at None."
        )


def _sets(kernel: str) -> tuple[type, ...]:
    return ADAPTIVE if kernel in ("adasfw", "adamsfw") else KNOWN


def _knows(kernel: str, options: Mapping[str, Any]) -> bool:
    constraint = options["constraint"]
    if options.get("rescale") is not None:
        return False
    # First the ball that every kernel knows; of the others, a Box of arrays has its own shape.
    return type(constraint) is LInfBall or (
        type(constraint) in _sets(kernel) and constraint.shape is None
    )


def _is_general(options: Mapping[str, Any]) -> bool:
    """Whether the momentum is more than m <- b m + (1 - b) g from m = g on."""
    return (
        options.get("betas") is not None
        or options.get("nesterov", False)
        or options.get("start") == "zero"
    )


def _why_not(kernel: str, options: Mapping[str, Any]) -> str:
    """What of the options no compiled update knows, empty where all is known."""
    if _knows(kernel, options):
        return ""
    if options.get("rescale") is not None:
        return f"there is none with rescale={options['rescale']!r}"
    known = ", ".join(kind.__name__ for kind in _sets(kernel))
    return f"there is one for {known} only, not for {options['constraint']!r}"


def _is_plain(x: Tensor, g: Tensor) -> bool:
    return type(x) in (Tensor, Parameter) and x.is_cpu and x.is_contiguous() and g.is_contiguous()


@cache
def _kernels() -> Any:
    """The modules of compiled updates, None without numba; imported when first needed."""
    if not find_spec("numba"):
        return None
    names = ("kernels", "sign_kernels", "set_kernels")
    return SimpleNamespace(**{name: import_module(f"adafw.torch.{name}") for name in names})
