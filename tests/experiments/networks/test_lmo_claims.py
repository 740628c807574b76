"""Claims on optimizers by linear minimisation: each verdict, and what it rests on."""

import pytest

from adafw.experiments.networks import NetworksKind
from adafw.experiments.networks.case import NetworkCase, NetworkMethod
from adafw.experiments.networks.trace import EpochTrace
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Spec

SET = {"name": "LInfBall", "diameter": 6.0}
SPECTRAL = {"name": "NewtonSchulzBall", "radius": 1.0, "rest": 1.0}


def trace(value):
    row = dict.fromkeys(EpochTrace.columns, 0.0)
    row |= {"epoch": 1, "test_accuracy": value, "test_loss": value, "cpu_seconds": 2.0}
    return EpochTrace([tuple(row.values())])


def curve(case, name, values, own_set=None, probes=None):
    table = {"name": name, "learning_rate": 1.0, **({"set": own_set} if own_set else {})}
    label = f"{name} {own_set['name']}" if own_set else name
    traces = {seed: trace(value) for seed, value in enumerate(values)}
    statuses = dict.fromkeys(traces, "max_epochs")
    return Curve(case, NetworkMethod(label, table), traces, statuses, probes=probes or {})


def judge(claim, *lines, network="FashionNet"):
    """Lines are the arguments of `curve` after the case; the findings of the claim."""
    case = NetworkCase(name="p", data={}, methods=(), network=network, set=SET)
    curves = tuple(curve(case, *line) for line in lines)
    spec = Spec("e", "e", "networks", (case,), {}, claims=(claim,))
    return NetworksKind().judge(Outcome(spec, {}, curves))


def verdict(claim, *lines, network="FashionNet"):
    (found,) = judge(claim, *lines, network=network)
    return found.verdict


@pytest.mark.parametrize(("network", "sign"), [("FashionNet", 1), ("CharNet", -1)])
def test_the_best_of_both_sides_meet_beyond_their_bands(network, sign):
    """Accuracies are better where they are larger, losses where they are smaller."""
    claim, low, high = "spectral steps beat AdamW", (0.5, 0.52), (0.6, 0.62)
    better, worse = (high, low) if sign > 0 else (low, high)
    adamw = ("AdamW", (0.54, 0.58))
    assert verdict(claim, ("Muon", better), adamw, network=network) == "holds"
    assert verdict(claim, ("Scion", worse), adamw, network=network) == "fails"
    assert verdict(claim, ("Muon", worse), ("Scion", better), adamw, network=network) == "holds"
    assert verdict(claim, ("Muon", (0.55, 0.57)), adamw, network=network) == "undecided"
    both = adamw, ("AdamW", better)
    assert verdict(claim, ("Muon", worse), *both, network=network) == "fails"


def test_steps_of_other_sets_are_not_spectral():
    adamw, claim = ("AdamW", (0.5, 0.52)), "spectral steps beat AdamW"
    assert verdict(claim, ("SFW", (0.8, 0.81), SPECTRAL), adamw) == "holds"
    found = judge(claim, ("SFW", (0.8, 0.81), {"name": "L1Ball", "radius": 1.0}), adamw)
    assert [f.verdict for f in found if f.verdict in ("holds", "fails", "undecided")] == []
    claim = "AdamSFW above SFW on spectral balls"
    better, worse = ("AdamSFW", (0.8, 0.81), SPECTRAL), ("SFW", (0.5, 0.51), SPECTRAL)
    assert verdict(claim, better, worse) == "holds"
    assert verdict(claim, ("AdamSFW", (0.4, 0.41), SPECTRAL), worse) == "fails"
    free = ("SFW", (0.9, 0.91), {"name": "L1Ball", "radius": 1.0})
    assert verdict(claim, better, worse, free) == "holds"


def test_alike_is_close_or_within_the_bands():
    """Accuracies within 0.01, losses within 0.02, or deviations that overlap."""
    claim = "decay is a ball"
    for network, near, far in (("FashionNet", 0.0099, 0.0101), ("CharNet", 0.0199, 0.0201)):
        for apart, expected in ((near, "holds"), (-near, "holds"), (far, "fails"), (-far, "fails")):
            lines = ("Muon", (0.5, 0.5)), ("TorchMuon", (0.5 + apart, 0.5 + apart))
            assert verdict(claim, *lines, network=network) == expected
    assert verdict(claim, ("Muon", (0.4, 0.6)), ("TorchMuon", (0.55, 0.55))) == "holds"


def probe(whole, disturbed=0.0, **kept):
    return {"kept": {"1": whole, **{k.replace("_", "."): v for k, v in kept.items()}},
            "noise": {"0.5": disturbed}}  # fmt: skip


def noisy(*lost):
    return {seed: probe(0.9, 0.9 - amount) for seed, amount in enumerate(lost)}


def test_every_ball_resists_noise_beyond_both_bands():
    claim, adamw = "balls resist noise", ("AdamW", (0.9, 0.9), None, noisy(0.3, 0.4))
    few, some, much = noisy(0.1, 0.12), noisy(0.27, 0.28), noisy(0.6, 0.62)

    def found(*ours):
        return verdict(claim, adamw, *((n, (0.9, 0.9), None, p) for n, p in ours))

    assert found(("Muon", few)) == "holds"
    assert found(("Muon", few), ("SFW", few), ("Scion", few), ("AdamSFW", few)) == "holds"
    assert found(("SFW", much)) == "fails"
    assert found(("Muon", few), ("SFW", much)) == "undecided"
    # 0.275 and 0.35 are 0.075 apart: more than either deviation (0.007, 0.071), not than both.
    assert found(("Muon", some)) == "undecided"
    assert found(("Muon", few), ("Lion", much)) == "holds"  # which is no ball of these


def test_fewer_entries_at_equal_accuracy():
    claim = "sparse sets beat pruning"
    ksparse = {"name": "KSparse", "radius": 1.0, "share": 0.1}
    pruned = {0: probe(0.9, 0, **{"0_5": 0.89, "0_2": 0.5}), 1: probe(0.8, 0, **{"0_5": 0.7901})}

    def found(*runs):
        ours = ("SFW", (0.9, 0.9), ksparse, dict(enumerate(runs)))
        return verdict(claim, ("AdamW", (0.9, 0.8), None, pruned), ours)

    fine = probe(0.9, 0, **{"0_1": 0.8901, "0_05": 0.3})
    assert found(fine, probe(0.8, 0, **{"0_1": 0.79001})) == "holds"
    assert found(fine, probe(0.8, 0, **{"0_5": 0.79001, "0_1": 0.78})) == "undecided"
    assert found(probe(0.89001), probe(0.8)) == "fails"  # all of its own are needed
    assert found(fine, probe(0.78, 0, **{"0_1": 0.78})) == "undecided"  # never reached
    # More than AdamW needs in one run, and not in the other.
    pruned[1] = probe(0.8, 0, **{"0_5": 0.8, "0_2": 0.795})
    third = {"0_3": 0.9}
    assert found(probe(0.9, 0, **third), probe(0.9, 0, **third)) == "undecided"


def searched(problem, label, best, **values):
    trials = [{"exponent": int(k[1:]) * (-1 if k[0] == "m" else 1), "value": v}
              for k, v in values.items()]  # fmt: skip
    return {"problem": problem, "algorithm": label, "exponent": best, "trials": trials}


def test_what_a_rate_of_another_width_costs():
    """At most 0.01 of error, by what the wide network's own search found at that rate."""
    names = ("Muon", "Scion", "AdamW")
    methods = tuple(NetworkMethod(n, {"name": n, "learning_rate": 1.0}) for n in names)
    cases = [
        NetworkCase(name=f"w{w}", data={}, methods=methods, network="FashionNet", set=SET, width=w)
        for w in (64, 16)
    ]
    spec = Spec("e", "e", "networks", tuple(cases), {}, claims=("rates transfer across width",))

    def found(narrow, wide):
        searches = (*narrow, *wide)
        judged = NetworksKind().judge(Outcome(spec, {}, (), searches=searches))
        return [(f.verdict, f.evidence) for f in judged if f.evidence]

    wide = searched("w64", "Muon", -3, m3=0.2, m2=0.21, m1=0.2101)
    for best, expected in ((-3, "holds"), (-2, "holds"), (-1, "fails"), (4, "fails")):
        ((verdict, words),) = found([searched("w16", "Muon", best, m3=0.5)], [wide])
        assert verdict == expected
        assert "width 16 and 64" in words
    assert "costs not known" in words
    # Others are told of, and do not count.
    lost = searched("w16", "AdamW", 1), searched("w64", "AdamW", -3, m3=0.2, p1=0.9)
    same = searched("w16", "Muon", -3)
    ((verdict, words),) = found([same, lost[0]], [wide, lost[1]])
    assert verdict == "holds"
    assert "AdamW 10^0.5 and 10^-1.5 (costs 0.7)" in words
    # One of ours whose rate holds and one whose rate does not decide nothing.
    scion = searched("w16", "Scion", 1), searched("w64", "Scion", -3, m3=0.2, p1=0.9)
    ((verdict, _),) = found([same, scion[0]], [wide, scion[1]])
    assert verdict == "undecided"


def test_a_rate_that_failed_at_the_other_width_costs_more_than_is_known():
    """Searches write null for a value that is no number; cases stand in any order."""
    methods = (NetworkMethod("Muon", {"name": "Muon", "learning_rate": 1.0}),)
    cases = [
        NetworkCase(name=f"w{w}", data={}, methods=methods, network="FashionNet", set=SET, width=w)
        for w in (32, 64, 16)
    ]
    spec = Spec("e", "e", "networks", tuple(cases), {}, claims=("rates transfer across width",))
    searches = (
        searched("w32", "Muon", 1, p1=0.1), searched("w16", "Muon", -2, m2=0.3),
        searched("w64", "Muon", -3, m3=0.2, m2=None, p1=0.2),
    )  # fmt: skip
    judged = NetworksKind().judge(Outcome(spec, {}, (), searches=searches))
    (found,) = (claim for claim in judged if claim.evidence)
    assert (found.problem, found.verdict) == ("w64", "fails")
    assert found.evidence.endswith("Muon 10^-1 and 10^-1.5 (costs not known)")


def test_the_sparsest_network_counts_and_one_that_needs_more_than_all_has_lost():
    claim = "sparse sets beat pruning"
    sets = [{"name": "KSparse", "radius": 1.0, "share": 0.1}, {"name": "L1Ball", "radius": 1.0}]
    pruned = {0: probe(0.9, 0, **{"0_5": 0.9}), 1: probe(0.9, 0, **{"0_5": 0.9})}
    few = dict.fromkeys((0, 1), probe(0.9, 0, **{"0_1": 0.9}))
    never = dict.fromkeys((0, 1), probe(0.5))
    adamw = ("AdamW", (0.9, 0.9), None, pruned)
    lines = [
        ("SFW", (0.9, 0.9), held, found) for held, found in zip(sets, (never, few), strict=True)
    ]
    (found,) = judge(claim, adamw, *lines)
    assert found.verdict == "holds"
    assert found.evidence.endswith(
        "AdamW 50 %, SFW KSparse not reached with all of them in 2 of 2 runs, SFW L1Ball 10 %"
    )
    whole = dict.fromkeys((0, 1), probe(0.9))
    full = ("AdamW", (0.9, 0.9), None, whole)
    assert verdict(claim, full, lines[0]) == "fails"


def test_how_far_outside_its_ball_the_worst_seed_ended():
    case = NetworkCase(name="p", data={}, methods=(), network="FashionNet", set=SET)
    row = dict.fromkeys(EpochTrace.columns, 0.5)
    traces = {s: EpochTrace([tuple({**row, "violation": v}.values())])
              for s, v in enumerate((0.03, 0.25, 0.0))}  # fmt: skip
    ours = Curve(case, NetworkMethod("Muon", {"name": "Muon", "learning_rate": 0.1}), traces,
                 dict.fromkeys(traces, "max_epochs"))  # fmt: skip
    theirs = curve(case, "TorchMuon", (0.5, 0.5, 0.5))
    spec = Spec("e", "e", "networks", (case,), {}, claims=("decay is a ball",))
    (found,) = NetworksKind().judge(Outcome(spec, {}, (ours, theirs)))
    assert found.evidence.endswith(
        "rates found: Muon 0.1, TorchMuon 1.0; ours ended 25 % outside its ball"
    )
