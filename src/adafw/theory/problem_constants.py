"""The constants of the theorems, computed from an objective and a set.

A constant that is not exact is an upper bound, and all theorems hold with upper bounds: they say
no more of f than that its gradients are bounded by G and change by at most L, over a set that
is at most D wide.
"""

import math
from dataclasses import dataclass, fields
from typing import cast

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.constraints import Constraint, L1Ball, L2Ball, LInfBall, Simplex, UnitSimplex
from adafw.objectives.base import FiniteSum, SeparableSum

Ranges = tuple[NDArray[np.float64], NDArray[np.float64]]

#: max <a, x> over a norm ball is radius * ||a|| in the dual norm; p of that norm.
_DUAL: dict[type[Constraint], float] = {L1Ball: np.inf, L2Ball: 2.0, LInfBall: 1.0}
#: Up to so many multiplications, the images of all pairs of a simplex's vertices are compared.
_PAIRS = 10**8


class _Table:
    """Prints the fields of a dataclass, saying of each whether it is exact."""

    exact: tuple[str, ...]

    def _check(self) -> None:
        for name in self._names():
            object.__setattr__(self, name, checks.real(getattr(self, name), name, 0, above=True))

    def _names(self) -> list[str]:
        return [f.name for f in fields(self) if f.name != "exact"]  # type: ignore[arg-type]

    def __str__(self) -> str:
        kinds = {name: "exact" if name in self.exact else "upper bound" for name in self._names()}
        lines = [f"  {n:<18} {getattr(self, n):<12.6g} {kind}" for n, kind in kinds.items()]
        return "\n".join([type(self).__name__, *lines])


@dataclass(frozen=True)
class Constants(_Table):
    """L, G and D of Theorems 3.1, 3.3 and 3.5; what is not named in `exact` is an upper bound.

    `smoothness` (L): ||grad f_i(x) - grad f_i(y)||_2 <= L ||x - y||_2 for every i.
    `gradient_bound` (G): ||grad f_i(x)||_2 <= G for every i and every x in the set.
    `diameter` (D): ||x - y||_2 <= D for all x, y in the set.
    """

    smoothness: float
    gradient_bound: float
    diameter: float
    exact: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check()


@dataclass(frozen=True)
class DataConstants(_Table):
    """L, ||A||_2, D_2, D_1^A and D_inf^A of Theorem 3.7, for terms phi_i(<a_i, x>).

    `curvature` (L): phi_i'' <= L for every i, a number of the loss alone.
    `operator_norm`: ||A||_2; `diameter` (D_2): that of the set.
    `data_diameter_1`, `data_diameter_inf` (D_p^A): ||A (x - y)||_p for all x, y in the set.
    """

    curvature: float
    operator_norm: float
    diameter: float
    data_diameter_1: float
    data_diameter_inf: float
    exact: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check()


def check_problem(f: object, constraint: object) -> None:
    """Refuses what is no objective, or no set."""
    if not isinstance(f, FiniteSum):
        raise TypeError(f"f must be an objective such as adafw.LinearModel, got {f!r}.")
    if not isinstance(constraint, Constraint):
        raise TypeError(f"constraint must be a set such as adafw.L1Ball(1.0), got {constraint!r}.")


def check_known(given: object, kind: type[Constants | DataConstants], name: str) -> None:
    """Refuses constants that are not of this kind; None asks for them to be computed."""
    if given is not None and not isinstance(given, kind):
        raise TypeError(
            f"{name} must be a theory.{kind.__name__}, or None to have them computed, "
            f"got {given!r}."
        )


def constants(
    f: FiniteSum,
    constraint: Constraint,
    *,
    smoothness: float | None = None,
    gradient_bound: float | None = None,
    diameter: float | None = None,
) -> Constants:
    """L = curvature * max_i ||a_i||_2^2, G and D for an objective of terms phi_i(<a_i, x>).

    What is given is taken over. A UserSum must be given L and G, a UserSet D. G is exact for
    convex f: on the range of <a_i, x> over the set, |phi_i'| is largest at one of the two ends.
    Cost: two LMO calls a row, none on the l1, l2 and linf ball.
    """
    check_problem(f, constraint)
    exact = []
    if smoothness is None:
        s = _separable(f, "smoothness")
        smoothness = _curvature(s, "smoothness") * float(s.rows.norms(2).max()) ** 2
    if gradient_bound is None:
        s = _separable(f, "gradient_bound")
        gradient_bound = _gradient_bound(s, constraint)
        exact.append("gradient_bound")
    if diameter is None:
        diameter = _diameter(f, constraint)
        exact += ["diameter"] * constraint.exact_diameter
    return Constants(smoothness, gradient_bound, diameter, tuple(exact))


def data_constants(
    f: FiniteSum,
    constraint: Constraint,
    *,
    curvature: float | None = None,
    diameter: float | None = None,
) -> DataConstants:
    """The constants of Theorem 3.7 for an objective of terms phi_i(<a_i, x>).

    What is given is taken over. ||A||_2 is exact for up to 1024 rows or columns. D_inf^A =
    max_i (max <a_i, x> - min <a_i, x>) is exact. D_1^A is exact on the l1 ball and on small
    simplices; elsewhere it is NP-hard already for the linf ball, and bounded by the sum of the
    same ranges over i: on the linf ball 2 radius sum_ij |a_ij|. Cost: two LMO calls a row, none
    on the l1, l2 and linf ball.
    """
    check_problem(f, constraint)
    s = _separable(f, "the constants of Theorem 3.7")
    exact = ["data_diameter_inf"]
    if curvature is None:
        curvature = _curvature(s, "curvature")
    if diameter is None:
        diameter = _diameter(f, constraint)
        exact += ["diameter"] * constraint.exact_diameter
    norm, norm_exact = s.rows.spectral_norm()
    low, high = prediction_range(s, constraint)
    width, width_exact = _data_diameter_1(s, constraint, high - low)
    exact += ["operator_norm"] * norm_exact + ["data_diameter_1"] * width_exact
    widest = float((high - low).max())
    return DataConstants(curvature, norm, diameter, width, widest, tuple(exact))


def prediction_range(f: SeparableSum, constraint: Constraint) -> Ranges:
    """(min <a_i, x>, max <a_i, x>) over x in the set, for every i: two LMO calls a row."""
    # max <a, x> over a norm ball is the radius times the dual norm: no LMO call a row.
    dual = _DUAL.get(type(constraint))
    if dual is not None:
        reach = constraint.radius * f.rows.norms(dual)  # type: ignore[attr-defined]
        return -reach, reach
    low, high = np.empty(f.n_terms), np.empty(f.n_terms)
    one = np.ones(1, f.dtype)
    for i in range(f.n_terms):
        a = f.combine(one, np.array([i])).astype(np.float64)
        low[i] = np.vdot(a, constraint.lmo(a))
        high[i] = np.vdot(a, constraint.lmo(-a))
    return low, high


def _gradient_bound(f: SeparableSum, constraint: Constraint) -> float:
    if not f.convex:
        raise ValueError(
            "gradient_bound can be computed for convex terms only, whose slopes are monotone; "
            "give gradient_bound=."
        )
    ends = (f.slopes_at(z.astype(f.dtype)) for z in prediction_range(f, constraint))
    steepest = np.maximum(*(np.abs(slopes).astype(np.float64) for slopes in ends))
    return float((steepest * f.rows.norms(2)).max())


def _data_diameter_1(
    f: SeparableSum, constraint: Constraint, widths: NDArray[np.float64]
) -> tuple[float, bool]:
    """(D_1^A, whether it is exact). A norm is largest at the vertices of a polytope."""
    if isinstance(constraint, L1Ball):
        return 2 * constraint.radius * float(f.rows.norms(1, axis=0).max()), True
    n = math.prod(f.rows.shape[1:])
    if isinstance(constraint, Simplex | UnitSimplex) and n * n * f.n_terms <= _PAIRS:
        from scipy.spatial.distance import pdist

        unit = np.eye(n, dtype=f.dtype).reshape(n, *f.rows.shape[1:])
        images = np.array([f.rows.dot(e) for e in unit], dtype=np.float64)
        if isinstance(constraint, UnitSimplex):
            images = np.vstack([images, np.zeros(f.n_terms)])
        return constraint.radius * float(pdist(images, "cityblock").max(initial=0.0)), True
    return float(widths.sum()), False


def _diameter(f: FiniteSum, constraint: Constraint) -> float:
    shape = constraint.shape if f.shape is None else f.shape
    if shape is None:
        raise ValueError(
            f"diameter must be given: neither {f!r} nor {constraint!r} knows the shape of x."
        )
    return constraint.diameter(shape)


def _curvature(f: SeparableSum, name: str) -> float:
    if math.isinf(f.curvature):
        raise ValueError(f"the loss of {f!r} has no bound on its curvature; give {name}=.")
    return f.curvature


def _separable(f: FiniteSum, name: str) -> SeparableSum:
    if not f.separable:
        raise TypeError(
            f"computing {name} needs terms phi_i(<a_i, x>), as in LinearModel, got {f!r}; give the "
            "number instead, as in theory.constants(f, set, smoothness=1.0, gradient_bound=1.0)."
        )
    return cast(SeparableSum, f)
