"""Brief coordinate descents on sparse columns: where they are taken, and what runs certify."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.steps.corrective import atoms, cycles, start
from adafw.steps.corrective.step import corrector_for

SETS = [adafw.L1Ball, adafw.UnitSimplex, adafw.Simplex]
LOSSES = {
    "logistic": losses.Logistic(), "squared": losses.Squared(),
    "squared hinge": losses.SquaredHinge(), "huber": losses.Huber(1.0),
}  # fmt: skip
#: Of so many iterations at least: curvature that comes and goes needs more models, of which one
#: iteration makes several where the loss is compiled.
LEAST = {"logistic": 3, "squared": 3, "squared hinge": 1, "huber": 1}


def slopes_of(name, z, y):
    """The loss's derivative at z."""
    if name == "logistic":
        return -y * expit(-y * z)
    if name == "squared":
        return 2 * (z - y)
    if name == "squared hinge":
        return -2 * y * np.maximum(0.0, 1 - y * z)
    return np.clip(z - y, -1.0, 1.0)


def columns(n=700, m=2000, each=8, seed=0):
    """Columns that have little to do with each other: few entries in places of their own."""
    rng = np.random.default_rng(seed)
    return sparse.csr_array(
        sparse.random(m, n, each / n, format="csr", rng=rng, data_rvs=rng.standard_normal)
    )


def targets(A, name, signed=True, noise=1.0, seed=1):
    """(y, the sum of the sizes of what has made them)."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(A.shape[1])
    truth = truth if signed else np.abs(truth)
    z = A @ truth + noise * rng.standard_normal(A.shape[0])
    return np.where(z > 0, 1.0, -1.0) if name in ("logistic", "squared hinge") else z, np.abs(
        truth
    ).sum()


def problem(name="logistic", make=adafw.L1Ball, share=0.5, A=None, **given):
    """(f, constraint): a set that `share` of the truth would fill."""
    A = columns() if A is None else A
    y, norm = targets(A, name, make is adafw.L1Ball, given.get("noise", 1.0))
    f = adafw.LinearModel(A, y, LOSSES[name], given.get("weight"))
    return (WithIntercept(f) if given.get("intercept") else f), make(share * float(norm))


@pytest.fixture
def taken(monkeypatch):
    """What each iteration was: whether brief descents, in the order of the run."""
    told: list[bool] = []

    def watched(*given):
        found = cycles.cycled(*given)
        told.append(found is not None)
        return found

    monkeypatch.setattr(atoms, "cycled", watched)
    return told


def run(f, constraint, **limits: Any):
    return adafw.minimize(f, constraint, adafw.Corrective(), progress=False, **limits)


def certified(f, constraint, r, name, A, y, weight=None):
    """The gap at r.x as a share of the value at 0, from the data alone."""
    w = np.ones(len(y)) if weight is None else weight
    b = f.best_intercept(r.x) if isinstance(f, WithIntercept) else 0.0
    slopes = w / w.sum() * slopes_of(name, A @ r.x.astype(float) + b, y)
    if isinstance(f, WithIntercept):
        assert abs(slopes.sum()) <= 1e-9 * max(1.0, np.abs(slopes).sum())
    g = A.T @ slopes
    x = r.x.astype(float)
    assert constraint.violation(r.x) <= (1e-15 if r.x.dtype == np.float64 else 1e-6)
    if not isinstance(constraint, adafw.L1Ball):
        assert x.min() >= 0
    return g @ x - g @ constraint.lmo(g)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("name", LOSSES)
def test_minima_are_certified_by_brief_descents(name, make, intercept, taken):
    A = columns(n=600)
    y, _ = targets(A, name, make is adafw.L1Ball)
    f, constraint = problem(name, make, A=A, intercept=intercept)
    most = f.value(constraint.start((600,)))
    r = run(f, constraint, gap_tolerance=1e-8 * most, max_iterations=25)
    assert r.status == "converged"
    assert certified(f, constraint, r, name, A, y) <= 1.01e-8 * most
    assert sum(taken) >= LEAST[name]
    assert (np.diff(r.trace["value"]) <= 1e-14 * most).all()


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_weights_of_rows_count(name, intercept, taken):
    A = columns(n=600)
    y, _ = targets(A, name)
    weight = np.random.default_rng(3).integers(0, 4, len(y)).astype(float)
    f, ball = problem(name, A=A, intercept=intercept, weight=weight)
    most = f.value(np.zeros(600))
    r = run(f, ball, gap_tolerance=1e-8 * most, max_iterations=60)
    assert r.status == "converged"
    assert certified(f, ball, r, name, A, y, weight) <= 1.01e-8 * most
    assert sum(taken) >= LEAST[name]


@pytest.mark.parametrize("make", SETS)
def test_single_numbers_are_descended_on(make, taken):
    A = columns(n=600).astype(np.float32)
    f, constraint = problem("logistic", make, A=A)
    r = run(f, constraint, gap_tolerance=1e-4, max_iterations=12)
    y, _ = targets(A, "logistic", make is adafw.L1Ball)
    assert r.status == "converged"
    assert r.x.dtype == np.float32
    assert "predictions" not in r.state.step
    assert certified(f, constraint, r, "logistic", A.astype(float), y) <= 2e-4
    assert sum(taken) >= 2


def test_long_indices_are_descended_on_as_short_ones(taken):
    A = columns()
    long = A.copy()
    long.indices, long.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    assert long.indices.dtype == np.int64
    found = []
    for stored in (A, long):
        f, ball = problem(A=stored)
        found.append(run(f, ball, max_iterations=5).x)
    assert sum(taken) == 10
    np.testing.assert_allclose(*found, atol=1e-12)


def test_where_they_may_pay():
    """More than 512 columns, of twice as many rows or more that are kept by columns."""
    for n, m, each, known in (
        (512, 1200, 8, False), (513, 1200, 8, True), (8192, 16_384, 8, True),
        (8193, 16_400, 8, False), (600, 1200, 44, True), (600, 1200, 60, False),
        (600, 1199, 44, False),
    ):  # fmt: skip
        A = columns(n, m, each)
        f = adafw.LinearModel(A, np.ones(m), losses.Squared())
        assert cycles.pay(f) is cycles.pay(WithIntercept(f)) is known
        assert cycles.pay(f, sampled=True) is (known or m == 1199)
        few = A[:1200].toarray()
        assert not cycles.pay(adafw.LinearModel(few, np.ones(len(few)), losses.Squared()))


def test_few_atoms_are_left_to_a_gram_matrix(taken):
    """A small ball holds few: neither the first nor a later iteration descends briefly, where the
    loss is not compiled."""
    f, ball = problem("huber", share=0.01)
    r = run(f, ball, gap_tolerance=1e-9, max_iterations=20)
    assert r.status == "converged"
    assert not any(taken)
    assert np.count_nonzero(r.x) <= cycles.FEW


@pytest.mark.parametrize("make", SETS)
def test_the_first_of_them_fills_the_set(make):
    """And with the price at which its diagonal would."""
    f, constraint = problem("squared", make)
    x = np.zeros(700) if make is not adafw.Simplex else constraint.start((700,))
    new, state = corrector_for(f, constraint).improve(f, constraint, x, f.gradient(x), 0, {})
    assert np.abs(new).sum() == pytest.approx(constraint.radius)
    assert state["bound"] == 1
    assert "gram" not in state
    assert f.value(new) < f.value(x)
    # Most of the way: a quarter of the gap at most.
    left, before = (constraint.gap(at, f.gradient(at)) for at in (new, x))
    assert left < before / 4
    np.testing.assert_allclose(state["predictions"], f.rows.dot(new), atol=1e-11)


@pytest.mark.parametrize("make", SETS)
def test_whether_the_first_leads_far(make):
    """Of a loss that is not compiled: here squares by another name."""
    squared, wide = problem("squared", make)
    f = adafw.LinearModel(columns(), squared.y, losses.Huber(1e9))
    near = corrector_for(f, wide).near
    x = np.zeros(700)
    g = f.gradient(x)
    assert near(f, wide, x, g)
    assert near(f, wide, x, g.astype(np.float32))
    assert not near(f, make(0.01 * wide.radius), x, g)  # few atoms fill it
    assert not near(f, make(1e3 * wide.radius), x, g)  # nothing does
    assert not near(f, adafw.L2Ball(1.0), x, g)
    small, _ = problem("squared", make, A=columns(n=500))
    assert not near(small, wide, np.zeros(500), small.gradient(np.zeros(500)))


@pytest.mark.parametrize("make", SETS)
def test_where_several_models_are_one_call_no_sample_is_asked(make):
    """Unless columns are labels that are written out, which are related."""
    for A, known in ((columns(), make is not adafw.Simplex), (onehot(), False)):
        f, wide = problem("squared", make, A=A)
        ball, x = make(0.01 * wide.radius), np.zeros(A.shape[1])
        g = f.gradient(x)
        assert corrector_for(f, ball).near(f, ball, x, g) is known
        _, state = corrector_for(f, ball).improve(f, ball, x, g, 0, {})
        assert ("multiplier" in state) is known


def onehot(m=3000, groups=5, each=120, seed=0):
    """Several labels a row, and nothing else: every group sums to the same column."""
    rng = np.random.default_rng(seed)
    blocks = [
        sparse.csr_array((np.ones(m), (np.arange(m), rng.integers(0, each, m))), shape=(m, each))
        for _ in range(groups)
    ]
    return sparse.csr_array(sparse.hstack(blocks).tocsr())


def copies(m=2000, seed=0):
    """Every column is there twice, but for a little."""
    A, other = columns(350, m, 8, seed), columns(350, m, 8, seed + 1)
    return sparse.csr_array(sparse.hstack([A, A + 0.05 * other]).tocsr())


def test_labels_that_are_written_out_are_known():
    """Rows of one length and entries of one value: both have to be so."""
    A = onehot(200)
    longer, other = A.tolil(), A.copy()
    longer[0, int(np.flatnonzero(A[[0]].toarray()[0] == 0)[0])] = 1.0
    other.data[7] = 2.0
    for stored, known in ((A, True), (3 * A, True), (longer.tocsr(), False), (other, False)):
        f = adafw.LinearModel(sparse.csr_array(stored), np.ones(200), losses.Squared())
        assert f.rows.labels is known


@pytest.mark.parametrize("kind", [onehot, copies])
def test_related_columns_are_left_to_a_gram_matrix(kind, taken, monkeypatch):
    A = kind()
    f, ball = problem("squared", A=A, share=1.0 if kind is onehot else 0.5)
    scale = 1e-8 * f.value(np.zeros(A.shape[1]))
    y, _ = targets(A, "squared")
    r = run(f, ball, gap_tolerance=scale, max_iterations=60)
    assert r.status == "converged"
    assert certified(f, ball, r, "squared", A, y) <= 1.01 * scale
    assert r.state.step["related"] == 1
    assert "gram" in r.state.step
    assert 1 <= sum(taken) < len(taken)
    assert not any(taken[sum(taken) :]), "once related, for good"
    monkeypatch.setattr(cycles, "LEFT", 1.0)
    monkeypatch.setattr(start, "LEFT_OF_GAP", np.inf)
    slow = run(f, ball, gap_tolerance=scale, max_iterations=60)
    assert slow.trace[-1].iteration > r.trace[-1].iteration


@pytest.mark.parametrize("gap", [1.0, 3.0])
def test_a_gap_that_does_not_halve_ends_them(gap):
    """Where the set binds, at once and for good."""
    f, ball = problem("squared")
    corrector, x = corrector_for(f, ball), np.zeros(700)
    x, state = corrector.improve(f, ball, x, f.gradient(x), 0, {})
    x, state = corrector.improve(f, ball, x, f.gradient(x), 1, state)
    assert state["bound"] == 1
    assert "related" not in state
    now = ball.gap(x, f.gradient(x))
    _, after = corrector.improve(f, ball, x, f.gradient(x), 2, {**state, "gap": gap * now})
    assert ("related" in after) is ("gram" in after) is (gap < 2)
    assert after.get("gap") == (now if gap > 2 else None)


def test_where_the_set_does_not_bind_they_lead_to_the_minimum_of_all(taken):
    A = columns()
    f, ball = problem("squared", share=1e4, A=A)
    most = f.value(np.zeros(700))
    r = run(f, ball, gap_tolerance=1e-8 * most, max_iterations=40)
    assert r.status == "converged"
    y, _ = targets(A, "squared")
    best = np.linalg.lstsq(A.toarray(), y)[0]
    np.testing.assert_allclose(r.x, best, atol=1e-6)
    assert sum(taken) >= 3
    assert r.state.step["bound"] == 0


def test_related_columns_are_left_to_a_gram_matrix_where_nothing_binds(taken):
    """By what a descent has left of the violation alone."""
    A = copies()
    f, ball = problem("squared", share=1e4, A=A)
    most = f.value(np.zeros(700))
    r = run(f, ball, gap_tolerance=1e-5 * most, max_iterations=20)
    y, _ = targets(A, "squared")
    assert r.status == "converged"
    assert certified(f, ball, r, "squared", A, y) <= 1.01e-5 * most
    assert (r.state.step["bound"], r.state.step["related"]) == (0, 1)
    assert taken[0]
    assert not taken[-1]


@pytest.mark.parametrize("seed", range(3))
def test_steps_whose_model_leads_nowhere_are_the_last_of_their_kind(seed, taken):
    """Huber's loss far out is flat: by its curvature, weights would fill any set."""
    A = columns()
    y = A @ np.abs(np.random.default_rng(1).standard_normal(700))
    y = y + y.std() * np.random.default_rng(2).standard_normal(2000)
    w = np.random.default_rng(seed).integers(0, 3, 2000).astype(float)
    w[::3] = 0
    f, ball = adafw.LinearModel(A, y, LOSSES["huber"], w), adafw.UnitSimplex(1e6)
    r = run(f, ball, gap_tolerance=1e-8 * f.value(np.zeros(700)), max_iterations=60)
    assert r.status == "converged"
    assert sum(taken) < 10
    assert r.state.step["related"] == 1


@pytest.mark.parametrize("make", [adafw.L1Ball, adafw.UnitSimplex])
def test_columns_without_curvature_do_not_fill_the_set_at_once(make):
    """A model would give them all weight: the steepest join first, as where few atoms do."""
    A = columns(n=600, m=4000, each=2)
    signs, z = np.sign(A.sum(axis=1)), np.random.default_rng(5).standard_normal(4000)
    block = sparse.csr_array(sparse.block_diag([A, abs(A)]).tocsr())
    f = adafw.LinearModel(
        block, np.concatenate([0.3 * z * signs, np.full(4000, 9.0)]), losses.Huber(1.0)
    )
    x = np.zeros(1200)
    g = f.gradient(x)
    assert (np.abs(f.hessian(x)[600:]) == 0).all()
    new, state = corrector_for(f, make(1e3)).improve(f, make(1e3), x, g, 0, {})
    assert f.value(new) < f.value(x)
    assert "gram" in state
    assert np.count_nonzero(new) <= cycles.FEW


@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("kind", ["zeros", "twice", "separable", "scales", "rare"])
def test_hard_columns_end_feasible_with_a_true_gap(kind, make):
    A = columns(n=600)
    if kind == "zeros":
        A = A @ sparse.diags_array(np.where(np.arange(600) % 3, 1.0, 0.0))
    elif kind == "twice":
        A = sparse.hstack([A[:, :300], A[:, :300]])
    elif kind == "scales":
        A = A @ sparse.diags_array(np.geomspace(1e-3, 1e3, 600))
    elif kind == "rare":
        A = sparse.vstack([A[:, np.arange(600)] * (np.arange(600) < 500), sparse.eye_array(600)])
    A = sparse.csr_array(A)
    share = 0.05 if kind == "scales" else 0.5
    noise = 0.0 if kind == "separable" else 1.0
    f, constraint = problem("logistic", make, A=A, share=share, noise=noise)
    y, _ = targets(A, "logistic", make is adafw.L1Ball, noise)
    most = f.value(constraint.start((600,)))
    r = run(f, constraint, gap_tolerance=1e-8 * most, max_iterations=60)
    assert r.status == "converged"
    assert certified(f, constraint, r, "logistic", A, y) <= 1.01e-8 * most


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("make", SETS)
@pytest.mark.parametrize("case", ["unrelated", "related", "single", "intercept"])
def test_stopping_and_going_on_changes_no_bit(case, make, saved, tmp_path):
    A = copies() if case == "related" else columns()
    A = A.astype(np.float32) if case == "single" else A

    def again(**given):
        return run(*problem("squared", make, A=A, intercept=case == "intercept"), **given)

    whole = again(max_iterations=6)
    for k in (1, 3, 5):
        state = again(max_iterations=k).state
        if saved:
            state.save(tmp_path / "s.npz")
            state = adafw.State.load(tmp_path / "s.npz")
        new = again(max_iterations=6, state=state)
        np.testing.assert_array_equal(new.x, whole.x)
        assert new.gap == whole.gap
        assert new.state.step.get("related") == whole.state.step.get("related")


@pytest.mark.parametrize(
    ("name", "value"),
    [("related", 2), ("related", -1), ("related", 0.5), ("related", "yes"), ("gap", np.inf),
     ("gap", np.nan), ("gap", "wide"), ("multiplier", -1.0), ("multiplier", np.nan)],
)  # fmt: skip
def test_numbers_that_no_run_leaves_are_refused(name, value):
    state = run(*problem(), max_iterations=2).state
    state.step[name] = value
    with pytest.raises(ValueError, match=name):
        run(*problem(), state=state, max_iterations=3)


@pytest.mark.parametrize(
    "given",
    [
        {"related": 0},
        {"gap": -1.0},
        {"gap": 1e300},
        {"sample": 1},
        {"multiplier": 1e3},
        {"multiplier": 1e-12},
    ],
)
def test_numbers_that_might_have_been_left_lead_to_the_minimum(given):
    f, ball = problem()
    state = run(f, ball, max_iterations=2).state
    state.step.update(given)
    r = run(f, ball, state=state, gap_tolerance=1e-9, max_iterations=20)
    assert r.status == "converged"
    assert "sample" not in r.state.step


def test_models_after_a_step_that_was_cut_short_know_their_own_diagonal():
    """Where a start far out is flat, the first model's says nothing of the second's."""
    A = 20 * columns()
    y, norm = targets(A, "logistic")
    f, ball = adafw.LinearModel(A, y, LOSSES["logistic"]), adafw.L1Ball(5 * float(norm))
    x = np.random.default_rng(2).standard_normal(700)
    x *= 0.5 * ball.radius / np.abs(x).sum()
    new, state = corrector_for(f, ball).improve(f, ball, x, f.gradient(x), 0, {})
    assert f.value(new) < 0.4 * f.value(x)
    assert "related" not in state
