"""The few functions numpy arrays and torch tensors share. Torch is never imported here."""

import math
import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from adafw.kernels.parts import Word
from adafw.typing import AnyArray, AnyDType, AnyNumber, Shape, StateDict

#: Entries from which a compiled pass is worth importing numba for.
LONG = 4096


def is_tensor(x: object) -> bool:
    """Whether x is a torch tensor; if torch was never imported, nothing is."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def namespace(x: AnyArray) -> Any:
    """The module, numpy or torch, whose functions take x."""
    return sys.modules["torch"] if is_tensor(x) else np


def as_shape(shape: Shape) -> tuple[int, ...]:
    """A shape as a tuple of positive integers."""
    sizes = tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else (int(shape),)
    if any(n < 1 for n in sizes):
        raise ValueError(f"shape must have sizes >= 1, got {shape}.")
    return sizes


def size(x: AnyArray) -> int:
    """Number of entries."""
    return int(x.numel() if is_tensor(x) else x.size)


def zeros(shape: Shape, dtype: AnyDType = np.float64) -> AnyArray:
    """Zeros of a numpy or torch dtype."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return torch.zeros(as_shape(shape), dtype=dtype)
    return np.zeros(as_shape(shape), dtype=dtype)


def floating(x: AnyArray, name: str) -> AnyArray:
    """x as an array of floats: a float dtype is kept, anything else becomes float64."""
    if type(x) is np.ndarray and x.dtype.kind == "f":
        return x  # by far the most frequent case, and asked in every inner step
    if is_tensor(x):
        return x.detach() if x.is_floating_point() else x.detach().double()
    try:
        array = np.asarray(x)
        if np.iscomplexobj(array):
            raise TypeError
        return array if np.issubdtype(array.dtype, np.floating) else array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):  # the last at integers beyond all floats
        raise TypeError(
            f"{name} must be an array of real numbers, got {type(x).__name__}."
        ) from None


def finite(x: AnyArray, name: str) -> AnyArray:
    """x as an array of floats without NaN or infinity.

    Tensors on an accelerator are not looked at, as that would make the host wait for them.
    """
    x = floating(x, name)
    if size(x) == 0:
        raise ValueError(f"{name} must have at least one entry, got an empty array.")
    if (not is_tensor(x) or x.device.type == "cpu") and not all_finite(x):
        raise NotFinite(f"{name} must be finite, got NaN or infinity.")
    return x


class NotFinite(ValueError):
    """NaN or infinity where finite numbers are needed."""


def all_finite(x: AnyArray) -> bool:
    """Whether no entry is NaN or infinite.

    The sum of squares shows both in one fast pass; the entries are looked at only if it is not
    finite, since it may have overflown.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(dot(x, x))
    if math.isfinite(total):
        return True
    xp = namespace(x)
    return bool(xp.all(xp.isfinite(x)))


def first_largest(g: AnyArray) -> AnyNumber:
    """The lowest flat index of a largest |g_i|; NaN and infinity are refused."""
    plain = not is_tensor(g) and g.dtype in (np.float32, np.float64) and g.flags.c_contiguous
    if not plain or g.size < LONG:
        return abs(finite(g, "g")).argmax()
    from adafw.kernels import vectors

    flat = g.reshape(-1)
    i = vectors.first_largest(flat.view(f"u{g.itemsize}"), *float_bits(g.dtype))
    if i < 0:
        finite(g, "g")  # raises
    return i


def float_bits(dtype: np.dtype[Any]) -> tuple[Word, Word]:
    """(all bits but the sign, those of infinity) of a float dtype, as unsigned integers."""
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    magnitude = unsigned.type(np.iinfo(unsigned).max >> 1)
    return magnitude, unsigned.type(np.array(np.inf, dtype).view(unsigned))


def dot(a: AnyArray, b: AnyArray) -> AnyNumber:
    """<a, b> over all entries, in the wider of their dtypes."""
    if is_tensor(a):
        torch = sys.modules["torch"]
        wide = torch.promote_types(a.dtype, b.dtype)
        return torch.dot(a.reshape(-1).to(wide), b.reshape(-1).to(wide))
    return np.vdot(a, b)


def unit(x: AnyArray) -> tuple[AnyArray, AnyNumber]:
    """(x / ||x||_2, ||x||_2), with 0 / ||0|| = 0; squares neither overflow nor vanish.

    Half-precision entries are summed in float32, in which 65 504 is not the end.
    """
    xp = namespace(x)
    scaled, largest = _scaled(x)
    length = xp.sqrt(dot(scaled, scaled))
    direction = scaled / xp.where(length > 0, length, xp.ones_like(length))
    return cast(direction, x), largest * length


def norm(x: AnyArray) -> AnyNumber:
    """Euclidean norm of all entries, safe from overflow and underflow."""
    scaled, largest = _scaled(x)
    return largest * namespace(x).sqrt(dot(scaled, scaled))


def _scaled(x: AnyArray) -> tuple[AnyArray, AnyNumber]:
    """(x / max |x_i|, max |x_i|), 0 / 0 being 0; at least in float32."""
    if is_tensor(x):
        torch = sys.modules["torch"]
        largest = torch.max(torch.abs(x))
        scaled = x / torch.where(largest > 0, largest, torch.ones_like(largest))
        return (scaled if x.dtype.itemsize > 2 else scaled.float()), largest
    # Without |x|, which would be one more array; the sum turns -0 into 0.
    largest = np.maximum(x.max(), -x.min()) + x.dtype.type(0)
    scaled = x / (largest if largest > 0 else x.dtype.type(1))
    return (scaled if x.dtype.itemsize > 2 else scaled.astype(np.float32)), largest


def single(x: AnyArray) -> AnyArray:
    """x in float32."""
    return x.float() if is_tensor(x) else x.astype(np.float32)


def double(x: AnyArray) -> AnyArray:
    """x in float64 (a projection's root search is done there, whatever dtype comes in)."""
    return x.double() if is_tensor(x) else x.astype(np.float64, copy=False)


def beside(value: AnyArray, x: AnyArray) -> AnyArray:
    """`value` as an array of the library and device of x, its dtype kept."""
    if not is_tensor(x):
        return _host(value)
    return value if is_tensor(value) else sys.modules["torch"].as_tensor(value, device=x.device)


def cast(x: AnyArray, like: AnyArray) -> AnyArray:
    """x in the dtype of `like`."""
    return x.to(like.dtype) if is_tensor(x) else x.astype(like.dtype, copy=False)


def copy(x: AnyArray) -> AnyArray:
    """A copy of x."""
    return x.clone() if is_tensor(x) else x.copy()


def host(x: AnyArray) -> NDArray[np.float64]:
    """x as a float64 numpy array, for the methods that run on the host only."""
    return np.asarray(_host(x), dtype=np.float64)


def like(values: NDArray[Any], x: AnyArray) -> AnyArray:
    """A numpy array in the library, dtype and device of x."""
    if is_tensor(x):
        return sys.modules["torch"].as_tensor(values, dtype=x.dtype, device=x.device)
    return values.astype(x.dtype, copy=False)


def argsort_descending(x: AnyArray) -> AnyArray:
    """Order from large to small; equal entries keep their order."""
    if is_tensor(x):
        return sys.modules["torch"].argsort(x, descending=True, stable=True)
    return np.argsort(-x, kind="stable")


def kth_largest(x: AnyArray, k: int) -> AnyNumber:
    """The k-th largest entry of a vector, k = 1 being the largest."""
    if is_tensor(x):
        return sys.modules["torch"].topk(x, k).values[-1]
    return np.partition(x, len(x) - k)[len(x) - k]


def basis(like: AnyArray, index: AnyNumber, value: AnyNumber) -> AnyArray:
    """Zeros shaped as `like`, with `value` at the flat position `index`."""
    flat = namespace(like).zeros_like(like.reshape(-1))
    if is_tensor(index):  # indexing would make the host wait for an accelerator; this does not
        flat.scatter_(0, index.reshape(1), value * flat.new_ones(1))
    else:
        flat[index] = value
    return flat.reshape(like.shape)


def empty(shape: Shape, like: AnyArray) -> AnyArray:
    """Memory for an array in the library, dtype and device of `like`."""
    if is_tensor(like):
        return sys.modules["torch"].empty(as_shape(shape), dtype=like.dtype, device=like.device)
    return np.empty(as_shape(shape), dtype=like.dtype)


def group_sums(values: AnyArray, labels: AnyArray, count: int) -> AnyArray:
    """Sums of the values that bear the labels 0 .. count - 1."""
    if is_tensor(values):
        return values.new_zeros(count).index_add_(0, labels.reshape(-1), values.reshape(-1))
    return np.bincount(labels.ravel(), weights=values.ravel(), minlength=count)


def at_least_single(a: AnyArray) -> AnyArray:
    """a in float32 if its dtype has fewer digits, which no decomposition of torch takes."""
    return a.float() if is_tensor(a) and a.dtype.itemsize < 4 else a


def svd(a: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """U, s, V^T with a = U diag(s) V^T, s falling."""
    return namespace(a).linalg.svd(at_least_single(a), full_matrices=False)


def singular_values(a: AnyArray) -> AnyArray:
    """The singular values, falling, in float64."""
    if is_tensor(a):
        return sys.modules["torch"].linalg.svdvals(double(a))
    return np.linalg.svd(double(a), compute_uv=False)


class Constant:
    """An array parameter of a set, copied once to each dtype and device it meets."""

    def __init__(self, value: "Constant | AnyArray | ArrayLike", name: str) -> None:
        value = value.value if isinstance(value, Constant) else _host(value)
        self.value: np.ndarray[Any, Any] = np.array(finite(value, name), dtype=np.float64)
        self.value.flags.writeable = False
        self._copies: dict[object, AnyArray] = {}

    def like(self, x: AnyArray) -> AnyArray:
        """The parameter in the library, dtype and device of x."""
        key = (x.dtype, getattr(x, "device", None))
        if key not in self._copies:
            if is_tensor(x):
                torch = sys.modules["torch"]
                self._copies[key] = torch.tensor(self.value, dtype=x.dtype, device=x.device)
            else:
                self._copies[key] = self.value.astype(x.dtype)
        return self._copies[key]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype)

    def __repr__(self) -> str:
        return np.array2string(self.value, separator=", ", threshold=16, edgeitems=3)

    def index_like(self, x: AnyArray) -> AnyArray:
        """The parameter as integers, in the library and on the device of x."""
        key = ("index", getattr(x, "device", None))
        if key not in self._copies:
            index = self.value.astype(np.int64)
            if is_tensor(x):
                index = sys.modules["torch"].as_tensor(index, device=x.device)
            self._copies[key] = index
        return self._copies[key]

    def __getstate__(self) -> StateDict:
        return {"value": self.value, "_copies": {}}

    def __setstate__(self, state: StateDict) -> None:
        self.__dict__.update(state)
        self.value.flags.writeable = False


def _host(value: AnyArray) -> AnyArray:
    return value.detach().cpu().double().numpy() if is_tensor(value) else value
