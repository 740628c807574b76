import numpy as np
import pytest

from adafw.experiments.convex import ConvexKind
from adafw.experiments.convex.case import LinearCase, LinearMethod
from adafw.experiments.convex.claims import CLAIMS
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Spec
from adafw.recorder import Trace

FW = {"name": "CSFW"}
GRAD = {"name": "AdaGrad", "learning_rate": 1.0}
SAME = {"name": "AdaGrad", "learning_rate": 1.0, "gradient": "CSFW"}
DIRECT = {"gradient": "CSFW", "step": "PreconditionedStep"}


def ada(k=2):
    return {"name": "AdaCSFW", "learning_rate": 1.0, "inner_steps": k}


def trace(gap, value):
    rows = []
    for cpu, share in ((0.0, 1.0), (1.0, 0.5), (2.0, 0.0)):
        row = dict.fromkeys(Trace.columns, 0.0)
        row |= {"cpu_seconds": cpu, "gap": gap + share, "value": value + share, "lower_bound": 0.0}
        rows.append(tuple(row.values()))
    return Trace(rows)


CASE = LinearCase(
    name="p", data={}, methods=(), loss="Logistic", set={"name": "L1Ball", "radius": 1.0}
)


def experiment(claim, **budget):
    return Spec("e", "e", "convex", (CASE,), budget, claims=(claim,))


def judge(outcome):
    ConvexKind().check(outcome.spec, "here")
    (found,) = ConvexKind().judge(outcome)
    return found


def outcome(claim, *entries, audit=None, statuses="max_epochs"):
    """Entries are (table, final gaps over seeds[, final values])."""
    made = []
    for number, (table, gaps, *values) in enumerate(entries):
        finals = values[0] if values else gaps
        runs = {i: trace(g, v) for i, (g, v) in enumerate(zip(gaps, finals, strict=True))}
        method = LinearMethod(f"{table.get('name', 'direct')} {number}", table)
        made.append(Curve(CASE, method, runs, dict.fromkeys(runs, statuses)))
    extras = {} if audit is None else {"audit": {"p": {"step": audit}}}
    return judge(Outcome(experiment(claim), {}, tuple(made), extras))


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([1, 2, 3], [5, 6, 7], "holds"),
        ([5, 6, 7], [1, 2, 3], "fails"),
        ([1, 5, 9], [2, 6, 8], "undecided"),
        ([1, 1, 1], [1, 1, 1], "undecided"),
    ],
)
@pytest.mark.parametrize(
    ("claim", "table"),
    [
        ("best projection-free by gap", FW),
        ("faster than projected", GRAD),
        ("faster than projected with the same estimator", SAME),
        ("better than the alternatives", DIRECT),
    ],
)
def test_verdicts(claim, table, ours, theirs, verdict):
    found = outcome(claim, (ada(), ours), (table, theirs))
    assert found.verdict == verdict
    assert "AdaCSFW 0" in found.evidence


def test_a_single_seed_decides_nothing():
    claim = "best projection-free by gap"
    assert outcome(claim, (ada(), [1]), (FW, [9])).verdict == "undecided"


def test_the_best_rival_decides():
    claim = "best projection-free by gap"
    assert outcome(claim, (ada(), [2, 2]), (FW, [9, 9]), (FW, [1, 1])).verdict == "fails"
    assert outcome(claim, (ada(), [2, 2]), (FW, [9, 9]), (FW, [1, 3])).verdict == "undecided"
    assert outcome(claim, (ada(), [9, 9]), (ada(), [1, 1]), (FW, [3, 3])).verdict == "holds"


def test_objective_and_gap_are_judged_apart():
    lines = ((ada(), [1, 1], [7, 7]), (FW, [2, 2], [6, 6]))
    assert outcome("best projection-free by gap", *lines).verdict == "holds"
    assert outcome("best projection-free by objective", *lines).verdict == "fails"


def test_estimators_are_not_mixed_up():
    lines = ((ada(), [2, 2]), (SAME, [1, 1]), (GRAD, [3, 3]))
    assert outcome("faster than projected", *lines).verdict == "holds"
    assert outcome("faster than projected with the same estimator", *lines).verdict == "fails"


def test_times_in_the_evidence():
    found = outcome("faster than projected", (ada(), [0, 0]), (GRAD, [0.5, 0.5]))
    assert "final gap 1 CPU s instead of 2" in found.evidence
    found = outcome("faster than projected", (ada(), [2, 2]), (GRAD, [1, 1]))
    assert "never reached" in found.evidence


def test_nothing_to_compare_is_not_tested():
    for claim in CLAIMS:
        assert outcome(claim, (GRAD, [1, 1])).verdict == "not tested"


def test_bounds():
    lines = ((ada(), [1, 1]),)
    name = "bounds not active"
    none = {"inner": 100, "exceeded": 0, "cut": 0}
    some = {"inner": 100, "exceeded": 3, "cut": 1}
    assert outcome(name, *lines, audit=none).verdict == "holds"
    found = outcome(name, *lines, audit=some)
    assert found.verdict == "fails"
    assert "3 (3.00%)" in found.evidence


def test_clipping():
    assert outcome("no clipping needed", (ada(), [1, 1])).verdict == "holds"
    assert outcome("no clipping needed", (ada(), [1, 1]), statuses="diverged").verdict == "fails"


def test_inner_steps():
    lines = [(ada(k), [g, g]) for k, g in ((1, 9), (5, 2), (20, 4))]
    assert outcome("K about 5 is good", *lines).verdict == "holds"
    assert outcome("large K is slower", *lines).verdict == "holds"
    lines = [(ada(k), [g, g]) for k, g in ((1, 9), (5, 8), (20, 1))]
    assert outcome("K about 5 is good", *lines).verdict == "fails"
    assert outcome("large K is slower", *lines).verdict == "fails"


def test_unknown_claim():
    with pytest.raises(ValueError, match=r"claims must be among .*, got 'it flies'"):
        outcome("it flies", (ada(), [1, 1]))


def test_a_diverged_rival_loses():
    found = outcome("best projection-free by gap", (ada(), [1, 1]), (FW, [2, 2]))
    assert found.verdict == "holds"
    runs = {0: trace(0.0, 0.0), 1: trace(0.0, 0.0)}
    diverged = Curve(CASE, LinearMethod("x", FW), runs, dict.fromkeys(runs, "diverged"))
    assert np.isinf(diverged.final("gap")).all()


def falling(power):
    """Gaps t^-power in epochs 1 to 1000, scaled to meet those of t^-1 in epoch 10."""
    rows = []
    for epoch in np.geomspace(1, 1000, 61):
        row = dict.fromkeys(Trace.columns, 0.0)
        row |= {"epoch": epoch, "gap": 10 ** (power - 1) * epoch**-power, "value": 1.0}
        rows.append(tuple(row.values()))
    return Trace(rows)


@pytest.mark.parametrize(
    ("power", "words"),
    [
        (0.5, "ahead in epochs 1 to 10 of 1e+03"),
        (2.0, "ahead in epochs 10 to 1e+03 of 1e+03"),
        (1.0, "ahead in every epoch from 1 to 1e+03"),
    ],
)
def test_evidence_tells_when_the_adaptive_method_leads(power, words):
    curves = tuple(
        Curve(CASE, LinearMethod(name, table), {0: falling(p)}, {0: "max_epochs"})
        for name, table, p in (("ours", ada(), power), ("theirs", FW, 1.0))
    )
    found = judge(Outcome(experiment("best projection-free by gap"), {}, curves))
    assert found.evidence.endswith(words)


def test_a_tolerance_that_ends_runs_early_goes_with_no_claims():
    spec = experiment("no clipping needed", max_epochs=1, gap_tolerance=1e-3)
    with pytest.raises(ValueError, match="cannot go with a gap_tolerance"):
        ConvexKind().check(spec, "here")


def test_only_the_longest_leads_are_listed():
    rng = np.random.default_rng(0)

    def wiggling():
        rows = []
        for epoch in np.geomspace(1, 1000, 61):
            row = dict.fromkeys(Trace.columns, 0.0)
            row |= {"epoch": epoch, "gap": 10 ** rng.uniform(-0.1, 0.1) / epoch, "value": 1.0}
            rows.append(tuple(row.values()))
        return Trace(rows)

    curves = tuple(
        Curve(CASE, LinearMethod(name, table), {0: wiggling()}, {0: "max_epochs"})
        for name, table in (("ours", ada()), ("theirs", FW))
    )
    found = judge(Outcome(experiment("best projection-free by gap"), {}, curves))
    spans, rest = found.evidence.split("ahead in epochs ")[1].split(" and ")
    assert spans.count(" to ") == 3
    starts = [float(span.split(" to ")[0]) for span in spans.split(", ")]
    assert starts == sorted(starts)
    assert "shorter spans of 1e+03" in rest


CORRECTIVE = {"name": "AdaCSFW", "learning_rate": 1.0, "inner": "corrective"}


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([1, 2, 3], [5, 6, 7], "holds"),
        ([1, 5, 9], [2, 6, 8], "holds"),  # nothing that the seeds show
        ([5, 6, 7], [1, 2, 3], "fails"),
        ([-1 + 1e-13, 1e-13, 1e-13], [0, 0, 0], "holds"),  # rounding errors of the first gap, 1
    ],
)
def test_corrective_steps_lose_nothing_to_projection(ours, theirs, verdict):
    claim = "corrective inner steps lose nothing"
    found = outcome(claim, (CORRECTIVE, ours), (SAME, theirs), (ada(), [0, 0, 0]))
    assert found.verdict == verdict
    assert found.evidence.startswith("final gap AdaCSFW 0 ")
    assert "against AdaGrad 1 " in found.evidence
    # One with another estimator is no mate, nor is a plain adaptive method corrective.
    assert outcome(claim, (CORRECTIVE, ours), (GRAD, theirs)).verdict == "not tested"
    assert outcome(claim, (ada(), ours), (SAME, theirs)).verdict == "not tested"


def test_rounding_errors_are_told():
    claim = "corrective inner steps lose nothing"
    tiny = outcome(claim, (CORRECTIVE, [1e-13, 1e-13]), (SAME, [0, 0]))
    assert "rounding errors of the first gap" in tiny.evidence
    small = outcome(claim, (CORRECTIVE, [1e-11, 1e-11]), (SAME, [0, 0]))
    assert (small.verdict, "rounding" in small.evidence) == ("fails", False)


def test_a_few_inner_steps_are_ten_at_most():
    claim = "better than the alternatives"
    lines = ((ada(10), [3, 3]), (ada(11), [1, 1]), (DIRECT, [2, 2]))
    found = outcome(claim, *lines)
    assert found.verdict == "fails"
    assert "direct 2 2.00e+00" in found.evidence
    assert outcome(claim, (ada(11), [1, 1]), (DIRECT, [2, 2])).verdict == "not tested"


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ({1: [4, 4], 5: [3, 3], 20: [1, 1]}, "holds"),  # three times the best is good
        ({1: [4, 4], 5: [3.1, 3.1], 20: [1, 1]}, "fails"),
        ({1: [4, 4], 5: [1, 7, 8], 20: [0, 2, 8]}, "undecided"),
        ({1: [4, 4], 5: [0, 0], 20: [0, 0]}, "holds"),
    ],
)
def test_five_inner_steps_are_good_within_a_factor_of_three(gaps, verdict):
    found = outcome("K about 5 is good", *((ada(k), g) for k, g in gaps.items()))
    assert found.verdict == verdict
    assert "K=1: 4.0e+00" in found.evidence


def test_claims_about_inner_steps_need_three_of_them():
    lines = [(ada(k), [g, g]) for k, g in ((1, 9), (5, 2))]
    assert outcome("K about 5 is good", *lines).verdict == "not tested"
    assert outcome("large K is slower", *lines).verdict == "not tested"
    lines = [(ada(k), [g, g]) for k, g in ((1, 9), (4, 2), (20, 4))]
    assert outcome("K about 5 is good", *lines).verdict == "not tested"


def test_every_run_must_end_below_its_first_gap():
    row = dict.fromkeys(Trace.columns, 0.0)
    flat = Trace([tuple({**row, "gap": 1.0}.values())] * 2)
    for last, verdict in ((trace(0.5, 0.5), "holds"), (flat, "fails")):
        runs = {0: trace(0.0, 0.0), 1: last}
        ours = Curve(CASE, LinearMethod("x", ada()), runs, dict.fromkeys(runs, "max_epochs"))
        found = judge(Outcome(experiment("no clipping needed"), {}, (ours,)))
        assert found.verdict == verdict
        fell = 2 if verdict == "holds" else 1
        assert f"{fell} of 2 runs ended below their first gap, 0 diverged" in found.evidence


def test_objectives_are_told_above_the_best_bound():
    lines = ((ada(), [1, 1], [7, 7]), (FW, [2, 2], [8, 8]))
    found = outcome("best projection-free by objective", *lines)
    assert found.evidence.startswith(
        "objective above the lower bound AdaCSFW 0 7.00e+00 [7.00e+00, 7.00e+00] against CSFW 1 8"
    )


def run(gaps, epochs=None, bound=0.0):
    """A trace of these gaps in epochs 1, 2, ... and as many CPU seconds."""
    rows = []
    for k, gap in enumerate(gaps):
        epoch = k + 1.0 if epochs is None else epochs[k]
        row = dict.fromkeys(Trace.columns, 0.0)
        row |= {"epoch": epoch, "cpu_seconds": epoch, "gap": gap, "value": gap + bound,
                "lower_bound": bound}  # fmt: skip
        rows.append(tuple(row.values()))
    return Trace(rows)


def judged(claim, *entries):
    """Entries are (label, table, one trace for each seed)."""
    made = []
    for label, table, *traces in entries:
        runs = dict(enumerate(traces))
        statuses = dict.fromkeys(runs, "max_epochs")
        made.append(Curve(CASE, LinearMethod(label, table), runs, statuses, f"{label}'s"))
    return judge(Outcome(experiment(claim), {}, tuple(made)))


def test_a_single_seed_of_one_side_decides_nothing():
    claim = "best projection-free by gap"
    assert outcome(claim, (ada(), [1, 1]), (FW, [9])).verdict == "undecided"
    assert outcome(claim, (ada(), [9]), (FW, [1, 1])).verdict == "undecided"


def test_rounding_errors_are_those_of_the_first_gap():
    claim = "corrective inner steps lose nothing"
    theirs = ("theirs", SAME, *[run([1e3, 1e-12])] * 2)
    tiny = judged(claim, ("ours", CORRECTIVE, *[run([1e3, 1e-10])] * 2), theirs)
    assert (tiny.verdict, "rounding errors" in tiny.evidence) == ("holds", True)
    large = judged(claim, ("ours", CORRECTIVE, *[run([1e3, 1e-8])] * 2), theirs)
    assert (large.verdict, "rounding errors" in large.evidence) == ("fails", False)


def test_bounds_are_active_where_steps_exceed_them_cut_or_not():
    found = outcome(
        "bounds not active", (ada(), [1, 1]), audit={"inner": 8, "exceeded": 4, "cut": 0}
    )
    assert found.verdict == "fails"
    assert found.evidence == (
        "of 8 inner steps 4 (50.00%) would have exceeded 2/(t+2), 0 (0.00%) were cut at 1"
    )


def test_a_gap_that_was_higher_in_between_has_not_fallen():
    found = judged("no clipping needed", ("ours", ada(), run([3, 1]), run([1, 3, 2])))
    assert found.verdict == "fails"
    assert "1 of 2 runs ended below their first gap" in found.evidence


def test_numbers_of_inner_steps_are_told_in_their_order():
    lines = [(ada(k), [g, g]) for k, g in ((20, 4), (1, 9), (5, 2))]
    found = outcome("K about 5 is good", *lines)
    assert found.evidence.endswith("(K=1: 9.0e+00, K=5: 2.0e+00, K=20: 4.0e+00)")
    found = outcome("large K is slower", *lines)
    assert "K = 20 is ahead in no CPU second from" in found.evidence
    assert "best smaller K: AdaCSFW 2 2.00e+00" in found.evidence


def test_alternatives_are_met_where_they_ended():
    """Ours goes on to epoch 8; the other one ends in epoch 2, where ours has a gap of 4."""
    ours, theirs = run([8, 4, 1], [1, 2, 8]), run([8, 6], [1, 2])
    found = judged(
        "better than the alternatives",
        ("ours", ada(), ours, run([8, 4, 3], [1, 2, 8]), ours), ("direct", DIRECT, *[theirs] * 3),
    )  # fmt: skip
    assert found.verdict == "holds"
    assert "(ours's code)" in found.evidence
    assert found.evidence.endswith("(direct's code) after 2 epochs, when that of ours is 4.00e+00")


def test_objectives_are_told_above_a_bound_that_is_not_zero():
    found = judged(
        "best projection-free by objective",
        ("ours", ada(), *[run([3, 1], bound=5.0)] * 2),
        ("theirs", FW, *[run([3, 2], bound=5.0)] * 2),
    )  # fmt: skip
    assert found.evidence == (
        "objective above the lower bound ours 1.00e+00 [1.00e+00, 1.00e+00] against "
        "theirs 2.00e+00 [2.00e+00, 2.00e+00]; ahead in every epoch from 1 to 2"
    )


def test_times_are_to_a_gap_that_a_run_of_theirs_ended_with():
    """Of two runs to the larger gap: 4, which both have reached."""
    found = judged(
        "faster than projected",
        ("ours", ada(), *[run([8, 4, 2, 1])] * 2), ("theirs", GRAD, run([8, 8, 4]), run([8, 8, 2])),
    )  # fmt: skip
    assert found.evidence.endswith("to theirs's final gap 2 CPU s instead of 2.8")


def test_ahead_is_ahead_of_every_rival():
    lines = [("ours", ada(), run([8, 4])), ("low", FW, run([8, 2])), ("high", FW, run([9, 6]))]
    claim = "best projection-free by gap"
    assert judged(claim, *lines[:2]).evidence.endswith("ahead in epochs 1 to 1 of 2")
    assert judged(claim, *lines).evidence.endswith("ahead in epochs 1 to 1 of 2")
    assert judged(claim, lines[0], lines[2]).evidence.endswith("ahead in every epoch from 1 to 2")
    nothing = ("ours", ada(), run([0, 0]))
    assert judged(claim, nothing, *lines[1:]).evidence.endswith("epochs not comparable")


def test_the_three_longest_leads_are_listed_and_the_others_counted():
    epochs = np.geomspace(1, 1000, 61)
    leads = [*range(10), *range(20, 23), *range(30, 46), *range(50, 53), *range(55, 61)]
    factors = np.where(np.isin(np.arange(61), leads), 0.5, 2.0)
    found = judged(
        "best projection-free by gap",
        ("ours", ada(), run(factors / epochs, epochs)), ("theirs", FW, run(1 / epochs, epochs)),
    )  # fmt: skip
    assert found.evidence.endswith(
        "ahead in epochs 1 to 3, 30 to 1.9e+02, 5.4e+02 to 1e+03 and 2 shorter spans of 1e+03"
    )
