"""Functions that numpy and torch share: norms at the ends of a dtype, and the largest entry."""

import pickle

import numpy as np
import pytest
import torch

from adafw import arrays
from adafw.arrays import LONG, Constant, NotFinite, all_finite, first_largest, norm, unit

KINDS = {"numpy": np.array, "torch": lambda x, dtype: torch.tensor(np.array(x, dtype))}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("x", [[3.0, 0.0, 4.0], [-3.0, 0.0, -4.0], [3.0, 4.0], [-4.0, 3.0]])
def test_norms_neither_overflow_nor_vanish(x, dtype, kind):
    info = np.finfo(dtype)
    for scale in (1.0, float(info.max) / 8, float(info.tiny) * 8):
        v = KINDS[kind](np.array(x) * scale, dtype)
        assert float(norm(v)) / scale == pytest.approx(5.0, rel=4 * float(info.eps))
        direction, length = unit(v)
        assert direction.dtype == v.dtype
        assert float(length) / scale == pytest.approx(5.0, rel=4 * float(info.eps))
        np.testing.assert_allclose(np.asarray(direction) * 5, x, rtol=8 * float(info.eps))


@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_summed_in_float32(kind):
    """70 000 squares of 1, after scaling: their sum is beyond 65 504."""
    v = KINDS[kind](np.full(70_000, 0.5), np.float16)
    assert float(unit(v)[1]) == pytest.approx(0.5 * np.sqrt(70_000), rel=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_norm_of_nothing_is_zero(kind):
    zero = KINDS[kind](np.zeros(3), np.float64)
    assert float(norm(zero)) == 0
    assert not np.asarray(unit(zero)[0]).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [5, LONG + 3])
def test_the_first_of_the_largest(size, kind):
    g = np.zeros(size)
    for at, value in ((size - 1, 1.0), (2, -3.0), (3, 3.0), (0, 3.0)):
        g[at] = value
        largest = min(np.flatnonzero(np.abs(g) == np.abs(g).max()))
        assert int(first_largest(KINDS[kind](g, np.float64))) == largest
    for bad in (np.nan, np.inf):
        g[4] = bad
        assert not all_finite(KINDS[kind](g, np.float64))
        with pytest.raises(NotFinite, match="g must be finite"):
            first_largest(KINDS[kind](g, np.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_orders_ranks_and_sums(kind):
    x = KINDS[kind]([3.0, 1.0, 3.0, 2.0], np.float32)
    assert np.asarray(arrays.argsort_descending(x)).tolist() == [0, 2, 3, 1]
    assert [float(arrays.kth_largest(x, k)) for k in (1, 2, 3, 4)] == [3, 3, 2, 1]
    labels = np.array([2, 0, 2, 0])
    labels = torch.tensor(labels) if kind == "torch" else labels
    assert np.asarray(arrays.group_sums(x, labels, 4)).tolist() == [3, 0, 6, 0]
    for index in (2, arrays.namespace(x).argmax(x - 2 * x)):
        vertex = arrays.basis(x.reshape(2, 2), index, 5.0)
        assert vertex.dtype == x.dtype
        assert np.asarray(vertex).ravel()[int(index)] == 5
        assert np.asarray(vertex).sum() == 5


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_are_kept_or_changed_as_told(kind):
    x = KINDS[kind]([0.1, 0.2], np.float32)
    double = KINDS[kind]([0.1, 0.2], np.float64)
    names = {
        "host": arrays.host(x), "double": arrays.double(x), "single": arrays.single(double),
        "cast": arrays.cast(double, x), "like": arrays.like(np.array([0.1, 0.2]), x),
        "beside": arrays.beside(np.array([0.1, 0.2]), x), "empty": arrays.empty(3, x),
        "zeros": arrays.zeros((2,), x.dtype), "copy": arrays.copy(x),
        "floating": arrays.floating(x, "x"),
    }  # fmt: skip
    wide = {name for name, found in names.items() if "64" in str(found.dtype)}
    assert wide == {"host", "double", "beside"}
    ours = {name for name, found in names.items() if arrays.is_tensor(found)}
    assert ours == (set() if kind == "numpy" else set(names) - {"host"})
    assert np.shares_memory(np.asarray(names["floating"]), np.asarray(x))
    assert not np.shares_memory(np.asarray(names["copy"]), np.asarray(x))
    whole = KINDS[kind]([1, 2], np.int64)
    assert "float64" in str(arrays.floating(whole, "x").dtype)
    half = arrays.at_least_single(KINDS[kind]([[1.0]], np.float16))
    assert ("float32" in str(half.dtype)) == (kind == "torch")
    for dtype in (np.float32, np.float64):
        assert np.dtype(dtype).name in str(
            arrays.at_least_single(KINDS[kind]([[1.0]], dtype)).dtype
        )
    assert arrays.host([1, 2]).dtype == np.float64


@pytest.mark.parametrize("kind", KINDS)
def test_decompositions(kind):
    a = KINDS[kind]([[3.0, 0.0], [0.0, 5.0], [0.0, 0.0]], np.float32)
    u, s, vt = arrays.svd(a)
    assert [tuple(part.shape) for part in (u, s, vt)] == [(3, 2), (2,), (2, 2)]
    np.testing.assert_allclose(np.asarray((u * s) @ vt), np.asarray(a), atol=1e-6)
    values = arrays.singular_values(a)
    assert "float64" in str(values.dtype)
    assert np.asarray(values).tolist() == [5, 3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_constant_has_one_copy_for_each_dtype(kind):
    given = np.array([1.0, 2.0])
    constant = Constant(given, "lower")
    given[0] = 9
    x = KINDS[kind]([0.0], np.float32)
    assert constant.like(x).dtype == x.dtype
    assert constant.like(x) is constant.like(x)
    assert constant.like(x) is not constant.like(KINDS[kind]([0.0], np.float64))
    assert np.asarray(constant.like(x)).tolist() == [1, 2]
    assert "int64" in str(constant.index_like(x).dtype)
    assert constant.index_like(x) is constant.index_like(x)
    assert type(constant.index_like(x)) is type(x)
    again = pickle.loads(pickle.dumps(constant))
    for one in (constant, again, Constant(constant, "lower")):
        assert np.asarray(one).tolist() == [1, 2]
        assert np.asarray(one, np.float32).dtype == np.float32
        assert not one.value.flags.writeable
        assert repr(one) == "[1., 2.]"
    assert not again._copies
    with pytest.raises(NotFinite, match="lower must be finite"):
        Constant([np.nan], "lower")


def test_a_constant_has_one_copy_for_each_device():
    constant, elsewhere = Constant([1.0, 2.0], "lower"), torch.zeros(2, device="meta")
    for copied in (constant.like, constant.index_like):
        assert copied(torch.zeros(2)).device.type == "cpu"
        assert copied(elsewhere).device.type == "meta"
        assert copied(torch.zeros(2)).tolist() == [1, 2]


def test_shapes_and_bad_arrays():
    assert arrays.as_shape(3) == (3,)
    assert arrays.as_shape([2, np.int64(3)]) == (2, 3)
    assert arrays.size(np.zeros((2, 3))) == arrays.size(torch.zeros(2, 3)) == 6
    for shape in (0, (2, 0), (-1,)):
        with pytest.raises(ValueError, match="shape must have sizes >= 1"):
            arrays.as_shape(shape)
    for bad in (["a"], [1j], [10**400], object()):
        with pytest.raises(TypeError, match="x must be an array of real numbers"):
            arrays.floating(bad, "x")
    for tensor in (torch.ones(2, requires_grad=True), torch.ones(2).bfloat16().requires_grad_()):
        given = arrays.floating(tensor, "x")
        assert given.dtype == tensor.dtype
        assert not given.requires_grad, "no graph is kept of what is done with it"
    assert arrays.floating(torch.ones(2, dtype=torch.int32), "x").dtype == torch.float64
    with pytest.raises(ValueError, match="x must have at least one entry"):
        arrays.finite(np.empty(0), "x")
    assert all_finite(np.array([1e300, 1e300])), "though their squares are not"
    assert all_finite(torch.tensor([3e38, 3e38]))
    assert not all_finite(np.array([1e300, np.inf]))
    for dtype in (np.float32, np.float64):
        magnitude, infinity = arrays.float_bits(np.dtype(dtype))
        bits = np.array([-2.0, np.inf], dtype).view(magnitude.dtype)
        assert (bits[0] & magnitude) == np.array(2.0, dtype).view(magnitude.dtype)
        assert bits[1] == infinity
