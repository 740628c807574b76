"""Small problems whose minimum is known, by a method that is none of the library's."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.paths import fast_paths


@dataclass(frozen=True)
class Problem:
    """f over a set; `minimum` is a lower bound of min f that is off by less than 1e-9."""

    f: Any
    constraint: Any
    x_star: Any
    minimum: float


def paths_of(f, constraint, algorithm):
    """Every path there is for a problem, the one loop among them."""
    found = ["generic"]
    for path in fast_paths():
        if path.fits(f, constraint, algorithm):
            found.append(path.name)
    return found


def gap(constraint, g, x):
    """max <g, x - v> over v, by the support functions, not by the LMO."""
    r = getattr(constraint, "radius", None)
    smallest = {
        "L1Ball": lambda: -r * np.abs(g).max(),
        "L2Ball": lambda: -r * np.linalg.norm(g),
        "LInfBall": lambda: -r * np.abs(g).sum(),
        "UnitSimplex": lambda: r * min(0.0, g.min()),
        "Simplex": lambda: r * g.min(),
        "Box": lambda: np.minimum(g * constraint.lower.value, g * constraint.upper.value).sum(),
    }
    return g @ x - smallest[type(constraint).__name__]()


def solve(f, constraint):
    """Accelerated projected gradient descent, restarted when f rises, to a gap of 1e-10."""
    x = last = constraint.start(f.shape)
    k, step = 0, 1 / f.smoothness
    for _ in range(50_000):
        z = x + k / (k + 3) * (x - last)
        last, x = x, constraint.project(z - step * f.gradient(z))
        k = k + 1 if f.value(x) <= f.value(last) else 0
        if gap(constraint, f.gradient(x), x) <= 1e-10:
            break
    return x


def data(name):
    rng = np.random.default_rng(7)
    if name == "SquaredHinge":
        A, y = adafw.datasets.support_vector(60, 6, seed=7)
        return A, y
    A = rng.standard_normal((60, 6)) * np.array([1.0, 0.3, 1.0, 0.1, 0.7, 1.0])
    z = A @ np.array([1.0, -2.0, 0.0, 0.0, 1.0, 0.5]) + 0.3 * rng.standard_normal(60)
    return A, (z if name in ("Squared", "Huber") else np.where(z >= 0, 1.0, -1.0))


CASES = {
    "least squares, l1": (losses.Squared(), adafw.L1Ball(1.0)),
    "squared hinge, linf": (losses.SquaredHinge(), adafw.LInfBall(0.2)),
    "logistic, l2": (losses.Logistic(), adafw.L2Ball(1.0)),
    "huber, simplex": (losses.Huber(0.5), adafw.Simplex(1.0)),
    "smoothed hinge, box": (losses.SmoothedHinge(0.5), adafw.Box(-0.2, 0.4)),
}


@pytest.fixture(scope="session")
def solved():
    """(f, set) -> the problem with its minimum, certified by the gap."""

    def solve_and_certify(f, constraint):
        x = solve(f, constraint)
        certificate = gap(constraint, f.gradient(x), x)
        assert certificate <= 1e-9
        assert constraint.violation(x) <= 1e-14
        return Problem(f, constraint, x, f.value(x) - max(0.0, certificate))

    return solve_and_certify


@pytest.fixture(params=CASES, scope="session")
def problem(request, solved):
    loss, constraint = CASES[request.param]
    return solved(adafw.LinearModel(*data(type(loss).__name__), loss), constraint)
