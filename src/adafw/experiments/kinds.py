"""The kinds of experiment there are."""

from collections.abc import Mapping
from typing import Protocol

from adafw.experiments.convex import ConvexKind
from adafw.experiments.kind import AnyKind
from adafw.experiments.networks import NetworksKind
from adafw.experiments.series import SeriesKind
from adafw.experiments.zoo import ZooKind
from adafw.typing import JsonTable

#: A problem's table is of the first kind whose key it has; the last has none.
_ALL: tuple[AnyKind, ...] = (NetworksKind(), SeriesKind(), ZooKind(), ConvexKind())
KINDS: Mapping[str, AnyKind] = {kind.name: kind for kind in _ALL}


class OfKind(Protocol):
    """An experiment, or a piece of its work."""

    @property
    def kind(self) -> str: ...


def kind_of(spec: OfKind) -> AnyKind:
    """The kind of an experiment, or of a piece of its work."""
    return KINDS[spec.kind]


def kind_of_tables(tables: list[JsonTable], source: str) -> AnyKind:
    """The kind of the problems' tables of one file, which have one kind together."""
    found = [next(kind for kind in _ALL if not kind.key or kind.key in t) for t in tables]
    for kind in _ALL:
        if kind in found and any(other is not kind for other in found):
            raise ValueError(f"problems must all have a {kind.key} or none in {source}.")
    return found[0]
