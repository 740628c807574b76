import numpy as np
import pytest

import adafw
from adafw.experiments.convex.reference import best_algorithm


@pytest.mark.parametrize(
    ("columns", "constraint", "name", "left"),
    [
        (20, adafw.L1Ball(1.0), "Corrective", 1e-12),
        (600, adafw.L1Ball(1.0), "Corrective", 1e-9),
        (600, adafw.UserSet(adafw.L1Ball(1.0).lmo, np.zeros(600)), "FW", 0.1),
    ],
)
def test_the_reference_is_by_the_best_exact_method(columns, constraint, name, left):
    rng = np.random.default_rng(0)
    f = adafw.LinearModel(rng.standard_normal((50, columns)), np.ones(50), adafw.losses.Logistic())
    algorithm = best_algorithm(f, constraint)
    assert algorithm.name == name
    first = adafw.minimize(f, constraint, algorithm, max_iterations=0, progress=False).gap
    result = adafw.minimize(
        f, constraint, algorithm, max_iterations=100, gap_tolerance=left * first, progress=False
    )
    assert result.status == "converged"


def test_without_second_derivatives_the_reference_has_no_use_for_them():
    class First(adafw.losses.Loss):
        """Half of the squared residual, of which only the slope is told."""

        curvature = 1.0

        def value(self, z, y):
            return (z - y) ** 2 / 2

        def slope(self, z, y):
            return z - y

    A = np.random.default_rng(0).standard_normal((50, 20))
    f = adafw.LinearModel(A, np.ones(50), First())
    assert not f.has_hessian
    assert best_algorithm(f, adafw.L1Ball(1.0)).name == "Spectral"
