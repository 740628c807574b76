"""What is said of optimizers by linear minimisation over norm balls, judged as in claims.py."""

import math
from collections.abc import Mapping

import numpy as np

from adafw.experiments.networks.case import NETWORKS, NetworkCase
from adafw.experiments.networks.claims import CLAIMS, _compare, _named, _numbers
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import mean_and_deviation
from adafw.experiments.verdicts import FAILS, HOLDS, UNDECIDED, Finding

_CLOSE = {"error": 0.01, "loss": 0.02}  # accuracies, losses, this far apart are alike
_EQUAL = 0.01  # of accuracy, that pruning may cost
_COST = {"error": 0.01, "loss": 0.05}  # that another width's rate may cost


def mean_probes(curve: Curve) -> dict[str, dict[str, float]]:
    """Means over seeds of what was measured of the trained networks: kind -> level -> accuracy."""
    runs = list(curve.probes.values())
    return {
        kind: {level: float(np.mean([run[kind][level] for run in runs])) for level in runs[0][kind]}
        for kind in ("kept", "noise")
    }


def _measure(case: Case[Method]) -> str:
    """What searches look at: "error" or "loss"."""
    return NETWORKS[case.network][1]  # type: ignore[attr-defined]


def _column(case: Case[Method]) -> str:
    return "test_loss" if _measure(case) == "loss" else "test_accuracy"


def _better(case: Case[Method], ours: Curve, theirs: Curve) -> int:
    """1 if ours ends better beyond the bands, -1 if theirs does, 0 if the bands overlap."""
    sign = _compare(ours, theirs, _column(case))
    return -sign if _measure(case) == "loss" else sign


def _best(case: Case[Method], curves: list[Curve]) -> Curve:
    sign = 1 if _measure(case) == "loss" else -1
    return min(curves, key=lambda curve: sign * curve.final(_column(case)).mean())


def _duel(case: Case[Method], ours: list[Curve], theirs: list[Curve]) -> Finding:
    if not (ours and theirs):
        return None
    a, b = _best(case, ours), _best(case, theirs)
    verdict = {1: HOLDS, 0: UNDECIDED, -1: FAILS}[_better(case, a, b)]
    listed = ", ".join(
        f"{_numbers(curve, _column(case))} in {curve.final('cpu_seconds').mean():.3g} CPU s"
        for curve in (a, b)
    )
    return verdict, f"final {_column(case).replace('_', ' ')}: {listed}"


def _in(curves: list[Curve], *sets: str) -> list[Curve]:
    """Those whose method has its own set, of one of these names."""
    tables = [curve.method.table.get("set") or {} for curve in curves]
    return [c for c, table in zip(curves, tables, strict=True) if table.get("name") in sets]


@CLAIMS.named(
    "spectral steps beat AdamW",
    "Steps over the spectral ball (Muon, Scion, SFW) end better than AdamW after as many steps.",
    "Jordan et al. 2024",
)
def _spectral_beats_adamw(outcome: Outcome, case: Case[Method]) -> Finding:
    spectral = _named(outcome, case, "Muon", "Scion")
    spectral += _in(_named(outcome, case, "SFW"), "NewtonSchulzBall")
    return _duel(case, spectral, _named(outcome, case, "AdamW"))


@CLAIMS.named(
    "decay is a ball",
    "Constrained = unconstrained + weight decay: torch's Muon with decay and Frank-Wolfe in the "
    "spectral ball of radius a / decay (our Muon) end alike.",
    "arXiv:2502.07529, section 3",
)
def _decay_is_a_ball(outcome: Outcome, case: Case[Method]) -> Finding:
    ours, theirs = _named(outcome, case, "Muon"), _named(outcome, case, "TorchMuon")
    if not (ours and theirs):
        return None
    a, b = ours[0], theirs[0]
    column = _column(case)
    apart = abs(a.final(column).mean() - b.final(column).mean())
    alike = apart <= _CLOSE[_measure(case)] or _compare(a, b, column) == 0
    rates = ", ".join(f"{c.label} {c.method.table['learning_rate']}" for c in (a, b))
    return HOLDS if alike else FAILS, (
        f"final {column.replace('_', ' ')}: {_numbers(a, column)}, {_numbers(b, column)}; rates "
        f"found: {rates}; ours ended {100 * a.final('violation').max():.2g} % outside its ball"
    )


@CLAIMS.named(
    "AdamSFW above SFW on spectral balls",
    "On spectral balls AdamSFW ends better than SFW.",
    "not in the paper",
)
def _adamsfw_above_sfw(outcome: Outcome, case: Case[Method]) -> Finding:
    ours, theirs = (
        _in(_named(outcome, case, name), "NewtonSchulzBall") for name in ("AdamSFW", "SFW")
    )
    return _duel(case, ours, theirs)


@CLAIMS.named(
    "rates transfer across width",
    "The learning rate found at one width is as good as any at the other: true of Muon and Scion.",
    "arXiv:2502.07529, section 5",
)
def _rates_transfer(outcome: Outcome, case: Case[Method]) -> Finding:
    """Judged once, for the widest network: what the rate of the narrowest costs there."""
    networks = (c for c in outcome.spec.cases if isinstance(c, NetworkCase))
    widths = {c.width: c for c in networks if c.width}
    if len(widths) < 2 or case is not widths[max(widths)]:
        return None
    narrow = widths[min(widths)]
    tried = {(s["problem"], s["algorithm"]): s for s in outcome.searches}
    costs: dict[str, float] = {}
    listed = []
    for method in case.methods:
        pair = [tried.get((c.name, method.label)) for c in (narrow, case)]
        if pair[0] is None or pair[1] is None:
            continue
        values = {t["exponent"]: t["value"] for t in pair[1]["trials"]}
        there, here = pair[0]["exponent"], pair[1]["exponent"]
        best = values[here]
        costs[method.label] = (values.get(there) or math.inf) - best if there != here else 0.0
        cost = f"{costs[method.label]:.3g}" if math.isfinite(costs[method.label]) else "not known"
        listed.append(f"{method.label} {_power(there)} and {_power(here)} (costs {cost})")
    ours = [costs[m.label] for m in case.methods
            if m.table["name"] in ("Muon", "Scion") and m.label in costs]  # fmt: skip
    if not ours:
        return None
    bound = _COST[_measure(case)]
    verdict = HOLDS if max(ours) <= bound else FAILS if min(ours) > bound else UNDECIDED
    return verdict, (
        f"best rates at width {min(widths)} and {max(widths)}, and what the first costs at the "
        f"second ({_measure(case)} held out): {'; '.join(listed)}"
    )


def _power(exponent: int) -> str:
    return f"10^{exponent / 2:g}"


@CLAIMS.named(
    "sparse sets beat pruning",
    "At equal accuracy, training under KSparse or l1 leaves fewer weights than pruning AdamW's by "
    "magnitude.",
    "not in the paper",
)
def _sparse_beats_pruning(outcome: Outcome, case: Case[Method]) -> Finding:
    sparse = [c for c in _in(outcome.of(case), "KSparse", "L1Ball") if c.probes]
    plain = [c for c in _named(outcome, case, "AdamW") if c.probes]
    if not (sparse and plain):
        return None
    # A run is held against AdamW's of the same seed, as both see the same start and batches.
    wanted = {seed: run["kept"]["1"] - _EQUAL for seed, run in plain[0].probes.items()}
    needed = {
        c.label: [_least_kept(c.probes[seed]["kept"], least) for seed, least in wanted.items()]
        for c in (*plain, *sparse)
    }
    reference = np.array(needed[plain[0].label])
    best = min((c.label for c in sparse), key=lambda label: float(np.mean(needed[label])))
    ours = np.array(needed[best])
    verdict = UNDECIDED
    if ours.max() < reference.min():
        verdict = HOLDS
    elif ours.min() > reference.max():
        verdict = FAILS
    listed = ", ".join(f"{label} {_share(found)}" for label, found in needed.items())
    return verdict, (
        f"share of the entries needed to lose at most {100 * _EQUAL:g} point of accuracy against "
        f"AdamW's network of the same seed: {listed}"
    )


def _least_kept(kept: Mapping[str, float], wanted: float) -> float:
    """The smallest share with which the accuracy is reached, inf if not even all of them do."""
    reached = [float(share) for share, accuracy in kept.items() if accuracy >= wanted]
    return min(reached, default=math.inf)


def _share(found: list[float]) -> str:
    never = found.count(math.inf)
    if never:
        return f"not reached with all of them in {never} of {len(found)} runs"
    return f"{100 * float(np.mean(found)):.3g} %"


@CLAIMS.named(
    "balls resist noise",
    "Trained in balls (Muon, Scion, SFW, AdamSFW), networks lose less accuracy than AdamW's when "
    "noise of half the weights' size is added.",
    "not in the paper",
)
def _balls_resist_noise(outcome: Outcome, case: Case[Method]) -> Finding:
    curves = [c for c in outcome.of(case) if c.probes]
    plain = [c for c in curves if c.method.table["name"] == "AdamW"]
    ours = [c for c in curves if c.method.table["name"] in ("Muon", "Scion", "SFW", "AdamSFW")]
    if not (plain and ours):
        return None
    losses = {c.label: _lost(c) for c in (*plain, *ours)}
    base = mean_and_deviation(losses[plain[0].label])
    signs = []
    for curve in ours:
        q = mean_and_deviation(losses[curve.label])
        apart = abs(q["mean"] - base["mean"]) > q["deviation"] + base["deviation"]
        signs.append(0 if not apart else 1 if q["mean"] < base["mean"] else -1)
    verdict = HOLDS if min(signs) > 0 else FAILS if max(signs) < 0 else UNDECIDED
    listed = ", ".join(
        f"{label} {mean_and_deviation(v)['mean']:.4f} ± {mean_and_deviation(v)['deviation']:.4f}"
        for label, v in losses.items()
    )
    return verdict, f"accuracy lost under noise of 0.5 root mean squares: {listed}"


def _lost(curve: Curve) -> np.ndarray:
    return np.array([run["kept"]["1"] - run["noise"]["0.5"] for run in curve.probes.values()])
