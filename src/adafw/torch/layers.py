"""Which parameter of a model gets which set: by name, layer type and shape."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from torch import Tensor, nn

from adafw import checks
from adafw.constraints import Constraint
from adafw.constraints.base import RadialSet
from adafw.torch import recipes, starts
from adafw.torch.matrices import matrix_shape
from adafw.torch.recipes import NORM_LAYERS
from adafw.torch.typing import Group

#: A class of sets, or any function radius -> set.
Family = Callable[[float], Constraint]
Groups = list[Group]
#: A layer class, or a pattern of names.
Key = str | type[nn.Module]

_COMPILED = "_orig_mod"  # where a compiled module holds the plain one
set_of = set  # `set` is a parameter of `constrain`


@dataclass(frozen=True)
class Rule:
    """A family of sets with its own size, for `constrain(..., rules=...)`.

    Exactly one of `diameter` (in units of the Glorot norm) and `radius`.
    """

    family: Family
    diameter: float | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.family):
            raise TypeError(
                "a class of sets such as adafw.LInfBall, or a function of the radius, is needed, "
                f"got {self.family!r}; single sets go into rules, or into parameter groups."
            )
        if (self.diameter is None) == (self.radius is None):
            raise ValueError(
                f"give either diameter= or radius=, got diameter={self.diameter} and "
                f"radius={self.radius}."
            )
        for name in ("diameter", "radius"):
            if getattr(self, name) is not None:
                checks.real(getattr(self, name), name, 0, above=True)

    def __call__(self, p: Tensor, name: str) -> Constraint:
        """The set for a parameter: its radius, or the one that gives the l2 diameter."""
        if self.radius is not None:
            return self.family(self.radius)
        assert self.diameter is not None
        wanted = self.diameter * glorot_norm(tuple(p.shape))
        unit = self.family(1.0)
        of_unit = unit.diameter(matrix_shape(unit, tuple(p.shape)))
        if of_unit == 0:
            raise ValueError(
                f"{unit!r} is a single point for parameter {name!r} of shape {tuple(p.shape)}, so "
                f"it cannot have a diameter; give it a rule such as {{{name!r}: None}}."
            )
        return self.family(wanted / of_unit)


def glorot_norm(shape: tuple[int, ...]) -> float:
    """sqrt(2 size / (fan_in + fan_out)), the l2 norm to expect of Glorot's initialisation.

    It depends on the shape alone, whatever the layer's initialisation; 1 for a vector. fan_in and
    fan_out count the kernel: a shape (out, in, *kernel) has (out + in) * prod(kernel).
    """
    if len(shape) < 2:
        return 1.0
    fans = (shape[0] + shape[1]) * math.prod(shape[2:])
    return math.sqrt(2 * math.prod(shape) / fans)


def constrain(
    model: nn.Module,
    set: Family | None = None,
    *,
    diameter: float | None = None,
    radius: float | None = None,
    rules: Mapping[Key, Rule | Constraint | Family | None] | None = None,
    recipe: str | None = None,
    split: Mapping[str, int] | None = None,
    show: bool = True,
) -> Groups:
    """Parameter groups for the optimizers here, every parameter with its set.

    Parameters
    ----------
    model : its weights are only read for their shape.
    set : a class of sets such as adafw.LInfBall, or any function radius -> set.
    diameter : the sets' l2 diameter in units of the Glorot norm (see `glorot_norm`), so that an
        LInfBall has radius diameter * norm / (2 sqrt(size)).
    radius : instead of `diameter`, one radius for all. Without either, the diameter to start with
        that `adafw.torch.starts` knows for this class of sets.
    rules : exceptions, the first that fits counts. Keys: a layer class or a pattern of names such
        as "head.*" or "*.bias". Values: None (no set), a set, a family, or a `Rule`.
    recipe : in place of a set: "muon", "scion" or "lion" make groups for the optimizer of that
        name, a ball (or AdamW) for each kind of layer: embedding, hidden, head (the last linear
        layer, also if tied to an embedding), norm, bias. See `adafw.torch.recipes.RECIPES`.
    split : with a recipe, patterns of names and how many matrices are stacked in such weights,
        such as {"*.qkv.weight": 3}; MultiheadAttention and 3-d weights need none.
    show : print a table of what got which set, learning rates to try first, and which rules
        decided on nothing.

    Normalisation layers and scalars (tensors without dimensions) get None unless a rule names them.
    """
    if recipe is not None:
        return _by_recipe(model, recipe, split or {}, show, set, diameter, radius, rules)
    if split is not None:
        raise ValueError("split= goes with recipe=; a set has its own, as NewtonSchulzBall(r, 3).")
    if diameter is None and radius is None:
        diameter = starts.diameter_of(set)
    default = Rule(set, diameter, radius)  # type: ignore[arg-type]
    exceptions = {key: _as_rule(key, value, default) for key, value in (rules or {}).items()}
    by_set: dict[Constraint | None, Group] = {}
    lines, used = [], []
    for name, p, layer in _named(model):
        key, rule = _rule_for(name, p, layer, exceptions, default)
        used.append(key)
        chosen = rule(p, name) if isinstance(rule, Rule) else rule
        group = by_set.setdefault(chosen, {"params": [], "names": [], "constraint": chosen})
        group["params"].append(p)
        group["names"].append(name)
        lines.append((name, tuple(p.shape), type(layer).__name__, chosen))
    if not lines:
        raise ValueError(f"model must have parameters, got {type(model).__name__} without any.")
    if show:
        print(table(lines))
        print(starts.words(set, diameter), end="\n" if starts.diameter_of(set) else "")
        for key in exceptions:
            if key not in used:
                print(f"the rule {key!r} decides on no parameter")
    return list(by_set.values())


def _by_recipe(
    model: nn.Module, recipe: str, split: Mapping[str, int], show: bool, *others: object
) -> Groups:
    if any(other is not None for other in others):
        raise ValueError(
            f"recipe={recipe!r} chooses the sets: leave set, diameter, radius and rules out."
        )
    named = list(_named(model))
    if not named:
        raise ValueError(f"model must have parameters, got {type(model).__name__} without any.")
    groups, shown = recipes.groups(named, _tied(model), recipe, split)
    if show:
        print(shown)
        made = recipes.check(recipe)
        print(f"for adafw.torch.{made.optimizer}; lr={made.lr:g} as a first try")
    for pattern in split:
        if not any(fnmatchcase(name, pattern) for name, _, _ in named):
            raise ValueError(f"split names {pattern!r}, which no parameter is called.")
    return groups


def _tied(model: nn.Module) -> set_of[Tensor]:
    """The parameters that several layers share."""
    count: Counter[Tensor] = Counter()
    for layer in _unwrapped(model).modules():
        count.update(p for _, p in layer.named_parameters(recurse=False))
    return {p for p, times in count.items() if times > 1}


def table(lines: list[tuple[str, tuple[int, ...], str, Constraint | None]]) -> str:
    """Name, layer, shape and set of every parameter, in columns."""
    rows = [("parameter", "layer", "shape", "set")]
    for name, shape, layer, constraint in lines:
        size = "x".join(map(str, shape)) or "scalar"
        rows.append((name, layer, size, "none" if constraint is None else _short(constraint)))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )


def _short(constraint: Constraint) -> str:
    if isinstance(constraint, RadialSet):
        return f"{type(constraint).__name__}, radius {constraint.radius:.6g}"
    return repr(constraint)


def _named(model: nn.Module) -> Iterator[tuple[str, Tensor, nn.Module]]:
    """Every parameter once, with the layer that owns it; tied weights go to their first owner.

    Named as in the plain model, whatever wraps it: torch.compile, DDP or both.
    """
    seen = set()
    for prefix, layer in _unwrapped(model).named_modules():
        for name, p in layer.named_parameters(prefix=prefix, recurse=False):
            if p not in seen:
                seen.add(p)
                yield name.replace(_COMPILED + ".", ""), p, layer


def _unwrapped(model: nn.Module) -> nn.Module:
    if (compiled := getattr(model, _COMPILED, None)) is not None:
        return _unwrapped(compiled)
    if isinstance(model, nn.parallel.DistributedDataParallel | nn.DataParallel):
        return _unwrapped(model.module)
    return model


def _as_rule(
    key: Key, value: Rule | Constraint | Family | None, default: Rule
) -> Rule | Constraint | None:
    if not isinstance(key, str) and not (isinstance(key, type) and issubclass(key, nn.Module)):
        raise TypeError(f"a rule's key must be a layer class or a pattern of names, got {key!r}.")
    if value is None or isinstance(value, Rule | Constraint):
        return value
    if callable(value):
        return Rule(value, default.diameter, default.radius)
    raise TypeError(f"a rule must be None, a set, a class of sets or a Rule, got {value!r}.")


def _rule_for(
    name: str,
    p: Tensor,
    layer: nn.Module,
    exceptions: Mapping[Key, Rule | Constraint | None],
    default: Rule,
) -> tuple[Key | None, Rule | Constraint | None]:
    """The key that decides, None where none does, and what it stands for."""
    for key, rule in exceptions.items():
        fits = fnmatchcase(name, key) if isinstance(key, str) else isinstance(layer, key)
        if fits:
            return key, rule
    return None, None if isinstance(layer, NORM_LAYERS) or p.dim() == 0 else default
