"""Whose workspace a state carries."""

from adafw.solver import State
from adafw.typing import StateDict


def claim(s: State, owner: type) -> StateDict:
    """The workspace, if this path left it at this very iteration; else a new one.

    What another path did in between makes the old one wrong, not only useless.
    """
    mark = {"owner": owner.__name__, "t": s.t}
    if any(s.workspace.get(key) != value for key, value in mark.items()):
        s.workspace = mark
    return s.workspace


def stamp(s: State) -> None:
    """Says that the workspace is of iteration s.t."""
    s.workspace["t"] = s.t
