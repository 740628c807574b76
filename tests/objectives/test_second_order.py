"""Declared second derivatives and lower bounds of objectives, against differences and minima."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import LinearModel, Quadratic, WithIntercept
from adafw.rows import MatrixRows, as_rows

RNG = np.random.default_rng(0)
A = np.where(RNG.random((40, 6)) < 0.6, RNG.normal(size=(40, 6)), 0.0)
SIGNS, COUNTS = np.where(RNG.random(40) < 0.5, 1.0, -1.0), RNG.poisson(2.0, 40).astype(float)
W = RNG.integers(0, 3, 40).astype(float)


def completion():
    r, c = RNG.integers(0, 4, 15), RNG.integers(0, 3, 15)
    return adafw.MatrixCompletion(r, c, RNG.normal(size=15), (4, 3))


OBJECTIVES = {
    "logistic": LinearModel(A, SIGNS, losses.Logistic()),
    "weighted": LinearModel(sparse.csr_array(A), SIGNS, losses.Logistic(), W),
    "poisson": LinearModel(A, COUNTS, losses.Poisson()),
    "centred": LinearModel(as_rows(sparse.csr_array(A)).centred()[0], COUNTS, losses.Squared()),
    "intercept": WithIntercept(LinearModel(A, SIGNS, losses.Logistic(), W)),
    "intercept of counts": WithIntercept(LinearModel(A, COUNTS, losses.Poisson())),
    "completion": completion(),
    "matrices": LinearModel(MatrixRows(as_rows(A), (2, 3)), SIGNS, losses.Logistic()),
    "quadratic": Quadratic(RNG.normal(size=6), RNG.normal(size=6), A.T @ A),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_hessian_and_its_products_are_the_derivative_of_the_gradient(name):
    f = OBJECTIVES[name]
    assert f.has_hessian
    rng = np.random.default_rng(1)
    x, d = 0.3 * rng.normal(size=f.shape), rng.normal(size=f.shape)
    h = 1e-6
    expected = (f.gradient(x + h * d) - f.gradient(x - h * d)) / (2 * h)
    product = f.hessian_product(x)(d)
    assert product.shape == f.shape
    np.testing.assert_allclose(product, expected, rtol=1e-5, atol=1e-8)
    formed = (f.hessian(x) @ d.ravel()).reshape(f.shape)
    np.testing.assert_allclose(product, formed, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["logistic", "completion"])
def test_float32_is_kept(name):
    f = OBJECTIVES[name]
    if name == "logistic":
        f = LinearModel(A.astype(np.float32), SIGNS, losses.Logistic())
    x = np.zeros(f.shape, f.dtype)
    assert f.hessian_product(x)(x).dtype == f.dtype


def test_the_hessian_of_matrix_completion_is_a_mask():
    r, c = np.array([0, 1, 1]), np.array([2, 0, 0])
    f = adafw.MatrixCompletion(r, c, np.ones(3), (2, 3))
    mask = np.array([[0, 0, 1.0], [2, 0, 0]])
    D = np.random.default_rng(2).normal(size=(2, 3))
    np.testing.assert_allclose(f.hessian_product(np.zeros((2, 3)))(D), 2 / 3 * mask * D)


def test_a_flat_loss_has_no_hessian_to_divide_by():
    """Far out on its linear parts, Huber's loss has second derivatives of 0 throughout."""
    f = WithIntercept(LinearModel(np.eye(4), [9.0, -9, 9, -9], losses.Huber(1e-3)))
    x = np.zeros(4)
    np.testing.assert_array_equal(f.hessian_product(x)(np.ones(4)), x)
    np.testing.assert_array_equal(f.hessian(x), np.zeros((4, 4)))


class Bare(losses.Loss):
    """|z - y| smoothed, less 2; nothing declared that need not be."""

    curvature = 1.0

    def value(self, z, y):
        return np.sqrt(1 + (z - y) ** 2) - 2

    def slope(self, z, y):
        return (z - y) / np.sqrt(1 + (z - y) ** 2)


def test_what_an_objective_does_not_know_it_says():
    bare = LinearModel(A, COUNTS, Bare())
    user = adafw.UserSum(1, lambda x: 0.0, lambda x, b: 0 * x)
    newton = adafw.Algorithm(adafw.gradients.Full(), adafw.steps.NewtonStep())
    for f in (bare, user):
        assert not f.has_hessian
        assert f.lower_bound == -np.inf
        with pytest.raises(TypeError, match="needs an objective with a Hessian, of vectors x"):
            adafw.minimize(f, adafw.L1Ball(1.0), newton, x0=np.zeros(6))
    for ask in (user.hessian, user.hessian_product):
        with pytest.raises(TypeError, match="does not know its second derivatives"):
            ask(np.zeros(6))
    with pytest.raises(TypeError, match="an intercept needs a loss that knows its second deriv"):
        WithIntercept(bare)


def test_newton_steps_refuse_matrices():
    algorithm = adafw.Algorithm(adafw.gradients.Full(), adafw.steps.NewtonStep())
    with pytest.raises(TypeError, match="of vectors x, got LinearModel"):
        adafw.minimize(OBJECTIVES["completion"], adafw.NuclearBall(1.0), algorithm)


@pytest.mark.parametrize("weight", [None, W], ids=["plain", "weighted"])
def test_lower_bound_of_counts_is_reached_where_every_row_has_its_own_coefficient(weight):
    f = LinearModel(np.eye(40), COUNTS, losses.Poisson(), weight)
    best = np.log(np.maximum(COUNTS, 1e-300))
    assert f.lower_bound <= f.value(best) <= f.lower_bound + 1e-12
    assert WithIntercept(f).lower_bound == f.lower_bound
    assert adafw.Counted(f).lower_bound == f.lower_bound


def test_lower_bound_of_other_losses():
    assert OBJECTIVES["logistic"].lower_bound == 0
    assert OBJECTIVES["weighted"].lower_bound == 0
    assert OBJECTIVES["quadratic"].lower_bound == -np.inf
    # Rows of weight 0 do not count, whatever their loss may be.
    assert LinearModel(A, COUNTS, Bare(), W).lower_bound == -np.inf


def test_a_counted_objective_counts_second_derivatives():
    f = adafw.Counted(OBJECTIVES["logistic"])
    x = np.zeros(6)
    product = f.hessian_product(x)
    np.testing.assert_array_equal(product(x + 1), OBJECTIVES["logistic"].hessian_product(x)(x + 1))
    np.testing.assert_array_equal(f.hessian(x), OBJECTIVES["logistic"].hessian(x))
    assert f.has_hessian
    assert (f.hessians, f.gradients, f.values) == (2, 0, 0)


def test_moves_across_a_bend_are_met_unless_they_are_rounding():
    """Beyond the hinge there is no curvature; within a few 1e-6 of it a difference tells of it."""
    f = LinearModel(np.eye(3), np.ones(3), losses.SquaredHinge())
    z = np.full(3, 1 + 1e-9)
    met = f.bends(z, [np.array([-2.5e-6, -1.5e-6, 2.5e-6])])
    inside = losses.SquaredHinge().second(np.zeros(1), np.ones(1))
    np.testing.assert_allclose(met, [inside[0], 0, 0], rtol=1e-2)
