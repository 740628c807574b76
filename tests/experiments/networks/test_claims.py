import numpy as np
import pytest

from adafw.experiments.networks import NetworksKind
from adafw.experiments.networks.case import NetworkCase, NetworkMethod
from adafw.experiments.networks.trace import EpochTrace
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Spec

SET = {"name": "LInfBall", "diameter": 6.0}


def trace(accuracies, loss=1.0, cpu=1.0):
    made = []
    for epoch, accuracy in enumerate(accuracies):
        row = dict.fromkeys(EpochTrace.columns, 0.0)
        row |= {"epoch": epoch, "test_accuracy": accuracy, "train_loss": loss, "cpu_seconds": cpu}
        made.append(tuple(row.values()))
    return EpochTrace(made)


def judge(claim, *lines):
    """Lines are (name, one argument tuple of `trace` for each seed[, K])."""
    case = NetworkCase(name="p", data={}, methods=(), network="ImdbNet", set=SET)
    made = []
    for name, runs, *k in lines:
        table = {"name": name, "learning_rate": 1.0, **({"inner_steps": k[0]} if k else {})}
        traces = {seed: trace(*run) for seed, run in enumerate(runs)}
        method = NetworkMethod(f"{name} {k}", table)
        made.append(Curve(case, method, traces, dict.fromkeys(traces, "max_epochs")))
    spec = Spec("e", "e", "networks", (case,), {}, claims=(claim,))
    NetworksKind().check(spec, "here")
    (found,) = NetworksKind().judge(Outcome(spec, {}, tuple(made)))
    return found


def flat(*accuracies, **options):
    return [([0.5, a], *options.values()) for a in accuracies]


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ((0.88, 0.89), (0.85, 0.86), "holds"),
        ((0.85, 0.86), (0.88, 0.89), "fails"),
        ((0.85, 0.89), (0.86, 0.87), "undecided"),
    ],
)
@pytest.mark.parametrize(
    ("claim", "mine", "rival"),
    [
        ("SFW above variance reduction", "SFW", "SVRF"),
        ("AdaSFW best on test", "AdaSFW", "AdaGrad"),
    ],
)
def test_comparisons(claim, mine, rival, ours, theirs, verdict):
    found = judge(claim, (mine, flat(*ours)), (rival, flat(*theirs)))
    assert found.verdict == verdict
    assert f"{np.mean(ours):.4f}" in found.evidence


def test_every_rival_and_both_of_ours_count():
    lines = [("AdaSFW", flat(0.8, 0.8)), ("AdamSFW", flat(0.7, 0.7)), ("SFW", flat(0.6, 0.6))]
    claim = "adaptive above projection-free"
    assert judge(claim, *lines).verdict == "holds"
    assert judge(claim, *lines, ("ORGFW", flat(0.75, 0.75))).verdict == "fails"
    assert judge(claim, lines[0], lines[2]).verdict == "not tested"


def test_slow_on_train_is_a_larger_loss():
    slow, fast = [([0, 1], 0.5)] * 2, [([0, 1], 0.1)] * 2
    assert judge("AdaSFW slow on train", ("AdaSFW", slow), ("AdaGrad", fast)).verdict == "holds"
    assert judge("AdaSFW slow on train", ("AdaSFW", fast), ("AdaGrad", slow)).verdict == "fails"


def test_early_peaks():
    early, late = [([0.5, 0.9, 0.8, 0.8, 0.8],)] * 2, [([0.5, 0.6, 0.7, 0.8, 0.9],)] * 2
    claim = "others peak early"
    assert judge(claim, ("AdaGrad", early), ("AMSGrad", early)).verdict == "holds"
    assert judge(claim, ("AdaGrad", early), ("AMSGrad", late)).verdict == "undecided"
    found = judge(claim, ("AdaGrad", late))
    assert found.verdict == "fails"
    assert "0.9000 in epoch 4 of 4" in found.evidence


def test_similar_performance():
    claim = "AdaSFW like AdaGrad"
    assert (
        judge(claim, ("AdaSFW", flat(0.700, 0.700)), ("AdaGrad", flat(0.705, 0.705))).verdict
        == "holds"
    )
    assert (
        judge(claim, ("AdaSFW", flat(0.65, 0.65)), ("AdaGrad", flat(0.70, 0.70))).verdict == "fails"
    )
    wide = ("AdaSFW", flat(0.6, 0.7)), ("AdaGrad", flat(0.68, 0.69))
    assert judge(claim, *wide).verdict == "holds"
    # Of several lines of one name the best is meant.
    assert judge(claim, ("AdaSFW", flat(0.1, 0.1)), ("AdaSFW", flat(0.7, 0.7)),
                 ("AdaGrad", flat(0.7, 0.7))).verdict == "holds"  # fmt: skip


def test_large_k():
    lines = [("AdaSFW", [([0.5, 0.8], 1.0, float(k))] * 2, k) for k in (1, 2, 20)]
    assert judge("large K is slower", *lines).verdict == "holds"
    better = ("AdaSFW", [([0.5, 0.9], 1.0, 20.0)] * 2, 20)
    assert judge("large K is slower", *lines[:2], better).verdict == "fails"
    assert judge("large K is slower", *lines[:2]).verdict == "not tested"


def test_claims_of_linear_models_are_not_for_networks():
    with pytest.raises(ValueError, match="claims must be among SFW above variance reduction"):
        judge("best projection-free by gap", ("SFW", flat(1)))


@pytest.mark.parametrize("accuracies", [(0.88, 0.86), (0.86, 0.88)])
def test_one_seed_decides_nothing(accuracies):
    ours, theirs = accuracies
    found = judge("SFW above variance reduction", ("SFW", flat(ours)), ("SVRF", flat(theirs)))
    assert found.verdict == "undecided"
    assert found.evidence.startswith("one seed only; final test accuracy")


def test_bands_are_apart_if_both_deviations_fit_between_the_means():
    """0.86 and 0.80 are 0.06 apart: more than either deviation, 0.042, and less than both."""
    claim = "SFW above variance reduction"
    wide = ("SFW", flat(0.83, 0.89)), ("SVRF", flat(0.77, 0.83))
    assert judge(claim, *wide).verdict == "undecided"
    assert judge("AdaSFW like AdaGrad", ("AdaSFW", flat(0.83, 0.89)),
                 ("AdaGrad", flat(0.77, 0.83))).verdict == "holds"  # fmt: skip


def test_ours_counts_at_its_best_and_rivals_are_told_by_their_ends():
    found = judge(
        "SFW above variance reduction", ("SFW", flat(0.1, 0.1), 1), ("SFW", flat(0.8, 0.8), 2),
        ("SVRF", flat(0.5, 0.5)), ("ORGFW", flat(0.6, 0.6)),
    )  # fmt: skip
    assert found.verdict == "holds"
    assert found.evidence == (
        "final test accuracy: SFW [2] 0.8000 ± 0.0000, ORGFW [] 0.6000 ± 0.0000, "
        "SVRF [] 0.5000 ± 0.0000"
    )


def test_large_k_must_be_dearer_than_all_and_not_better_than_all():
    def lines(*runs):
        return [("AdaSFW", [([0.5, a], 1.0, cpu)] * 2, k) for k, cpu, a in runs]

    claim = "large K is slower"
    assert judge(claim, *lines((1, 9.0, 0.8), (2, 1.0, 0.8), (20, 5.0, 0.8))).verdict == "fails"
    assert judge(claim, *lines((1, 1.0, 0.8), (2, 2.0, 0.6), (20, 5.0, 0.7))).verdict == "holds"
    more = [("AdamSFW", [([0.5, 0.8], 1.0, 1.0)] * 2, k) for k in (1, 2, 3)]
    some = lines((1, 1.0, 0.8), (2, 2.0, 0.6), (20, 5.0, 0.7))
    assert judge(claim, *some, *more).verdict == "undecided"
