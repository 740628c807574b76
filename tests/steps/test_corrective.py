"""Corrective steps: certified minimisers on the l1 ball and the simplices, whatever the data."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import L1Ball, Simplex, State, UnitSimplex, losses, minimize
from adafw.objectives import LinearModel, WithIntercept
from adafw.steps.corrective import atoms

LOSSES = {
    "squared": losses.Squared(),
    "logistic": losses.Logistic(),
    "squared_hinge": losses.SquaredHinge(),
    "huber": losses.Huber(0.5),
    "smoothed_hinge": losses.SmoothedHinge(0.7),
    "poisson": losses.Poisson(),
}
SETS = {"l1": L1Ball, "unit_simplex": UnitSimplex, "simplex": Simplex}


def data(loss, m=80, n=30, seed=0, density=0.5):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < density)
    score = A @ rng.standard_normal(n) + rng.standard_normal(m)
    if loss.task == "classification":
        return A, np.where(score > 0, 1.0, -1.0)
    return A, rng.poisson(
        np.exp(np.clip(score / 4, -3, 2))
    ) * 1.0 if loss.least_target == 0 else score


def text(m=300, n=500, seed=0):
    """Sparse rows, more columns than rows."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((m, n)) < 0.2, rng.random((m, n)), 0.0)
    y = np.where(A @ rng.standard_normal(n) + 0.5 * rng.standard_normal(m) > 0, 1.0, -1.0)
    return sparse.csr_array(A), y


def solve(f, constraint, gap, **options):
    return minimize(
        f, constraint, adafw.Corrective(), gap_tolerance=gap, max_iterations=100, record_every=1,
        progress=False, **options,
    )  # fmt: skip


def certified(f, constraint, r):
    """The gap and the value once more, from f alone, by the formulas of the sets."""
    assert np.all(np.isfinite(r.x))
    assert constraint.violation(r.x) <= 1e-12
    g = f.gradient(r.x.copy())
    best = constraint.radius * (-np.abs(g).max() if isinstance(constraint, L1Ball) else g.min())
    if isinstance(constraint, UnitSimplex):
        best = min(best, 0.0)
    assert r.gap == pytest.approx(g @ r.x - best, rel=1e-6, abs=1e-13 * (1 + abs(best)))
    assert r.value == pytest.approx(f.value(r.x.copy()), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("set_name", SETS)
def test_every_loss_on_every_set_is_certified(set_name, name, kind):
    loss = LOSSES[name]
    A, y = data(loss)
    f = LinearModel(sparse.csr_array(A) if kind == "csr" else A, y, loss)
    constraint = SETS[set_name](3.0)
    r = solve(f, constraint, 1e-8)
    assert r.status == "converged"
    certified(f, constraint, r)
    slow = minimize(f, constraint, adafw.FW(adafw.steps.LineSearch()), max_epochs=300)
    assert r.value <= slow.value + 1e-8


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["logistic", "huber", "squared", "squared_hinge"])
def test_an_intercept_is_part_of_the_certificate(name, weighted):
    loss = LOSSES[name]
    A, y = data(loss, seed=3)
    weights = np.random.default_rng(1).random(len(y)) if weighted else None
    f = WithIntercept(LinearModel(sparse.csr_array(A + 1.0), y, loss, weights))
    r = solve(f, L1Ball(2.0), 1e-8)
    assert r.status == "converged"
    certified(f, L1Ball(2.0), r)


@pytest.fixture(params=["matrix", "descent"])
def way(request, monkeypatch):
    """Newton steps on a matrix, or coordinate descent, which thousands of atoms would bring on."""
    if request.param == "descent":
        monkeypatch.setattr(atoms, "MANY", 40)
        monkeypatch.setattr(atoms, "MOST_ATOMS", 40)
    return request.param


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("set_name", SETS)
@pytest.mark.parametrize("radius", [30.0, 300.0])
def test_many_atoms_are_certified(set_name, radius, intercept, way):
    A, y = text()
    f = LinearModel(A, y, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    r = solve(f, SETS[set_name](radius), 1e-7)
    assert r.status == "converged"
    certified(f, SETS[set_name](radius), r)
    if set_name == "l1":
        assert r.trace[-1].nonzeros > 64


@pytest.mark.parametrize("make", [lambda: text()[0], lambda: data(losses.Logistic(), 80, 30)[0]])
def test_stopping_and_going_on_changes_no_bit(make, way, tmp_path):
    A = make()
    rng = np.random.default_rng(0)
    y = np.where(rng.random(A.shape[0]) < 0.5, 1.0, -1.0)
    whole = minimize(
        LinearModel(A, y, losses.Logistic()), L1Ball(50.0), adafw.Corrective(), max_iterations=8
    )
    for t in range(1, 8):
        f = LinearModel(A, y, losses.Logistic())
        part = minimize(f, L1Ball(50.0), adafw.Corrective(), max_iterations=t)
        part.state.save(tmp_path / "state.npz")
        fresh = LinearModel(A, y, losses.Logistic())
        rest = minimize(
            fresh, L1Ball(50.0), adafw.Corrective(), max_iterations=8,
            state=State.load(tmp_path / "state.npz"),
        )  # fmt: skip
        assert np.array_equal(rest.x, whole.x)
        assert rest.value == whole.value


def adversarial():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 12))
    y = np.where(A @ rng.standard_normal(12) + rng.standard_normal(60) > 0, 1.0, -1.0)
    collinear = np.column_stack([A, A, A[:, :3] + A[:, 3:6], -A[:, 0]])
    scaled = A * np.logspace(-3, 4, 12)
    wide = rng.standard_normal((8, 400))
    yield "collinear and duplicate columns", collinear, y, 5.0
    yield "zero columns", np.column_stack([np.zeros(60), A, np.zeros(60)]), y, 5.0
    yield "more columns than rows", wide, y[:8], 5.0
    yield "unscaled", scaled, y, 5.0
    yield "inactive constraint", A, y, 1e6
    yield "tiny radius", A, y, 1e-6
    yield "optimum at a vertex", np.column_stack([10 * y + 0.1 * A[:, 0], A[:, 1:]]), y, 0.01
    yield "one sample", A[:1], y[:1], 2.0
    yield "separable", A + np.outer(y, np.ones(12)), y, 1e3
    yield "one column", A[:, :1], y, 1.0
    yield "integers far from 1", np.round(1e4 * A), y, 1e-3


CASES = {name: rest for name, *rest in adversarial()}


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared"])
def test_hard_data_end_feasible_with_a_true_gap(name, loss, kind):
    A, y, radius = CASES[name]
    f = LinearModel(sparse.csr_array(A) if kind == "csr" else A, y, LOSSES[loss])
    start = f.value(np.zeros(A.shape[1]))
    r = solve(f, L1Ball(radius), 1e-9 * max(start, 1e-3))
    certified(f, L1Ball(radius), r)
    assert all(record.violation <= 1e-12 for record in r.trace)
    assert np.all(np.diff(r.trace["value"]) <= 1e-9 * (1 + start))
    assert r.gap <= 1e-6 * max(start, 1e-3), r.status


def test_float32_data_give_float64_certificates():
    A, y = data(losses.Logistic(), seed=5)
    f = LinearModel(A.astype(np.float32), y, losses.Logistic())
    r = solve(f, L1Ball(2.0), 1e-5)
    assert r.x.dtype == np.float32
    assert r.gap <= 1e-4
    assert r.trace[-1].violation <= 1e-6


def test_few_iterations_are_enough():
    A, y = text(seed=2)
    r = solve(LinearModel(A, y, losses.Logistic()), L1Ball(30.0), 1e-8)
    assert r.trace[-1].iteration <= 20
    assert r.trace[-1].epoch == r.trace[-1].iteration  # a gradient an iteration, no more


@pytest.mark.parametrize(
    ("f", "constraint", "message"),
    [
        ("model", adafw.LpBall(1.0, 3), "knows no way to correct on LpBall"),
        ("sum", L1Ball(1.0), "needs an objective with second derivatives"),
    ],
)
def test_what_it_cannot_do_is_said_before_work(f, constraint, message):
    A, y = data(losses.Squared())
    objective = LinearModel(A, y, losses.Squared())
    if f == "sum":
        objective = adafw.UserSum(
            2, lambda x: float(x @ x), lambda x, batch=None: 2 * x, convex=True
        )
    with pytest.raises(TypeError, match=message):
        minimize(objective, constraint, adafw.Corrective(), x0=np.zeros(30))


def test_other_gradients_are_refused():
    algorithm = adafw.Algorithm(adafw.gradients.CSFW(), adafw.steps.CorrectiveStep())
    A, y = data(losses.Squared())
    with pytest.raises(TypeError, match="needs exact gradients"):
        minimize(LinearModel(A, y, losses.Squared()), L1Ball(1.0), algorithm)


def test_a_run_ends_when_the_gap_is_reached_and_not_at_the_next_record():
    f = LinearModel(*data(losses.Logistic(), 80, 30), losses.Logistic())
    often = adafw.minimize(
        f, adafw.L1Ball(3.0), adafw.Corrective(), gap_tolerance=1e-9, record_every=1
    )
    seldom = adafw.minimize(
        f, adafw.L1Ball(3.0), adafw.Corrective(), gap_tolerance=1e-9, record_every=1000,
        max_iterations=500,
    )  # fmt: skip
    assert seldom.status == often.status == "converged"
    assert seldom.state.t == often.state.t < 50
    np.testing.assert_array_equal(seldom.x, often.x)
    assert list(seldom.trace["iteration"]) == [0, seldom.state.t]
