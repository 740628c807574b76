"""Away, pairwise and blended pairwise steps: the active set, linear convergence, laziness."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adafw
from adafw import steps
from adafw.constraints.counted import CountedSet
from adafw.steps import ActiveSet, AwayStep, Backtracking, LineSearch, ShortStep
from adafw.steps.atomic import AtomView, Move, _shift

PRESETS = {"AFW": adafw.AFW, "PFW": adafw.PFW, "BPCG": adafw.BPCG}
SETS = [
    adafw.L1Ball(2.0),
    adafw.Simplex(2.0),
    adafw.UnitSimplex(2.0),
    adafw.LInfBall(0.4),
    adafw.Box(-0.3, 0.5),
    adafw.KSparse(0.5, 3),
    adafw.L2Ball(1.0),
    adafw.GroupBall(1.0, np.repeat(np.arange(4), 3)),
    adafw.Hull(np.random.default_rng(0).normal(size=(30, 12))),
]


def distance(b):
    """||x - b||^2 as a linear model: strongly convex."""
    n = len(b)
    return adafw.LinearModel(np.sqrt(n) * np.eye(n), np.sqrt(n) * b, adafw.losses.Squared())


def check_active_set(r, constraint):
    weights, atoms = r.active_set
    assert (weights > 0).all()
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    rows = atoms.toarray() if sparse.issparse(atoms) else atoms
    assert rows.shape == (len(weights), r.x.size)
    assert np.abs(weights @ rows - r.x.reshape(-1)).max() <= 1e-14 * constraint.scale
    for row in rows:
        assert constraint.violation(row.reshape(r.x.shape)) <= 1e-12
    assert len(np.unique(rows, axis=0)) == len(rows)  # no atom twice
    assert r.trace["violation"].max() <= 1e-13


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("constraint", SETS, ids=repr)
def test_x_is_its_active_set_at_every_iteration(name, constraint, lazy, logistic):
    algorithm = PRESETS[name](lazy=lazy)
    for t in (0, 1, 2, 3, 7, 20, 60):
        r = adafw.minimize(logistic, constraint, algorithm, max_iterations=t, record_every=1)
        check_active_set(r, constraint)
        assert (np.diff(r.trace["value"]) <= 1e-15).all()


def test_matrices_too(regression):
    rng = np.random.default_rng(0)
    target = rng.random((6, 6))
    f = adafw.MatrixCompletion(*np.indices((6, 6)).reshape(2, -1), target.reshape(-1), (6, 6))
    for preset in PRESETS.values():
        r = adafw.minimize(f, adafw.Birkhoff(), preset(), max_iterations=900, gap_tolerance=1e-9)
        check_active_set(r, adafw.Birkhoff())
        assert r.status == "converged"
        assert sparse.issparse(r.active_set[1])


@pytest.mark.parametrize("name", PRESETS)
def test_atoms_are_kept_sparsely_where_they_are_sparse(name, logistic):
    for constraint, kept in ((adafw.L1Ball(2.0), True), (adafw.LInfBall(0.4), False)):
        r = adafw.minimize(logistic, constraint, PRESETS[name](), max_iterations=30)
        assert sparse.issparse(r.active_set[1]) == kept
    weights, atoms = adafw.minimize(
        logistic, adafw.L1Ball(2.0), PRESETS[name](), max_iterations=30
    ).active_set
    assert atoms.nnz <= len(weights)


def test_other_steps_have_no_active_set(logistic):
    assert (
        adafw.minimize(logistic, adafw.L1Ball(1.0), adafw.FW(), max_iterations=3).active_set is None
    )


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(
    ("rule", "constraint"),
    [
        *((LineSearch(), one) for one in (adafw.Simplex(5.0), adafw.LInfBall(0.8))),
        *((ShortStep(), one) for one in (adafw.L1Ball(6.0), adafw.KSparse(0.9, 6))),
        *((Backtracking(), one) for one in (adafw.L1Ball(6.0), adafw.LInfBall(0.8))),
    ],
    ids=repr,
)
def test_linear_convergence_on_polytopes(name, rule, constraint):
    """f strongly convex, the minimiser inside a face: Frank-Wolfe goes like 1 / t there."""
    b = np.random.default_rng(2).normal(size=15)
    f = distance(b)
    exact = f.value(constraint.project(b))
    r = adafw.minimize(f, constraint, PRESETS[name](rule), max_iterations=400, record_every=1)
    error = np.maximum(r.trace["value"] - exact, 0) / exact
    plain = adafw.minimize(f, constraint, adafw.FW(rule), max_iterations=400)
    assert error[-1] <= 1e-13
    assert plain.gap > 1e3 * max(r.gap, 1e-13)
    # A straight line on a logarithmic scale: as much in the second half of its way as in the first.
    to = [np.argmax(error <= level) for level in (1e-3, 1e-6, 1e-9)]
    assert to[2] - to[1] <= 3 * (to[1] - to[0]) + 20


@pytest.mark.parametrize("name", PRESETS)
def test_weak_separation_saves_calls_and_not_digits(name):
    """Lazy: fewer LMO calls for the same gap, the certificate being exact all the same."""
    f, constraint = distance(np.random.default_rng(1).normal(size=40)), adafw.Simplex(3.0)
    eager, lazy = (
        adafw.minimize(f, constraint, PRESETS[name](lazy=lazy), gap_tolerance=1e-8,
                       max_iterations=20_000, record_every=1)
        for lazy in (False, True)
    )  # fmt: skip
    assert eager.status == lazy.status == "converged"
    assert eager.trace[-1].lmo_calls == eager.trace[-1].iteration
    assert lazy.trace[-1].lmo_calls <= 0.7 * eager.trace[-1].lmo_calls
    check_active_set(lazy, constraint)


# What went wrong in other libraries --------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_dropped_atoms_leave_and_come_back_with_weight_only(name):
    """Peers kept dropped atoms, or put them back with weight 0, where they were the away atom
    for ever; or computed the atom after x had moved, so that x was not its combination."""
    rng = np.random.default_rng(3)
    f, constraint = distance(rng.normal(size=20)), adafw.Simplex(1.0)
    seen, dropped = set(), 0

    def watch(state, record):
        nonlocal dropped
        weights = state.step.get("weights", np.ones(1))
        assert (weights > 0).all()
        now = set(state.step.get("indices", np.zeros(1, int)).tolist())
        dropped += len(seen - now)
        seen.update(now)

    r = adafw.minimize(f, constraint, PRESETS[name](), max_iterations=200, record_every=1,
                       callbacks=watch)  # fmt: skip
    assert dropped > 0
    exact = constraint.project(f.y / np.sqrt(20))
    assert set(np.flatnonzero(exact)) == set(r.active_set[1].indices.tolist())


@pytest.mark.parametrize("name", PRESETS)
def test_a_minimiser_at_a_vertex_is_reached_and_kept(name):
    f = distance(np.array([5.0, 0.0, 0.0]))
    r = adafw.minimize(f, adafw.L1Ball(1.0), PRESETS[name](), max_iterations=50)
    assert np.array_equal(r.x, [1.0, 0.0, 0.0])
    assert np.array_equal(r.active_set[0], [1.0])
    assert r.gap == 0


@pytest.mark.parametrize("name", PRESETS)
def test_a_start_inside_the_set_is_an_atom_until_it_leaves(name, logistic):
    x0 = np.full(12, 0.05)
    r = adafw.minimize(logistic, adafw.L1Ball(1.0), PRESETS[name](), x0=x0, max_iterations=0)
    assert np.array_equal(r.active_set[0], [1.0])
    assert np.array_equal(r.active_set[1].reshape(-1), x0)
    r = adafw.minimize(logistic, adafw.L1Ball(1.0), PRESETS[name](), x0=x0, max_iterations=500)
    assert r.gap <= 1e-9


@pytest.mark.parametrize("name", PRESETS)
def test_float32(name, regression):
    A, y = regression
    f = adafw.LinearModel(A.astype(np.float32), y, adafw.losses.Squared())
    r = adafw.minimize(f, adafw.L1Ball(1.0), PRESETS[name](), max_iterations=100)
    assert r.x.dtype == np.float32
    assert r.active_set[1].dtype == np.float32
    assert r.gap <= 1e-3 * r.value


def test_what_it_needs(logistic):
    with pytest.raises(TypeError, match="step_size of AwayStep must be a rule that descends"):
        AwayStep(0.1)
    stochastic = adafw.Algorithm(adafw.gradients.CSFW(), AwayStep())
    with pytest.raises(TypeError, match="LineSearch needs exact gradients, got those of CSFW"):
        adafw.minimize(logistic, adafw.L1Ball(1.0), stochastic)


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_moves_of_weight_at_random(seed):
    """Any sequence of moves keeps weights positive of sum 1, dense and sparse storage alike."""
    rng = np.random.default_rng(seed)
    n = 8
    active = ActiveSet.of(np.eye(n)[0], {})
    for _ in range(12):
        v = np.eye(n)[rng.integers(n)] if rng.random() < 0.8 else rng.normal(size=n)
        g = rng.normal(size=n)
        known = active.find(v, active.scores(g), float(g @ v))
        k = len(active.weights) if known is None else known
        w = active.weights if known is not None else np.append(active.weights, 0.0)
        gamma = rng.choice([1.0, rng.random()])
        shift = -gamma * w
        shift[k] += gamma
        before = active.point(v)
        active = active.moved(shift, v if known is None else None)
        assert np.allclose(active.point(v), before + gamma * (v - before), atol=1e-13)
        assert (active.weights > 0).all()
        assert abs(active.weights.sum() - 1) <= 1e-15 * n
        again = ActiveSet.of(v, active.state())
        assert np.array_equal(again.point(v), active.point(v))


@pytest.mark.parametrize(("b", "weights"), [([-1.0, 2.0], [1.0]), ([0.02, 0.98], [0.02, 0.98])])
def test_an_away_step_goes_as_far_as_the_weight_it_takes(b, weights):
    """x moves by up to w / (1 - w) of its distance from the atom, which then is gone."""
    f, x = distance(np.array(b)), np.array([0.3, 0.7])
    state = ActiveSet(np.array([0.3, 0.7]), np.eye(2)).state()
    step = AwayStep(step_size=LineSearch())
    x, state = step.update(f, adafw.Simplex(1.0), x, f.gradient(x), 1, {**step.init(x), **state})
    np.testing.assert_allclose(x, np.clip(b, 0, 1), atol=1e-15)
    np.testing.assert_allclose(state["weights"], weights, atol=1e-15)


@pytest.mark.parametrize("make", [steps.AwayStep, steps.PairwiseStep, steps.BlendedPairwiseStep])
@pytest.mark.parametrize("lazy", [False, True])
def test_the_promised_gap_never_rises(make, lazy):
    """phi is the least gap that was seen: what a lazy step measures itself by."""
    rng = np.random.default_rng(0)
    f = adafw.LinearModel(rng.normal(size=(30, 6)), rng.normal(size=30), adafw.losses.Squared())
    step, ball, x = make(lazy=lazy), adafw.L1Ball(1.0), np.zeros(6)
    x[0], state, promised = 1.0, {}, []
    for t in range(25):
        x, state = step.update(f, ball, x, f.gradient(x), t, state)
        promised.append(state["phi"])
    assert (np.diff(promised) <= 0).all()
    x, state = step.update(
        f, ball, x, f.gradient(x) + rng.normal(size=6), 25, {**state, "phi": 0.0}
    )
    assert state["phi"] == 0.0


SOME = ActiveSet(np.array([0.5, 0.3, 0.2]), np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]]))


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        # g = (4, 2, 1): at x 2.8; away from the first 1.2, on to the last 1.8, between them 3.
        (steps.AwayStep, (None, 2, 1.8)),
        (steps.PairwiseStep, (0, 2, 3.0)),
        (steps.BlendedPairwiseStep, (0, 2, 3.0)),
    ],
)
def test_moves_between_atoms_at_hand(step, expected):
    view = AtomView(2.8, np.array([4.0, 2.0, 1.0]), 2, 0)
    move = step().local(view)
    assert move[:2] == expected[:2]
    assert move.slope == pytest.approx(expected[2])


@pytest.mark.parametrize("slope", [1.0, 1.5, 2.0, 3.0, 3.5])
def test_moves_towards_a_vertex(slope):
    """The steeper of two, the vertex where they are equal; pairwise steps always go there."""
    view = AtomView(2.5, np.array([4.0, 2.0, 1.0]), 2, 0)
    away, local = Move(0, None, 1.5), Move(0, 2, 3.0)
    found = steps.AwayStep().towards(view, 3, slope, local)
    assert found == (Move(None, 3, slope) if slope >= 1.5 else away)
    assert steps.PairwiseStep().towards(view, 3, slope, local) == Move(0, 3, slope + (1.5))
    found = steps.BlendedPairwiseStep().towards(view, 3, slope, local)
    assert found == (local if slope <= 3.0 else Move(None, 3, slope))


def test_away_where_that_is_steeper():
    view = AtomView(1.5, np.array([4.0, 2.0, 1.0]), 2, 0)
    assert steps.AwayStep().local(view) == Move(0, None, 2.5)
    even = AtomView(2.5, np.array([4.0, 2.0, 1.0]), 2, 0)
    assert steps.AwayStep().local(even) == Move(None, 2, 1.5)


@pytest.mark.parametrize("share", [0.25, 1.0])
@pytest.mark.parametrize("new", [False, True])
def test_weights_follow_directions(share, new):
    """x + share * most * d is what the moved weights make; a source used up has weight 0."""
    x, v = SOME.point(np.zeros(3)), np.array([0.5, 0.5, 0.0]) if new else None
    target = 3 if new else 1
    for move in (Move(None, target, 1.0), Move(0, target, 1.0), Move(0, None, 1.0)):
        if new and move.target is None:
            continue
        d, most = steps.AwayStep()._direction(SOME, move, x, v)
        shift = _shift(SOME, move, share, most, v)
        assert shift.sum() == pytest.approx(0, abs=1e-15)
        moved = SOME.moved(shift, v)
        np.testing.assert_allclose(moved.point(x), x + share * most * d, atol=1e-15)
        if move.source is not None and share == 1:
            assert shift[0] == -0.5
        if move.source is None and share == 1:
            assert moved.weights.tolist() == [1.0]
        assert most == {None: 1.0, 0: 0.5 if move.target is not None else 1.0}[move.source]


def test_away_from_an_atom_of_little_weight():
    """w / (1 - w): a quarter of weight is a third of the way on."""
    active = ActiveSet(np.array([0.25, 0.75]), np.eye(2))
    x = active.point(np.zeros(2))
    d, most = steps.AwayStep()._direction(active, Move(0, None, 1.0), x, None)
    assert most == pytest.approx(1 / 3)
    np.testing.assert_allclose(d, x - [1.0, 0.0])
    np.testing.assert_allclose(x + most * d, [0, 1.0], atol=1e-15)


@pytest.mark.parametrize("make", [steps.AwayStep, steps.PairwiseStep, steps.BlendedPairwiseStep])
def test_lazy_steps_ask_where_atoms_promise_less_than_half_of_the_gap(make):
    f, ball = distance(np.array([0.2, 0.5, 0.1])), adafw.Simplex(1.0)
    x = SOME.point(np.zeros(3))
    g = f.gradient(x)
    step = make(lazy=True)
    scores = g @ np.eye(3)
    slope = step.local(AtomView(float(g @ x), scores, scores.argmin(), scores.argmax())).slope
    for phi, asked in ((1.99 * slope, 0), (2.01 * slope, 1)):
        counted = CountedSet(ball)
        state = {**SOME.state(), "phi": phi}
        _, after = step.update(f, counted, x, g, 1, state)
        assert counted.lmo_calls == asked
        assert after["phi"] == (min(phi, ball.gap(x, g)) if asked else phi)
    counted = CountedSet(ball)
    make().update(f, counted, x, g, 1, {**SOME.state(), "phi": 1e-9})
    assert counted.lmo_calls == 1
    _, after = step.update(f, CountedSet(ball), x, g, 1, SOME.state())  # a first step asks
    assert after["phi"] == pytest.approx(ball.gap(x, g))


def test_without_a_step_no_atom_joins():
    class Still(steps.StepRule):
        def __call__(self, f, x, g, d, t, state):
            return 0.0, {"calls": state.get("calls", 0) + 1}

    f, x = distance(np.array([5.0, 0.0, 0.0])), np.array([0.0, 1.0, 0.0])
    step = AwayStep(Still())
    new, state = step.update(f, adafw.Simplex(1.0), x, f.gradient(x), 0, {})
    assert new is x
    assert state["weights"].tolist() == [1.0]
    _, state = step.update(f, adafw.Simplex(1.0), x, f.gradient(x), 1, state)
    assert state["calls"] == 2  # what the rule remembers is kept beside the atoms
    assert step.update(f, adafw.Simplex(1.0), x, np.zeros(3), 1, state) == (x, state)


@pytest.mark.parametrize("make", [steps.AwayStep, steps.PairwiseStep, steps.BlendedPairwiseStep])
def test_a_gap_below_zero_promises_nothing(make):
    """It is rounding, or a vertex that is not the best: lazy steps go by 0 from then on."""
    poor = adafw.UserSet(lambda g: np.array([1.0, 0.0, 0.0]), np.zeros(3))
    x, g = SOME.point(np.zeros(3)), np.array([4.0, 2.0, 1.0])
    _, state = make(lazy=True).update(distance(x - g / 2), poor, x, g, 1, SOME.state())
    assert state["phi"] == 0.0


def test_rules_are_told_what_they_left_alone():
    class Told(steps.StepRule):
        def __call__(self, f, x, g, d, t, state):
            told.append(state)
            return 0.5, {"last": t}

    told, f, x = [], distance(np.array([5.0, 0.0, -1.0])), np.array([0.0, 1.0, 0.0])
    state = {}
    for t in range(3):
        x, state = steps.PairwiseStep(Told()).update(
            f, adafw.L1Ball(1.0), x, f.gradient(x), t, state
        )
        assert state["last"] == t
    assert told == [{}, {"last": 0}, {"last": 1}]


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7, 0.9, 1 / 3])
def test_a_source_that_is_used_up_is_so_to_the_last_bit(weight):
    active = ActiveSet(np.array([weight, 1 - weight]), np.eye(2))
    x = active.point(np.zeros(2))
    for target in (1, None):
        move = Move(0, target, 1.0)
        _, most = steps.AwayStep()._direction(active, move, x, None)
        assert _shift(active, move, 1.0, most, None)[0] == -weight
        assert active.moved(_shift(active, move, 1.0, most, None)).weights.tolist() == [1.0]
