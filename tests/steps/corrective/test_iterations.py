"""How many iterations certified minima take: each is one gradient and one linear minimisation."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import MatrixModel, WithIntercept
from adafw.rows import as_rows
from adafw.steps.corrective import atoms, curvature, cycles, joint


def text(n=700):
    """Sparse rows, more columns than rows."""
    rng = np.random.default_rng(0)
    A = np.where(rng.random((400, n)) < 0.05, rng.random((400, n)), 0.0)
    score = A @ (5 * rng.standard_normal(n)) + 0.5 * rng.standard_normal(400)
    return sparse.csr_array(A), np.where(score > 0, 1.0, -1.0)


def dense(n=40):
    """Columns in different units."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((300, n)) * np.geomspace(0.3, 3, n)
    score = A @ rng.standard_normal(n) + 2 * rng.standard_normal(300)
    return A, np.where(score > 0, 1.0, -1.0)


HULL = adafw.Hull(np.random.default_rng(3).standard_normal((80, 40)))
DATA = {"text": text(), "dense": dense()}
#: Of models without an intercept and with one.
CASES = [
    ("text", adafw.L1Ball(20.0), 3, 3),
    ("text", adafw.L1Ball(300.0), 8, 8),
    ("text", adafw.Simplex(10.0), 3, 3),
    ("text", adafw.UnitSimplex(10.0), 3, 3),
    ("text", adafw.LInfBall(0.2), 5, 4),
    ("text", adafw.L2Ball(2.0), 4, 3),
    ("text", adafw.L2Ball(100.0), 16, 17),
    ("text", adafw.GroupBall(5.0, np.arange(700) // 4), 4, 4),
    ("text", adafw.KSparse(1.0, 10), 3, 4),
    ("dense", adafw.L1Ball(20.0), 3, 3),
    ("dense", adafw.L1Ball(300.0), 4, 4),
    ("dense", adafw.Simplex(10.0), 2, 2),
    ("dense", adafw.UnitSimplex(10.0), 3, 3),
    ("dense", adafw.LInfBall(0.2), 4, 4),
    ("dense", adafw.L2Ball(2.0), 6, 6),
    ("dense", adafw.L2Ball(100.0), 19, 19),
    ("dense", adafw.GroupBall(5.0, np.arange(40) // 4), 4, 5),
    ("dense", adafw.KSparse(1.0, 10), 4, 4),
    ("dense", HULL, 6, 6),
    ("dense", adafw.NuclearBall(1.0, shape=(8, 5)), 3, 3),
]


def check(f, constraint, most):
    """Certified in so many iterations, or one or two more where rounding is another."""
    r = adafw.minimize(
        f, constraint, adafw.Corrective(), gap_tolerance=1e-8, max_iterations=most + 1 + most // 8,
        record_every=1, progress=False,
    )  # fmt: skip
    assert r.status == "converged"
    assert constraint.gap(r.x, f.gradient(r.x.copy())) <= 1.01e-8
    last = r.trace[-1]
    assert last.epoch == last.lmo_calls == last.iteration
    assert (np.diff(r.trace["value"]) <= 1e-14 * max(1.0, r.trace[0].value)).all()
    return r


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("name", "constraint", "plain", "with_intercept"), CASES, ids=str)
def test_iterations_of_linear_models(name, constraint, plain, with_intercept, intercept):
    f = adafw.LinearModel(*DATA[name], losses.Logistic())
    check(WithIntercept(f) if intercept else f, constraint, with_intercept if intercept else plain)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("constraint", "plain", "with_intercept"),
    [
        (adafw.L1Ball(20.0), 4, 5),
        (adafw.L1Ball(300.0), 12, 14),
        (adafw.Simplex(10.0), 5, 4),
        (adafw.UnitSimplex(10.0), 4, 5),
    ],
    ids=repr,
)
def test_iterations_of_descents(constraint, plain, with_intercept, intercept, monkeypatch):
    """What thousands of atoms would bring on."""
    monkeypatch.setattr(cycles, "NARROW", 700)
    monkeypatch.setattr(atoms, "MANY", 0)
    monkeypatch.setattr(atoms, "MOST_ATOMS", 0)
    f = adafw.LinearModel(*DATA["text"], losses.Logistic())
    check(WithIntercept(f) if intercept else f, constraint, with_intercept if intercept else plain)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("name", "constraint", "plain", "with_intercept"),
    [
        ("text", adafw.LInfBall(0.2), 5, 4),
        ("text", adafw.L2Ball(2.0), 4, 3),
        ("text", adafw.KSparse(1.0, 10), 3, 4),
        ("dense", adafw.LInfBall(0.2), 5, 5),
        ("dense", adafw.L2Ball(2.0), 6, 6),
        ("dense", adafw.KSparse(1.0, 10), 4, 4),
    ],
    ids=str,
)
def test_iterations_by_products_alone(
    name, constraint, plain, with_intercept, intercept, monkeypatch
):
    monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    f = adafw.LinearModel(*DATA[name], losses.Logistic())
    check(WithIntercept(f) if intercept else f, constraint, with_intercept if intercept else plain)


def several(kind):
    rng = np.random.default_rng(0)
    A = sparse.random_array((300, 80), density=0.15, rng=rng).tocsr()
    truth = np.where(rng.random((80, 4)) < 0.1, 6 * rng.normal(size=(80, 4)), 0)
    z = A @ truth + 0.5 * rng.normal(size=(300, 4))
    if kind == "softmax":
        return A, z.argmax(axis=1), losses.Softmax()
    return A, z, losses.Outputs(losses.Squared())


OUTPUTS = {kind: several(kind) for kind in ("softmax", "squares")}
ROWS = np.repeat(np.arange(80)[:, None], 4, axis=1)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(
    ("kind", "constraint", "plain", "with_intercept"),
    [
        ("softmax", adafw.L1Ball(30.0), 4, 4),
        ("softmax", adafw.L2Ball(5.0), 4, 4),
        ("softmax", adafw.LInfBall(0.3), 5, 5),
        ("softmax", adafw.GroupBall(10.0, ROWS), 5, 4),
        ("softmax", adafw.NuclearBall(5.0), 3, 3),
        ("squares", adafw.L1Ball(30.0), 3, 4),
        ("squares", adafw.L2Ball(5.0), 5, 3),
        ("squares", adafw.LInfBall(0.3), 7, 5),
        ("squares", adafw.GroupBall(10.0, ROWS), 3, 4),
        ("squares", adafw.NuclearBall(5.0), 6, 7),
    ],
    ids=str,
)
def test_iterations_of_several_outputs(kind, constraint, plain, with_intercept, intercept):
    f = MatrixModel(*OUTPUTS[kind], intercept=intercept)
    check(f, constraint, with_intercept if intercept else plain)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("kind", "most"), [("softmax", 6), ("squares", 6)])
def test_iterations_of_descents_on_several_outputs(kind, most, intercept, monkeypatch):
    monkeypatch.setattr(joint, "MOST", 0)
    check(MatrixModel(*OUTPUTS[kind], intercept=intercept), adafw.L1Ball(30.0), most)


@pytest.mark.parametrize(
    ("constraint", "most"),
    [(adafw.L1Ball(20.0), 3), (adafw.L1Ball(300.0), 5), (adafw.Simplex(10.0), 3),
     (adafw.LInfBall(0.5), 6), (adafw.L2Ball(5.0), 3)],
    ids=repr,
)  # fmt: skip
def test_iterations_with_rows_less_their_mean(constraint, most):
    A, _ = DATA["text"]
    rng = np.random.default_rng(0)
    y = A @ (5 * rng.standard_normal(700)) + rng.standard_normal(400)
    rows, _ = as_rows(A).centred()
    r = check(adafw.LinearModel(rows, y - y.mean(), losses.Squared()), constraint, most)
    plain = A.toarray() - A.toarray().mean(axis=0)
    rest = plain @ r.x - (y - y.mean())
    assert r.value == pytest.approx(np.mean(rest**2), rel=1e-10)


@pytest.mark.parametrize(
    "constraint",
    [adafw.L1Ball(20.0), adafw.Simplex(10.0), adafw.LInfBall(0.2), adafw.L2Ball(2.0)],
    ids=repr,
)
def test_iterations_in_single_precision(constraint):
    A, y = DATA["text"]
    f = adafw.LinearModel(A.astype(np.float32), y, losses.Logistic())
    r = adafw.minimize(
        f, constraint, adafw.Corrective(), gap_tolerance=1e-5, max_iterations=4, progress=False
    )
    assert r.status == "converged"
    assert r.x.dtype == np.float32
