import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize

from adafw import Birkhoff, Box, Polytope, Simplex, UnitSimplex


def random_polytope(rng, n, m, k, finite=True):
    """Arguments of a Polytope around a random point."""
    inside = rng.uniform(-1, 1, n)
    A, E = rng.standard_normal((m, n)), rng.standard_normal((k, n))
    parts = A, A @ inside + rng.uniform(0, 1, m), E, E @ inside
    low, high = inside - rng.uniform(0, 2, n), inside + rng.uniform(0, 2, n)
    if not finite:
        low[::2] = -np.inf
    return (*parts, np.column_stack([low, high]))


def test_is_the_sets_that_have_names():
    rng = np.random.default_rng(0)
    one = np.ones((1, 4))
    pairs = [
        (Polytope(A_eq=one, b_eq=[2.0]), Simplex(2.0)),
        (Polytope(A_ub=one, b_ub=[2.0]), UnitSimplex(2.0)),
        (Polytope(bounds=[(-1, 2)] * 4), Box(-1, 2)),
    ]
    for ours, theirs in pairs:
        for _ in range(10):
            x, h = 3 * rng.standard_normal(4), 10 ** rng.uniform(-3, 3, 4)
            np.testing.assert_allclose(ours.lmo(x), theirs.lmo(x), atol=1e-14)
            np.testing.assert_allclose(ours.project(x, h), theirs.project(x, h), atol=1e-10)
        assert ours.diameter(4, np.inf) == pytest.approx(theirs.diameter(4, np.inf))


def test_birkhoff_written_as_a_polytope():
    """Row and column sums are dependent: one of them follows from the others."""
    rng = np.random.default_rng(1)
    A = np.vstack([np.kron(np.eye(4), np.ones(4)), np.kron(np.ones(4), np.eye(4))])
    ours = Polytope(A_eq=A, b_eq=np.ones(8))
    for _ in range(5):
        x, h = rng.standard_normal((4, 4)), 10 ** rng.uniform(-2, 2, (4, 4))
        expected = Birkhoff().project(x, h).ravel()
        np.testing.assert_allclose(ours.project(x.ravel(), h.ravel()), expected, atol=1e-9)
        assert ours.lmo(x.ravel()) @ x.ravel() == pytest.approx(np.vdot(x, Birkhoff().lmo(x)))


@pytest.mark.parametrize(("m", "k"), [(0, 0), (3, 0), (0, 2), (4, 2), (30, 0), (30, 2)])
def test_projection_agrees_with_a_general_solver(m, k):
    rng = np.random.default_rng([2, m, k])
    for _ in range(3):
        A, b, E, e, bounds = random_polytope(rng, 5, m, k)
        x, h = 2 * rng.standard_normal(5), 10 ** rng.uniform(-1, 1, 5)
        polytope = Polytope(A, b, E, e, bounds)
        rows = [{"type": "ineq", "fun": lambda v, A=A, b=b: b - A @ v}] if m else []
        rows += [{"type": "eq", "fun": lambda v, E=E, e=e: E @ v - e}] if k else []
        found = minimize(
            lambda v, x=x, h=h: np.sum(h * (v - x) ** 2),
            polytope.start(5),
            jac=lambda v, x=x, h=h: 2 * h * (v - x),
            bounds=bounds,
            constraints=rows,
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        v = polytope.project(x, h)
        assert polytope.violation(v) <= 1e-14
        np.testing.assert_allclose(v, found.x, atol=1e-5)


def test_bounds_are_those_of_linprog():
    g = np.array([1.0, -1.0])
    A, b = [[1.0, 1.0]], [1.0]
    for bounds in (None, (0, None), (-1, 1), [(None, 3), (0, 5)], [(0, None), (-2, None)]):
        rows = ([[1.0, 1], [-1, -1], [1, -1], [-1, 1]], [1.0, 6, 5, 6])
        ours = Polytope(*rows, bounds=bounds)
        theirs = linprog(g, *rows, bounds=bounds)
        np.testing.assert_allclose(ours.lmo(g), theirs.x, atol=1e-9)
    np.testing.assert_allclose(Polytope(A, b).lmo(g), [0, 1], atol=1e-12)  # x >= 0 by default


def test_sparse_rows_are_the_same_set():
    rng = np.random.default_rng(3)
    A = rng.standard_normal((3, 5)) * (rng.random((3, 5)) < 0.5)
    dense = Polytope(A, np.ones(3), bounds=(-1, 1))
    for kind in (sparse.csr_array, sparse.coo_matrix, sparse.csc_array):
        assert Polytope(kind(A), np.ones(3), bounds=(-1, 1)) == dense


def test_gap_is_proven_by_the_dual_solution():
    rng = np.random.default_rng(4)
    for finite in (True, False):
        A, b, E, e, bounds = random_polytope(rng, 6, 40, 1, finite)
        polytope = Polytope(A, b, E, e, bounds)
        for _ in range(5):
            g, x = rng.standard_normal(6), polytope.start(6)
            exact = g @ x - linprog(g, A, b, E, e, bounds, method="highs-ipm").fun
            gap = polytope.gap(x, g)
            assert gap >= exact - 1e-12
            assert gap == pytest.approx(exact, abs=1e-7)
            assert polytope.gap(x, 1e-250 * g) == pytest.approx(1e-250 * gap)
        assert polytope.gap(x, np.zeros(6)) == 0


@pytest.mark.parametrize("finite", [True, False])
def test_a_bound_below_every_solution_whatever_the_multipliers(finite):
    """Weak duality: none is above the least value, those of the solver are at it."""
    rng = np.random.default_rng(14)
    polytope = Polytope(*random_polytope(rng, 5, 12, 2, finite))
    for _ in range(10):
        cost = rng.standard_normal(5)
        result = polytope._solve(cost)
        assert polytope._dual_bound(cost, result) == pytest.approx(result.fun, abs=1e-9)
        for size in (0.1, 1.0, 10.0):
            result.ineqlin.marginals = result.ineqlin.marginals + size * rng.standard_normal(12)
            result.eqlin.marginals = result.eqlin.marginals + size * rng.standard_normal(2)
            assert polytope._dual_bound(cost, result) <= result.fun + 1e-9


class Sloppy(Polytope):
    """A vertex that is not the best, as a solver of few digits may return."""

    def _solve(self, cost):
        result = super()._solve(cost)
        if cost.any():
            result.x = result.x + 0.01
            result.fun = cost @ result.x
        return result


def test_the_gap_makes_up_for_what_a_solver_missed():
    rng = np.random.default_rng(15)
    parts = random_polytope(rng, 5, 12, 1)
    exact, sloppy = Polytope(*parts), Sloppy(*parts)
    x = exact.start(5)
    for scale in (1e-3, 1.0, 1e5):
        g = scale * rng.random(5)
        assert sloppy.gap(x, g) == pytest.approx(exact.gap(x, g), rel=1e-6, abs=1e-9 * scale)


def test_no_vertex_is_beyond_a_bound():
    """Not by the rounding of its scale either."""
    rng = np.random.default_rng(16)
    for _ in range(30):
        ends = np.sort(rng.standard_normal((6, 2)), axis=1)
        polytope = Polytope(rng.standard_normal((2, 6)), [9.0, 9.0], bounds=ends)
        v = polytope.lmo(rng.standard_normal(6))
        assert ((ends[:, 0] <= v) & (v <= ends[:, 1])).all()
        p = polytope.project(9 * rng.standard_normal(6))
        assert ((ends[:, 0] <= p) & (p <= ends[:, 1])).all()


def test_what_was_given_may_change_afterwards():
    A, b, ends = np.array([[1.0, 1.0]]), np.array([1.0]), np.array([[0.0, 2.0], [0.0, 2.0]])
    for rows in (A, sparse.csr_array(A)):
        polytope, same = (Polytope(rows, b, rows.copy(), b, bounds=ends) for _ in range(2))
        before = polytope.describe()
        kept = [values.copy() for values in (rows, b, ends)]
        rows *= 5
        b *= 5
        ends *= 5
        assert polytope.describe() == before
        assert polytope == same
        rows[...] = kept[0] if rows is A else 0
        b[:], ends[:] = kept[1], kept[2]
    polytope.start(2)[:] = 7
    polytope.lmo(np.zeros(2))[:] = 7
    assert polytope.contains(polytope.start(2))
    with pytest.raises(ValueError, match="read-only"):
        polytope.bounds[0, 0] = -1.0


def test_entries_in_any_order_and_in_parts_are_the_same_rows():
    plain = Polytope([[1.0, 2.0, 3.0]], [4.0], bounds=(-1, 1))
    places = (np.array([0, 0, 0, 0]), np.array([2, 0, 1, 0]))
    parts = sparse.coo_array((np.array([3.0, 0.25, 2.0, 0.75]), places), shape=(1, 3))
    unsorted = sparse.csr_array(
        (np.array([3.0, 0.25, 2.0, 0.75]), np.array([2, 0, 1, 0]), np.array([0, 4])), shape=(1, 3)
    )
    for rows in (parts, unsorted):
        assert Polytope(rows, [4.0], bounds=(-1, 1)) == plain
    assert unsorted.nnz == 4  # as it was


def test_no_rows_at_all_are_none():
    for rows in (np.zeros((0, 2)), sparse.csr_array((0, 2))):
        box = Polytope(rows, [], rows, [], bounds=[(0, 1), (2, 3)])
        assert box == Polytope(bounds=[(0, 1), (2, 3)])
    with pytest.raises(ValueError, match="A_ub and b_ub must be given together"):
        Polytope(np.ones((1, 2)), bounds=(0, 1))
    with pytest.raises(ValueError, match="A_eq and b_eq must be given together"):
        Polytope(b_eq=[1.0], bounds=[(0, 1)])


def test_metrics_stay_with_their_coordinates_where_some_have_no_room():
    """The second coordinate is fixed; the others are pulled in the metric of their own."""
    polytope = Polytope(A_eq=[[1.0, 1, 1]], b_eq=[2.0], bounds=[(-5, 5), (1, 1), (-5, 5)])
    v = polytope.project(np.array([3.0, 9.0, 3.0]), np.array([4.0, 100.0, 1.0]))
    # x_1 + x_3 = 1, 5 below 6: shared as 1 to 4.
    np.testing.assert_allclose(v, [2.0, 1.0, -1.0], atol=1e-12)


def test_variables_without_room_stay_where_they_must():
    polytope = Polytope([[1.0, 1, 1]], [2.0], bounds=[(0, 5), (1, 1), (0, 5)])
    v = polytope.project(np.array([3.0, 9.0, 3.0]))
    np.testing.assert_allclose(v, [0.5, 1, 0.5], atol=1e-12)


def test_a_polytope_without_interior():
    """x_1 + x_2 <= 1 and >= 1: the interior-point method has no interior."""
    polytope = Polytope([[1.0, 1], [-1, -1]], [1.0, -1.0])
    np.testing.assert_allclose(polytope.project(np.array([2.0, 0.5])), [1, 0], atol=1e-8)
    np.testing.assert_allclose(polytope.project(np.array([0.5, 0.1])), [0.7, 0.3], atol=1e-8)


def test_box_around_the_set_gives_the_diameter():
    triangle = Polytope([[1.0, 1.0]], [1.0])
    np.testing.assert_allclose(triangle.box, [[0, 1], [0, 1]], atol=1e-12)
    assert triangle.diameter(2, np.inf) == pytest.approx(1)
    assert triangle.diameter(2) >= 2**0.5 - 1e-12


def test_violation_is_relative_to_the_distance_of_the_hyperplanes():
    square = Polytope(bounds=[(-4, 4)] * 2)
    assert square.violation(np.array([6.0, 0])) == pytest.approx(0.5)
    tilted = Polytope([[3.0, 4.0]], [10.0], bounds=(-2, 2))
    assert tilted.violation(np.array([2.0, 2.0])) == pytest.approx(4 / 5 / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs A_ub, A_eq, or"),
        ({"A_ub": [[1.0]]}, "given together"),
        ({"A_ub": [[1.0, 1]], "b_ub": [1.0, 2]}, "an entry per row"),
        ({"A_ub": [[1.0, np.nan]], "b_ub": [1.0]}, "A_ub must be finite"),
        ({"A_ub": [1.0], "b_ub": [1.0]}, "two dimensions"),
        ({"A_ub": [[1.0, 1]], "b_ub": [1.0], "A_eq": [[1.0]], "b_eq": [1.0]}, "have 2 columns"),
        ({"bounds": [(0, 1), (2, 1)]}, "low <= high"),
        ({"bounds": [(0, 1), (0, np.nan)]}, "low <= high"),
        ({"A_ub": [[1.0, 1]], "b_ub": [1.0], "bounds": [(0, 1)] * 3}, "bounds must be a pair"),
        ({"A_ub": [[1.0, 1]], "b_ub": [-1.0]}, "must not be empty"),
        ({"A_ub": [[1.0, -1]], "b_ub": [1.0]}, "must be bounded"),
        ({"A_ub": [[1.0, 1]], "b_ub": [1.0], "bounds": (None, 1)}, "must be bounded"),
        ({"A_ub": [[1.0, 1], [-1, -1]], "b_ub": [1.0, 1], "bounds": (None, None)}, "be bounded"),
        ({"A_eq": [[1.0, 1]], "b_eq": [1.0], "bounds": (None, None)}, "must be bounded"),
    ],
)  # fmt: skip
def test_bad_descriptions_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Polytope(**arguments)


def test_a_cross_polytope_without_bounds_is_bounded():
    signs = np.array([[a, b] for a in (-1.0, 1) for b in (-1.0, 1)])
    diamond = Polytope(signs, np.ones(4), bounds=(None, None))
    np.testing.assert_allclose(diamond.lmo(np.array([3.0, 1])), [-1, 0], atol=1e-12)
    np.testing.assert_allclose(diamond.project(np.array([3.0, 2.0])), [1, 0], atol=1e-10)


def test_projection_onto_a_corner_where_a_constraint_hardly_binds():
    """Multiplier and slack both vanish: a duality gap only tells the square of the error."""
    corner = Polytope([[1.0, 1.0], [1.0, -1.0]], [1.0, 1.0], bounds=(-5, 5))
    for x in ([3.0, 2.0], [2.0, 1.0], [1e6 + 1, 1e6]):
        np.testing.assert_allclose(corner.project(np.array(x)), [1, 0], atol=1e-9)


def test_the_length_of_rows_does_not_matter():
    """The tolerances of HiGHS are absolute; rows and sets of any size must not notice."""
    rng = np.random.default_rng(5)
    A, b, E, e, bounds = random_polytope(rng, 4, 5, 1)
    x, h = 3 * rng.standard_normal(4), 10 ** rng.uniform(-1, 1, 4)
    plain = Polytope(A, b, E, e, bounds)
    factors = 10.0 ** np.array([-9, 9, 0, -5, 5])
    other = Polytope(factors[:, None] * A, factors * b, 1e-8 * E, 1e-8 * e, bounds)
    np.testing.assert_allclose(other.lmo(x), plain.lmo(x), atol=1e-12)
    np.testing.assert_allclose(other.project(x, h), plain.project(x, h), atol=1e-10)
    assert other.violation(x) == pytest.approx(plain.violation(x))


def test_a_row_of_zeros_changes_nothing():
    """It has no direction, and a slack that cannot move away from 0."""
    square = Polytope([[1.0, 1.0]], [1.0], bounds=(-1, 1))
    padded = Polytope([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]], [0.0, 1.0, 2.0], bounds=(-1, 1))
    fixed = Polytope([[1.0, 1.0, 0], [0, 0, 1]], [1.0, 2], bounds=[(-1, 1), (-1, 1), (2, 2)])
    for x, h in (([3.0, 2.0], [1.0, 1e-8]), ([-7.0, 9.0], [1.0, 3.0]), ([0.6, 0.6], [1e-8, 1.0])):
        expected = square.project(np.array(x), np.array(h))
        np.testing.assert_allclose(padded.project(np.array(x), np.array(h)), expected, atol=1e-12)
        v = fixed.project(np.array([*x, 5.0]), np.array([*h, 1.0]))
        np.testing.assert_allclose(v, [*expected, 2.0], atol=1e-12)


def test_projection_onto_the_origin():
    """All of v tends to 0, and no error is small relative to v."""
    for n in (1, 2, 3):
        orthant = Polytope(np.eye(n), np.zeros(n), bounds=(-2, 2))
        for h in (np.ones(n), 10.0 ** -np.arange(0, 4 * n, 4)):
            v = orthant.project(np.full(n, 315.0), h)
            np.testing.assert_allclose(v, np.zeros(n), atol=1e-15)


def test_projection_of_points_with_zeros():
    """An entry that is 0 in x and v and that no bound or row pulls: 0 relative to 0."""
    rng = np.random.default_rng(7)
    for _ in range(40):
        A, inside = rng.standard_normal((3, 4)), rng.uniform(-1, 1, 4)
        polytope = Polytope(A, A @ inside + rng.random(3), bounds=(-2, 2))
        for x in (np.array([0.0, 0, 0, 5]), np.array([-4.0, 0, 2, 0]), np.array([0.0, 7, 0, 0])):
            v = polytope.project(x)
            pull = v - x
            assert polytope.violation(v) <= 1e-14
            assert pull @ (v - polytope.lmo(pull)) <= 1e-9


@pytest.mark.parametrize(
    ("rows", "x", "h"),
    [
        (
            {"A_eq": [[0.0, 1]], "b_eq": [0.0], "A_ub": [[1.0, 1]], "b_ub": [0.0]},
            [0.19554387, 0.21234589],
            [0.0034912, 0.00296527],
        ),
        (
            {
                "A_eq": [[-1.0, 2, 2, 1], [0, -2, -2, 2], [1, 2, 0, 0]],
                "b_eq": [0.43437789128934134, 0.8687557825786827, 0],
            },
            [-0.473, 0.308, 0.6127, -1.479],
            [0.364, 0.01447, 0.872, 0.00262],
        ),
    ],
)
def test_sets_of_a_single_point_are_met(rows, x, h):
    """In a row whose terms all vanish, every error is large relative to them."""
    polytope = Polytope(**rows, bounds=(0, 1))
    assert polytope.violation(polytope.project(np.array(x), np.array(h))) <= 1e-12


@pytest.mark.parametrize(
    ("arguments", "bounded"),
    [
        ({"A_ub": np.eye(2), "b_ub": [1.0, 1.0], "bounds": (None, None)}, False),  # a quadrant
        ({"A_ub": np.eye(2), "b_ub": [1.0, 1.0], "bounds": (None, 3)}, False),
        ({"A_ub": -np.eye(2), "b_ub": [1.0, 1.0], "bounds": (None, 3)}, True),
        ({"A_ub": [[1.0, 1.0]], "b_ub": [1.0], "bounds": (0, None)}, True),
        ({"A_ub": [[1.0, -1.0]], "b_ub": [1.0], "bounds": (0, None)}, False),  # a ray
        # A line in a coordinate that no row knows, and none where rows know it.
        ({"A_ub": [[0.0, 1.0]], "b_ub": [1.0], "bounds": [(None, None), (0, 1)]}, False),
        ({"A_eq": [[0.0, 1.0]], "b_eq": [1.0], "bounds": [(None, None), (0, 1)]}, False),
        ({"A_eq": [[1.0, 1.0]], "b_eq": [1.0], "bounds": [(None, None), (0, 1)]}, True),
        ({"A_eq": [[1.0, 1.0]], "b_eq": [1.0], "bounds": (None, None)}, False),  # a line
        ({"A_eq": [[1.0, 1.0], [1.0, -1.0]], "b_eq": [1.0, 0.0], "bounds": (None, None)}, True),
    ],
)
def test_a_set_without_end_is_refused_and_no_other(arguments, bounded):
    if bounded:
        polytope = Polytope(**arguments)
        assert np.isfinite(polytope.box).all()
        return
    with pytest.raises(ValueError, match="a Polytope must be bounded"):
        Polytope(**arguments)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_where_it_starts_is_in_it_whatever_its_size(scale):
    polytope = Polytope(A_eq=[[1.0, 1, 1]], b_eq=[2.0 * scale], bounds=(0.5 * scale, None))
    assert polytope.contains(polytope.start(3), 1e-12)
    assert polytope.contains(polytope.lmo(np.zeros(3)), 1e-12)
    assert polytope.start(3).sum() == pytest.approx(2 * scale)


def test_the_scale_is_the_largest_distance_whatever_its_sign():
    """Of a hyperplane from the origin, by which tolerances are measured."""
    line = Polytope(A_eq=[[-3.0, -4.0]], b_eq=[-25.0])
    corner = Polytope(A_ub=[[-3.0, -4.0], [1.0, 0.0], [0.0, 1.0]], b_ub=[-25.0, 4.5, 4.5])
    low = Polytope(A_ub=[[1.0, 1.0]], b_ub=[0.0], bounds=[(-6, 1), (-2, 1)])
    assert [one.scale for one in (line, corner, low)] == [5.0, 5.0, 6.0]
    assert line.violation(np.array([0.0, 0.0])) == pytest.approx(1.0)
    assert low.violation(np.array([-9.0, 0.0])) == pytest.approx(0.5)


@pytest.mark.parametrize("part", ["A_ub", "b_ub", "A_eq", "b_eq", "bounds", "places"])
def test_polytopes_that_differ_in_anything_are_different(part):
    given = {
        "A_ub": np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]), "b_ub": np.array([2.0, 1.0]),
        "A_eq": np.array([[1.0, 0.0, 1.0]]), "b_eq": np.array([1.0]),
        "bounds": [(0, 1), (0, 2), (0, 3)],
    }  # fmt: skip
    other = dict(given)
    if part == "bounds":
        other["bounds"] = [(0, 1), (0, 2), (0, 4)]
    elif part == "places":  # the same entries elsewhere
        other["A_eq"] = np.array([[1.0, 1.0, 0.0]])
    else:
        other[part] = 1.5 * given[part]
    assert Polytope(**given) == Polytope(**given)
    assert Polytope(**given) != Polytope(**other)
    moved = {**given, "A_ub": np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0]])}
    assert Polytope(**given) != Polytope(**moved)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_refused(bad):
    for side in ("ub", "eq"):
        with pytest.raises(ValueError, match=f"A_{side} must be finite, got NaN or infinity"):
            Polytope(**{f"A_{side}": [[1.0, bad]], f"b_{side}": [1.0]}, bounds=(0, 1))
        with pytest.raises(ValueError, match=f"b_{side} must be finite"):
            Polytope(**{f"A_{side}": [[1.0, 1.0]], f"b_{side}": [bad]}, bounds=(0, 1))
