"""Away steps: back from the worst atom, if that is steeper than on to the best vertex."""

from dataclasses import dataclass

from adafw.steps.atomic import AtomicStep, AtomView, Move


@dataclass(frozen=True)
class AwayStep(AtomicStep):
    """d = v - x or x - a, whichever is steeper; a is the atom with the largest <g, a>.

    Parameters and cost: `AtomicStep`. Guelat and Marcotte (1986); Lacoste-Julien and Jaggi (2015),
    algorithm 1, whose linear rate it has.
    """

    def local(self, view: AtomView) -> Move:
        away = float(view.scores[view.worst]) - view.at_x
        onward = view.at_x - float(view.scores[view.best])
        if onward >= away:
            return Move(None, view.best, onward)
        return Move(view.worst, None, away)

    def towards(self, view: AtomView, target: int, slope: float, local: Move) -> Move:
        away = float(view.scores[view.worst]) - view.at_x
        return Move(None, target, slope) if slope >= away else Move(view.worst, None, away)
