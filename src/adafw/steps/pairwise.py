"""Pairwise steps: weight moves from the worst atom to one other."""

from dataclasses import dataclass

from adafw.steps.atomic import AtomicStep, AtomView, Move


@dataclass(frozen=True)
class PairwiseStep(AtomicStep):
    """d = v - a: all weight comes from the atom a with the largest <g, a>, and goes to the vertex.

    Parameters and cost: `AtomicStep`. Lacoste-Julien and Jaggi (2015), algorithm 2.
    """

    def local(self, view: AtomView) -> Move:
        return _between(view)

    def towards(self, view: AtomView, target: int, slope: float, local: Move) -> Move:
        away = float(view.scores[view.worst]) - view.at_x
        return Move(view.worst, target, slope + away)


@dataclass(frozen=True)
class BlendedPairwiseStep(AtomicStep):
    """d = s - a between the best and the worst atom at hand, or v - x if that is steeper.

    Weight moves among the atoms as long as that promises at least as much as a new vertex: no
    swap steps, and fewer atoms. Parameters and cost: `AtomicStep`. Tsuji, Tanaka, Pokutta (2022),
    algorithm 1; `lazy` is their algorithm 2.
    """

    def local(self, view: AtomView) -> Move:
        return _between(view)

    def towards(self, view: AtomView, target: int, slope: float, local: Move) -> Move:
        return local if local.slope >= slope else Move(None, target, slope)


def _between(view: AtomView) -> Move:
    slope = float(view.scores[view.worst] - view.scores[view.best])
    return Move(view.worst, view.best, slope)
