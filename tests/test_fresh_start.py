"""learning_rate="auto" that is found above where it began, begins anew."""

from itertools import pairwise

import numpy as np
import pytest

import adafw
from adafw import fresh_start, gradients, losses, solver
from adafw.fresh_start import LOOK

BALL = adafw.LInfBall(1.0)
STEPS = {"Template 3": adafw.steps.AdaptiveStep, "projected": adafw.steps.ProjectedStep}


def unscaled(seed=0, m=300, n=40):
    """Columns of sizes from 1 to 100: the first steps go a hundred times too far."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)) * 10 ** rng.uniform(0, 2, n)
    z = A @ (rng.normal(size=n) / np.abs(A).mean(0))
    y = np.where(z + 0.5 * z.std() * rng.logistic(size=m) > 0, 1.0, -1.0)
    return adafw.LinearModel(A, y, losses.Logistic())


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["CSFW", "PAGE", "SPIDER", "ORGFW", "LSVRG", "Minibatch"])
def test_a_run_does_not_end_far_above_its_start(name, step):
    """Without fresh starts the medians are up to 50 f(x_0)."""
    algorithm = adafw.Algorithm(getattr(gradients, name)(), STEPS[step]("auto"))
    ends = []
    for seed in range(3):
        f = unscaled(seed)
        r = adafw.minimize(f, BALL, algorithm, max_epochs=30, seed=seed)
        ends.append(r.value / f.value(np.zeros(40)))
        assert (np.diff(r.trace["iteration"]) > 0).all()
    assert np.median(ends) < 1.0
    assert max(ends) < 1.5


def begun_anew(algorithm, f, epochs=30.0):
    """The states right after every fresh start of a run."""
    states, begin = [], fresh_start.begin

    def watched(s, *more):
        begin(s, *more)
        states.append(s.copy())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fresh_start, "begin", watched)
        r = adafw.minimize(f, BALL, algorithm, max_epochs=epochs)
    return states, r


def test_a_fresh_start_forgets_all_but_the_start_and_the_rate():
    f, algorithm = unscaled(), adafw.AdaGrad(gradient=gradients.CSFW())
    (first, again, *_), r = begun_anew(algorithm, f)
    assert again.t == 0
    assert [row[0] for row in again.records] == [0]
    np.testing.assert_array_equal(again.x, first.x)
    for part in ("gradient", "step"):
        for key, value in getattr(first, part).items():
            np.testing.assert_array_equal(getattr(again, part)[key], value)
    assert not np.array_equal(again.rng, first.rng), "other terms than before"
    assert again.gradient_evaluations >= f.n_terms, "what was done has been done"
    assert again.search["rate"] <= first.search["rate"] * LOOK.most
    assert r.state.search["held.t"] >= LOOK.patience


@pytest.mark.parametrize("name", ["CSFW", "PAGE"])
def test_a_run_goes_on_bit_for_bit_over_fresh_starts(name, tmp_path):
    f, algorithm = unscaled(), adafw.AdaGrad(gradient=getattr(gradients, name)())
    states, whole = begun_anew(algorithm, f, 12)
    assert len(states) > 1
    for k in range(1, 12):
        part = adafw.minimize(f, BALL, algorithm, max_epochs=k)
        part.state.save(tmp_path / "state.npz")
        state = adafw.State.load(tmp_path / "state.npz")
        rest = adafw.minimize(f, BALL, algorithm, state=state, max_epochs=12)
        assert np.array_equal(rest.x, whole.x), k
        assert rest.trace[-1].gradient_evaluations == whole.trace[-1].gradient_evaluations


def test_looks_are_counted_and_limited():
    counted = adafw.Counted(unscaled())
    algorithm = adafw.AdaGrad(gradient=gradients.PAGE())
    r = adafw.minimize(counted, BALL, algorithm, max_epochs=30)
    assert r.state.search["start.work"] > 0, "it began anew"
    measured = counted.gradients - r.trace[-1].gradient_evaluations
    assert measured % 300 == 0
    assert r.trace[-1].epoch <= 30 + 2.5  # an exact gradient, and a look


def looked_at(x, evaluations=2000, y=6.0, loss=None):
    """A look at squares with their minimum at 1, from 0, after so many evaluations."""
    f = adafw.LinearModel(np.eye(40) * 6.0, np.full(40, y), loss or losses.Squared())
    s = solver.State(x=np.zeros(40), t=50)
    fresh_start.begin(s, 1.0)
    s.x, s.gradient_evaluations = np.full(40, x), evaluations
    return fresh_start.overshot(f, s), s


def test_where_f_is_above_by_hand():
    """On squares the rise is 0 at twice the way to the minimum; halves tell how far to go."""
    for x in (0.5, 1.0, 1.4, 1.6, 1.9):
        assert looked_at(x)[0] == 0.0, x
    assert looked_at(2.1)[0] == 1 / 4
    assert looked_at(9.0)[0] == 1 / 16
    assert looked_at(-1.0)[0] == LOOK.nowhere


def test_a_new_beginning_goes_a_third_of_the_way_at_most():
    """exp(6 x) - 25 * 6 x falls beyond one half, and is far above its start at 1."""
    assert looked_at(1.0, y=25.0, loss=losses.Poisson())[0] == LOOK.most == 1 / 3


def test_a_look_that_finds_a_fall_asks_once():
    assert looked_at(0.5)[1].gradient_evaluations == 2000 + 32
    # One that finds a rise asks at every half of the way, and then all terms, unless f has doubled.
    assert looked_at(2.1)[1].gradient_evaluations == 2000 + (LOOK.halvings + 1) * 32 + 40
    assert looked_at(9.0)[1].gradient_evaluations == 2000 + (LOOK.halvings + 1) * 32


def test_where_few_terms_cannot_tell_all_are_asked():
    """One term in a hundred has risen by 10^6, the others have fallen: f has risen 2 000 times."""
    A = np.where(np.arange(4000) % 100 == 0, 1000.0, 1.0)[:, None]
    f = adafw.LinearModel(A, np.full(4000, 1.5), losses.Squared())
    s = solver.State(x=np.zeros(1), t=50)
    fresh_start.begin(s, 1.0)
    s.x, s.gradient_evaluations = np.full(1, 1.0), 8000
    found, asked = [], []
    for before in range(8000, 8040):
        again = s.copy()
        again.gradient_evaluations = before
        found.append(fresh_start.overshot(f, again) > 0)
        asked.append(again.gradient_evaluations - before)
    seen = np.array(found)
    assert 0.1 < seen.mean() < 0.9  # a sample has such terms, or it has not
    assert any(found[k] and asked[k] > 4000 for k in range(40))


def test_all_terms_must_confirm_what_a_few_say():
    """One term in a hundred falls by 300, the others rise by 1: a few terms see these alone."""
    y = np.where(np.arange(4000) % 100 == 0, 1.0, 0.0)
    A = np.where(y > 0, 1.0, 0.05)[:, None]
    f = adafw.LinearModel(A * 20, y * 20, losses.Squared())
    s = solver.State(x=np.zeros(1), t=50)
    fresh_start.begin(s, 1.0)
    s.x, s.gradient_evaluations = np.full(1, 1.0), 8000
    assert f.value(s.x) < f.value(np.zeros(1))
    asked = []
    for before in range(8000, 8020):
        again = s.copy()
        again.gradient_evaluations = before
        assert fresh_start.overshot(f, again) == 0.0
        asked.append(again.gradient_evaluations - before)
    assert max(asked) > 4000  # some looks saw a rise


def test_a_rise_is_what_groups_are_sure_of():
    rises = np.array([1.0, 2.0, 3.0, 6.0])
    error = 0.25 * rises.std(ddof=1)
    assert fresh_start._rise(rises, 0.25) == pytest.approx(3.0 - 1.5 * error)
    assert fresh_start._rise(rises, 0.0) == 3.0
    assert fresh_start._rise(np.array([1.0, -1.0, 1.0, 0.0]), 0.5) == 0.0
    assert fresh_start._rise(-rises, 0.25) == 0.0
    for bad in (np.nan, np.inf):
        assert fresh_start._rise(np.array([1.0, bad]), 0.0) == np.inf


def test_a_walk_bounds_the_rise_by_slopes_and_ends_with_their_integral():
    """f = mean (x - 1)^2 from 0: the slope at a share s of the way to x is 2 (s x - 1) x."""
    f = adafw.LinearModel(np.ones((40, 1)), np.ones(40), losses.Squared())
    terms = np.array_split(np.arange(40), 4)
    s = solver.State(x=np.array([0.8]))
    fresh_start.begin(s, 1.0)
    s.search["start.x"] = np.zeros(1)
    halves = [*(0.5**k for k in range(8)), 0.0]
    for x, count in ((0.8, 1), (1.2, 2), (1.4, 3), (1.49, 5), (1.9, 9)):
        s.x = np.array([x])
        found, slopes, rise = fresh_start._walk(f, s, terms)
        assert found == halves[:count], x
        assert rise == 0
        for k in range(1, min(count, 8) + 1):  # from above, as slopes grow
            above = sum(2 * (a * x - 1) * x * (a - b) for a, b in pairwise([*halves[:k], 0.0]))
            assert (above <= 0) == (k == count), (x, k)
        for share, slope in zip(found, slopes, strict=True):
            np.testing.assert_allclose(slope, 2 * (share * x - 1) * x)
    s.x = np.array([3.0])
    found, slopes, rise = fresh_start._walk(f, s, terms)
    assert found == [*(0.5**k for k in range(8)), 0.0]
    exact = -np.trapezoid([2 * (share * 3 - 1) * 3 for share in found], found)
    assert rise == pytest.approx(exact)
    assert rise == pytest.approx(3.0)  # f(3) - f(0) = 4 - 1: slopes of squares are straight


def test_how_many_terms_a_look_asks_and_when():
    """A hundredth of what was evaluated since the last one; none in the first four iterations."""
    f = adafw.LinearModel(np.eye(1000), np.ones(1000), losses.Squared())
    for t, work, looked, asked in (
        (3, 90_000, 0, 0), (4, 999, 0, 0), (4, 1000, 0, 32), (50, 20_000, 0, 200),
        (50, 20_000, 10_000, 100), (50, 12_499, 10_000, 0), (50, 12_500, 10_000, 32),
        (50, 900_000, 0, 1000),
    ):  # fmt: skip
        s = solver.State(x=np.zeros(1000), t=t)
        fresh_start.begin(s, 1.0)
        s.x, s.gradient_evaluations, s.search["looked"] = np.full(1000, 0.5), work, looked
        assert fresh_start.overshot(f, s) == 0.0
        assert s.gradient_evaluations == work + asked, (t, work, looked)
        assert s.search["looked"] == (work + asked if asked else looked)


def test_looks_count_from_the_last_beginning():
    f = adafw.LinearModel(np.eye(1000), np.ones(1000), losses.Squared())
    for work, asked in ((10_999, 0), (11_000, 32)):
        s = solver.State(x=np.zeros(1000), t=50, gradient_evaluations=10_000)
        fresh_start.begin(s, 1.0)
        s.x, s.gradient_evaluations = np.full(1000, 0.5), work
        fresh_start.overshot(f, s)
        assert s.gradient_evaluations == work + asked


def test_the_first_value_is_that_of_the_first_record_if_there_is_one():
    f = adafw.LinearModel(np.eye(3), np.ones(3), losses.Squared())
    s = solver.State(x=np.zeros(3))
    fresh_start.begin(s, 0.5)
    assert s.search["rate"] == s.search["begun"] == 0.5
    assert (s.search["looked"], s.search["start.work"]) == (0, 0)
    assert s.search["start.x"] is not s.x
    assert fresh_start._first_value(f, s) == 1.0
    s.records = [(0, *[0.0] * 6, 7.5, *[0.0] * 4)]
    assert fresh_start._first_value(f, s) == 7.5
    s.records = [(3, *[0.0] * 6, 7.5, *[0.0] * 4)]
    assert fresh_start._first_value(f, s) == 1.0


def test_looks_become_rare():
    _, s = looked_at(0.5)
    assert s.search["looked"] == 2032
    for evaluations, looks in ((2539, False), (2540, True), (3214, False), (3215, True)):
        s.gradient_evaluations = evaluations
        f = adafw.LinearModel(np.eye(40) * 6.0, np.full(40, 6.0), losses.Squared())
        fresh_start.overshot(f, s)
        assert (s.search["looked"] == evaluations + 32) == looks


def test_what_a_run_begins_anew_with():
    """A share of the last beginning; or a third of the rate that a look had found well."""
    search = {"begun": 9.0, "highest": 9.0}
    assert fresh_start.again(search, 0.1, remembers=True) == pytest.approx((0.9, 3.0))
    search |= {"trusted": 3.0, "highest": 90.0}
    assert fresh_start.again(search, 0.01, remembers=True) == pytest.approx((1.0, 3.0))
    assert fresh_start.again(search, 0.01, remembers=False) == pytest.approx((0.09, 3.0))
    search |= {"begun": 0.09, "highest": 3.0}  # the trusted rate itself went wrong later
    assert fresh_start.again(search, 0.01, remembers=True) == pytest.approx((1.0, 1.0))
    assert fresh_start.again(search, 0.01, remembers=False) == pytest.approx((9e-4, 0.03))


@pytest.mark.parametrize(("x", "trusted"), [(0.01, True), (-3.0, False)])
def test_a_look_that_finds_a_fall_trusts_the_rate(x, trusted):
    f = adafw.LinearModel(np.eye(40) * 6.0, np.full(40, 6.0), losses.Squared())
    s = solver.State(x=np.zeros(40), t=8)
    fresh_start.begin(s, 1.0)
    s.x, s.gradient_evaluations = np.full(40, x), 40
    s.search |= {"rate": 0.2, "highest": 5.0}
    assert (fresh_start.overshot(f, s) == 0.0) == trusted
    assert (s.search.get("trusted"), s.search["highest"]) == (
        (0.2, 0.2) if trusted else (None, 5.0)
    )


def test_a_rate_does_not_rise_again_to_what_was_too_large():
    search = {"rate": 0.1}
    assert fresh_start.held(search, 0.9, 5) == 0.9
    fresh_start.hold(search, 0.3, 20)
    assert fresh_start.held(search, 0.9, 5) == 0.3
    assert fresh_start.held(search, 0.05, 5) == 0.05
    assert fresh_start.held(search, 0.9, 20) == 0.9
    search["rate"] = 0.5
    assert fresh_start.held(search, 0.9, 5) == 0.5


@pytest.mark.parametrize(("key", "value"), [("start.x", np.zeros(3)), ("start.x", None),
                                        ("begun", -1.0), ("looked", 0.5), ("start.work", None),
                                        ("highest", None), ("starts", 2**20), ("trusted", 0.0),
                                        ("held.t", 4), ("held.rate", 0.1)])  # fmt: skip
def test_a_damaged_start_is_refused(key, value):
    f, algorithm = unscaled(), adafw.AdaCSFW()
    state = adafw.minimize(f, BALL, algorithm, max_iterations=9).state
    state.search[key] = value
    with pytest.raises(ValueError, match="state must come from a run of this problem"):
        adafw.minimize(f, BALL, algorithm, state=state, max_epochs=1)
