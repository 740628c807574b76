import contextlib

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.objectives.base import Unavailable
from adafw.steps import CorrectiveStep, corrects_atoms, corrects_jointly, corrects_on
from adafw.steps.corrective import rehearsal
from adafw.steps.corrective.step import CORRECTORS, corrector_for


@pytest.mark.parametrize(
    "constraint",
    [adafw.L1Ball(1.0), adafw.L2Ball(1.0), adafw.LInfBall(1.0), adafw.Box(-1.0, 1.0),
     adafw.Simplex(1.0), adafw.UnitSimplex(1.0)],
)  # fmt: skip
def test_where_the_gradient_is_zero_nothing_is_done(constraint):
    f = adafw.LinearModel(np.eye(4), np.ones(4), losses.SquaredHinge())
    x = constraint.start((4,))
    counted = adafw.Counted(f)
    new, state = CorrectiveStep().update(counted, constraint, x, np.zeros(4), 0, {})
    assert new is x
    assert state == {}
    assert (counted.values, counted.gradients) == (0, 0)


def test_which_sets_are_known():
    atoms = [adafw.L1Ball(1.0), adafw.Simplex(1.0), adafw.UnitSimplex(1.0)]
    assert all(corrects_atoms(c) and corrects_on(c) for c in atoms)
    others = [adafw.L2Ball(1.0), adafw.LInfBall(1.0), adafw.Box(0.0, 1.0)]
    assert all(corrects_on(c) and not corrects_atoms(c) for c in others)
    bare = adafw.UserSet(lambda g: g, np.zeros(3))
    assert not corrects_on(bare)
    rows = np.repeat(np.arange(3)[:, None], 2, axis=1)
    for constraint, known in [
        *((c, True) for c in (adafw.L1Ball(1.0), *others, adafw.NuclearBall(1.0))),
        (adafw.GroupBall(1.0, rows), True), (adafw.GroupBall(1.0, rows.T), False),
        (adafw.GroupBall(1.0, [0, 1]), False), (adafw.Simplex(1.0), False), (bare, False),
    ]:  # fmt: skip
        assert corrects_jointly(constraint) == known


def test_correctors_and_what_they_are_told_of():
    """Who is rehearsed on a few rows, and on whose sets most coefficients are 0."""
    told = {type(c).__name__: (c.rehearsed, c.few) for c in CORRECTORS}
    assert told == {
        "AtomCorrector": (False, True),
        "HullCorrector": (True, False),
        "BoxCorrector": (True, False),
        "L2Corrector": (True, False),
        "GroupCorrector": (True, True),
        "NuclearCorrector": (True, False),
        "JointCorrector": (False, False),
    }


def known_problems():
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((20, 6)), np.where(rng.random(20) < 0.5, 1.0, -1.0)
    linear = adafw.LinearModel(A, y, losses.Logistic())
    joint = adafw.objectives.MatrixModel(A, rng.integers(0, 3, 20), losses.Softmax())
    other = adafw.UserSum(1, lambda x: 0.0, lambda x, batch=None: 0 * x)
    return linear, joint, other


@pytest.mark.parametrize(
    ("constraint", "of_vectors", "of_matrices"),
    [
        (adafw.L1Ball(1.0), "AtomCorrector", "JointCorrector"),
        (adafw.Simplex(1.0), "AtomCorrector", None),
        (adafw.UnitSimplex(1.0), "AtomCorrector", None),
        (adafw.Hull(np.eye(6)), "HullCorrector", None),
        (adafw.LInfBall(1.0), "BoxCorrector", "BoxCorrector"),
        (adafw.Box(-1.0, 1.0), "BoxCorrector", "BoxCorrector"),
        (adafw.L2Ball(1.0), "L2Corrector", "L2Corrector"),
        (adafw.KSparse(1.0, 2), "GroupCorrector", None),
        (adafw.GroupBall(1.0, [0, 0, 1, 1, 2, 2]), "GroupCorrector", None),
        (adafw.GroupBall(1.0, np.repeat(np.arange(6)[:, None], 3, 1)), None, "GroupCorrector"),
        (adafw.NuclearBall(1.0, shape=(2, 3)), "NuclearCorrector", None),
        (adafw.NuclearBall(1.0), None, "NuclearCorrector"),
        (adafw.LpBall(1.0, 3), None, None),
    ],
    ids=repr,
)
def test_who_corrects_what(constraint, of_vectors, of_matrices):
    linear, joint, other = known_problems()
    for f, name in ((linear, of_vectors), (joint, of_matrices), (other, None)):
        for counted in (constraint, CountedSet(constraint)):
            if name is None:
                if f is other or isinstance(constraint, adafw.LpBall):
                    with pytest.raises(TypeError, match="knows no way to correct on"):
                        corrector_for(f, counted)
                continue
            assert type(corrector_for(f, counted)).__name__ == name


def test_what_an_objective_has_to_know():
    """Second derivatives are enough on boxes and balls; elsewhere it has to predict."""
    f = adafw.objectives.Quadratic(np.zeros(6), np.ones(6), np.eye(6))
    assert f.has_hessian
    assert type(corrector_for(f, adafw.L2Ball(1.0))).__name__ == "L2Corrector"
    assert type(corrector_for(f, adafw.Box(0.0, 1.0))).__name__ == "BoxCorrector"
    for constraint in (
        adafw.L1Ball(1.0), adafw.Hull(np.eye(6)), adafw.KSparse(1.0, 2),
        adafw.GroupBall(1.0, [0, 0, 1, 1, 2, 2]), adafw.NuclearBall(1.0, shape=(2, 3)),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="knows no way to correct on"):
            corrector_for(f, constraint)


def test_what_is_asked_before_work():
    linear, _, other = known_problems()
    step, ball = CorrectiveStep(), adafw.L1Ball(1.0)
    step.check(linear, ball, adafw.gradients.Full())
    with pytest.raises(TypeError, match="needs exact gradients, got those of CSFW"):
        step.check(linear, ball, adafw.gradients.CSFW())
    with pytest.raises(TypeError, match="second derivatives"):
        step.check(other, ball, adafw.gradients.Full())
    with pytest.raises(TypeError, match="knows no way to correct on LpBall"):
        step.check(linear, adafw.LpBall(1.0, 3), adafw.gradients.Full())
    with pytest.raises(TypeError, match="knows no way to correct on LpBall"):
        step.prepare(linear, adafw.LpBall(1.0, 3), np.zeros(6), {})


def test_numbers_of_states_and_their_ranges():
    numbers = CorrectiveStep().numbers
    assert {name: kind for name, (kind, _, _) in numbers.items()} == {
        "calm": int, "bound": int, "sample": int, "related": int, "stuck": int, "alone": int,
        "word": int, "level": float, "gap": float, "norm": float, "multiplier": float,
        "reach": float, "held": float, "stretch": float, "last": float,
    }  # fmt: skip
    for name in ("calm", "bound", "sample", "related", "alone"):
        assert numbers[name][1:] == (0, 1)
    assert numbers["stuck"][1:] == (0, 2)
    assert numbers["word"][1:] == (0, 2**64)
    for name in ("norm", "multiplier", "reach", "held", "stretch"):
        assert numbers[name][1] == 0
    for name in ("level", "gap", "last"):
        assert numbers[name][1] == -numbers[name][2] < -1e300


def test_active_sets_are_those_of_vectors_on_sets_with_vertices():
    step, x = CorrectiveStep(), np.array([0.25, 0.0, 0.5])
    weights, atoms = step.active_set(CountedSet(adafw.UnitSimplex(1.0)), x, {})
    np.testing.assert_allclose(weights @ atoms, x)
    weights, atoms = step.active_set(adafw.Hull(np.eye(3)), np.array([0.5, 0.0, 0.5]), {})
    np.testing.assert_allclose(weights, [0.5, 0.5], atol=1e-12)
    assert step.active_set(adafw.L1Ball(1.0), np.zeros((2, 2)), {}) is None
    assert step.active_set(adafw.LpBall(1.0, 3), x, {}) is None


def test_sets_are_known_whatever_counts_their_calls():
    for constraint in (adafw.L1Ball(1.0), adafw.L2Ball(1.0), adafw.Hull(np.eye(3))):
        assert corrects_on(CountedSet(constraint))
        assert corrects_atoms(CountedSet(constraint)) is isinstance(constraint, adafw.L1Ball)
    assert corrects_jointly(CountedSet(adafw.NuclearBall(1.0)))
    hull = CountedSet(adafw.Hull(2 * np.eye(3)))
    weights, atoms = CorrectiveStep().active_set(hull, np.array([0.5, 0.0, 1.5]), {})
    np.testing.assert_allclose(weights, [0.25, 0.75], atol=1e-12)
    np.testing.assert_allclose(weights @ atoms, [0.5, 0.0, 1.5], atol=1e-12)


@pytest.mark.parametrize(
    "constraint",
    [adafw.L1Ball(1.0), adafw.LInfBall(1.0), adafw.L2Ball(1.0),
     adafw.Hull(np.vstack([np.eye(6), -np.eye(6)]))],
    ids=repr,
)  # fmt: skip
def test_before_the_clock_runs_states_are_recalled_and_steps_rehearsed(constraint, monkeypatch):
    monkeypatch.setattr(rehearsal, "_DONE", set())
    linear, joint, _ = known_problems()
    x = np.linspace(-0.1, 0.1, 6)
    z = linear.rows.dot(x) * (1 + 1e-12)
    CorrectiveStep().prepare(linear, constraint, x, {"predictions": z})
    np.testing.assert_array_equal(linear.predictions(x)[0], z)
    assert len(rehearsal._DONE) == (not isinstance(constraint, adafw.L1Ball))
    if isinstance(constraint, adafw.L1Ball):
        x = np.outer(x, [1.0, -2.0, 0.5])
        z = joint.rows.dot_matrix(x) * (1 + 1e-12)
        CorrectiveStep().prepare(joint, constraint, x, {"predictions": z})
        np.testing.assert_array_equal(joint.predictions(x)[0], z)


@pytest.mark.parametrize(
    "constraint",
    [adafw.L1Ball(0.7), adafw.Simplex(0.7), adafw.UnitSimplex(0.7), adafw.LInfBall(0.2),
     adafw.Hull(np.vstack([np.eye(6), -np.eye(6)])), adafw.Box(-0.1, 0.2), adafw.L2Ball(0.5),
     adafw.KSparse(0.3, 2), adafw.GroupBall(0.7, [0, 0, 1, 1, 2, 2]),
     adafw.NuclearBall(0.7, shape=(2, 3))],
    ids=repr,
)  # fmt: skip
def test_single_numbers_stay_single(constraint):
    linear, _, _ = known_problems()
    for stored in (np.asarray, sparse.csr_array):
        rows = stored(linear.rows.array.astype(np.float32))
        f = adafw.LinearModel(rows, linear.y, losses.Logistic())
        x, state = constraint.start((6,)).astype(np.float32), {}
        for t in range(3):
            x, state = CorrectiveStep().update(f, constraint, x, f.gradient(x), t, state)
            assert x.dtype == np.float32
            assert constraint.violation(x) <= 1e-6


@pytest.mark.parametrize(
    ("constraint", "loss", "dtype", "state"),
    [
        (adafw.L1Ball(2.0), losses.Huber(1e-3), np.float64, {"stretch": 40.0, "level": 0.1}),
        (adafw.L2Ball(2.0), losses.Huber(1e-3), np.float64, {"stretch": 40.0}),
        (adafw.L2Ball(2.0), losses.Logistic(), np.float32, {"last": 1.0, "stuck": 1}),
        (adafw.LInfBall(0.5), losses.Logistic(), np.float32, {"last": -1.0, "word": 7}),
        (adafw.LInfBall(0.5), losses.Logistic(), np.float64, {"word": 7, "gap": 1e-3}),
    ],
    ids=repr,
)
def test_a_step_that_fails_half_way_leaves_its_state(constraint, loss, dtype, state):
    """Rows may be on machines that are lost: a run goes on from the state before."""
    rng = np.random.default_rng(0)
    A, asked = rng.standard_normal((3000, 12)).astype(dtype), [0, 0]
    f = adafw.LinearModel(A, np.where(rng.random(3000) < 0.5, 1.0, -1.0), loss)

    def flaky(plain):
        def ask(*words, **how):
            asked[0] += 1
            if asked[0] == asked[1]:
                raise Unavailable("planted")
            return plain(*words, **how)

        return ask

    x = (0.1 * rng.standard_normal(12)).astype(dtype)
    g, step = f.gradient(x), CorrectiveStep()
    step.prepare(f, constraint, x, {})
    for name in ("dot", "combine", "curve", "gram", "at_once"):
        setattr(f.rows, name, flaky(getattr(f.rows, name)))
    step.update(f, constraint, x, g, 4, dict(state))
    times, left = asked[0], dict(state)
    assert times > 1
    for at in range(1, times):
        asked[:] = 0, at
        with contextlib.suppress(Unavailable):
            step.update(f, constraint, x, g, 4, left)
        assert left == state
