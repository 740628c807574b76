"""Windows of estimates without a table: what they promise, meet, cost, and what becomes of a rate.

Every expected number is computed here from gradients, by the rule of docs/learning_rate.md.
"""

import numpy as np
import pytest

import adafw
from adafw import gradients, losses, solver
from adafw.measured_rate import Care, Measured, Met, Verdict, begin_stage, forget_stage, left_of

M, N = 400, 6
BEGIN, END = np.zeros(N), np.full(N, 0.3)


@pytest.fixture(scope="module")
def f():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(M, N)) + 0.5
    return adafw.LinearModel(A, A @ np.full(N, 0.4) + rng.normal(size=M), losses.Squared())


def groups(t, size=32):
    terms = np.random.default_rng([9001, t]).choice(M, size, replace=False)
    return np.array_split(terms, 4)


def window(t0=10, t=14, x=END, work=5000, evaluated=100, **search):
    """(begin, end) of one from BEGIN to x, of so many evaluations."""
    base = solver.State(x=BEGIN, t=t0, gradient_evaluations=work - evaluated)
    return base, solver.State(x=x, t=t, gradient_evaluations=work, search=search)


def met(f, d, begin, parts, slopes):
    promises = np.array([-(slope @ d) for slope in slopes])
    bends = np.array([(f.gradient(begin + d, k) - f.gradient(begin, k)) @ d for k in parts])
    return promises, bends


def moved(promises, bends, size=32, target=1.0, power=0.5):
    """(trust, factor) of a window by the means and the spread of its groups."""
    signs = target * promises - bends
    error = np.sqrt((1 - size / M) / 4) * signs.std(ddof=1)
    trust = max(0.0, 1 - (1.5 * error / abs(signs.mean())) ** 2)
    return trust, np.clip((target * promises.mean() / bends.mean()) ** power, 1 / 3, 3)


@pytest.mark.parametrize("known", ["nothing", "here", "elsewhere"])
def test_a_promise_leans_on_the_last_exact_gradient(f, known):
    """Of which a group tells only how its own has changed since; that costs it one more."""
    z = {"nothing": None, "here": BEGIN, "elsewhere": np.linspace(-0.2, 0.1, N)}[known]
    end = 0.2 * END
    base, s = window(x=end)
    if z is not None:
        s.search |= {"exact.x": z, "exact.gradient": f.gradient(z), "exact.t": 3}
    parts, d = groups(10), end - BEGIN
    slopes = [f.gradient(BEGIN, k) for k in parts]
    if z is not None:
        slopes = [f.gradient(z) + f.gradient(BEGIN, k) - f.gradient(z, k) for k in parts]
    promises, bends = met(f, d, BEGIN, parts, slopes)
    trust, factor = moved(promises, bends)
    assert 0.5 < trust < 0.9999
    verdict = Measured(gradients.Minibatch(), Care()).judge(f, s, base, 0.7)
    assert verdict == (pytest.approx(0.7 * factor**trust, rel=1e-9), False)
    cost = 32 * (3 if known == "elsewhere" else 2)
    assert s.gradient_evaluations == 5000 + cost
    assert s.search["judged"] == cost
    assert s.search["gained"] == pytest.approx((promises - bends / 2).mean(), rel=1e-9)
    if z is not None:
        assert s.search["exact.t"] == 3, "none was bought"


@pytest.mark.parametrize("gradient", [gradients.SVRF(), gradients.LSVRG()])
def test_a_snapshot_is_an_exact_gradient_at_hand(f, gradient):
    z, end = np.linspace(-0.2, 0.1, N), 0.2 * END
    base, s = window(x=end)
    s.gradient = {"snapshot": z, "snapshot_gradient": f.gradient(z), "exact": 0}
    parts = groups(10)
    slopes = [f.gradient(z) + f.gradient(BEGIN, k) - f.gradient(z, k) for k in parts]
    trust, factor = moved(*met(f, end, BEGIN, parts, slopes))
    verdict = Measured(gradient, Care()).judge(f, s, base, 0.7)
    assert verdict == (pytest.approx(0.7 * factor**trust, rel=1e-9), False)
    assert s.gradient_evaluations == 5000 + 3 * 32
    assert s.search["exact.t"] == s.t
    assert s.search["exact.x"] is not z
    np.testing.assert_array_equal(s.search["exact.x"], z)
    assert "stage.t" not in s.search


def test_a_long_window_is_judged_by_more_terms(f):
    base, s = window(work=90_000, evaluated=1000)
    Measured(gradients.Minibatch(), Care()).judge(f, s, base, 0.7)
    assert s.search["judged"] == 2 * 50
    base, s = window(work=90_000, evaluated=80_000, judged=7)
    Measured(gradients.Minibatch(), Care()).judge(f, s, base, 0.7)
    assert s.search["judged"] == 7 + 2 * M, "all there are"


def test_an_exact_gradient_is_bought_where_groups_disagree(f):
    """Within a quarter of all work."""
    x = np.linalg.solve(*_normal(f))
    d = -1e-2 * np.ones(N)
    parts = groups(10)
    trust, factor = moved(*met(f, d, x, parts, [f.gradient(x, k) for k in parts]))
    assert trust < 0.5
    for before, bought in ((0, True), (786, True), (787, False)):  # 786 + 64 + 400 = 5000 / 4
        base, s = window(x=x + d, judged=before)
        base.x = x
        verdict = Measured(gradients.Minibatch(), Care()).judge(f, s, base, 0.7)
        assert verdict.rate == pytest.approx(0.7 * factor**trust, rel=1e-9)
        cost = 64 + (M if bought else 0)
        assert s.gradient_evaluations == 5000 + cost
        assert s.search["judged"] == before + cost
        assert ("exact.x" in s.search) == bought
        if bought:
            assert s.search["exact.x"] is not s.x
            np.testing.assert_array_equal(s.search["exact.x"], s.x)
            np.testing.assert_array_equal(s.search["exact.gradient"], f.gradient(s.x))
            assert s.search["exact.t"] == s.t


def _normal(f):
    """H and b of f = x'Hx/2 - b'x + c."""
    b = -f.gradient(np.zeros(N))
    return np.stack([f.gradient(e) + b for e in np.eye(N)]), b


def test_windows_have_a_length(f):
    """A tenth of the iterations before, four at least, or half of five epochs."""
    rule = Measured(gradients.Minibatch(), Care())
    for t0, t, evaluated, judged in (
        (10, 13, 100, False), (10, 14, 100, True), (200, 219, 100, False), (200, 220, 100, True),
        (10, 11, 999, False), (10, 11, 1000, True),
    ):  # fmt: skip
        base, s = window(t0, t, work=9000, evaluated=evaluated)
        assert (rule.judge(f, s, base, 1.0) is not None) == judged
        assert (s.gradient_evaluations > 9000) == judged


def test_what_is_undone_has_been_worked(f):
    """f rises surely, by more than a tenth of what was gained, or nothing was gained at all."""
    far = np.full(N, 9.0)
    for gained, rate in ((0.0, 0.07), (1.0, 0.7 / 3)):
        base, s = window(x=far, judged=11, gained=gained)
        assert Measured(gradients.Minibatch(), Care()).judge(f, s, base, 0.7) == (
            pytest.approx(rate), True)  # fmt: skip
        assert (s.gradient_evaluations, s.search["judged"]) == (5064, 75)
        assert s.search["gained"] == gained
        ceiling = 0.7 / 3 / np.sqrt(10) if gained else None
        assert s.search.get("ceiling") == (ceiling and pytest.approx(ceiling))
    parts = groups(10)
    promises, bends = met(f, far, BEGIN, parts, [f.gradient(BEGIN, k) for k in parts])
    falls = promises - bends / 2
    edge = (-falls.mean() - 1.5 * np.sqrt((1 - 32 / M) / 4) * falls.std(ddof=1)) / 0.1
    for gained, undone in ((0.999 * edge, True), (1.001 * edge, False)):
        base, s = window(x=far, gained=gained)
        verdict = Measured(gradients.Minibatch(), Care()).judge(f, s, base, 0.7)
        assert verdict.undone == undone
        assert s.search["gained"] == gained, "a rise is no negative gain"


def test_a_rise_that_no_bend_has_made_is_not_the_fault_of_the_rate(f):
    uphill = -0.02 * END
    parts = groups(10)
    promises, bends = met(f, uphill, BEGIN, parts, [f.gradient(BEGIN, k) for k in parts])
    assert promises.max() < 0 < bends.min() < -promises.max()
    base, s = window(x=uphill)
    verdict = Measured(gradients.Minibatch(), Care()).judge(f, s, base, 0.7)
    assert verdict == (pytest.approx(0.7), False)
    assert s.search["gained"] == 0


def test_a_ceiling_holds_what_rises_and_lowers_nothing(f):
    for rate, allowed in ((0.1, 0.2), (0.3, 0.3)):
        base, s = window(x=1e-3 * END, t=16, ceiling=0.05)
        verdict = Measured(gradients.Minibatch(), Care()).judge(f, s, base, rate)
        assert verdict == Verdict(pytest.approx(allowed))  # three times as much is wanted


def test_the_error_of_a_mean_of_groups():
    parts = [np.arange(5), np.arange(5, 10)]
    assert left_of(parts, 40) == pytest.approx(np.sqrt(0.75 / 2))
    assert left_of(parts, 10) == 0
    assert left_of(parts[:1], 40) == 0
    values = np.array([1.0, 3.0])
    assert Met(values, values, 0.5).error(values) == pytest.approx(0.5 * np.sqrt(2))
    assert Met(values[:1], values[:1]).error(values[:1]) == 0


def test_groups_that_are_exactly_on_target_are_no_doubt():
    rule = Measured(gradients.Minibatch(), Care())
    assert rule._factor(Met(np.ones(4), np.ones(4), 0.5), 1.0, 0.5) == (1.0, 1.0)
    split = Met(np.array([1.0, 3.0]), np.array([3.0, 1.0]), 0.5)  # on target on average only
    assert rule._factor(split, 1.0, 0.5) == (0.0, 1.0)


def test_what_is_a_disaster_and_what_has_settled():
    one = np.ones(4)
    assert not Met(one, 1e4 * one).disaster
    assert Met(one, 1.01e4 * one).disaster
    assert not Met(np.array([1.0, -1, 1, -1]), 1e4 * one).disaster, "the spread counts"
    assert Met(one, np.nan * one).disaster
    assert not Met(1e-9 * one, 1e-3 * one, rounding=1e-2).disaster
    assert Met(1e-3 * one, -1e-2 * one, rounding=1e-2).settled
    assert not Met(-2e-2 * one, 1e-3 * one, rounding=1e-2).settled
    assert not Met(1e-3 * one, -2e-2 * one, rounding=1e-2).settled


# Stages of recursive estimates ------------------------------------------------------------------

STAGED = Measured(gradients.PAGE(30), Care())


def stage(f, t0, t, x, begun, seen=None, exact=None, work=5000, evaluated=100, **search):
    """(begin of the window, end) in a stage that began at BEGIN in iteration `begun`."""
    base = solver.State(x=BEGIN, t=t0, gradient_evaluations=work - evaluated)
    at = BEGIN if exact is None else exact
    point = {"exact.x": at, "exact.gradient": f.gradient(at), "exact.t": seen or begun}
    s = solver.State(x=x, t=t, gradient_evaluations=work, gradient={"exact": 0}, search=search)
    s.search |= {"stage.x": BEGIN, "stage.gradient": f.gradient(BEGIN), "stage.t": begun} | point
    return base, s


def whole(f, end):
    """Promise and bend of the way from BEGIN by exact gradients."""
    d = end - BEGIN
    return -(f.gradient(BEGIN) @ d), (f.gradient(end) - f.gradient(BEGIN)) @ d


def test_a_stage_that_has_ended_moves_the_rate_for_free(f):
    base, s = stage(f, 50, 52, END, 40, seen=51, exact=0.9 * END, gained=2.0, stood=0.1)
    promise, bend = whole(f, 0.9 * END)
    factor = np.clip((0.8 * promise / bend) ** 0.7, 1 / 3, 3)
    assert 1 / 3 < factor < 3
    verdict = STAGED.judge(f, s, base, 0.7)
    assert verdict == (pytest.approx(0.7 * factor, rel=1e-9), False)
    assert s.gradient_evaluations == 5000
    assert s.search["gained"] == pytest.approx(2 + promise - bend / 2)
    assert (s.search["stood"], s.search["stage.t"]) == (0.0, 51)
    np.testing.assert_array_equal(s.search["stage.x"], 0.9 * END)
    np.testing.assert_array_equal(s.search["stage.gradient"], f.gradient(0.9 * END))


def test_when_a_stage_is_looked_at(f):
    """At its end, a tenth of the iterations long at least; every epoch; the first at doubles."""
    for t0, t, begun, seen, evaluated, looked in (
        (45, 60, 40, 43, 100, False), (45, 60, 40, 45, 100, True), (45, 60, 40, 40, 399, False),
        (45, 60, 40, 40, 400, True), (5, 8, 1, 1, 100, False), (5, 9, 1, 1, 100, True),
        (1, 2, 1, 1, 100, False), (1, 3, 1, 1, 100, True), (1, 9, 2, 2, 100, False),
    ):  # fmt: skip
        base, s = stage(f, t0, t, END, begun, seen, evaluated=evaluated)
        assert (STAGED.judge(f, s, base, 0.7) is not None) == looked, (t0, t, begun, seen)


def sampled(f, t0, x):
    """Promise and bends of the way from BEGIN to x, by 32 terms in four groups."""
    d = x - BEGIN
    bends = [(f.gradient(x, k) - f.gradient(BEGIN, k)) @ d for k in groups(t0)]
    return -(f.gradient(BEGIN) @ d), np.array(bends)


def test_within_a_stage_terms_tell_how_it_stands(f):
    """Only the first may raise the rate there, and only as far as the groups agree."""
    short = 0.1 * END
    promise, bends = sampled(f, 5, short)
    trust, factor = moved(np.full(4, promise), bends, target=0.8, power=0.7)
    assert factor > 1
    for t0, t, begun, rate in ((5, 9, 1, 0.7 * factor**trust), (45, 60, 40, 0.7)):
        promise, bends = sampled(f, t0, short)
        base, s = stage(f, t0, t, short, begun, evaluated=400)
        assert STAGED.judge(f, s, base, 0.7) == (pytest.approx(rate, rel=1e-9), False)
        assert s.gradient_evaluations == 5000 + 64
        assert s.search["stood"] == pytest.approx(promise - bends.mean() / 2)
        assert s.search["stage.t"] == begun
        assert "gained" not in s.search
    far = 1.2 * END  # beyond the minimum, but not above the start
    base, s = stage(f, 5, 9, far, 1, evaluated=400)
    assert STAGED.judge(f, s, base, 0.7) == (0.7, False)


def test_a_stage_that_comes_to_grief_is_undone_once(f):
    promise, bends = sampled(f, 45, 4 * END)
    fall = promise - bends.mean() / 2
    assert fall < 0
    deviation = bends.std(ddof=1)
    sure = 1.5 * np.sqrt((1 - 32 / M) / 4) * deviation / 2
    edge = (-fall - sure) / 0.1  # of all that was gained
    for gained, undone in ((0.99 * edge, True), (1.01 * edge, False)):
        base, s = stage(f, 45, 60, 4 * END, 40, evaluated=400, gained=gained)
        verdict = STAGED.judge(f, s, base, 0.6)
        assert verdict == (pytest.approx(0.2 if undone else 0.6), undone)
        assert s.search.get("undone") == (45 if undone else None)
        assert s.search.get("ceiling") == (pytest.approx(0.2 / np.sqrt(45)) if undone else None)
        assert s.gradient_evaluations == 5064
    # What it stood at when it was last looked at is lost as well, and had been gained.
    promise, bends = sampled(f, 45, END)
    fall, sure = promise - bends.mean() / 2, sure * bends.std(ddof=1) / deviation
    for stood, undone in ((0.99, False), (1.01, True)):
        stood *= (fall + sure) / 0.9
        base, s = stage(f, 45, 60, END, 40, evaluated=400, stood=stood)
        assert STAGED.judge(f, s, base, 0.6).undone == undone
    base, s = stage(f, 45, 60, 4 * END, 40, evaluated=400, undone=45)
    assert not STAGED.judge(f, s, base, 0.6).undone, "it may have come before the window"
    base, s = stage(f, 5, 9, 8 * END, 1, evaluated=400)
    assert STAGED.judge(f, s, base, 0.6) == (pytest.approx(0.2), True)
    assert "ceiling" not in s.search, "the first stage says little about later ones"


def test_exact_gradients_are_noted_in_passing(f):
    """Each once, as copies; the first begins a stage."""
    s = solver.State(x=END.copy(), t=7, gradient={"exact": 1, "last_x": BEGIN.copy(),
                                                  "gradient": f.gradient(BEGIN)})  # fmt: skip
    asked = []
    looking = STAGED.watched(s, lambda: bool(asked.append(0)))
    assert looking() is False
    assert asked == [0]
    assert (s.search["exact.t"], s.search["stage.t"]) == (7, 7)
    np.testing.assert_array_equal(s.search["exact.gradient"], f.gradient(BEGIN))
    s.gradient["last_x"] += 1
    assert not s.search["exact.x"].any()
    s.t = 9
    looking()
    assert (s.search["exact.t"], s.search["stage.t"]) == (9, 7)
    s.t = 11
    looking()
    assert s.search["exact.t"] == 9, "the same one again"
    plain = Measured(gradients.SVRF(), Care())
    stop = asked.clear
    assert plain.watched(s, stop) is stop


def test_stages_begin_and_are_forgotten():
    search = {f"{p}.{k}": (p, k) for p in ("exact", "stage") for k in ("x", "gradient", "t")}
    begun = dict(search)
    begin_stage(begun)
    assert {k: begun[f"stage.{k}"] for k in ("x", "gradient", "t")} == {
        k: ("exact", k) for k in ("x", "gradient", "t")
    }
    forget_stage(search)
    assert {k: search[f"exact.{k}"] for k in ("x", "gradient", "t")} == {
        k: ("stage", k) for k in ("x", "gradient", "t")
    }
    other = {"exact.t": 4}
    forget_stage(other)
    assert other == {"exact.t": 4}
