"""What the paper says of its experiments, judged by the numbers of a run.

A claim holds if it does for medians over seeds and the quartile bands are apart, fails if the
opposite does, and is undecided if the bands overlap. All comparisons are at the same budget.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from adafw.experiments.networks import claims as networks
from adafw.experiments.results import Line, Outcome, band, quartiles
from adafw.experiments.runner import AUDITED
from adafw.experiments.scaling import judge_series
from adafw.experiments.spec import Problem, Spec
from adafw.experiments.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTED, Claim

_OF_SERIES = "advantage grows with dimension"
_FEW = 10  # the paper's K are at most that


def judge(outcome: Outcome) -> list[Claim]:
    """All claims that the experiment's file names, for each of its problems or series."""
    check_claims(outcome.spec)
    if outcome.spec.scaling:
        return judge_series(outcome) if outcome.spec.claims else []
    known: dict[str, Any] = networks.CLAIMS if outcome.spec.networks else _CLAIMS
    return [
        known[name](outcome, problem)
        for problem in outcome.spec.problems
        for name in outcome.spec.claims
    ]


def check_claims(spec: Spec) -> None:
    """Refuses a claim that nobody can judge, before any work."""
    known: Iterable[str] = networks.CLAIMS if spec.networks else _CLAIMS
    known = (_OF_SERIES,) if spec.scaling else known
    unknown = sorted(set(spec.claims) - set(known))
    if unknown:
        raise ValueError(f"claims must be among {', '.join(known)}, got {unknown[0]!r}.")
    if spec.claims and "gap_tolerance" in spec.budget and not spec.scaling:
        raise ValueError(
            "claims compare gaps at the same budget, so they cannot go with a gap_tolerance, "
            "which ends runs at different times: leave out one of them."
        )


def _compare(ours: Line, theirs: Line, column: str) -> int:
    """1 if ours is smaller beyond the bands, -1 if theirs is, 0 if they overlap or are points."""
    if min(len(ours.traces), len(theirs.traces)) < 2:
        return 0
    a, b = quartiles(ours.final(column)), quartiles(theirs.final(column))
    if a["upper"] < b["lower"]:
        return 1
    return -1 if b["upper"] < a["lower"] else 0


def _against(ours: list[Line], others: list[Line], column: str) -> tuple[str, Line, Line]:
    """The verdict on "ours has the smaller median than every other", and the two closest."""
    mine = min(ours, key=lambda line: quartiles(line.final(column))["median"])
    rival = min(others, key=lambda line: quartiles(line.final(column))["median"])
    signs = [_compare(mine, other, column) for other in others]
    verdict = HOLDS if min(signs) > 0 else FAILS if _compare(mine, rival, column) < 0 else UNDECIDED
    return verdict, mine, rival


def _numbers(line: Line, column: str, shift: float = 0.0) -> str:
    q = quartiles(line.final(column) - shift)
    return f"{line.label} {q['median']:.2e} [{q['lower']:.2e}, {q['upper']:.2e}]"


def _faster(ours: Line, theirs: Line) -> str:
    """How long each took to the gap that theirs ended with."""
    # Of an even number the larger of the middle two, which is a gap that most of theirs reached.
    goal = float(np.quantile(theirs.final("gap"), 0.5, method="higher"))
    mine, other = ours.seconds_to(goal), theirs.seconds_to(goal)
    if math.isinf(mine):
        return f"{ours.label} never reached {theirs.label}'s final gap"
    return f"to {theirs.label}'s final gap {mine:.2g} CPU s instead of {other:.2g}"


def _ahead(
    ours: Line, others: list[Line], column: str, shift: float = 0.0, x: str = "epoch"
) -> str:
    """In which epochs, or other x, the median of ours is the smallest."""
    unit, units = {"epoch": ("epoch", "epochs"), "cpu_seconds": ("CPU second", "CPU seconds")}[x]
    curves = [band(line, x, column, shift) for line in [ours, *others]]
    known = [(np.log(curve[0]), np.log(curve[1])) for curve in curves if curve is not None]
    if curves[0] is None or len(known) < 2:
        return f"{units} not comparable"
    low, high = max(x[0] for x, _ in known), min(x[-1] for x, _ in known)
    if not low < high:
        return f"{units} not comparable"
    grid = np.linspace(low, high, 400)
    mine, *theirs = (np.interp(grid, x, y) for x, y in known)
    leads = mine <= np.min(theirs, axis=0)
    if leads.all() or not leads.any():
        which = "every" if leads.all() else "no"
        return f"ahead in {which} {unit} from {np.exp(low):.2g} to {np.exp(high):.2g}"
    edges = np.diff(np.concatenate([[0], leads.astype(int), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    longest = sorted(np.argsort(starts - ends, kind="stable")[:3])
    spans = [f"{np.exp(grid[starts[i]]):.2g} to {np.exp(grid[ends[i]]):.2g}" for i in longest]
    rest = len(starts) - 3
    more = f" and {rest} shorter span{'s' * (rest > 1)}" if rest > 0 else ""
    return f"ahead in {units} {', '.join(spans)}{more} of {np.exp(high):.2g}"


def _lines(outcome: Outcome, problem: Problem, keep: Callable[[Line], bool]) -> list[Line]:
    return [line for line in outcome.of(problem) if keep(line)]


def _adaptive(outcome: Outcome, problem: Problem) -> list[Line]:
    return _lines(outcome, problem, lambda line: line.family == "adaptive")


def _claim_free(column: str, word: str) -> Callable[[Outcome, Problem], Claim]:
    def claim(outcome: Outcome, problem: Problem) -> Claim:
        statement = f"The adaptive method is the best projection-free one by {word}."
        ours = _adaptive(outcome, problem)
        others = _lines(outcome, problem, lambda line: line.family == "frank-wolfe")
        if not (ours and others):
            return Claim(problem.name, statement, "section 4.1", UNTESTED, "")
        verdict, mine, rival = _against(ours, others, column)
        shift = outcome.reference(problem) if column == "value" else 0.0
        what = "final gap" if column == "gap" else "objective above the lower bound"
        numbers = f"{_numbers(mine, column, shift)} against {_numbers(rival, column, shift)}"
        evidence = f"{what} {numbers}"
        if column == "gap":
            evidence += f"; {_faster(mine, rival)}"
        evidence += f"; {_ahead(mine, others, column, shift)}"
        return Claim(problem.name, statement, "section 4.1", verdict, evidence)

    return claim


def _claim_projected(same: bool) -> Callable[[Outcome, Problem], Claim]:
    def claim(outcome: Outcome, problem: Problem) -> Claim:
        ours = _adaptive(outcome, problem)
        estimators = {line.estimator for line in ours}
        others = _lines(
            outcome,
            problem,
            lambda line: (
                line.family == "projected"
                and (line.estimator in estimators if same else line.minibatch)
            ),
        )
        what = "the same gradient estimator" if same else "minibatch gradients, as in the paper"
        statement = f"It is faster than projected AdaGrad and AMSGrad with {what}."
        source = "not in the paper" if same else "section 4.1"
        if not (ours and others):
            return Claim(problem.name, statement, source, UNTESTED, "")
        verdict, mine, rival = _against(ours, others, "gap")
        evidence = (
            f"final gap {_numbers(mine, 'gap')} against {_numbers(rival, 'gap')}; "
            f"{_faster(mine, rival)}"
        )
        return Claim(problem.name, statement, source, verdict, evidence)

    return claim


def _claim_bounds(outcome: Outcome, problem: Problem) -> Claim:
    statement = "The theorems' bounds 2/(t+2) on the inner step sizes are not active."
    audit = outcome.audits.get(problem.name)
    if not audit or not audit["inner"]:
        return Claim(problem.name, statement, "section 3.6", UNTESTED, "")
    share, cut = audit["exceeded"] / audit["inner"], audit["cut"] / audit["inner"]
    verdict = HOLDS if audit["exceeded"] == 0 else FAILS
    evidence = (
        f"of {audit['inner']} inner steps {audit['exceeded']} ({share:.2%}) would have exceeded "
        f"2/(t+2), {audit['cut']} ({cut:.2%}) were cut at 1"
    )
    return Claim(problem.name, statement, "section 3.6", verdict, evidence)


def _claim_clipping(outcome: Outcome, problem: Problem) -> Claim:
    statement = "Clipping the metric is not needed."
    ours = _adaptive(outcome, problem)
    if not ours:
        return Claim(problem.name, statement, "section 3.6", UNTESTED, "")
    runs = [(line, trace) for line in ours for trace in line.traces.values()]
    diverged = sum(status == "diverged" for line in ours for status in line.statuses.values())
    fell = sum(bool(trace["gap"][-1] < trace["gap"][0]) for _, trace in runs)
    verdict = HOLDS if diverged == 0 and fell == len(runs) else FAILS
    evidence = (
        f"unclipped, {fell} of {len(runs)} runs ended below their first gap, {diverged} diverged"
    )
    return Claim(problem.name, statement, "section 3.6", verdict, evidence)


def _by_inner_steps(outcome: Outcome, problem: Problem) -> dict[int, Line]:
    found = {line.spec.table.get("inner_steps"): line for line in _adaptive(outcome, problem)}
    return {k: line for k, line in sorted(found.items()) if isinstance(k, int)}


def _claim_default_k(outcome: Outcome, problem: Problem) -> Claim:
    statement = "K about 5 is a good default."
    lines = _by_inner_steps(outcome, problem)
    if 5 not in lines or len(lines) < 3:
        return Claim(problem.name, statement, "section 3.6", UNTESTED, "")
    gaps = {k: quartiles(line.final("gap"))["median"] for k, line in lines.items()}
    best = min(gaps, key=lambda k: gaps[k])
    worse = _compare(lines[best], lines[5], "gap") > 0
    factor = gaps[5] / gaps[best] if gaps[best] > 0 else 1.0
    # "Good", not "best": within a factor of 3 in final gap of the best K tried.
    verdict = HOLDS if factor <= 3 else FAILS if worse else UNDECIDED
    listed = ", ".join(f"K={k}: {gap:.1e}" for k, gap in gaps.items())
    return Claim(problem.name, statement, "section 3.6", verdict,
                 f"K=5 ends {factor:.2g} times above the best, K={best} ({listed})")  # fmt: skip


def _claim_large_k(outcome: Outcome, problem: Problem) -> Claim:
    statement = "Large K is less efficient in CPU time."
    lines = _by_inner_steps(outcome, problem)
    if len(lines) < 3:
        return Claim(problem.name, statement, "appendix B", UNTESTED, "")
    largest = max(lines)
    smaller = [line for k, line in lines.items() if k != largest]
    verdict, mine, rival = _against(smaller, [lines[largest]], "gap")
    leads = _ahead(lines[largest], smaller, "gap", x="cpu_seconds")
    evidence = (
        f"final gap {_numbers(rival, 'gap')}, best smaller K: {_numbers(mine, 'gap')}; "
        f"K = {largest} is {leads}"
    )
    return Claim(problem.name, statement, "appendix B", verdict, evidence)


def _claim_alternatives(outcome: Outcome, problem: Problem) -> Claim:
    statement = "A few inner steps beat both avoiding the subproblem and solving it, in CPU time."
    others = _lines(outcome, problem, lambda line: line.family == "other")
    ours = [line for k, line in _by_inner_steps(outcome, problem).items() if k <= _FEW]
    if not (ours and others):
        return Claim(problem.name, statement, "section 3.1", UNTESTED, "")
    verdict, mine, _ = _against(ours, others, "gap")
    found = [f"final gap {_numbers(mine, 'gap')} ({mine.path} code)"]
    for line in others:
        end = quartiles(line.final("epoch"))["median"]
        then = _gap_at(mine, end)
        found.append(
            f"{_numbers(line, 'gap')} ({line.path} code) after {end:.3g} epochs, when that of "
            f"{mine.label} is {then:.2e}"
        )
    return Claim(problem.name, statement, "section 3.1", verdict, "; ".join(found))


def _gap_at(line: Line, epoch: float) -> float:
    """The median gap in this epoch."""
    gaps = [np.interp(epoch, trace["epoch"], trace["gap"]) for trace in line.traces.values()]
    return float(np.median(gaps))


_CLAIMS: dict[str, Callable[[Outcome, Problem], Claim]] = {
    "best projection-free by gap": _claim_free("gap", "gap"),
    "best projection-free by objective": _claim_free("value", "objective"),
    "faster than projected": _claim_projected(same=False),
    "faster than projected with the same estimator": _claim_projected(same=True),
    AUDITED: _claim_bounds,
    "no clipping needed": _claim_clipping,
    "K about 5 is good": _claim_default_k,
    "large K is slower": _claim_large_k,
    "better than the alternatives": _claim_alternatives,
}
