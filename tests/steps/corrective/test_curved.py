"""Second-order steps on boxes and the l2 ball: certified optima, whatever the data are."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize

import adafw
from adafw import losses
from adafw.gradients import Full
from adafw.objectives import WithIntercept
from adafw.rows import as_rows
from adafw.rows.csr import CSRRows
from adafw.rows.dense import DenseRows
from adafw.solver import State
from adafw.steps.corrective import CorrectiveStep, curvature

from .problems import models

CORRECTIVE = adafw.Algorithm(Full(), CorrectiveStep())
SETS = {
    "linf": adafw.LInfBall,
    "box": lambda r: adafw.Box(-r / 2, r),
    "l2": adafw.L2Ball,
    "group": lambda r: adafw.GroupBall(r, np.arange(12) // 3),
    "k-sparse": lambda r: adafw.KSparse(r, 3),
}
WIDE = ["linf", "box", "l2", "k-sparse"]  # of any number of coordinates


def solved(f, constraint, enough=0.0, **limits):
    """A run that ends where the gap is so small a share of the value."""
    limits = {"max_iterations": 100, **limits}
    stop = [lambda state, record: bool(record.gap <= enough * abs(record.value))]
    return adafw.minimize(f, constraint, CORRECTIVE, callbacks=stop, **limits)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("products_only", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("name", "f"), list(models()), ids=lambda part: part if isinstance(part, str) else ""
)
def test_hostile_problems_end_feasible_and_certified(kind, products_only, name, f, monkeypatch):
    if products_only:
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    # Slopes of 1e4 that cancel leave fewer digits.
    digits = 1e-5 if "unscaled" in name else 1e-7
    if kind == "k-sparse" and "huber" in name:
        digits = 1e-4  # almost no residual has curvature: faces change one coordinate a time
    for radius in (1e-2, 1.0) if "unscaled" in name else (1e-6, 1.0, 1e3):
        if products_only and radius != 1.0:
            continue
        r = solved(f, SETS[kind](radius), enough=digits / 2)
        first = r.trace[0].value
        assert r.trace["violation"].max() <= 1e-12
        assert r.best.gap <= digits * max(abs(r.value), 1e-6 * abs(first)), (radius, r.best.gap)
        assert r.value <= first


@pytest.mark.parametrize("rows", ["dense", "csr", "centred"])
@pytest.mark.parametrize("intercept", [False, True])
def test_minimum_of_a_box_is_that_of_another_solver(rows, intercept):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((80, 230)) * (rng.random((80, 230)) < 0.2)
    y = np.where(rng.random(80) < 0.4, 1.0, -1.0)
    data = A if rows == "dense" else sparse.csr_matrix(A)
    data = as_rows(data).centred()[0] if rows == "centred" else data
    f = adafw.LinearModel(data, y, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    r = solved(f, adafw.LInfBall(0.1))
    other = scipy_minimize(
        f.value_and_gradient, np.zeros(230), jac=True, method="L-BFGS-B",
        bounds=[(-0.1, 0.1)] * 230,
        options={"ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    assert r.value <= other.fun + 1e-12
    assert r.best.gap <= 1e-10


@pytest.mark.parametrize("intercept", [False, True])
def test_l2_ball_is_the_penalised_problem_at_its_multiplier(intercept):
    """grad f(x) = -s x on the sphere: x minimises f + s ||x||^2 / 2 too."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((300, 220))
    f = adafw.LinearModel(A, np.where(rng.random(300) < 0.4, 1.0, -1.0), losses.Logistic())
    f = WithIntercept(f) if intercept else f
    x = solved(f, adafw.L2Ball(0.5)).x
    g = f.gradient(x)
    s = np.linalg.norm(g) / 0.5
    assert np.linalg.norm(x) == pytest.approx(0.5, rel=1e-12)
    np.testing.assert_allclose(g, -s * x, atol=1e-7 * np.linalg.norm(g))


@pytest.mark.parametrize("kind", WIDE)
def test_an_optimum_inside_is_that_of_the_whole_space(kind):
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((60, 210)), rng.standard_normal(60)
    f = adafw.LinearModel(A, b, losses.Squared())
    assert solved(f, SETS[kind](100.0)).value <= 1e-18


@pytest.mark.parametrize("kind", WIDE)
def test_float32_data_end_at_float32_accuracy(kind):
    rng = np.random.default_rng(6)
    A = rng.standard_normal((200, 220)).astype(np.float32)
    y = np.where(rng.random(200) < 0.4, 1, -1).astype(np.float32)
    r = solved(adafw.LinearModel(A, y, losses.Logistic()), SETS[kind](0.05))
    assert r.x.dtype == np.float32
    assert r.best.gap <= 1e-5 * r.value
    assert r.trace["violation"].max() <= 1e-6


@pytest.mark.parametrize("kind", WIDE)
def test_resumed_runs_have_the_same_bits(kind):
    rng = np.random.default_rng(7)
    A = sparse.random(150, 260, 0.1, random_state=7, format="csr")
    f = adafw.LinearModel(A, np.where(rng.random(150) < 0.4, 1.0, -1.0), losses.Logistic())
    constraint = SETS[kind](1.0)
    half = solved(f, constraint, max_iterations=2)
    whole, again = (
        solved(f, constraint, max_iterations=4),
        adafw.minimize(f, constraint, CORRECTIVE, state=half.state, max_iterations=4),
    )
    np.testing.assert_array_equal(whole.x, again.x)


def test_no_curvature_where_it_starts():
    """Every residual is on the straight part of Huber's loss: the Hessian is 0."""
    A = np.random.default_rng(8).standard_normal((40, 5))
    f = adafw.LinearModel(A, np.full(40, 1e3), losses.Huber(1.0))
    for kind in WIDE:
        r = solved(f, SETS[kind](10.0))
        assert r.gap <= 1e-9 * r.value


@pytest.mark.parametrize("kind", ["weights", "intercept", "both"])
def test_a_restricted_problem_keeps_weights_and_intercept(kind):
    """More coordinates than a working set holds at first, so that it is one of some columns."""
    rng = np.random.default_rng(3)
    A = sparse.random(60, 400, 0.05, random_state=3, format="csr")
    weight = None if kind == "intercept" else rng.integers(0, 5, 60).astype(float)
    f = adafw.LinearModel(A, np.where(rng.random(60) < 0.2, 1.0, -1.0), losses.Logistic(), weight)
    if kind != "weights":
        f = WithIntercept(f)
    for constraint in (adafw.GroupBall(1.0, np.arange(400) // 2), adafw.KSparse(0.5, 4)):
        r = solved(f, constraint, enough=1e-6)
        assert r.best.gap <= 1e-6 * r.value


@pytest.mark.parametrize("radius", [1.0, 20.0])
def test_working_sets_of_groups_and_of_coordinates_are_certified(radius):
    """Far fewer coordinates than the data have are ever looked at by a Newton step."""
    rng = np.random.default_rng(9)
    A = sparse.random(300, 2000, 0.02, random_state=9, format="csr")
    f = adafw.LinearModel(A, np.where(rng.random(300) < 0.4, 1.0, -1.0), losses.Logistic())
    for constraint in (adafw.GroupBall(radius, np.arange(2000) // 5), adafw.KSparse(radius, 10)):
        # Values are equal to the last digit from the eighth iteration on, gaps end near 1e-8.
        r = solved(f, constraint, enough=3e-8)
        assert r.best.gap <= 3e-8 * r.value
        assert r.trace["violation"].max() <= 1e-12


@pytest.mark.parametrize(
    ("constraint", "intercept"),
    [
        (adafw.LInfBall(0.02), True),
        (adafw.LInfBall(0.02), False),
        (adafw.L2Ball(1.0), True),
        (adafw.L2Ball(1.0), False),
    ],
)
def test_dense_data_whose_rough_products_lose_digits(constraint, intercept):
    """Columns far from 0: their spread is what single precision cannot see."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((4100, 256)) + 1e4 * (np.arange(256) % 7 == 0)
    y = np.sign(A[:, 1] + rng.standard_normal(4100))
    f = adafw.LinearModel(A, y, losses.Logistic())
    assert f.rows.rough
    f = WithIntercept(f) if intercept else f
    found = adafw.minimize(f, constraint, adafw.Corrective(), gap_tolerance=1e-9, progress=False)
    assert found.status == "converged"
    assert constraint.gap(found.x, f.gradient(found.x)) < 1.1e-9


@pytest.mark.parametrize("kind", ["linf", "l2"])
def test_dense_data_with_factors_resume_bit_for_bit_and_take_few_products(kind, monkeypatch):
    rng = np.random.default_rng(6)
    A = rng.standard_normal((4400, 256))
    A += rng.standard_normal((4400, 20)) @ rng.standard_normal((20, 256)) / 3
    y = np.where(A @ rng.standard_normal(256) / 16 + rng.logistic(size=4400) > 0, 1.0, -1.0)
    constraint, products = SETS[kind](0.05 if kind == "linf" else 0.5), []
    for path in ("box", "l2_ball"):  # steps by a matrix of some rows make none
        monkeypatch.setattr(f"adafw.steps.corrective.{path}.followed", lambda *given: None)
    plain = DenseRows.rough_curve

    def counted(rows, *given):
        products.append(0)
        return plain(rows, *given)

    monkeypatch.setattr(DenseRows, "rough_curve", counted)
    whole = solved(adafw.LinearModel(A, y, losses.Logistic()), constraint, max_iterations=6)
    assert whole.gap <= 1e-7 * whole.value
    assert len(products) <= 45  # 90 and more with the diagonal alone
    f = adafw.LinearModel(A, y, losses.Logistic())
    state = solved(f, constraint, max_iterations=3).state
    fresh = adafw.LinearModel(A, y, losses.Logistic())  # which knows nothing of the run so far
    again = adafw.minimize(fresh, constraint, CORRECTIVE, state=state, max_iterations=6)
    np.testing.assert_array_equal(whole.x, again.x)


@pytest.mark.parametrize("kind", ["linf", "l2"])
def test_few_sparse_columns_keep_their_matrix_and_resume_bit_for_bit(kind, monkeypatch):
    """Rows whose bend has hardly changed stay in it: it is made as a whole once, then added to."""
    rng = np.random.default_rng(3)
    A = sparse.csr_array((rng.random((900, 40)) < 0.2) * rng.standard_normal((900, 40)))
    y = np.where(A @ rng.standard_normal(40) + rng.logistic(size=900) > 0, 1.0, -1.0)
    constraint, made, added = SETS[kind](0.5 if kind == "linf" else 3.0), [], []
    plain, more = CSRRows.gram, CSRRows.add_gram
    monkeypatch.setattr(CSRRows, "gram", lambda *given: made.append(0) or plain(*given))
    monkeypatch.setattr(CSRRows, "add_gram", lambda *given: added.append(given[1]) or more(*given))
    f = adafw.LinearModel(A, y, losses.Logistic())
    adafw.minimize(f, constraint, CORRECTIVE, max_iterations=0)  # a rehearsal, the first time
    made.clear()
    added.clear()
    whole = solved(f, constraint, enough=1e-9)
    assert whole.gap <= 1e-9 * whole.value
    assert len(made) == 1
    assert len(added) > 2
    assert all(0 < np.count_nonzero(change) < 800 for change in added[2:])
    bends = whole.state.step["bends"]
    np.testing.assert_allclose(
        whole.state.step["gram"], A.T @ (bends[:, None] * A.toarray()), atol=1e-14
    )
    half = State.from_arrays(solved(f, constraint, max_iterations=3).state.to_arrays())
    fresh = adafw.LinearModel(A, y, losses.Logistic())  # which knows nothing of the run so far
    last = whole.trace[-1].iteration
    again = adafw.minimize(fresh, constraint, CORRECTIVE, state=half, max_iterations=last)
    np.testing.assert_array_equal(whole.x, again.x)


def test_a_start_on_the_sphere_is_left_where_the_minimum_lies_inside():
    """The multiplier is negative there: a step along the sphere would never come in."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((60, 6))
    y = A @ rng.standard_normal(6) / 3
    f, x0 = adafw.LinearModel(A, y, losses.Squared()), np.linalg.lstsq(A, y, rcond=None)[0]
    x0 = x0 * (5.0 / np.linalg.norm(x0))  # straight out, so that nothing pulls along the sphere
    found = adafw.minimize(
        f, adafw.L2Ball(5.0), CORRECTIVE, x0=x0, gap_tolerance=1e-9, max_iterations=8
    )
    assert found.status == "converged"


@pytest.mark.parametrize("kind", ["matrix", "products"])
def test_bounds_that_leave_no_room_hold_their_coordinates(kind, monkeypatch):
    """As if they were not there: the others are those of the smaller problem."""
    if kind == "products":
        monkeypatch.setattr(curvature, "forms_matrix", lambda rows: False)
    rng = np.random.default_rng(2)
    A, fixed = rng.standard_normal((80, 8)), np.arange(8) % 2 == 0
    y = A @ rng.standard_normal(8) + rng.standard_normal(80)
    lower, upper = np.where(fixed, 0.25, -0.5), np.where(fixed, 0.25, 0.5)
    f = adafw.LinearModel(A, y, losses.Squared())
    found = adafw.minimize(
        f, adafw.Box(lower, upper), CORRECTIVE, gap_tolerance=1e-10, max_iterations=8
    )
    assert found.status == "converged"
    assert (found.x[fixed] == 0.25).all()
    rest = adafw.LinearModel(A[:, ~fixed], y - A[:, fixed].sum(axis=1) / 4, losses.Squared())
    small = adafw.minimize(rest, adafw.Box(-0.5, 0.5), CORRECTIVE, gap_tolerance=1e-10)
    np.testing.assert_allclose(found.x[~fixed], small.x, atol=1e-6)


def test_a_coordinate_along_which_every_loss_is_flat():
    """It goes as far as its bound lets it, though the model says nothing of where to end."""
    rng = np.random.default_rng(0)
    A = rng.poisson(0.3, (40, 8)).astype(float)
    A[:, 0] *= 1000  # its samples are those far from their targets
    y = A @ rng.standard_normal(8) + np.where(A[:, 0] > 0, 1e5, 0)
    f = WithIntercept(adafw.LinearModel(A, y, losses.Huber()))
    found = adafw.minimize(
        f, adafw.Box(-50.0, 30.0), CORRECTIVE, gap_tolerance=1e-8, progress=False
    )
    assert found.status == "converged"


def test_smoothed_hinges_that_are_nearly_separable():
    """Newton steps overshoot the few samples that bend; how the others do tells how far to go."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((600, 60))
    z = A @ rng.standard_normal(60)
    y = np.where(z / np.abs(z).max() + 0.05 * rng.standard_normal(600) > 0, 1.0, -1.0)
    f = adafw.LinearModel(A, y, losses.SmoothedHinge(0.3))
    found = adafw.minimize(f, adafw.L2Ball(100.0), CORRECTIVE, gap_tolerance=1e-8, progress=False)
    assert found.status == "converged"


def test_a_minimum_inside_an_l2_ball_is_found_to_the_last_digit():
    """The radius is never met: these are Newton's steps, no step leads to the sphere."""
    rng = np.random.default_rng(8)
    A, y = rng.standard_normal((400, 20)), np.where(rng.random(400) < 0.5, 1.0, -1.0)
    f, x = adafw.LinearModel(A, y, losses.Logistic()), rng.standard_normal(20)
    state: Any = {}
    for t in range(1, 9):
        x, state = CorrectiveStep().update(f, adafw.L2Ball(1e6), x, f.gradient(x), t, state)
    assert np.abs(f.gradient(x)).max() < 1e-11


@pytest.mark.parametrize("constraint", [adafw.LInfBall(0.03), adafw.L2Ball(5.0)], ids=str)
def test_rough_products_certify_nothing(constraint):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((3000, 400))
    A += 3 * rng.standard_normal((3000, 1)) * rng.standard_normal(400)
    y = np.where(A @ rng.standard_normal(400) / 67 + rng.standard_normal(3000) / 2 > 0, 1.0, -1.0)
    f = adafw.LinearModel(A, y, losses.Logistic())
    assert f.rows.rough
    r = adafw.minimize(f, constraint, CORRECTIVE, gap_tolerance=1e-10, max_iterations=50)
    again = adafw.LinearModel(A, y, losses.Logistic())  # which remembers nothing
    assert r.gap <= 1e-10
    assert constraint.gap(r.x, again.gradient(r.x)) <= 2e-10


@pytest.mark.parametrize("constraint", [adafw.L1Ball(30.0), adafw.LInfBall(5.0)], ids=str)
def test_an_overflow_on_the_way_does_not_stay_in_the_state(constraint):
    rng = np.random.default_rng(0)
    A = sparse.random(300, 30, 0.2, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    y = rng.poisson(np.exp(np.clip(A @ rng.standard_normal(30) * 3, -5, 12))).astype(float)
    f = adafw.LinearModel((A * 30).tocsr(), y, losses.Poisson())
    r = solved(f, constraint, max_iterations=10)
    assert all(np.isfinite(part).all() for part in r.state.step.values())
    more = adafw.minimize(f, constraint, CORRECTIVE, state=r.state, max_iterations=100)
    assert more.gap <= 1e-6 * abs(more.value)  # not even near where it did stay


@pytest.mark.parametrize("make", [adafw.L1Ball, adafw.LInfBall, adafw.L2Ball, adafw.UnitSimplex])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("stored", ["dense", "csr"])
def test_exponentials_of_large_columns_are_certified(make, intercept, stored):
    """exp overflows at most points of the set: models take in what they meet, as far as they go."""
    rng = np.random.default_rng(1)
    A = sparse.random(600, 30, 0.2, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    z = 3 * A @ rng.standard_normal(30)
    y = rng.poisson(np.exp(np.clip(z, -5, 8))).astype(float)
    A = 100 * A
    f = adafw.LinearModel(A.toarray() if stored == "dense" else A.tocsr(), y, losses.Poisson())
    ball = make(5.0 if make is adafw.LInfBall else 20.0)
    f = WithIntercept(f) if intercept else f
    r = solved(f, ball, 1e-6)
    assert r.status == "callback"
    assert ball.contains(r.x)
    z, b = A @ r.x, f.predictions(r.x)[1] if intercept else 0.0
    g = A.T @ (np.exp(z + b) - y) / 600
    assert g @ (r.x - ball.lmo(g)) <= 1e-5 * abs(r.value)


@pytest.mark.parametrize("constraint", [adafw.L1Ball(3.0), adafw.LInfBall(0.5)], ids=str)
@pytest.mark.parametrize("name", ["chosen", "gram", "bends", "predictions"])
@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda a: np.full(len(a), "a"), id="words"),
        pytest.param(lambda a: a.astype(np.float32), id="single"),
        pytest.param(lambda a: a[:, None], id="flat"),
        pytest.param(lambda a: a * 0, id="zeros"),
        pytest.param(lambda a: -a - 1, id="negative"),
        pytest.param(lambda a: a + 1000, id="outside"),
    ],
)
def test_damaged_memories_reach_no_kernel(constraint, name, damage):
    rng = np.random.default_rng(0)
    A = sparse.random(300, 40, 0.2, format="csr", random_state=rng)
    f = adafw.LinearModel(A, np.where(rng.random(300) < 0.5, 1.0, -1.0), losses.Logistic())
    r = solved(f, constraint, max_iterations=2)
    if name not in r.state.step:
        return
    kept = damage(r.state.step[name])
    if kept.dtype.kind == "f" and kept.dtype.itemsize == 8 and kept.ndim == r.state.step[name].ndim:
        return  # other numbers, of which no kernel is afraid
    r.state.step[name] = kept
    again = adafw.LinearModel(A, f.y, losses.Logistic())
    more = adafw.minimize(again, constraint, CORRECTIVE, state=r.state, max_iterations=8)
    exact = adafw.LinearModel(A, f.y, losses.Logistic()).gradient(more.x)
    assert constraint.gap(more.x, exact) <= 1e-6


@pytest.mark.parametrize("constraint", [adafw.L1Ball(3.0), adafw.LInfBall(0.3), adafw.L2Ball(2.0)],
                         ids=repr)  # fmt: skip
def test_predictions_of_a_state_that_are_others_certify_nothing(constraint):
    """They are held against a product before a gap is told from them."""
    rng = np.random.default_rng(0)
    A = sparse.random(300, 40, 0.2, format="csr", random_state=rng)
    y = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    state = solved(adafw.LinearModel(A, y, losses.Logistic()), constraint, max_iterations=3).state
    for change in (lambda z: z[::-1].copy(), lambda z: z + 1e-3, lambda z: 0 * z + np.nan):
        damaged = state.copy()
        damaged.step["predictions"] = change(state.step["predictions"])
        f = adafw.LinearModel(A, y, losses.Logistic())
        if np.isfinite(damaged.step["predictions"]).all():
            more = adafw.minimize(f, constraint, CORRECTIVE, state=damaged, max_iterations=3)
            exact = adafw.LinearModel(A, y, losses.Logistic()).gradient(more.x)
            assert more.gap == pytest.approx(constraint.gap(more.x, exact), rel=1e-6, abs=1e-14)
        else:
            with pytest.raises(ValueError, match="predictions"):
                adafw.minimize(f, constraint, CORRECTIVE, state=damaged, max_iterations=3)


@pytest.mark.parametrize("name", ["gap", "reach", "word", "level", "norm", "bound", "weights"])
@pytest.mark.parametrize("constraint", [adafw.L1Ball(3.0), adafw.LInfBall(0.3)], ids=repr)
def test_numbers_that_no_run_leaves_are_refused(constraint, name):
    rng = np.random.default_rng(0)
    A = sparse.random(300, 40, 0.2, format="csr", random_state=rng)
    f = adafw.LinearModel(A, np.where(rng.random(300) < 0.5, 1.0, -1.0), losses.Logistic())
    state = solved(f, constraint, max_iterations=3).state
    if name not in state.step:
        return
    for damage in ("text", np.zeros(3)):
        damaged = state.copy()
        damaged.step[name] = damage
        if name == "weights":  # what can be computed again is
            assert (
                adafw.minimize(f, constraint, CORRECTIVE, state=damaged, max_iterations=9).gap >= 0
            )
        else:
            with pytest.raises(ValueError, match=f"step.{name}"):
                adafw.minimize(f, constraint, CORRECTIVE, state=damaged, max_iterations=9)
