"""Which update of one tensor is compiled: chosen here once, for all optimizers."""

from torch import Tensor

from adafw.constraints import Box, KSparse, L1Ball, L2Ball, LInfBall
from adafw.torch import lists
from adafw.torch.feasible import name_of
from adafw.torch.typing import Numbers, Options, State
from adafw.torch.updates import weights_of

#: Sets that the compiled updates know; adaptive steps know some more.
KNOWN = (LInfBall,)
_ADAPTIVE = ("adasfw", "adamsfw")
ADAPTIVE = (LInfBall, Box, L1Ball, L2Ball, KSparse)


def numbers(kernel: str | None, options: Options) -> tuple[Numbers, Numbers] | None:
    """What the compiled lists must know of a group in its first step and later, None for none.

    The order is that of `kernels` and `sign_kernels`.
    """
    if kernel not in _NUMBERS or options["fused"] is False:
        return None
    if type(options["constraint"]) is not LInfBall or options.get("rescale") is not None:
        return None
    return _NUMBERS[kernel](options) if lists.modules() else None


def _sfw(options: Options) -> tuple[Numbers, Numbers]:
    rest = options["lr"], options["constraint"].radius
    plain = (0.0, 0.0, *rest)
    if "momentum" not in options:  # estimates by variance reduction have none
        return plain, plain
    later = (*weights_of(options), *rest)
    return (plain if options["start"] == "gradient" else later), later


def _adaptive(options: Options) -> tuple[Numbers, Numbers]:
    radius, betas = options["constraint"].radius, options.get("betas", ())
    row = (options["offset"], radius, options["lr"], options["inner_steps"], options["max_step"],
           *betas)  # fmt: skip
    return row, row


_NUMBERS = {"sfw": _sfw, "adasfw": _adaptive, "adamsfw": _adaptive}


def move(kernel: str | None, x: Tensor, g: Tensor, state: State, options: Options) -> bool:
    """Moves one tensor by compiled code where there is some for it; whether it did."""
    if kernel is None or options["fused"] is False:
        return False
    if options["numbers"] is not None:
        row = options["numbers"][state["step"] > 0]
        return lists.move_one(kernel, x, g, state, row)
    if kernel not in _ADAPTIVE or not _knows(kernel, options) or not lists.modules():
        return False
    if not lists.alike([x, g, *(state[name] for name in lists.BUFFERS[kernel])]):
        return False
    getattr(lists.modules()["set_kernels"], kernel)(x, g, state, options)
    return True


def check_asked(kernel: str | None, group: Options, name: str) -> None:
    """Refuses fused=True where there is no compiled update."""
    if group["fused"]:
        why = f"{name} has none" if kernel is None else _why_not(kernel, group)
        if why or not lists.modules():
            raise ValueError(
                f"fused=True needs a compiled update, but {why or 'numba is not installed'}; leave "
                "fused at None, which takes one where there is one."
            )


def check_taken(p: Tensor, g: Tensor, group: Options, i: int) -> None:
    """Refuses, in a group with fused=True, a tensor that the compiled updates do not take."""
    if not (lists.is_plain(p) and lists.is_plain(g)):
        raise ValueError(
            f"fused=True needs contiguous tensors on the CPU, but {name_of(group, i)} or its "
            f"gradient is none (device {p.device}, strides {p.stride()} and {g.stride()}); leave "
            "fused at None."
        )


def _sets(kernel: str) -> tuple[type, ...]:
    return ADAPTIVE if kernel in _ADAPTIVE else KNOWN


def _knows(kernel: str, options: Options) -> bool:
    constraint = options["constraint"]
    if options.get("rescale") is not None:
        return False
    # First the ball that every kernel knows; of the others, a Box of arrays has its own shape.
    return type(constraint) is LInfBall or (
        type(constraint) in _sets(kernel) and constraint.shape is None
    )


def _why_not(kernel: str, options: Options) -> str:
    """What of the options no compiled update knows, empty where all is known."""
    if _knows(kernel, options):
        return ""
    if options.get("rescale") is not None:
        return f"there is none with rescale={options['rescale']!r}"
    known = ", ".join(kind.__name__ for kind in _sets(kernel))
    return f"there is one for {known} only, not for {options['constraint']!r}"
