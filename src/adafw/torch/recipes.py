"""Groups for Muon, Scion and Lion: which layer gets which ball, as their authors choose it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from adafw import checks
from adafw.torch.description import columns
from adafw.torch.typing import Group, Options

#: Layers whose few parameters scale and shift activations.
NORM_LAYERS = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
Named = list[tuple[str, Tensor, nn.Module]]


@dataclass(frozen=True)
class Recipe:
    """What each kind of parameter gets: options of its group, and words for the table.

    `lr`: a first try, found by the searches of `adafw reproduce fashion` and `chars`.
    """

    optimizer: str
    lr: float
    options: Mapping[str, Options]
    words: Mapping[str, str]


_ADAMW = {"adamw": True, "lr": 3e-3, "weight_decay": 0.1}
_ADAMW_FREE = {"adamw": True, "lr": 3e-3, "weight_decay": 0.0}
#: Starting values as docs/torch.md explains them.
RECIPES = {
    "muon": Recipe(
        "Muon",
        3e-2,
        {"hidden": {}, "conv": {}, "embedding": _ADAMW, "head": _ADAMW, "norm": _ADAMW_FREE,
         "bias": _ADAMW_FREE},
        {"hidden": "spectral ball", "conv": "spectral ball of (out, rest)", "embedding": "AdamW",
         "head": "AdamW", "norm": "AdamW without decay", "bias": "AdamW without decay"},
    ),
    "scion": Recipe(
        "Scion",
        3e-3,
        {"hidden": {"norm": "spectral", "scale": 8.0}, "conv": {"norm": "conv", "scale": 8.0},
         "embedding": {"norm": "embedding", "scale": 1.0}, "head": {"norm": "sign", "scale": 128.0},
         "norm": {"norm": "rms", "scale": 8.0}, "bias": {"norm": "rms", "scale": 1.0}},
        {"hidden": "spectral ball", "conv": "spectral ball of (out, rest)",
         "embedding": "row ball", "head": "largest entry", "norm": "RMS ball", "bias": "RMS ball"},
    ),
    "lion": Recipe(
        "Lion",
        1e-3,
        {"hidden": {}, "conv": {}, "embedding": {}, "head": {}, "norm": {"weight_decay": 0.0},
         "bias": {"weight_decay": 0.0}},
        {"hidden": "largest entry", "conv": "largest entry", "embedding": "largest entry",
         "head": "largest entry", "norm": "signs, no ball", "bias": "signs, no ball"},
    ),
}  # fmt: skip


def check(recipe: str) -> Recipe:
    """The recipe of a name."""
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {recipe!r}.")
    return RECIPES[recipe]


def groups(
    named: Named, tied: set[Tensor], recipe: str, split: Mapping[str, int]
) -> tuple[list[Group], str]:
    """Groups for the optimizer of the recipe, and the table that says what got what.

    `tied` holds the weights that several layers share, `split` patterns of names with numbers of
    matrices stacked in a weight. A weight of a head that is tied to an embedding counts as head.
    """
    chosen, head = check(recipe), _head(named)
    made: dict[object, Group] = {}
    rows: list[tuple[str, ...]] = [("parameter", "layer", "shape", "kind", "ball")]
    for name, p, layer in named:
        kind, parts = _kind(p, layer, head, tied), 1
        if kind == "hidden":
            parts = _parts(name, p, layer, split)
        options = {**chosen.options[kind], **({"split": parts} if parts > 1 else {})}
        group = made.setdefault(
            repr(options), {"params": [], "names": [], "recipe": recipe, **options}
        )
        group["params"].append(p)
        group["names"].append(name)
        words = chosen.words[kind] + (f" of each of {parts} matrices" if parts > 1 else "")
        size = "x".join(map(str, p.shape)) or "scalar"
        rows.append((name, type(layer).__name__, size, kind, words))
    return list(made.values()), columns(rows)


def _head(named: Named) -> Tensor | None:
    """The last matrix of a linear layer, if another matrix comes before it."""
    matrices = [(p, layer) for _, p, layer in named if p.dim() >= 2]
    if len(matrices) < 2:
        return None
    return next((p for p, layer in reversed(matrices) if isinstance(layer, nn.Linear)), None)


def _kind(p: Tensor, layer: nn.Module, head: Tensor | None, tied: set[Tensor]) -> str:
    if isinstance(layer, NORM_LAYERS):
        return "norm"
    if p.dim() < 2:
        return "bias"
    if isinstance(layer, _EMBEDDINGS):
        return "head" if p in tied else "embedding"
    if p is head:
        return "head"
    return "conv" if isinstance(layer, _ConvNd) else "hidden"


def _parts(name: str, p: Tensor, layer: nn.Module, split: Mapping[str, int]) -> int:
    """How many matrices a weight holds: as the user says, or as the layer shows."""
    for pattern, count in split.items():
        if fnmatchcase(name, pattern):
            return checks.integer(count, f"split of {pattern!r}", 1)
    if isinstance(layer, nn.MultiheadAttention) and name.endswith("in_proj_weight"):
        return 3
    return p.shape[0] if p.dim() >= 3 else 1
