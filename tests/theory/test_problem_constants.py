"""L, G, D, ||A||_2 and the data's diameters, against brute force over vertices and samples."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses, theory
from adafw.theory import problem_constants

N = 4
LOSSES = [
    losses.Squared(),
    losses.Logistic(),
    losses.SquaredHinge(),
    losses.Huber(0.5),
    losses.SmoothedHinge(0.3),
]


def signed_units(r):
    return r * np.vstack([np.eye(N), -np.eye(N)])


LOWER, UPPER = np.array([-1.0, 0.0, -0.5, 0.2]), np.array([0.5, 1.0, -0.1, 0.2])
POLYTOPES = [
    (adafw.L1Ball(1.5), signed_units(1.5)),
    (adafw.LInfBall(0.7), 0.7 * np.array(list(product([-1, 1], repeat=N)))),
    (adafw.Simplex(2.0), 2 * np.eye(N)),
    (adafw.UnitSimplex(2.0), np.vstack([2 * np.eye(N), np.zeros(N)])),
    (adafw.Box(LOWER, UPPER), np.array(list(product(*zip(LOWER, UPPER, strict=True))))),
]
polytopes = pytest.mark.parametrize(("constraint", "vertices"), POLYTOPES, ids=lambda p: "")


def model(loss=LOSSES[0], weighted=False, kind=np.asarray, seed=0):
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((11, N)), rng.choice([-1.0, 1.0], 11)
    return adafw.LinearModel(kind(A), y, loss, rng.random(11) if weighted else None), A


def gradients_of_terms(f, x):
    return np.array([f.gradient(x, np.array([i])) for i in range(f.n_terms)])


def points(constraint, vertices, count=60):
    rng = np.random.default_rng(1)
    inner = rng.dirichlet(np.full(len(vertices), 0.3), count) @ vertices
    return np.vstack([vertices, inner])


@polytopes
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_gradient_bound_is_the_largest_gradient_of_a_term(constraint, vertices, loss, weighted):
    f, _ = model(loss, weighted)
    G = theory.constants(f, constraint).gradient_bound
    norms = [
        np.linalg.norm(gradients_of_terms(f, x), axis=1).max() for x in points(constraint, vertices)
    ]
    assert max(norms) <= G * (1 + 1e-12)
    # Each term is a function of <a_i, x>, which is largest and smallest at vertices.
    assert max(norms[: len(vertices)]) == pytest.approx(G, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
def test_smoothness_bounds_the_change_of_every_terms_gradient(loss, weighted):
    f, A = model(loss, weighted)
    c = theory.constants(f, adafw.L2Ball(1.0))
    rng, worst = np.random.default_rng(2), 0.0
    xs = rng.standard_normal((200, N)) * 10.0 ** rng.uniform(-3, 1, (200, 1))
    for x, y in pairwise(xs):
        change = np.linalg.norm(gradients_of_terms(f, x) - gradients_of_terms(f, y), axis=1)
        worst = max(worst, change.max() / np.linalg.norm(x - y))
    assert worst <= c.smoothness * (1 + 1e-9)
    if not weighted:
        formula = loss.curvature * (A**2).sum(axis=1).max()
        assert c.smoothness == pytest.approx(formula, rel=1e-14)


def test_gradient_bound_on_the_l2_ball_is_attained_at_a_row():
    f, A = model(losses.Logistic())
    c = theory.constants(f, adafw.L2Ball(2.0))
    ends = [s * 2 * a / np.linalg.norm(a) for a in A for s in (1, -1)]
    largest = max(np.linalg.norm(gradients_of_terms(f, x), axis=1).max() for x in ends)
    assert c.gradient_bound == pytest.approx(largest, rel=1e-12)


@polytopes
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_diameters_of_the_data(constraint, vertices, kind):
    f, A = model(kind=kind)
    c = theory.data_constants(f, constraint)
    images = (vertices[:, None] - vertices[None]) @ A.T
    widest, longest = np.abs(images).max(), np.abs(images).sum(axis=2).max()
    assert c.data_diameter_inf == pytest.approx(widest, rel=1e-12)
    assert c.data_diameter_1 >= longest * (1 - 1e-12)
    if "data_diameter_1" in c.exact:
        assert c.data_diameter_1 == pytest.approx(longest, rel=1e-12)
    assert ("data_diameter_1" in c.exact) is isinstance(
        constraint, adafw.L1Ball | adafw.Simplex | adafw.UnitSimplex
    )
    assert c.diameter == pytest.approx(
        np.linalg.norm(vertices[:, None] - vertices[None], axis=2).max(), rel=1e-12
    )
    assert c.operator_norm == pytest.approx(np.linalg.norm(A, 2), rel=1e-12)
    assert c.curvature == 2.0
    assert {"data_diameter_inf", "diameter", "operator_norm"} <= set(c.exact)


def test_the_origin_is_a_vertex_of_the_unit_simplex():
    """Columns that point one way: no two are as far from each other as the longest is from 0."""
    A = 1 + 0.1 * np.random.default_rng(0).random((11, N))
    f = adafw.LinearModel(A, np.ones(11), LOSSES[0])
    c = theory.data_constants(f, adafw.UnitSimplex(2.0))
    assert c.data_diameter_1 == pytest.approx(2 * A.sum(axis=0).max(), rel=1e-14)
    assert c.data_diameter_inf == pytest.approx(2 * A.max(), rel=1e-14)
    assert theory.data_constants(f, adafw.Simplex(2.0)).data_diameter_1 < 0.1 * c.data_diameter_1


def test_the_linf_balls_bound_is_the_one_of_the_documentation():
    f, A = model()
    c = theory.data_constants(f, adafw.LInfBall(0.7))
    assert c.data_diameter_1 == pytest.approx(2 * 0.7 * np.abs(A).sum(), rel=1e-14)


def test_a_large_simplex_is_bounded_by_the_sum_of_ranges(monkeypatch):
    f, A = model()
    small = theory.data_constants(f, adafw.Simplex(2.0))
    monkeypatch.setattr(problem_constants, "_PAIRS", 0)
    large = theory.data_constants(f, adafw.Simplex(2.0))
    ranges = 2 * (A.max(axis=1) - A.min(axis=1))
    assert large.data_diameter_1 == pytest.approx(ranges.sum(), rel=1e-14)
    assert large.data_diameter_1 >= small.data_diameter_1
    assert "data_diameter_1" not in large.exact
    for most, exact in ((N * N * 11 - 1, False), (N * N * 11, True)):
        monkeypatch.setattr(problem_constants, "_PAIRS", most)
        found = theory.data_constants(f, adafw.Simplex(2.0))
        assert ("data_diameter_1" in found.exact) == exact


@pytest.mark.parametrize("constraint", [adafw.L1Ball(1.5), adafw.L2Ball(2.0), adafw.LInfBall(0.3)])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_formulas_of_the_balls_are_what_the_lmo_says(constraint, kind):
    f, _ = model(kind=kind)
    only_lmo = adafw.UserSet(constraint.lmo, np.zeros(N))
    for fast, slow in zip(
        theory.prediction_range(f, constraint), theory.prediction_range(f, only_lmo), strict=True
    ):
        np.testing.assert_allclose(fast, slow, rtol=1e-12)


def test_matrix_completion_has_constants_too():
    rows, cols, values = np.array([0, 1, 0]), np.array([1, 1, 1]), np.array([1.0, -2.0, 3.0])
    f = adafw.MatrixCompletion(rows, cols, values, (2, 2))
    c = theory.constants(f, adafw.L1Ball(5.0))
    assert (c.smoothness, c.gradient_bound, c.diameter) == (2.0, 2 * (5 + 3), 10.0)
    d = theory.data_constants(f, adafw.L1Ball(5.0))
    assert d.operator_norm == pytest.approx(np.sqrt(2))
    assert (d.data_diameter_1, d.data_diameter_inf) == (20.0, 10.0)
    only_lmo = adafw.UserSet(adafw.L1Ball(5.0).lmo, np.zeros((2, 2)))
    assert theory.constants(f, only_lmo, diameter=10.0).gradient_bound == 16.0


def test_what_is_given_is_taken_and_not_called_exact():
    user = adafw.UserSum(3, lambda x: 0.0, lambda x, batch: x, convex=True)
    c = theory.constants(user, adafw.L2Ball(1.0), smoothness=3, gradient_bound=4, diameter=5)
    assert c == theory.Constants(3.0, 4.0, 5.0)
    poisson = adafw.LinearModel(np.eye(2), [1, 2], losses.Poisson())
    c = theory.constants(poisson, adafw.L1Ball(1.0), smoothness=np.e)
    assert c.gradient_bound == pytest.approx(np.e - 1)
    d = theory.data_constants(poisson, adafw.L1Ball(1.0), curvature=np.e, diameter=7)
    assert (d.curvature, d.diameter) == (np.e, 7)
    assert "diameter" not in d.exact


def test_a_counted_objective_has_the_same_constants():
    f, _ = model(losses.Logistic())
    for compute in (theory.constants, theory.data_constants):
        assert compute(adafw.Counted(f), adafw.L1Ball(1.0)) == compute(f, adafw.L1Ball(1.0))


def test_prints_which_constants_are_exact():
    f, _ = model()
    lines = str(theory.data_constants(f, adafw.LInfBall(1.0))).splitlines()
    assert lines[0] == "DataConstants"
    kinds = {line.split()[0]: line.split(maxsplit=2)[2] for line in lines[1:]}
    assert kinds == {
        "curvature": "upper bound",
        "operator_norm": "exact",
        "diameter": "exact",
        "data_diameter_1": "upper bound",
        "data_diameter_inf": "exact",
    }


class _Concave(losses.Loss):
    curvature = 1.0
    convex = False

    def value(self, z, y):
        return -(z**2)

    def slope(self, z, y):
        return -2 * z


USER_SUM = adafw.UserSum(3, lambda x: 0.0, lambda x, batch: x)
USER_SET = adafw.UserSet(adafw.L1Ball(1.0).lmo, lambda shape, dtype: np.zeros(shape))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.constants(USER_SUM, adafw.L1Ball(1)), "computing smoothness needs terms"),
        (
            lambda: theory.constants(USER_SUM, adafw.L1Ball(1), smoothness=1),
            "computing gradient_bound needs terms",
        ),
        (
            lambda: theory.constants(USER_SUM, USER_SET, smoothness=1, gradient_bound=1),
            "diameter must be given: neither",
        ),
        (
            lambda: theory.data_constants(USER_SUM, adafw.L1Ball(1)),
            "computing the constants of Theorem 3.7 needs terms",
        ),
        (lambda: theory.constants(model()[0], USER_SET), "does not know its diameter"),
        (
            lambda: theory.constants(
                adafw.LinearModel(np.eye(2), [1, 2], losses.Poisson()), adafw.L1Ball(1)
            ),
            "no bound on its curvature; give smoothness=",
        ),
        (
            lambda: theory.constants(adafw.LinearModel(np.eye(2), [1, 2], _Concave()), USER_SET),
            "gradient_bound can be computed for convex terms only",
        ),
        (lambda: theory.Constants(1.0, 0.0, 1.0), "gradient_bound must be a number that is finite"),
        (
            lambda: theory.constants(model()[0], adafw.L1Ball(1.0), diameter=-1),
            "diameter must be a number that is finite and > 0",
        ),
    ],
)
def test_refuses_what_it_cannot_know(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_the_diameter_of_a_polytope_is_not_called_exact():
    """It is that of the box around it, an upper bound."""
    f = adafw.LinearModel(np.eye(2), np.zeros(2), losses.Squared())
    triangle = adafw.Polytope([[1.0, 2.0]], [1.0])
    assert theory.constants(f, triangle).diameter > 5**0.5 / 2 - 1e-9
    assert "diameter" not in theory.constants(f, triangle).exact
    pair = adafw.Product([(adafw.Box(0, 1), 1), (adafw.Polytope(bounds=[(0, 1)]), 1)])
    assert "diameter" not in theory.data_constants(f, pair).exact
    boxes = adafw.Product([(adafw.Box(0, 1), 1), (adafw.Simplex(1), 1)])
    assert "diameter" in theory.data_constants(f, boxes).exact


def test_the_shape_is_the_sets_where_the_objective_knows_none():
    vertices = np.array([[0.0, 0.0], [3.0, 4.0]])
    c = theory.constants(USER_SUM, adafw.Hull(vertices), smoothness=1, gradient_bound=1)
    assert c.diameter == 5.0
    assert c.exact == ("diameter",)


def test_a_bound_on_the_norm_of_the_data_is_not_called_exact(monkeypatch):
    f, A = model()
    monkeypatch.setattr("adafw.rows.spectral.EXACT", 2)
    c = theory.data_constants(f, adafw.L1Ball(1.0))
    assert "operator_norm" not in c.exact
    assert np.linalg.norm(A, 2) <= c.operator_norm


def test_ranges_of_float32_data_are_found_in_double_precision():
    f, A = model(kind=lambda a: a.astype(np.float32))
    A = A.astype(np.float32).astype(np.float64)
    low, high = theory.prediction_range(f, adafw.Box(-0.1, 0.3))
    ends = A * -0.1, A * 0.3
    np.testing.assert_allclose(low, np.minimum(*ends).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(high, np.maximum(*ends).sum(axis=1), rtol=1e-14)


@pytest.mark.parametrize("constraint", [adafw.Simplex(2.0), adafw.UnitSimplex(2.0)])
def test_a_simplex_of_one_entry_is_as_wide_as_it_is(constraint):
    """A point, which is no set to optimise over, and a stretch from 0 on."""
    A = model()[1]
    narrow = adafw.LinearModel(A[:, :1], np.ones(11), losses.Squared())
    if isinstance(constraint, adafw.UnitSimplex):
        c = theory.data_constants(narrow, constraint)
        assert c.data_diameter_1 == pytest.approx(2 * np.abs(A[:, 0]).sum())
        assert c.data_diameter_inf == pytest.approx(2 * np.abs(A[:, 0]).max())
        return
    with pytest.raises(ValueError, match="data_diameter_1 must be a number that is finite and > 0"):
        theory.data_constants(narrow, constraint, diameter=1.0)
