"""Which method when: statements about the whole family, judged by the numbers of a run."""

import math

from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import median
from adafw.experiments.verdicts import FAILS, HOLDS, UNDECIDED, Claims, Finding
from adafw.experiments.zoo.case import ADAPTIVE, EXACT, STOCHASTIC
from adafw.experiments.zoo.ranking import HIGH, LOW, WORK, best, of_family, scale_of, work_to

CLAIMS = Claims()
_OURS = "not in the paper"


def _first(
    outcome: Outcome, case: Case[Method], ours: list[Curve], others: list[Curve], column: str,
    level: float,
) -> Finding:  # fmt: skip
    """Whether the best of ours takes the least work to the level."""
    if not (ours and others):
        return None
    scale = scale_of(outcome, case)
    mine, rival = (best(curves, column, level, scale) for curves in (ours, others))
    a, b = (work_to(curve, column, level, scale) for curve in (mine, rival))
    words = f"{mine.label} {_work(a, column)}, {rival.label} {_work(b, column)}"
    if math.isinf(min(a, b)) or a == b:
        return UNDECIDED, words
    return HOLDS if a < b else FAILS, words


def _work(work: float, column: str) -> str:
    return f"{work:.3g} {WORK[column]}" if math.isfinite(work) else "never"


@CLAIMS.named(
    "adaptive by epochs to low accuracy",
    f"To {LOW:g} an adaptive method takes the fewest epochs of all projection-free ones.",
    _OURS,
)
def _low_epochs(outcome: Outcome, case: Case[Method]) -> Finding:
    ours, others = (of_family(outcome, case, *f) for f in ((ADAPTIVE,), (EXACT, STOCHASTIC)))
    return _first(outcome, case, ours, others, "epoch", LOW)


@CLAIMS.named(
    "stochastic by time to low accuracy",
    f"To {LOW:g} a method with stochastic gradients takes the least time.",
    _OURS,
)
def _low_time(outcome: Outcome, case: Case[Method]) -> Finding:
    ours, others = (of_family(outcome, case, *f) for f in ((ADAPTIVE, STOCHASTIC), (EXACT,)))
    return _first(outcome, case, ours, others, "cpu_seconds", LOW)


@CLAIMS.named(
    "corrective by time to high accuracy",
    f"To {HIGH:g} the fully corrective method takes the least time of all.",
    _OURS,
)
def _high_time(outcome: Outcome, case: Case[Method]) -> Finding:
    curves = of_family(outcome, case)
    ours = [curve for curve in curves if curve.label == "Corrective"]
    others = [curve for curve in curves if curve.label != "Corrective"]
    return _first(outcome, case, ours, others, "cpu_seconds", HIGH)


@CLAIMS.named(
    "adaptive by gap",
    "At the end an adaptive method has the smallest gap of those with stochastic gradients.",
    _OURS,
)
def _by_gap(outcome: Outcome, case: Case[Method]) -> Finding:
    ours, others = (of_family(outcome, case, family) for family in (ADAPTIVE, STOCHASTIC))
    if not (ours and others):
        return None
    mine, rival = (min(curves, key=_gap) for curves in (ours, others))
    verdict = HOLDS if _gap(mine) < _gap(rival) else FAILS
    return verdict, f"{mine.label} {_gap(mine):.2e}, {rival.label} {_gap(rival):.2e}"


def _gap(curve: Curve) -> float:
    return median(curve.final("gap"))
