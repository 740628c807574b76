"""What the paper says of its convex experiments, judged by the numbers of a run.

A claim holds if it does for medians over seeds and the quartile bands are apart, fails if the
opposite does, and is undecided if the bands overlap. All comparisons are at the same budget.
To add a claim: one function here, under its name.
"""

from collections.abc import Callable

import numpy as np

from adafw.experiments.convex.evidence import against, ahead, compare, faster, gap_at, numbers
from adafw.experiments.convex.measures import AUDIT, lower_bound
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import median
from adafw.experiments.verdicts import FAILS, HOLDS, UNDECIDED, Claims, Finding

AUDITED = "bounds not active"  # the claim that needs a run of its own
_FEW = 10  # the paper's K are at most that
_ROUNDING = 1e-12  # share of the first gap below which a gap is rounding error

CLAIMS = Claims()


def _curves(outcome: Outcome, case: Case[Method], keep: Callable[[Curve], bool]) -> list[Curve]:
    return [curve for curve in outcome.of(case) if keep(curve)]


def _of_family(outcome: Outcome, case: Case[Method], family: str) -> list[Curve]:
    return _curves(outcome, case, lambda curve: curve.method.family == family)


@CLAIMS.named(
    "best projection-free by gap",
    "The adaptive method is the best projection-free one by gap.",
    "section 4.1",
)
def _best_by_gap(outcome: Outcome, case: Case[Method]) -> Finding:
    ours = _of_family(outcome, case, "adaptive")
    others = _of_family(outcome, case, "frank-wolfe")
    if not (ours and others):
        return None
    verdict, mine, rival = against(ours, others, "gap")
    return verdict, (
        f"final gap {numbers(mine, 'gap')} against {numbers(rival, 'gap')}; "
        f"{faster(mine, rival)}; {ahead(mine, others, 'gap')}"
    )


@CLAIMS.named(
    "best projection-free by objective",
    "The adaptive method is the best projection-free one by objective.",
    "section 4.1",
)
def _best_by_objective(outcome: Outcome, case: Case[Method]) -> Finding:
    ours = _of_family(outcome, case, "adaptive")
    others = _of_family(outcome, case, "frank-wolfe")
    if not (ours and others):
        return None
    verdict, mine, rival = against(ours, others, "value")
    bound = lower_bound(outcome, case)
    return verdict, (
        f"objective above the lower bound {numbers(mine, 'value', bound)} against "
        f"{numbers(rival, 'value', bound)}; {ahead(mine, others, 'value', bound)}"
    )


@CLAIMS.named(
    "faster than projected",
    "It is faster than projected AdaGrad and AMSGrad with minibatch gradients, as in the paper.",
    "section 4.1",
)
def _faster_than_projected(outcome: Outcome, case: Case[Method]) -> Finding:
    return _against_projected(outcome, case, {"Minibatch"})


@CLAIMS.named(
    "faster than projected with the same estimator",
    "It is faster than projected AdaGrad and AMSGrad with the same gradient estimator.",
    "not in the paper",
)
def _faster_with_the_same_estimator(outcome: Outcome, case: Case[Method]) -> Finding:
    ours = _of_family(outcome, case, "adaptive")
    return _against_projected(outcome, case, {curve.method.estimator for curve in ours})


@CLAIMS.named(
    "corrective inner steps lose nothing",
    "With corrective inner steps the projection-free method loses nothing to projection, though "
    "that is cheap here.",
    "not in the paper",
)
def _corrective_loses_nothing(outcome: Outcome, case: Case[Method]) -> Finding:
    ours = _of_family(outcome, case, "corrective")
    mates = {curve.method.estimator for curve in ours}
    others = [
        curve for curve in _of_family(outcome, case, "projected")
        if curve.method.estimator in mates
    ]  # fmt: skip
    if not (ours and others):
        return None
    _, mine, rival = against(ours, others, "gap")
    # "Nothing" is a difference that the seeds do not show, or one of rounding errors.
    first = median(np.array([trace["gap"][0] for trace in mine.traces.values()]))
    rounded = median(mine.final("gap")) <= _ROUNDING * first
    verdict = FAILS if compare(mine, rival, "gap") < 0 and not rounded else HOLDS
    return verdict, (
        f"final gap {numbers(mine, 'gap')} against {numbers(rival, 'gap')}"
        f"{', rounding errors of the first gap' if rounded else ''}; {faster(mine, rival)}"
    )


def _against_projected(outcome: Outcome, case: Case[Method], estimators: set[str]) -> Finding:
    ours = _of_family(outcome, case, "adaptive")
    others = [
        curve for curve in _of_family(outcome, case, "projected")
        if curve.method.estimator in estimators
    ]  # fmt: skip
    if not (ours and others):
        return None
    verdict, mine, rival = against(ours, others, "gap")
    return verdict, (
        f"final gap {numbers(mine, 'gap')} against {numbers(rival, 'gap')}; {faster(mine, rival)}"
    )


@CLAIMS.named(
    AUDITED, "The theorems' bounds 2/(t+2) on the inner step sizes are not active.", "section 3.6"
)
def _bounds_not_active(outcome: Outcome, case: Case[Method]) -> Finding:
    audit = outcome.extras.get(AUDIT, {}).get(case.name, {}).get("step", {})
    if not audit.get("inner"):
        return None
    share, cut = audit["exceeded"] / audit["inner"], audit["cut"] / audit["inner"]
    return HOLDS if audit["exceeded"] == 0 else FAILS, (
        f"of {audit['inner']} inner steps {audit['exceeded']} ({share:.2%}) would have exceeded "
        f"2/(t+2), {audit['cut']} ({cut:.2%}) were cut at 1"
    )


@CLAIMS.named("no clipping needed", "Clipping the metric is not needed.", "section 3.6")
def _no_clipping_needed(outcome: Outcome, case: Case[Method]) -> Finding:
    ours = _of_family(outcome, case, "adaptive")
    if not ours:
        return None
    traces = [trace for curve in ours for trace in curve.traces.values()]
    diverged = sum(status == "diverged" for curve in ours for status in curve.statuses.values())
    fell = sum(bool(trace["gap"][-1] < trace["gap"][0]) for trace in traces)
    return HOLDS if diverged == 0 and fell == len(traces) else FAILS, (
        f"unclipped, {fell} of {len(traces)} runs ended below their first gap, {diverged} diverged"
    )


def _by_inner_steps(outcome: Outcome, case: Case[Method]) -> dict[int, Curve]:
    adaptive = _of_family(outcome, case, "adaptive")
    found = {curve.method.table.get("inner_steps"): curve for curve in adaptive}
    return {k: found[k] for k in sorted(k for k in found if isinstance(k, int))}


@CLAIMS.named("K about 5 is good", "K about 5 is a good default.", "section 3.6")
def _k_about_5_is_good(outcome: Outcome, case: Case[Method]) -> Finding:
    curves = _by_inner_steps(outcome, case)
    if 5 not in curves or len(curves) < 3:
        return None
    gaps = {k: median(curve.final("gap")) for k, curve in curves.items()}
    best = min(gaps, key=lambda k: gaps[k])
    worse = compare(curves[best], curves[5], "gap") > 0
    factor = gaps[5] / gaps[best] if gaps[best] > 0 else 1.0
    # "Good", not "best": within a factor of 3 in final gap of the best K tried.
    verdict = HOLDS if factor <= 3 else FAILS if worse else UNDECIDED
    listed = ", ".join(f"K={k}: {gap:.1e}" for k, gap in gaps.items())
    return verdict, f"K=5 ends {factor:.2g} times above the best, K={best} ({listed})"


@CLAIMS.named("large K is slower", "Large K is less efficient in CPU time.", "appendix B")
def _large_k_is_slower(outcome: Outcome, case: Case[Method]) -> Finding:
    curves = _by_inner_steps(outcome, case)
    if len(curves) < 3:
        return None
    largest = max(curves)
    smaller = [curve for k, curve in curves.items() if k != largest]
    verdict, mine, rival = against(smaller, [curves[largest]], "gap")
    leads = ahead(curves[largest], smaller, "gap", x="cpu_seconds")
    return verdict, (
        f"final gap {numbers(rival, 'gap')}, best smaller K: {numbers(mine, 'gap')}; "
        f"K = {largest} is {leads}"
    )


@CLAIMS.named(
    "better than the alternatives",
    "A few inner steps beat both avoiding the subproblem and solving it, in CPU time.",
    "section 3.1",
)
def _better_than_the_alternatives(outcome: Outcome, case: Case[Method]) -> Finding:
    others = _of_family(outcome, case, "other")
    ours = [curve for k, curve in _by_inner_steps(outcome, case).items() if k <= _FEW]
    if not (ours and others):
        return None
    verdict, mine, _ = against(ours, others, "gap")
    found = [f"final gap {numbers(mine, 'gap')} ({mine.path} code)"]
    for curve in others:
        end = median(curve.final("epoch"))
        found.append(
            f"{numbers(curve, 'gap')} ({curve.path} code) after {end:.3g} epochs, when that of "
            f"{mine.label} is {gap_at(mine, end):.2e}"
        )
    return verdict, "; ".join(found)
