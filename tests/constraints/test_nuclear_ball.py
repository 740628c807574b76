import numpy as np
import pytest
from scipy.optimize import minimize

import adafw
from adafw import L1Ball, L2Ball, NuclearBall
from adafw.constraints.nuclear_ball import Shrinking


def singular(a):
    return np.linalg.svd(a, compute_uv=False)


def test_lmo_is_a_matrix_of_rank_one_on_the_sphere():
    rng = np.random.default_rng(0)
    for shape in ((5, 3), (3, 5), (1, 4), (4, 1), (201, 202), (230, 40)):
        g = rng.standard_normal(shape)
        v = NuclearBall(3.0).lmo(g)
        s = singular(v)
        assert s[0] == pytest.approx(3.0, rel=1e-12)
        assert (s[1:] <= 1e-14).all()
        assert np.vdot(g, v) == pytest.approx(-3 * singular(g)[0], rel=1e-10)


def test_zero_gives_zero_whatever_the_size():
    for shape in ((3, 4), (210, 220)):
        np.testing.assert_array_equal(NuclearBall(1.0).lmo(np.zeros(shape)), 0)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_large_matrices_of_extreme_entries(scale):
    g = np.random.default_rng(1).standard_normal((210, 220))
    np.testing.assert_allclose(NuclearBall(1.0).lmo(g * scale), NuclearBall(1.0).lmo(g), atol=1e-7)


def test_the_same_gradient_gives_the_same_bits():
    g = np.random.default_rng(2).standard_normal((250, 210))
    first = NuclearBall(1.0).lmo(g)
    np.random.default_rng(3).random(5)
    np.testing.assert_array_equal(NuclearBall(1.0).lmo(g.copy()), first)


def test_exact_and_lanczos_agree():
    rng = np.random.default_rng(4)
    g = rng.standard_normal((240, 8)) @ rng.standard_normal((8, 300))
    exact, lanczos = NuclearBall(2.0, exact=True).lmo(g), NuclearBall(2.0).lmo(g)
    np.testing.assert_allclose(exact, lanczos, atol=1e-9)


def test_gap_of_a_large_matrix_is_a_certificate():
    """Lanczos finds the largest singular value from below; the gap must not be below."""
    rng = np.random.default_rng(5)
    ball = NuclearBall(2.0)
    for trial in range(5):
        g = rng.standard_normal((230, 210))
        if trial == 1:  # two equal singular values, where a vector converges slowly
            u, s, vt = np.linalg.svd(g, full_matrices=False)
            s[1] = s[0] * (1 - 1e-9)
            g = (u * s) @ vt
        x = ball.lmo(rng.standard_normal(g.shape)) / 2
        exact = np.vdot(g, x) + 2 * singular(g)[0]
        assert exact <= ball.gap(x, g) <= exact * (1 + 1e-9)


def misleading(m, n):
    """Singular values 1.5 and 1; the first vector is orthogonal to where Lanczos starts."""
    rng = np.random.default_rng(6)
    start = np.random.default_rng(0).standard_normal(n)
    right = np.linalg.qr(np.column_stack([start, rng.standard_normal((n, 3))]))[0]
    left = np.linalg.qr(rng.standard_normal((m, 3)))[0]
    return 1.5 * np.outer(left[:, 0], right[:, 1]) + np.outer(left[:, 1], right[:, 0])


def test_gap_stays_sound_where_the_lmo_is_misled():
    g = misleading(220, 210)
    ball, x = NuclearBall(1.0), np.zeros(g.shape)
    assert np.vdot(g, ball.lmo(g)) == pytest.approx(-1.0)  # it is, and finds the second
    assert 1.5 <= ball.gap(x, g) <= 1.5 * 1.5  # but the gap knows


@pytest.mark.parametrize(("shape", "exact"), [((220, 210), True), ((200, 230), False)])
def test_a_decomposition_is_not_misled(shape, exact):
    """If asked for, and for a side of up to 200."""
    g, ball = misleading(*shape), NuclearBall(2.0, exact=exact)
    assert np.vdot(g, ball.lmo(g)) == pytest.approx(-3.0, rel=1e-12)
    assert ball.gap(np.zeros(shape), g) == pytest.approx(3.0, rel=1e-12)
    assert np.vdot(misleading(220, 201), NuclearBall(2.0).lmo(misleading(220, 201))) > -2.1
    assert repr(ball) == "NuclearBall(radius=2.0, exact=True)" if exact else True


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_large_matrices_of_half_precision(name):
    torch = pytest.importorskip("torch")
    g = np.random.default_rng(3).standard_normal((210, 205)) + 0.5
    tensor = torch.from_numpy(g).to(getattr(torch, name))
    v = NuclearBall(2.0).lmo(tensor)
    assert v.dtype == tensor.dtype
    value = np.vdot(tensor.double().numpy(), v.double().numpy())
    assert value == pytest.approx(-2 * singular(tensor.double().numpy())[0], rel=1e-3)


def test_minimize_records_the_certified_gap():
    rng = np.random.default_rng(7)
    target = rng.standard_normal((210, 205))
    f = adafw.UserSum(
        1,
        lambda x: 0.5 * np.sum((x - target) ** 2),
        lambda x, batch: x - target,
        convex=True,
    )
    ball = NuclearBall(30.0)
    r = adafw.minimize(f, ball, adafw.FW(), x0=np.zeros(target.shape), max_iterations=3)
    g = r.x - target
    exact = np.vdot(g, r.x) + 30 * singular(g)[0]
    assert exact <= r.gap <= exact * (1 + 1e-9)
    assert r.lower_bound <= f.value(ball.project(target)) + 1e-9


def test_vectors_stand_for_matrices_row_by_row():
    rng = np.random.default_rng(8)
    x, h = 3 * rng.standard_normal((4, 3)), 10 ** rng.uniform(-1, 1, (4, 3))
    flat, full = NuclearBall(2.0, shape=(4, 3)), NuclearBall(2.0)
    assert flat.shape == (12,)
    assert full.shape is None
    np.testing.assert_array_equal(flat.lmo(x.ravel()), full.lmo(x).ravel())
    np.testing.assert_array_equal(flat.project(x.ravel()), full.project(x).ravel())
    np.testing.assert_array_equal(flat.project(x.ravel(), h.ravel()), full.project(x, h).ravel())
    assert flat.violation(x.ravel()) == full.violation(x)
    np.testing.assert_array_equal(flat.lmo(x), full.lmo(x))


def test_is_the_l2_ball_of_a_row_and_the_l1_ball_of_a_diagonal():
    rng = np.random.default_rng(9)
    row, diagonal = rng.standard_normal((1, 6)), rng.standard_normal(5)
    h = 10 ** rng.uniform(-1, 1, (1, 6))
    np.testing.assert_allclose(NuclearBall(0.5).lmo(row), L2Ball(0.5).lmo(row))
    ours = NuclearBall(0.5).project(row, h)
    np.testing.assert_allclose(ours, L2Ball(0.5).project(row, h), atol=1e-9)
    on_diagonal = np.diag(L1Ball(0.5).project(diagonal))
    np.testing.assert_allclose(NuclearBall(0.5).project(np.diag(diagonal)), on_diagonal, atol=1e-14)


def test_metric_projection_agrees_with_a_general_solver():
    """||V||_* <= r iff V = A B^T with ||A||^2 + ||B||^2 <= 2 r: smooth, so SLSQP can do it."""
    rng = np.random.default_rng(10)
    for _ in range(3):
        x, h = 2 * rng.standard_normal((3, 2)), 10 ** rng.uniform(-1, 1, (3, 2))

        def value(z, x=x, h=h):
            return np.sum(h * (z[:6].reshape(3, 2) @ z[6:].reshape(2, 2).T - x) ** 2)

        start = 0.5 * rng.standard_normal(10)
        room = {"type": "ineq", "fun": lambda z: 2.0 - z @ z}
        options = {"ftol": 1e-15, "maxiter": 2000}
        found = minimize(value, start, constraints=room, method="SLSQP", options=options)
        ours = NuclearBall(1.0).project(x, h)
        assert np.sum(h * (ours - x) ** 2) <= found.fun * (1 + 1e-6)
        theirs = found.x[:6].reshape(3, 2) @ found.x[6:].reshape(2, 2).T
        np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_diameter_joins_opposite_matrices_of_rank_one():
    ball = NuclearBall(2.0)
    assert ball.diameter((3, 5)) == 4.0
    assert ball.diameter((3, 5), np.inf) == 4.0
    ones = np.ones((3, 5)) * 2 / np.sqrt(15)  # u v^T with u, v flat: the widest in the l1 norm
    assert ball.contains(ones)
    assert ball.diameter((3, 5), 1) == pytest.approx(2 * np.abs(ones).sum())


def test_refuses_what_is_no_matrix():
    with pytest.raises(ValueError, match=r"holds matrices, got shape \(6,\); give it shape="):
        NuclearBall(1.0).lmo(np.ones(6))
    with pytest.raises(ValueError, match="vectors of 6 entries"):
        NuclearBall(1.0, shape=(2, 3)).lmo(np.ones(7))
    with pytest.raises(ValueError, match="shape must be a pair"):
        NuclearBall(1.0, shape=6)
    with pytest.raises(ValueError, match="radius must be a number"):
        NuclearBall(0.0)


def test_on_the_sphere_singular_values_stay_and_move_freely():
    for s in (np.array([0.75, 0.25]), np.array([0.5, 0.25])):  # of sum 1, and inside
        shrunk, jacobian = Shrinking(1.0).shrink(s)
        np.testing.assert_array_equal(shrunk, s)
        np.testing.assert_array_equal(jacobian, np.eye(2))
    shrunk, jacobian = Shrinking(1.0).shrink(np.array([1.0, 0.5]))
    np.testing.assert_array_equal(shrunk, [0.75, 0.25])
    np.testing.assert_array_equal(jacobian, [[0.5, -0.5], [-0.5, 0.5]])


@pytest.mark.parametrize("make", [adafw.NuclearBall, adafw.SpectralBall, adafw.RowBall])
def test_sizes_of_the_matrices_are_whole_numbers(make):
    for shape, said in (
        ((0, 3), "rows must be an integer"), ((3, 0), "columns must be an integer"),
        ((2.5, 3), "rows must be an integer"), ((3, "4"), "columns must be an integer"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=said):
            make(1.0, shape=shape)
    assert make(1.0, shape=[2, np.int64(3)]).shape == (6,)
