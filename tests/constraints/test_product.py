import numpy as np
import pytest

from adafw import Birkhoff, L1Ball, L2Ball, NuclearBall, Product, Simplex, UserSet


def test_everything_goes_block_by_block():
    rng = np.random.default_rng(0)
    parts = [(L1Ball(2.0), 3), (Simplex(1.0), 4), (L2Ball(0.5), 2)]
    product = Product(parts)
    x, h = 3 * rng.standard_normal(9), 10 ** rng.uniform(-2, 2, 9)
    cuts = [slice(0, 3), slice(3, 7), slice(7, 9)]
    for (part, _), cut in zip(parts, cuts, strict=True):
        np.testing.assert_array_equal(product.lmo(x)[cut], part.lmo(x[cut]))
        np.testing.assert_array_equal(product.project(x)[cut], part.project(x[cut]))
        np.testing.assert_array_equal(product.project(x, h)[cut], part.project(x[cut], h[cut]))
    violations = [part.violation(x[cut]) for (part, _), cut in zip(parts, cuts, strict=True)]
    assert product.violation(x) == max(violations)
    np.testing.assert_array_equal(product.start(9), [0, 0, 0, 1, 0, 0, 0, 0, 0])
    assert product.scale == 2.0


@pytest.mark.parametrize("p", [1, 1.5, 2, 4])
def test_diameters_add_up(p):
    product = Product([(L1Ball(2.0), 3), (Simplex(1.0), 4)])
    total = L1Ball(2.0).diameter(3, p) ** p + Simplex(1.0).diameter(4, p) ** p
    assert product.diameter(7, p) == pytest.approx(total ** (1 / p))
    assert product.diameter(7, np.inf) == 4.0


def test_products_nest():
    rng = np.random.default_rng(1)
    flat = Product([(L1Ball(2.0), 2), (L2Ball(1.0), 3), (Simplex(1.0), 2)])
    nested = Product([(L1Ball(2.0), 2), (Product([(L2Ball(1.0), 3), (Simplex(1.0), 2)]), 5)])
    x, h = rng.standard_normal(7), 10 ** rng.uniform(-1, 1, 7)
    np.testing.assert_array_equal(nested.lmo(x), flat.lmo(x))
    np.testing.assert_array_equal(nested.project(x, h), flat.project(x, h))
    assert nested.diameter(7, 3) == pytest.approx(flat.diameter(7, 3))
    assert nested != flat


def test_blocks_may_be_matrices():
    rng = np.random.default_rng(2)
    product = Product([(Birkhoff(), (2, 2)), (NuclearBall(1.0), (2, 3)), (L1Ball(1.0), 1)])
    g = rng.standard_normal(11)
    np.testing.assert_array_equal(product.lmo(g)[:4], Birkhoff().lmo(g[:4].reshape(2, 2)).ravel())
    np.testing.assert_array_equal(product.start(11)[:4], [1, 0, 0, 1])
    same = Product([(Birkhoff(), (2, 2)), (NuclearBall(1.0, shape=(2, 3)), 6), (L1Ball(1.0), 1)])
    np.testing.assert_array_equal(product.lmo(g), same.lmo(g))


def test_a_single_set_is_itself():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(5)
    np.testing.assert_array_equal(Product([(L1Ball(1.0), 5)]).lmo(x), L1Ball(1.0).lmo(x))


def test_projects_only_if_all_blocks_do():
    blind = UserSet(lambda g: -np.sign(g), np.zeros(2))
    product = Product([(L1Ball(1.0), 3), (blind, 2)])
    assert product.projection is None
    assert Product([(L1Ball(1.0), 3)]).projection == "metric"
    with pytest.raises(TypeError, match="knows no projection"):
        product.project(np.ones(5))


def test_bad_blocks_are_refused():
    with pytest.raises(ValueError, match="at least one pair"):
        Product([])
    with pytest.raises(TypeError, match=r"must be a pair \(set, size\)"):
        Product([L1Ball(1.0)])
    with pytest.raises(TypeError, match="must begin with a set"):
        Product([(3, L1Ball(1.0))])
    with pytest.raises(ValueError, match="sizes >= 1"):
        Product([(L1Ball(1.0), 0)])
    with pytest.raises(ValueError, match="holds matrices"):
        Product([(NuclearBall(1.0), 6)])
    with pytest.raises(ValueError, match="holds points of shape"):
        Product([(NuclearBall(1.0, shape=(2, 3)), 7)])
    with pytest.raises(ValueError, match="holds points of shape"):
        Product([(L1Ball(1.0), 3)]).lmo(np.ones(4))


def test_its_scale_is_that_of_the_largest_block():
    small, large = (L1Ball(2.0), 3), (L2Ball(5.0), 2)
    assert Product([small, large]).scale == Product([large, small]).scale == 5.0


def test_the_tolerance_is_that_of_each_block():
    product, x = Product([(Simplex(1.0), 2), (L2Ball(5.0), 2)]), np.array([1.0, 1e-6, 5.0, 0.0])
    assert [product.contains(x, tol) for tol in (None, 1e-7, 1e-5)] == [False, False, True]


def test_a_start_has_the_dtype_asked_for_and_the_kind_of_projection_is_the_least():
    product = Product([(Simplex(1.0), 2), (L2Ball(5.0), 2)])
    assert product.start(4, np.float32).dtype == np.float32

    class Round(L2Ball):
        projection = "euclidean"

    assert Product([(L1Ball(1.0), 3), (Round(1.0), 2)]).projection == "euclidean"


def test_a_point_of_another_length_is_in_no_product():
    """Not even if what it begins with is."""
    product = Product([(L1Ball(1.0), 2), (L2Ball(1.0), 2)])
    for x in (np.zeros(5), np.zeros(3), np.zeros((2, 2))):
        with pytest.raises(ValueError, match="holds points of shape"):
            product.contains(x)


def test_products_whose_blocks_have_other_sizes_are_different():
    def made(*sizes):
        return Product([(L2Ball(1.0), size) for size in sizes])

    assert made(3, 2) == made(3, 2)
    assert made(3, 2) != made(2, 3)
    assert made(4) != made((2, 2))
