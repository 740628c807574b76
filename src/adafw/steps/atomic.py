"""What away, pairwise and blended pairwise steps share: an active set, and moves of weight."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.arrays import dot
from adafw.constraints.base import Constraint
from adafw.gradients.base import GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.steps.active_set import ActiveSet, Atoms
from adafw.steps.base import Step
from adafw.steps.rules import LineSearch, StepRule
from adafw.typing import Array, StateDict


class AtomView(NamedTuple):
    """What a step sees at x: <g, x>, <g, v_k> of all atoms, and the best and the worst of them."""

    at_x: float
    scores: NDArray[Any]
    best: int
    worst: int


class Move(NamedTuple):
    """Weight to be moved from atom `source` to atom `target`.

    A source of None is x as a whole (a Frank-Wolfe step), a target of None too (an away step);
    `slope` is -<g, d> of the direction d that this is.
    """

    source: int | None
    target: int | None
    slope: float


@dataclass(frozen=True)
class AtomicStep(Step):
    """A step along a direction between atoms of x, as long as their weights allow.

    `step_size`: a `StepRule`, `LineSearch()` if left alone. `lazy`: a vertex is asked for only if
    no move between the atoms at hand has a slope of phi / 2, where phi is the smallest
    Frank-Wolfe gap that an LMO call has told (weak separation by a cache: Braun, Pokutta, Zink
    2017). Linear convergence on polytopes if f is strongly convex. Keeps its atoms: O(k n) for k
    of them, less if they are sparse. Needs exact gradients.
    """

    step_size: StepRule = LineSearch()
    lazy: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.step_size, StepRule):
            raise TypeError(
                f"step_size of {type(self).__name__} must be a rule that descends, such as "
                f"LineSearch(), ShortStep() or Backtracking(), got {self.step_size!r}."
            )
        object.__setattr__(self, "lazy", checks.flag(self.lazy, "lazy"))

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        self.step_size.check(f, gradient)

    def init(self, x: Array) -> StateDict:
        return {}

    @abstractmethod
    def local(self, view: AtomView) -> Move:
        """The steepest move that needs no new atom."""

    @abstractmethod
    def towards(self, view: AtomView, target: int, slope: float, local: Move) -> Move:
        """The move when the LMO has answered with atom `target`, of Frank-Wolfe slope `slope`."""

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: StateDict,
    ) -> tuple[Array, StateDict]:  # fmt: skip
        if not g.any():
            return x, state
        active, phi = ActiveSet.of(x, state), state.get("phi", np.inf)
        scores = active.scores(g)
        view = AtomView(
            float(active.weights @ scores), scores, int(scores.argmin()), int(scores.argmax())
        )
        move, v = self.local(view), None
        if not self.lazy or move.slope < phi / 2:
            v = constraint.lmo(g)
            score = float(dot(g, v))
            gap = view.at_x - score
            phi = min(phi, max(gap, 0.0))
            known = active.find(v, scores, score)
            target = len(scores) if known is None else known
            move = self.towards(view, target, gap, move)
            if move.target != len(scores) or known is not None:
                v = None
        d, most = self._direction(active, move, x, v)
        rule = {k: s for k, s in state.items() if k not in (*ActiveSet.KEYS, "phi")}
        share, rule = self.step_size(f, x, g, most * d, t, rule)
        if share > 0:  # else a new atom would come in with no weight
            active = active.moved(_shift(active, move, share, most, v), v)
            x = active.point(x)
        return x, {**active.state(), **rule, "phi": phi}

    def _direction(
        self, active: ActiveSet, move: Move, x: Array, v: Array | None
    ) -> tuple[Array, float]:
        """d and the largest step along it that keeps all weights >= 0."""
        ends = [
            x if k is None else v if v is not None and k == len(active.weights) else
            active.atom(k, x)
            for k in (move.source, move.target)
        ]  # fmt: skip
        if move.source is None:
            return ends[1] - ends[0], 1.0
        weight = float(active.weights[move.source])
        # An away step from the only atom has no end of its own: any length leaves x where it is.
        most = weight if move.target is not None else weight / max(1 - weight, 1e-300)
        return ends[1] - ends[0], most

    def active_set(
        self, constraint: Constraint, x: Array, state: StateDict
    ) -> tuple[NDArray[np.float64], Atoms]:
        """(weights, atoms) of x."""
        active = ActiveSet.of(x, state)
        return active.weights, active.atoms

    @property
    def most_lmo_calls(self) -> int:
        return 1


def _shift(
    active: ActiveSet, move: Move, share: float, most: float, v: Array | None
) -> NDArray[np.float64]:
    """How the weights change; the source's by exactly -w where the step is as long as it may be."""
    w = active.weights if v is None else np.append(active.weights, 0.0)
    gamma = share * most
    shift = np.zeros_like(w)
    if move.source is None and move.target is not None:
        shift -= gamma * w
        shift[move.target] += gamma
        if share == 1:
            shift = -w
            shift[move.target] += 1
    elif move.source is not None and move.target is not None:
        shift[move.source] -= gamma
        shift[move.target] += gamma
        if share == 1:
            shift[move.source] = -w[move.source]
    elif move.source is not None:
        shift = gamma * w
        shift[move.source] = -w[move.source] if share == 1 else gamma * w[move.source] - gamma
    return shift
