"""learning_rate="auto" that is found above where it began, begins anew."""

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

    def watched(s, rate):
        begin(s, rate)
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


def looked_at(x, evaluations=2000):
    """A look at squares with their minimum at 1, from 0, after so many evaluations."""
    f = adafw.LinearModel(np.eye(40) * 6.0, np.full(40, 6.0), losses.Squared())
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


def test_a_look_that_finds_a_fall_asks_once():
    assert looked_at(0.5)[1].gradient_evaluations == 2000 + 32
    # One that finds a rise asks at every half of the way, and then all terms, unless f has doubled.
    assert looked_at(2.1)[1].gradient_evaluations == 2000 + (LOOK.halvings + 1) * 32 + 40
    assert looked_at(9.0)[1].gradient_evaluations == 2000 + (LOOK.halvings + 1) * 32


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


def test_looks_become_rare():
    _, s = looked_at(0.5)
    assert s.search["looked"] == 2032
    for evaluations, looks in ((2539, False), (2540, True), (3214, False), (3215, True)):
        s.gradient_evaluations = evaluations
        f = adafw.LinearModel(np.eye(40) * 6.0, np.full(40, 6.0), losses.Squared())
        fresh_start.overshot(f, s)
        assert (s.search["looked"] == evaluations + 32) == looks


def test_a_rate_does_not_rise_again_to_what_was_too_large():
    search = {"rate": 0.1}
    assert fresh_start.held(search, 0.9, 5) == 0.9
    fresh_start.hold(search, 0.9, 20)
    assert fresh_start.held(search, 0.9, 5) == pytest.approx(0.3)
    assert fresh_start.held(search, 0.05, 5) == 0.05
    assert fresh_start.held(search, 0.9, 20) == 0.9
    search["rate"] = 0.5
    assert fresh_start.held(search, 0.9, 5) == 0.5


@pytest.mark.parametrize(("key", "value"), [("start.x", np.zeros(3)), ("start.x", None),
                                        ("begun", -1.0), ("looked", 0.5), ("start.work", None),
                                        ("held.t", 4), ("held.rate", 0.1)])  # fmt: skip
def test_a_damaged_start_is_refused(key, value):
    f, algorithm = unscaled(), adafw.AdaCSFW()
    state = adafw.minimize(f, BALL, algorithm, max_iterations=9).state
    state.search[key] = value
    with pytest.raises(ValueError, match="state must come from a run of this problem"):
        adafw.minimize(f, BALL, algorithm, state=state, max_epochs=1)
