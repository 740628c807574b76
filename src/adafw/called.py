"""How front ends call a set or a loss: declared by its class, collected by `names`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Stands for a parameter that has no default.
NEEDED: Any = ...


@dataclass(frozen=True)
class Called:
    """A short name beside that of the class, and what else a front end must know to offer it.

    `help`: what it is, in a few words. `parameters`: beside the radius, with the default that a
    linear model takes (NEEDED if none). `matrices`: whether a set holds nothing but those.
    `per_column`: whether it holds each column of a matrix, and not the matrix as a whole.
    """

    name: str
    help: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    matrices: bool = False
    per_column: bool = False
