"""What the paper says of its networks (section 4.2), judged by the numbers of a run.

A comparison holds if it does for the means over seeds and the bands of one standard deviation are
apart, fails if the opposite does, and is undecided if the bands overlap or there is one seed only.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from adafw.experiments.networks.problem import NetworkProblem
from adafw.experiments.results import Line, Outcome, mean_and_deviation, mean_curve
from adafw.experiments.verdicts import FAILS, HOLDS, UNDECIDED, UNTESTED, Claim

_SOURCE = "section 4.2"
_REDUCED = ("SVRF", "SPIDERFW", "ORGFW")
_FAST = ("AdaGrad", "AMSGrad", "AdamSFW")
_CLOSE = 0.01  # accuracies this far apart are similar
_EARLY = 0.5  # the share of the epochs in which an early peak lies


def _lines(outcome: Outcome, problem: NetworkProblem, *names: str) -> list[Line]:
    return [line for line in outcome.of(problem) if line.spec.table["name"] in names]


def _others(outcome: Outcome, problem: NetworkProblem, name: str) -> list[Line]:
    return [line for line in outcome.of(problem) if line.spec.table["name"] != name]


def _numbers(line: Line, column: str) -> str:
    q = mean_and_deviation(line.final(column))
    return f"{line.label} {q['mean']:.4f} ± {q['deviation']:.4f}"


def _compare(ours: Line, theirs: Line, column: str) -> int:
    """1 if ours is larger beyond the bands, -1 if theirs is, 0 if the bands overlap."""
    a, b = (mean_and_deviation(line.final(column)) for line in (ours, theirs))
    apart = abs(a["mean"] - b["mean"]) > a["deviation"] + b["deviation"]
    return 0 if not apart else 1 if a["mean"] > b["mean"] else -1


def _above_all(ours: list[Line], others: list[Line], column: str) -> tuple[str, str]:
    """The verdict on "ours, at its best, ends above every other", and the numbers."""
    mine = max(ours, key=lambda line: line.final(column).mean())
    rivals = sorted(others, key=lambda line: -line.final(column).mean())
    signs = [_compare(mine, other, column) for other in rivals]
    verdict = HOLDS if min(signs) > 0 else FAILS if min(signs) < 0 else UNDECIDED
    listed = ", ".join(_numbers(line, column) for line in [mine, *rivals])
    return verdict, f"final {column.replace('_', ' ')}: {listed}"


def _claim_above(
    statement: str, column: str, ours: tuple[str, ...], others: tuple[str, ...] | None
) -> Callable[[Outcome, NetworkProblem], Claim]:
    """A claim that every one of `ours` ends above all of `others` (None: above all the rest)."""

    def claim(outcome: Outcome, problem: NetworkProblem) -> Claim:
        found = [_lines(outcome, problem, name) for name in ours]
        rivals = (
            _others(outcome, problem, ours[0]) if others is None
            else _lines(outcome, problem, *others)
        )  # fmt: skip
        if not (all(found) and rivals):
            return Claim(problem.name, statement, _SOURCE, UNTESTED, "")
        judged = [_above_all(lines, rivals, column) for lines in found]
        verdicts = {verdict for verdict, _ in judged}
        verdict = next(v for v in (FAILS, UNDECIDED, HOLDS) if v in verdicts)
        evidence = "; ".join(numbers for _, numbers in judged)
        return Claim(problem.name, statement, _SOURCE, verdict, evidence)

    return claim


def _claim_early(outcome: Outcome, problem: NetworkProblem) -> Claim:
    statement = "AdaGrad, AMSGrad and AdamSFW reach their highest test accuracy early."
    lines = _lines(outcome, problem, *_FAST)
    if not lines:
        return Claim(problem.name, statement, _SOURCE, UNTESTED, "")
    early, listed = [], []
    for line in lines:
        curve = mean_curve(line, "test_accuracy")
        peak, last = int(curve.argmax()), len(curve) - 1
        early.append(peak <= _EARLY * last)
        listed.append(
            f"{line.label} {curve[peak]:.4f} in epoch {peak} of {last}, then {curve[-1]:.4f}"
        )
    verdict = HOLDS if all(early) else UNDECIDED if any(early) else FAILS
    return Claim(problem.name, statement, _SOURCE, verdict, "; ".join(listed))


def _claim_similar(ours: str, theirs: str) -> Callable[[Outcome, NetworkProblem], Claim]:
    def claim(outcome: Outcome, problem: NetworkProblem) -> Claim:
        statement = f"{ours} performs like {theirs}: test accuracies within a point or the bands."
        found = [_lines(outcome, problem, name) for name in (ours, theirs)]
        if not all(found):
            return Claim(problem.name, statement, _SOURCE, UNTESTED, "")
        a, b = (max(lines, key=lambda line: line.final("test_accuracy").mean()) for lines in found)
        apart = abs(a.final("test_accuracy").mean() - b.final("test_accuracy").mean())
        similar = apart <= _CLOSE or _compare(a, b, "test_accuracy") == 0
        evidence = ", ".join(_numbers(line, "test_accuracy") for line in (a, b))
        return Claim(problem.name, statement, _SOURCE, HOLDS if similar else FAILS,
                     f"final test accuracy: {evidence}")  # fmt: skip

    return claim


def _claim_large_k(outcome: Outcome, problem: NetworkProblem) -> Claim:
    statement = "Large K is less efficient in CPU time."
    judged, listed = [], []
    for name in ("AdaSFW", "AdamSFW"):
        lines = {line.spec.table.get("inner_steps", 0): line
                 for line in _lines(outcome, problem, name)}  # fmt: skip
        if len(lines) < 3:
            continue
        largest = lines.pop(max(lines))
        dearer = all(_compare(largest, line, "cpu_seconds") > 0 for line in lines.values())
        better = all(_compare(largest, line, "test_accuracy") > 0 for line in lines.values())
        judged.append(dearer and not better)
        listed += [
            f"{line.label}: {mean_and_deviation(line.final('cpu_seconds'))['mean']:.3g} CPU s, "
            f"test accuracy {line.final('test_accuracy').mean():.4f}"
            for line in [*lines.values(), largest]
        ]
    if not judged:
        return Claim(problem.name, statement, "appendix B", UNTESTED, "")
    verdict = HOLDS if all(judged) else UNDECIDED if any(judged) else FAILS
    return Claim(problem.name, statement, "appendix B", verdict, "; ".join(listed))


def _on_seeds(judge: Callable[[Outcome, NetworkProblem], Claim]) -> Any:
    """The same claim, undecided by a single seed, which has no band."""

    def claim(outcome: Outcome, problem: NetworkProblem) -> Claim:
        found = judge(outcome, problem)
        seeds = {len(line.traces) for line in outcome.of(problem)}
        if found.verdict in (HOLDS, FAILS) and seeds == {1}:
            return replace(found, verdict=UNDECIDED, evidence=f"one seed only; {found.evidence}")
        return found

    return claim


_JUDGES: dict[str, Callable[[Outcome, NetworkProblem], Claim]] = {
    "SFW above variance reduction": _claim_above(
        "SFW has a better test accuracy than SVRF, SPIDER-FW and ORGFW.",
        "test_accuracy", ("SFW",), _REDUCED,
    ),
    "AdaSFW best on test": _claim_above(
        "AdaSFW has the best test accuracy.", "test_accuracy", ("AdaSFW",), None
    ),
    "AdaSFW slow on train": _claim_above(
        "AdaSFW optimises slowly on the training set: AdaGrad, AMSGrad and AdamSFW go lower.",
        "train_loss", ("AdaSFW",), _FAST,
    ),
    "others peak early": _claim_early,
    "adaptive above projection-free": _claim_above(
        "AdaSFW and AdamSFW outperform the other projection-free methods on test.",
        "test_accuracy", ("AdaSFW", "AdamSFW"), ("SFW", *_REDUCED),
    ),
    "AdaSFW like AdaGrad": _claim_similar("AdaSFW", "AdaGrad"),
    "AdamSFW like AMSGrad": _claim_similar("AdamSFW", "AMSGrad"),
    "large K is slower": _claim_large_k,
}  # fmt: skip
CLAIMS = {name: _on_seeds(judge) for name, judge in _JUDGES.items()}
