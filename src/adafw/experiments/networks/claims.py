"""What the paper says of its networks (section 4.2), judged by the numbers of a run.

A comparison holds if it does for the means over seeds and the bands of one standard deviation are
apart, fails if the opposite does, and is undecided if the bands overlap or there is one seed only.
To add a claim: one function here, under its name.
"""

from dataclasses import replace

from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import mean_and_deviation, mean_curve
from adafw.experiments.verdicts import FAILS, HOLDS, UNDECIDED, Claim, Claims, Finding

_SOURCE = "section 4.2"
_REDUCED = ("SVRF", "SPIDERFW", "ORGFW")
_FAST = ("AdaGrad", "AMSGrad", "AdamSFW")
_CLOSE = 0.01  # accuracies this far apart are similar
_EARLY = 0.5  # the share of the epochs in which an early peak lies

CLAIMS = Claims()


def judge(outcome: Outcome) -> list[Claim]:
    """All claims that the file names; undecided by a single seed, which has no band."""
    found = CLAIMS.judge(outcome)
    if {len(curve.traces) for curve in outcome.curves} != {1}:
        return found
    return [
        replace(claim, verdict=UNDECIDED, evidence=f"one seed only; {claim.evidence}")
        if claim.verdict in (HOLDS, FAILS) else claim
        for claim in found
    ]  # fmt: skip


def _named(outcome: Outcome, case: Case[Method], *names: str) -> list[Curve]:
    return [curve for curve in outcome.of(case) if curve.method.table["name"] in names]


def _numbers(curve: Curve, column: str) -> str:
    q = mean_and_deviation(curve.final(column))
    return f"{curve.label} {q['mean']:.4f} ± {q['deviation']:.4f}"


def _compare(ours: Curve, theirs: Curve, column: str) -> int:
    """1 if ours is larger beyond the bands, -1 if theirs is, 0 if the bands overlap."""
    a, b = (mean_and_deviation(curve.final(column)) for curve in (ours, theirs))
    apart = abs(a["mean"] - b["mean"]) > a["deviation"] + b["deviation"]
    return 0 if not apart else 1 if a["mean"] > b["mean"] else -1


def _above_all(ours: list[Curve], others: list[Curve], column: str) -> tuple[str, str]:
    """The verdict on "ours, at its best, ends above every other", and the numbers."""
    mine = max(ours, key=lambda curve: curve.final(column).mean())
    rivals = sorted(others, key=lambda curve: -curve.final(column).mean())
    signs = [_compare(mine, other, column) for other in rivals]
    verdict = HOLDS if min(signs) > 0 else FAILS if min(signs) < 0 else UNDECIDED
    listed = ", ".join(_numbers(curve, column) for curve in [mine, *rivals])
    return verdict, f"final {column.replace('_', ' ')}: {listed}"


def _each_above(ours: list[list[Curve]], others: list[Curve], column: str) -> Finding:
    """Whether every one of `ours`, each at its best, ends above all of `others`."""
    if not (all(ours) and others):
        return None
    judged = [_above_all(curves, others, column) for curves in ours]
    verdicts = {verdict for verdict, _ in judged}
    verdict = next(v for v in (FAILS, UNDECIDED, HOLDS) if v in verdicts)
    return verdict, "; ".join(numbers for _, numbers in judged)


@CLAIMS.named(
    "SFW above variance reduction",
    "SFW has a better test accuracy than SVRF, SPIDER-FW and ORGFW.",
    _SOURCE,
)
def _sfw_above_variance_reduction(outcome: Outcome, case: Case[Method]) -> Finding:
    rivals = _named(outcome, case, *_REDUCED)
    return _each_above([_named(outcome, case, "SFW")], rivals, "test_accuracy")


@CLAIMS.named("AdaSFW best on test", "AdaSFW has the best test accuracy.", _SOURCE)
def _adasfw_best_on_test(outcome: Outcome, case: Case[Method]) -> Finding:
    ours = _named(outcome, case, "AdaSFW")
    rivals = [curve for curve in outcome.of(case) if curve not in ours]
    return _each_above([ours], rivals, "test_accuracy")


@CLAIMS.named(
    "AdaSFW slow on train",
    "AdaSFW optimises slowly on the training set: AdaGrad, AMSGrad and AdamSFW go lower.",
    _SOURCE,
)
def _adasfw_slow_on_train(outcome: Outcome, case: Case[Method]) -> Finding:
    rivals = _named(outcome, case, *_FAST)
    return _each_above([_named(outcome, case, "AdaSFW")], rivals, "train_loss")


@CLAIMS.named(
    "others peak early",
    "AdaGrad, AMSGrad and AdamSFW reach their highest test accuracy early.",
    _SOURCE,
)
def _others_peak_early(outcome: Outcome, case: Case[Method]) -> Finding:
    curves = _named(outcome, case, *_FAST)
    if not curves:
        return None
    early, listed = [], []
    for curve in curves:
        mean = mean_curve(curve.traces.values(), "test_accuracy")
        peak, last = int(mean.argmax()), len(mean) - 1
        early.append(peak <= _EARLY * last)
        listed.append(
            f"{curve.label} {mean[peak]:.4f} in epoch {peak} of {last}, then {mean[-1]:.4f}"
        )
    return HOLDS if all(early) else UNDECIDED if any(early) else FAILS, "; ".join(listed)


@CLAIMS.named(
    "adaptive above projection-free",
    "AdaSFW and AdamSFW outperform the other projection-free methods on test.",
    _SOURCE,
)
def _adaptive_above_projection_free(outcome: Outcome, case: Case[Method]) -> Finding:
    ours = [_named(outcome, case, name) for name in ("AdaSFW", "AdamSFW")]
    return _each_above(ours, _named(outcome, case, "SFW", *_REDUCED), "test_accuracy")


@CLAIMS.named(
    "AdaSFW like AdaGrad",
    "AdaSFW performs like AdaGrad: test accuracies within a point or the bands.",
    _SOURCE,
)
def _adasfw_like_adagrad(outcome: Outcome, case: Case[Method]) -> Finding:
    return _similar(_named(outcome, case, "AdaSFW"), _named(outcome, case, "AdaGrad"))


@CLAIMS.named(
    "AdamSFW like AMSGrad",
    "AdamSFW performs like AMSGrad: test accuracies within a point or the bands.",
    _SOURCE,
)
def _adamsfw_like_amsgrad(outcome: Outcome, case: Case[Method]) -> Finding:
    return _similar(_named(outcome, case, "AdamSFW"), _named(outcome, case, "AMSGrad"))


def _similar(ours: list[Curve], theirs: list[Curve]) -> Finding:
    if not (ours and theirs):
        return None
    column = "test_accuracy"
    a, b = (max(group, key=lambda c: c.final(column).mean()) for group in (ours, theirs))
    apart = abs(a.final(column).mean() - b.final(column).mean())
    similar = apart <= _CLOSE or _compare(a, b, column) == 0
    evidence = ", ".join(_numbers(curve, column) for curve in (a, b))
    return HOLDS if similar else FAILS, f"final test accuracy: {evidence}"


@CLAIMS.named("large K is slower", "Large K is less efficient in CPU time.", "appendix B")
def _large_k_is_slower(outcome: Outcome, case: Case[Method]) -> Finding:
    judged, listed = [], []
    for name in ("AdaSFW", "AdamSFW"):
        found = _named(outcome, case, name)
        curves = {curve.method.table.get("inner_steps", 0): curve for curve in found}
        if len(curves) < 3:
            continue
        largest = curves.pop(max(curves))
        dearer = all(_compare(largest, curve, "cpu_seconds") > 0 for curve in curves.values())
        better = all(_compare(largest, curve, "test_accuracy") > 0 for curve in curves.values())
        judged.append(dearer and not better)
        listed += [
            f"{curve.label}: {curve.final('cpu_seconds').mean():.3g} CPU s, "
            f"test accuracy {curve.final('test_accuracy').mean():.4f}"
            for curve in [*curves.values(), largest]
        ]
    if not judged:
        return None
    verdict = HOLDS if all(judged) else UNDECIDED if any(judged) else FAILS
    return verdict, "; ".join(listed)
