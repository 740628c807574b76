"""What a solver of the comparison is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Solver:
    """solve(problem, budget) -> w, from scratch; budgets grow, as benchopt's do.

    A budget is a number of iterations or passes or, for a solver that stops by itself, the
    negative power of ten of its tolerance. `penalised`: it solves the penalised problem. `tuned`:
    a parameter was chosen on this very problem. A solver whose clock stands still while it
    measures its progress returns (w, seconds) instead; that clock is then believed.
    """

    name: str
    solve: Callable[[Any, int], Any]
    budgets: tuple[int, ...]
    penalised: bool = False
    ours: bool = False
    tuned: bool = False
