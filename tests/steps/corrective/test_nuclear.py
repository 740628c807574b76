"""Factors of low-rank matrices moved by second-order steps."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.gradients import Full
from adafw.objectives import WithIntercept
from adafw.rows import EntryRows, MatrixRows, as_rows
from adafw.steps.corrective import CorrectiveStep, nuclear
from adafw.steps.corrective.factors import Factored, as_factors, balanced, leading
from adafw.steps.corrective.nuclear import (
    NuclearCorrector,
    _joined,
    _line,
    _newton_step,
    improved,
)

CORRECTIVE = adafw.Algorithm(Full(), CorrectiveStep())


def observed(m=900, shape=(40, 30), rank=3, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    rows, cols = rng.integers(0, shape[0], m), rng.integers(0, shape[1], m)
    values = truth[rows, cols] + 0.3 * rng.standard_normal(m)
    return rows, cols, values.astype(dtype)


@pytest.mark.parametrize("radius", [1e-6, 1.0, 60.0, 300.0, 1e4, 1e6])
def test_completion_is_certified_to_a_millionth(radius):
    f = adafw.MatrixCompletion(*observed(), (40, 30))
    r = adafw.minimize(f, adafw.NuclearBall(radius), CORRECTIVE, max_iterations=20)
    # radius * s_1(g): rounding of g is what a huge radius leaves.
    assert r.best.gap <= 1e-6 * r.value + 1e-12 * radius
    assert r.trace["violation"].max() <= 1e-12
    assert (np.diff(r.trace["value"]) <= 1e-12).all()


def test_large_sides_take_sparse_slopes():
    f = adafw.MatrixCompletion(*observed(9000, (230, 210)), (230, 210))
    r = adafw.minimize(
        f, adafw.NuclearBall(300.0), CORRECTIVE, max_iterations=15, gap_tolerance=1e-6
    )
    assert r.status == "converged"
    assert np.linalg.matrix_rank(r.x, 1e-6) <= 10


@pytest.mark.parametrize("loss", [losses.Huber(0.1), losses.SquaredHinge(), losses.Logistic()])
def test_other_losses_of_entries(loss):
    rows, cols, values = observed()
    targets = values if isinstance(loss, losses.Huber) else np.where(values > 0, 1.0, -1.0)
    f = adafw.LinearModel(EntryRows(rows, cols, (40, 30), np.dtype(float)), targets, loss)
    r = adafw.minimize(f, adafw.NuclearBall(50.0), CORRECTIVE, max_iterations=30)
    assert r.best.gap <= 1e-6 * r.value


@pytest.mark.parametrize("intercept", [False, True])
def test_samples_that_are_matrices(intercept):
    rng = np.random.default_rng(2)
    A = rng.standard_normal((80, 48))
    y = np.where(A[:, 0] + A[:, 9] + rng.standard_normal(80) > 0, 1.0, -1.0)
    f = adafw.LinearModel(MatrixRows(as_rows(A), (8, 6)), y, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    r = adafw.minimize(f, adafw.NuclearBall(0.7), CORRECTIVE, max_iterations=30)
    assert r.best.gap <= 1e-6 * r.value
    # A vector that stands for the same matrix.
    flat = adafw.LinearModel(A, y, losses.Logistic())
    flat = WithIntercept(flat) if intercept else flat
    v = adafw.minimize(flat, adafw.NuclearBall(0.7, shape=(8, 6)), CORRECTIVE, max_iterations=30)
    assert v.value == pytest.approx(r.value, rel=1e-6)


def test_it_starts_from_any_point_and_resumes_bit_for_bit():
    f, ball = adafw.MatrixCompletion(*observed(), (40, 30)), adafw.NuclearBall(60.0)
    x0 = ball.project(np.random.default_rng(3).standard_normal((40, 30)))
    whole = adafw.minimize(f, ball, CORRECTIVE, x0=x0, max_iterations=6)
    half = adafw.minimize(f, ball, CORRECTIVE, x0=x0, max_iterations=2)
    again = adafw.minimize(f, ball, CORRECTIVE, state=half.state, max_iterations=6)
    np.testing.assert_array_equal(whole.x, again.x)
    assert whole.gap <= 1e-6 * whole.value


def test_float32_and_a_single_entry():
    f = adafw.MatrixCompletion(*observed(dtype=np.float32), (40, 30))
    r = adafw.minimize(f, adafw.NuclearBall(60.0), CORRECTIVE, max_iterations=10)
    assert r.x.dtype == np.float32
    assert r.best.gap <= 1e-4 * r.value
    one = adafw.MatrixCompletion([1], [2], [3.0], (4, 5))
    r = adafw.minimize(one, adafw.NuclearBall(2.0), CORRECTIVE, max_iterations=10)
    assert r.x[1, 2] == pytest.approx(2.0)
    assert r.gap <= 1e-9


def test_factors_alone_are_enough():
    """What an estimator does that never has a dense matrix: the same iterates."""
    rows, cols, values = observed()
    f, ball = adafw.MatrixCompletion(rows, cols, values, (40, 30)), adafw.NuclearBall(60.0)
    left, right = np.zeros((40, 0)), np.zeros((30, 0))
    for _ in range(4):
        left, right = improved(Factored(f, (40, 30)), left, right, 60.0)
    r = adafw.minimize(f, ball, CORRECTIVE, max_iterations=4)
    np.testing.assert_array_equal(left @ right.T, r.x)


def test_balanced_factors_are_the_shortest():
    rng = np.random.default_rng(5)
    left, right = rng.standard_normal((9, 4)), rng.standard_normal((7, 4))
    left[:, 3] = left[:, 2]
    x = left @ right.T
    a, b = balanced(left, right, 1e9)
    np.testing.assert_allclose(a @ b.T, x, atol=1e-12)
    nuclear = np.linalg.svd(x, compute_uv=False).sum()
    assert ((a**2).sum() + (b**2).sum()) / 2 == pytest.approx(nuclear)
    assert a.shape[1] == 3
    c, d = as_factors(x, 1e9)
    np.testing.assert_allclose(c @ d.T, x, atol=1e-12)


def test_entries_of_samples_in_different_units():
    rng = np.random.default_rng(1)
    A = rng.poisson(0.3, (200, 12)).astype(float)
    A[:, 0] *= 1000
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    f = adafw.LinearModel(A, y, losses.SmoothedHinge())
    ball = adafw.NuclearBall(10.0, shape=(4, 3))
    found = adafw.minimize(f, ball, CORRECTIVE, gap_tolerance=1e-8, progress=False)
    assert found.status == "converged"


def joining(seed=0, radius=5.0, rank=2):
    """A view of observed entries, and factors inside the ball."""
    rng = np.random.default_rng(seed)
    f = adafw.MatrixCompletion(*observed(300, (12, 9), seed=seed), (12, 9))
    left, right = rng.standard_normal((12, rank)), rng.standard_normal((9, rank))
    left, right = balanced(left, right, 0.6 * radius)
    seen = Factored(f, (12, 9))
    z = seen.predict(left, right)
    return f, seen, left, right, z, radius


def test_pairs_join_by_the_share_that_they_gain():
    """Of pairs (u, v, s) those steeper than what x pays, each by s less that price."""
    f, seen, left, right, z, radius = joining()
    slopes = seen.matrix(seen.slopes(z))
    u, s, v = leading(slopes, 4)
    price = max(0.0, -float(np.vdot(slopes @ right, left)) / radius)
    gain = np.maximum(s - price, 0.0)
    assert (gain > 0).sum() > 1
    vertex = -radius * (u * gain / gain.sum()) @ v.T
    new_left, new_right, new_z = _joined(seen, left, right, z, slopes, radius, (u, s, v))
    x, new = left @ right.T, new_left @ new_right.T
    gamma = float(np.vdot(new - x, vertex - x) / np.vdot(vertex - x, vertex - x))
    np.testing.assert_allclose(new, x + gamma * (vertex - x), atol=1e-12)
    assert 0 < gamma <= 1
    np.testing.assert_allclose(new_z, seen.predict(new_left, new_right), atol=1e-12)
    # Of squares the length is the best one.
    values = [f.value(x + share * gamma * (vertex - x)) for share in (0.99, 1.0, 1.01)]
    assert values[1] <= min(values[0], values[2] if gamma < 0.99 else values[0])
    length = (np.square(new_left).sum() + np.square(new_right).sum()) / 2
    assert length <= radius * (1 + 1e-12)


def test_pairs_that_gain_nothing_do_not_join():
    _, seen, left, right, z, radius = joining()
    slopes = seen.matrix(seen.slopes(z))
    u, s, v = leading(slopes, 3)
    found = _joined(seen, left, right, z, slopes, radius, (u, 0 * s, v))
    assert found[0] is left
    assert found[2] is z
    down = -slopes  # x pays for its weight, as if it were where slopes are the other way round
    price = float(np.vdot(slopes @ right, left)) / radius
    assert price > 0
    for share, joins in ((0.9, False), (1.1, True)):
        pairs = u, np.full(3, share * price), v
        found = _joined(seen, left, right, z, down, radius, pairs)
        assert (found[0] is not left) is joins
    few = np.array([s[0], 1e-12 * s[0], 0.0])  # of next to no gain: left out
    none = np.zeros((12, 0)), np.zeros((9, 0))
    zero = seen.predict(*none)
    joined = _joined(seen, *none, zero, seen.matrix(seen.slopes(zero)), radius, (u, few, v))
    assert joined[0].shape == (12, 1)


@pytest.mark.parametrize("length", [0.5, 1.0, 1.5, 3.0, 20.0])
def test_lines_go_to_the_lowest_point_of_a_parabola(length):
    f, seen, _, _, z, _ = joining()
    move = length * (f.y - z)  # the minimum of the squares is at 1 / length
    value, slope = seen.value(z), float(np.vdot(seen.slopes(z), move))
    gamma = _line(seen, z, move, value, slope)
    # From 1.4 on, a whole step reaches less than 0.3 of what its slope promises.
    assert gamma == pytest.approx(1.0 if length <= 1.0 else 1 / length if length > 1.4 else gamma)
    assert seen.value(z + gamma * move) <= value + 0.3 * gamma * slope
    assert _line(seen, z, -move, value, -slope) == 0.0
    assert _line(seen, z, -move, value, slope) < 1e-12  # a promise that is not kept


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("bound", [False, True])
def test_newton_steps_on_factors_descend_and_stay_in_their_ball(bound, rank):
    f, seen, left, right, z, radius = joining(radius=5.0 if bound else 500.0, rank=rank)
    if bound:
        left, right = balanced(3 * left, 3 * right, radius)
        z = seen.predict(left, right)
        assert (left**2).sum() + (right**2).sum() == pytest.approx(2 * radius)
    values = [seen.value(z)]
    for _ in range(25):
        found = _newton_step(seen, left, right, z, radius)
        if found is None:
            break
        left, right, z, (before, after) = found
        assert before == pytest.approx(values[-1], rel=1e-12)
        assert after == pytest.approx(f.value(left @ right.T), rel=1e-10)
        np.testing.assert_allclose(z, seen.predict(left, right), atol=1e-12)
        assert (left**2).sum() + (right**2).sum() <= 2 * radius * (1 + 1e-12)
        assert after <= before * (1 + 1e-14)
        values.append(after)
    # A stationary point of the factors: no slope but along them, where the ball binds.
    slopes = seen.matrix(seen.slopes(z))
    g, both = np.vstack([slopes @ right, slopes.T @ left]), np.vstack([left, right])
    if bound:
        g = g - both * np.vdot(g, both) / np.vdot(both, both)
    assert np.linalg.norm(g) <= 1e-6
    assert values[-1] < 0.9 * values[0]
    settled = next(k for k, v in enumerate(values) if v <= values[-1] * (1 + 1e-9))
    assert settled <= 15
    assert _newton_step(seen, left[:, :0], right[:, :0], z, radius) is None


def test_an_iteration_counts_one_linear_minimisation():
    f, counted = adafw.MatrixCompletion(*observed(), (40, 30)), CountedSet(adafw.NuclearBall(60.0))
    x, state = np.zeros((40, 30)), {}
    for t in range(3):
        x, state = NuclearCorrector().improve(f, counted, x, f.gradient(x), t, state)
        np.testing.assert_array_equal(state["left"] @ state["right"].T, x)
    assert counted.lmo_calls == 3
    assert x.shape == (40, 30)
    single = adafw.MatrixCompletion(*observed(dtype=np.float32), (40, 30))
    y, _ = NuclearCorrector().improve(
        single, counted, np.zeros((40, 30), np.float32), None, 0, {}
    )  # fmt: skip
    assert y.dtype == np.float32


def test_few_iterations_are_enough():
    f = adafw.MatrixCompletion(*observed(), (40, 30))
    r = adafw.minimize(f, adafw.NuclearBall(60.0), CORRECTIVE, gap_tolerance=1e-7)
    assert r.status == "converged"
    assert r.trace[-1].iteration <= 8


def test_newton_steps_leave_a_sphere_that_does_not_hold_them():
    """On it, with the minimum at 0: the step leads inside, not along it."""
    rows, cols, values = observed(300, (12, 9))
    f = adafw.MatrixCompletion(rows, cols, 0 * values, (12, 9))
    _, _, left, right, _, radius = joining()
    left, right = balanced(9 * left, 9 * right, radius)
    seen = Factored(f, (12, 9))
    z = seen.predict(left, right)
    a, b, _, (before, after) = _newton_step(seen, left, right, z, radius)
    assert (left**2).sum() + (right**2).sum() == pytest.approx(2 * radius)
    assert (a**2).sum() + (b**2).sum() < 1.8 * radius
    assert after < 0.5 * before


def test_pairs_of_a_large_matrix_join_by_how_far_each_would_go_alone(monkeypatch):
    """Gains by curvatures: those of a pair are sums over the entries it puts numbers on."""
    monkeypatch.setattr(nuclear, "LARGE", 12 * 9 - 1)
    f, seen, left, right, z, radius = joining()
    slopes = seen.matrix(seen.slopes(z))
    u, s, v = leading(slopes, 4)
    price = max(0.0, -float(np.vdot(slopes @ right, left)) / radius)
    gain = np.maximum(s - price, 0.0)
    rows, cols = seen.entries
    bends = [2 / f.n_terms * (u[rows, k] ** 2 * v[cols, k] ** 2).sum() for k in range(4)]
    weight = gain / bends
    assert (gain > 0).sum() > 1
    vertex = -radius * (u * weight / weight.sum()) @ v.T
    new_left, new_right, new_z = _joined(seen, left, right, z, slopes, radius, (u, s, v))
    x, new = left @ right.T, new_left @ new_right.T
    gamma = float(np.vdot(new - x, vertex - x) / np.vdot(vertex - x, vertex - x))
    np.testing.assert_allclose(new, x + gamma * (vertex - x), atol=1e-12)
    np.testing.assert_allclose(new_z, seen.predict(new_left, new_right), atol=1e-12)


@pytest.mark.parametrize(("offset", "most"), [(10.0, 20), (100.0, 200)])
@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SquaredHinge(), losses.Squared()])
def test_columns_far_from_0_are_certified(offset, most, loss):
    """Factors are not convex there: steps were steepest descents, and stalled."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((200, 60)) + offset * rng.random(60)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    f, ball = adafw.LinearModel(A, y, loss), adafw.NuclearBall(1.0, shape=(6, 10))
    enough = 1e-5 * f.value(np.zeros(60))
    r = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=enough, max_iterations=most)
    assert r.status == "converged"
    g = A.T @ loss.slope(A @ r.x, y) / 200
    assert g @ (r.x - ball.lmo(g)) <= 1.1 * enough
