"""Template 3 with a corrective inner loop: Q_t solved by linear minimisations alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.constraints.group_ball import consecutive
from adafw.steps import AdaptiveStep, hull_of_answers, subproblem

N = 12
GROUPS = consecutive(N, 3)
SETS = {
    "l1": adafw.L1Ball(1.5),
    "simplex": adafw.Simplex(2.0),
    "unit simplex": adafw.UnitSimplex(1.0),
    "l2": adafw.L2Ball(1.0),
    "linf": adafw.LInfBall(0.7),
    "box": adafw.Box(-np.linspace(0, 1, N), np.linspace(0, 2, N)),
    "group": adafw.GroupBall(1.2, GROUPS),
    "k-sparse": adafw.KSparse(0.5, 3),
    "wide k-sparse": adafw.KSparse(4.0, 2),
    "l1 as lp": adafw.LpBall(1.5, 1),
    "l2 as lp": adafw.LpBall(1.0, 2),
    "linf as lp": adafw.LpBall(0.7, np.inf),
    "p = 1.05": adafw.LpBall(1.5, 1.05),
    "p = 1.5": adafw.LpBall(1.5, 1.5),
    "p = 3": adafw.LpBall(1.0, 3),
    "p = 40": adafw.LpBall(0.8, 40),
    "rms": adafw.RMSBall(0.3),
    "product": adafw.Product(
        [(adafw.L1Ball(1.0), 5), (adafw.LInfBall(0.5), 4), (adafw.L2Ball(1.0), 3)]
    ),
}
CALLS = {"linf": 1, "box": 1, "linf as lp": 1}


def point(constraint, rng):
    """A point of the set, some of its entries 0."""
    x = constraint.start((N,))
    for _ in range(int(rng.integers(0, 4))):
        x = x + rng.random() * (constraint.lmo(rng.standard_normal(N)) - x)
    return x


@pytest.mark.parametrize("name", SETS)
@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    seed=st.integers(0, 10**6), eta=st.sampled_from([1e-3, 0.1, 1.0, 30.0, 1e4]),
    size=st.sampled_from([1.0, 1e-2]),
)  # fmt: skip
def test_the_minimiser_of_q_is_the_projection_in_the_metric(name, seed, eta, size):
    rng = np.random.default_rng(seed)
    constraint = SETS[name]
    x, m = point(constraint, rng), size * rng.standard_normal(N) * (rng.random(N) < 0.8)
    h = 10 ** rng.uniform(-3, 3, N)
    counted = CountedSet(constraint)
    y = subproblem.solve(counted, x, m, h, eta, None)
    np.testing.assert_allclose(
        y, constraint.project(x - eta * m / h, h), atol=1e-9 * constraint.scale
    )
    assert constraint.violation(y) <= 1e-12
    assert counted.lmo_calls <= CALLS.get(name, 2)
    assert counted.projections == 0


def user(ball):
    """A set of which nothing is known but its linear minimisation."""
    return adafw.UserSet(ball.lmo, ball.start, ball.contains)


POLYTOPES = {
    "hull": (adafw.Hull(np.random.default_rng(0).standard_normal((20, N))), (N,)),
    "birkhoff": (adafw.Birkhoff(), (4, 4)),
    "curved": (user(adafw.LpBall(1.0, 3)), (N,)),
    "nuclear": (adafw.NuclearBall(1.0), (4, 3)),
}


@pytest.mark.parametrize("name", POLYTOPES)
@pytest.mark.parametrize("seed", range(5))
def test_hulls_of_kept_answers_end_with_no_gap(name, seed):
    """gap of Q bounds ||y - y*||^2_H / (2 eta)."""
    constraint, shape = POLYTOPES[name]
    rng = np.random.default_rng(seed)
    x, m, h = constraint.start(shape), rng.standard_normal(shape), rng.uniform(0.5, 2, shape)
    y = subproblem.solve(constraint, x, m, h, 1.0, None)
    slopes = m + h * (y - x)
    gap = np.vdot(slopes, y - constraint.lmo(slopes))
    # Polytopes end exactly; on curved sets answers come closer and closer.
    assert gap <= (1e-14 if name in ("hull", "birkhoff") else 1e-9)
    assert constraint.contains(y)


@pytest.mark.parametrize("kind", [adafw.L1Ball(5.0), adafw.LInfBall(0.2), adafw.L2Ball(1.0)])
def test_it_follows_adagrad_with_the_same_gradients(kind):
    A, y = adafw.datasets.support_vector(400, 60, seed=0)
    f = adafw.LinearModel(A, y, losses.Logistic())
    free = adafw.minimize(f, kind, adafw.AdaCSFW(0.3, inner="corrective"), max_iterations=150)
    projected = adafw.AdaGrad(0.3, gradient=adafw.gradients.CSFW())
    other = adafw.minimize(f, kind, projected, max_iterations=150)
    np.testing.assert_allclose(free.x, other.x, atol=1e-9 * kind.radius)
    assert free.trace[-1].projections == 0
    assert free.trace[-1].lmo_calls > 0


def test_calls_are_limited_by_inner_steps():
    rng = np.random.default_rng(1)
    constraint, shape = POLYTOPES["birkhoff"]
    counted = CountedSet(constraint)
    x, m = constraint.start(shape), rng.standard_normal(shape)
    subproblem.solve(counted, x, m, np.ones(shape), 0.1, 3)
    assert counted.lmo_calls <= 3
    linear = subproblem.solve(constraint, x, m, np.ones(shape), np.inf, None)
    np.testing.assert_array_equal(linear, constraint.lmo(m))


def test_settings_are_checked():
    assert AdaptiveStep(1.0).inner_steps == 5
    assert AdaptiveStep(1.0, inner="corrective").inner_steps is None
    with pytest.raises(ValueError, match='inner must be "frank_wolfe" or "corrective", got'):
        AdaptiveStep(1.0, inner="projected")
    with pytest.raises(ValueError, match="max_step must be left out"):
        AdaptiveStep(1.0, max_step=0.5, inner="corrective")


def test_no_estimate_moves_nothing():
    f = adafw.LinearModel(np.eye(3), np.ones(3), losses.Squared())
    step = AdaptiveStep(1.0, inner="corrective")
    x = np.array([0.5, 0.1, 0.0])
    moved, _ = step.update(f, adafw.L1Ball(1.0), x, np.zeros(3), 0, step.init(x))
    assert moved is x


@pytest.mark.parametrize("name", ["l1", "simplex", "unit simplex", "group", "k-sparse"])
def test_calls_and_gaps_end_faces(name):
    """One call names coordinates, one certifies; none more where the gap is small enough."""
    constraint = SETS[name]
    rng = np.random.default_rng(3)
    x, m, h = constraint.lmo(rng.standard_normal(N)), 2 * rng.standard_normal(N), np.ones(N)
    whole = subproblem.solve(constraint, x, m, h, 1.0, None)

    def gap(y):
        return constraint.gap(y, m + h * (y - x))

    for calls in (1, 2, 5):
        counted = CountedSet(constraint)
        y = subproblem.solve(counted, x, m, h, 1.0, calls)
        assert counted.lmo_calls == min(calls, 2)
        assert gap(y) >= gap(whole) - 1e-12
    counted = CountedSet(constraint)
    y = subproblem.solve(counted, x, m, h, 1.0, None, enough=1e9)
    assert counted.lmo_calls == 1
    face = x != 0
    if name == "group":
        face = np.isin(GROUPS, GROUPS[face])
    assert not y[~face].any()  # only the face of x
    counted = CountedSet(constraint)
    np.testing.assert_allclose(
        subproblem.solve(counted, x, m, h, 1.0, None, enough=0.0), whole, atol=1e-12
    )


def test_products_are_solved_set_by_set():
    """A call of the product is one of each: counted as the most that one of them took."""
    product = SETS["product"]
    rng = np.random.default_rng(0)
    x, m, h = point(product, rng), 3 * rng.standard_normal(N), rng.uniform(0.5, 2.0, N)
    counted = CountedSet(product)
    y = subproblem.solve(counted, x, m, h, 0.7, None)
    parts = [(adafw.L1Ball(1.0), slice(0, 5)), (adafw.LInfBall(0.5), slice(5, 9)),
             (adafw.L2Ball(1.0), slice(9, 12))]  # fmt: skip
    calls = []
    for part, at in parts:
        one = CountedSet(part)
        alone = subproblem.solve(one, x[at], m[at], h[at], 0.7, None)
        np.testing.assert_allclose(y[at], alone, atol=1e-12)
        calls.append(one.lmo_calls)
    assert counted.lmo_calls == max(calls) == 2
    assert min(calls) == 1


def test_hulls_are_ended_by_calls_and_by_gaps():
    constraint, shape = POLYTOPES["birkhoff"]
    rng = np.random.default_rng(4)
    x, m = constraint.start(shape), 2 * rng.standard_normal(shape)
    h = rng.uniform(0.5, 2.0, shape)
    values = []

    def q(y):
        return float(np.vdot(m, y - x) + np.vdot(y - x, h * (y - x)) / 2)

    for calls in range(1, 8):
        counted = CountedSet(constraint)
        y = subproblem.solve(counted, x, m, h, 1.0, calls)
        assert counted.lmo_calls <= calls
        assert constraint.violation(y) <= 1e-12
        values.append(q(y))
    assert (np.diff(values) <= 1e-12).all()
    assert values[0] > values[-1]
    first = constraint.lmo(m) - x  # one call: the best point on the way to its answer
    share = min(1.0, -float(np.vdot(m, first)) / float(np.vdot(first, h * first)))
    assert values[0] == pytest.approx(q(x + share * first))
    ball, _ = POLYTOPES["curved"]  # where answers come closer and closer
    x, m, h = ball.start((N,)), 5 * rng.standard_normal(N), rng.uniform(0.5, 2.0, N)
    exact, loose = CountedSet(ball), CountedSet(ball)
    subproblem.solve(exact, x, m, h, 1.0, None)
    y = subproblem.solve(loose, x, m, h, 1.0, None, enough=1e-3)
    assert 1e-6 < ball.gap(y, m + h * (y - x)) <= 1e-3
    assert loose.lmo_calls < exact.lmo_calls <= 100


def test_a_minimiser_inside_needs_no_call():
    constraint, shape = POLYTOPES["curved"]
    counted, x = CountedSet(constraint), np.full(shape, 0.1)
    m, h = np.linspace(-1, 1, 12), np.linspace(1, 2, 12)
    y = subproblem.solve(counted, x, m, h, 0.05, None)
    np.testing.assert_allclose(y, x - 0.05 * m / h)
    assert counted.lmo_calls == 0


@pytest.mark.parametrize("seed", range(8))
def test_best_weights_of_few_points(seed):
    """Over all faces of the simplex of weights."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((6, 4))
    G, linear = B.T @ B, 2 * rng.standard_normal(4)
    weights, kept = hull_of_answers._best_weights(G, linear, np.array([0.4, 0.3, 0.3, 0.0]))
    assert weights.min() > 0
    assert weights.sum() == pytest.approx(1)
    best = np.inf
    for mask in range(1, 16):
        face = [k for k in range(4) if mask >> k & 1]
        system = np.ones((len(face) + 1,) * 2)
        system[:-1, :-1], system[-1, -1] = G[np.ix_(face, face)], 0
        w = np.linalg.solve(system, np.append(-linear[face], 1.0))[:-1]
        if (w >= 0).all():
            best = min(best, w @ G[np.ix_(face, face)] @ w / 2 + linear[face] @ w)
    found = weights @ G[np.ix_(kept, kept)] @ weights / 2 + linear[kept] @ weights
    start = np.array([0.4, 0.3, 0.3, 0.0])
    assert best - 1e-9 <= found <= start @ G @ start / 2 + linear @ start


@pytest.mark.parametrize("name", POLYTOPES)
def test_one_call_leads_towards_its_answer(name):
    """The linear minimiser of m, Q's slopes at x, as far as Q falls."""
    constraint, shape = POLYTOPES[name]
    rng = np.random.default_rng(6)
    for _ in range(3):
        x, m = constraint.start(shape), 4 * rng.standard_normal(shape)
        h = rng.uniform(0.5, 2.0, shape)
        way = constraint.lmo(m) - x
        share = min(1.0, -float(np.vdot(m, way)) / float(np.vdot(way, h * way)))
        y = subproblem.solve(constraint, x, m, h, 1.0, 1)
        np.testing.assert_allclose(y, x + share * way, atol=1e-9)


@pytest.mark.parametrize("name", [*SETS, *POLYTOPES])
def test_single_numbers_stay_single(name):
    constraint, shape = POLYTOPES.get(name) or (SETS[name], (N,))
    rng = np.random.default_rng(2)
    x = constraint.start(shape).astype(np.float32)
    m = 3 * rng.standard_normal(shape).astype(np.float32)
    h = rng.uniform(0.5, 2.0, shape).astype(np.float32)
    y = subproblem.solve(constraint, x, m, h, 0.8, None)
    assert y.dtype == np.float32
    wide = [part.astype(np.float64) for part in (x, m, h)]
    np.testing.assert_allclose(y, subproblem.solve(constraint, *wide, 0.8, None), atol=2e-3)


def test_calls_and_gaps_end_the_sets_of_a_product():
    product = adafw.Product([(adafw.L1Ball(1.0), 5), (adafw.Simplex(2.0), 4)])
    rng = np.random.default_rng(7)
    x = product.lmo(rng.standard_normal(9))
    m, h = 3 * rng.standard_normal(9), rng.uniform(0.5, 2.0, 9)
    for calls, enough, asked in ((1, None, 1), (7, None, 2), (None, 1e9, 1)):
        counted = CountedSet(product)
        y = subproblem.solve(counted, x, m, h, 0.7, calls, enough)
        assert counted.lmo_calls == asked
        for part, at in ((adafw.L1Ball(1.0), slice(0, 5)), (adafw.Simplex(2.0), slice(5, 9))):
            alone = subproblem.solve(part, x[at], m[at], h[at], 0.7, calls, enough)
            np.testing.assert_allclose(y[at], alone, atol=1e-14)
        if enough is not None:
            assert not y[x == 0].any()


def test_groups_of_matrices_are_solved_as_those_of_vectors():
    labels = np.array([[0, 0, 1], [2, 1, 2]])
    rng = np.random.default_rng(8)
    x, m = np.zeros((2, 3)), 3 * rng.standard_normal((2, 3))
    h = rng.uniform(0.5, 2.0, (2, 3))
    x[0, 2] = 0.5
    y = subproblem.solve(adafw.GroupBall(1.2, labels), x, m, h, 0.7, None)
    flat = (part.reshape(-1) for part in (x, m, h))
    same = subproblem.solve(adafw.GroupBall(1.2, labels.reshape(-1)), *flat, 0.7, None)
    np.testing.assert_allclose(y, same.reshape(2, 3), atol=1e-14)


def test_a_group_is_free_as_a_whole():
    """All of its coordinates move where one of them is in use, before any call names them."""
    ball = adafw.GroupBall(1.2, GROUPS)
    x, m = np.zeros(N), np.linspace(-1, 1, N)
    x[4] = 0.5
    y = subproblem.solve(ball, x, m, np.ones(N), 0.1, None, enough=1e9)
    group = GROUPS[4] == GROUPS
    np.testing.assert_allclose(y[group], (x - 0.1 * m)[group])
    assert not y[~group].any()


def sides(radius):
    """Every other set that has a projection in a metric, with the shape of its points."""
    rows = np.random.default_rng(5).standard_normal((14, N))
    blocks = [(adafw.L1Ball(radius), 5), (adafw.LpBall(radius, 1.5), 4),
              (adafw.NuclearBall(radius), (3, 2))]  # fmt: skip
    return {
        "nonnegative": (adafw.Nonnegative(radius), (N,)),
        "monotone": (adafw.Monotone(radius), (N,)),
        "hull": (adafw.Hull(radius * rows), (N,)),
        "birkhoff": (adafw.Birkhoff(), (4, 4)),
        "polytope": (adafw.Polytope(rows[:5], radius * np.ones(5), bounds=(-radius, radius)), (N,)),
        "columns": (adafw.Columns(adafw.LpBall(radius, 1.5)), (4, 3)),
        "columns, simplex": (adafw.Columns(adafw.Simplex(radius)), (4, 3)),
        "rows": (adafw.RowBall(radius), (4, 3)),
        "rows, flat": (adafw.RowBall(radius, shape=(4, 3)), (N,)),
        "lines": (adafw.ColumnBall(radius), (4, 3)),
        "product": (adafw.Product(blocks), (15,)),
        "lp": (adafw.LpBall(radius, 1.2), (N,)),
        "nuclear": (adafw.NuclearBall(radius), (5, 3)),
        "nuclear, flat": (adafw.NuclearBall(radius, shape=(3, 5)), (15,)),
        "larger nuclear": (adafw.NuclearBall(radius), (9, 12)),
        "spectral": (adafw.SpectralBall(radius), (5, 3)),
        "larger spectral": (adafw.SpectralBall(radius), (12, 9)),
    }


@pytest.mark.parametrize("name", sides(1.0))
@pytest.mark.parametrize("radius", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_uneven_metrics_and_all_radii_reach_the_projection(name, radius, spread):
    """A gap at rounding level would leave its square root in x on round sets."""
    constraint, shape = sides(radius)[name]
    rng = np.random.default_rng(11)
    for far in (0.3, 1.0, 30.0):
        x = constraint.start(shape)
        x = x + rng.random() * (constraint.lmo(rng.standard_normal(shape)) - x)
        h = 10 ** rng.uniform(-spread / 2, spread / 2, shape)
        m = h * constraint.scale * far * rng.standard_normal(shape)
        y = subproblem.solve(constraint, x, m, h, 1.0, None)
        nearest = constraint.project(x - m / h, h)
        np.testing.assert_allclose(y, nearest, atol=1e-9 * constraint.scale)
        assert constraint.violation(y) <= 1e-12
