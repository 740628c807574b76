"""What a set must know, and what follows from it for every set."""

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from numpy.typing import NDArray

from adafw import arrays, checks
from adafw.called import Called
from adafw.describe import describe
from adafw.typing import AnyArray, AnyDType, AnyNumber, Plain, Shape


class Stalled(RuntimeError):
    """A projection that could not reach its accuracy, and says so."""


class Constraint(ABC):
    """A compact convex set C. One object serves numpy arrays and torch tensors, and never changes.

    To add a set: a frozen dataclass with `lmo`, `start`, `diameter` and `violation`; `project`
    where it is known (then set `projection`).
    """

    #: How front ends call the set; None if plain parameters cannot describe it.
    called: ClassVar[Called | None] = None
    #: "metric" if `project` takes a metric h, "euclidean" if not, None if there is no projection.
    projection: ClassVar[str | None] = None
    #: Whether `diameter` is exact for p = 2, and not just an upper bound.
    exact_diameter: ClassVar[bool] = True
    #: Whether C is a radius times one fixed set: the LMO of 10 C is then 10 times that of C.
    radial: ClassVar[bool] = False

    @abstractmethod
    def lmo(self, g: AnyArray) -> AnyArray:
        """A minimiser of <g, v> over v in C, shaped as g; NaN or infinity in g is refused."""

    @abstractmethod
    def start(self, shape: Shape, dtype: AnyDType = float) -> AnyArray:
        """A point of C to start from."""

    @abstractmethod
    def diameter(self, shape: Shape, p: float = 2) -> float:
        """D_p = max ||x - y||_p over x, y in C."""

    @abstractmethod
    def violation(self, x: AnyArray) -> float:
        """How far x is outside, relative to `scale`: 0 inside, nan where x holds NaN."""

    def project(self, x: AnyArray, h: AnyArray | None = None) -> AnyArray:
        """The point v of C nearest to x: min sum_i h_i (v_i - x_i)^2, with h = 1 if it is None."""
        raise TypeError(
            f"{type(self).__name__} knows no projection; use a step that needs none "
            "(Template 1 or Template 3)."
        )

    def minimise_quadratic(
        self, centre: AnyArray, linear: AnyArray, matrix: NDArray[Any]
    ) -> NDArray[Any] | None:
        """argmin over y in C of <g, y - x> + <y - x, H (y - x)> / 2, None if no formula is known.

        `centre` (x), `linear` (g), `matrix` (H, symmetric and positive semidefinite); numpy only.
        """
        return None

    def gap(self, x: AnyArray, g: AnyArray) -> float:
        """max <g, x - v> over v in C, the Frank-Wolfe gap of x; never below it but by rounding.

        A set whose `lmo` is not exact adds a proven bound on what it may have missed.
        """
        return float(arrays.dot(g, x - self.lmo(g)))

    @property
    def bare(self) -> "Constraint":
        """The set itself, whatever is wrapped around it."""
        return self

    @property
    def scale(self) -> float:
        """The length that tolerances are relative to: the radius of a `RadialSet`."""
        return 1.0

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The only shape the set holds points of, or None if it holds points of any."""
        return None

    def contains(self, x: AnyArray, tol: float | None = None) -> bool:
        """Whether x lies in C up to `tol`, relative to `scale`; 1e-9 (1e-5 below float64)."""
        x = arrays.floating(x, "x")
        if tol is None:
            tol = 1e-9 if str(x.dtype).endswith("float64") else 1e-5
        return bool(self.violation(x) <= tol)

    def describe(self) -> Plain:
        """Name and parameters as plain numbers: what a checkpoint stores of a set."""
        return describe(self)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(repr(self.describe()))


def along(g: AnyArray, x: AnyArray) -> float:
    """<g, x> of a gradient and a point of its shape."""
    if g.shape != x.shape:
        raise ValueError(f"x and g must have one shape, got {tuple(x.shape)}, {tuple(g.shape)}.")
    return float(arrays.dot(g, x))


class RadialSet(Constraint):
    """A set that is `radius`, a field of its subclass, times one fixed set."""

    radius: float
    radial: ClassVar[bool] = True

    @property
    def scale(self) -> float:
        return self.radius


def excess(amount: AnyNumber, scale: float) -> float:
    """max(0, amount) / scale as a number, nan staying nan."""
    amount = float(amount)
    return amount if math.isnan(amount) else max(0.0, amount) / scale


def check_shape(x: AnyArray, shape: tuple[int, ...] | None, name: str) -> None:
    """Refuses a point whose shape is not the set's own."""
    check_sizes(tuple(x.shape), shape, name)


def check_sizes(sizes: Shape, shape: tuple[int, ...] | None, name: str) -> None:
    """Refuses the shape of a point, if it is not the set's own."""
    sizes = arrays.as_shape(sizes)
    if shape is not None and sizes != shape:
        raise ValueError(f"this {name} holds points of shape {shape}, got {sizes}.")


def check_order(p: float) -> float:
    """The order p of an lp norm, in [1, inf]."""
    return checks.real(p, "p", 1, infinite=True)


def metric_like(h: AnyArray | None, x: AnyArray) -> AnyArray | None:
    """The metric h as positive floats shaped as x, or an error; None stays None."""
    if h is None:
        return None
    h = arrays.finite(arrays.beside(h, x), "h")
    if tuple(h.shape) != tuple(x.shape):
        raise ValueError(f"h must have the shape of x, {tuple(x.shape)}, got {tuple(h.shape)}.")
    if not bool((h > 0).all()):
        raise ValueError("h must be positive in every entry: it is the diagonal of a metric.")
    return h
