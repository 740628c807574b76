"""The corrective inner loop compiled: the iterates, and the counts, of the one loop."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import gradients, losses


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Squared()])
@pytest.mark.parametrize("constraint", [adafw.L1Ball(4.0), adafw.LInfBall(0.3)])
def test_fused_iterates_and_counts_are_the_generic_ones(loss, constraint):
    A, y = adafw.datasets.support_vector(300, 80, seed=1)
    f = adafw.LinearModel(A, y, loss)
    algorithm = adafw.AdaCSFW(0.3, inner="corrective")
    runs = {
        path: adafw.minimize(f, constraint, algorithm, max_iterations=120, path=path)
        for path in ("generic", "fused")
    }
    a, b = runs["generic"], runs["fused"]
    np.testing.assert_allclose(a.x, b.x, atol=1e-12 * constraint.radius)
    assert a.trace[-1].lmo_calls == b.trace[-1].lmo_calls > 0
    assert a.trace[-1].projections == b.trace[-1].projections == 0


@pytest.mark.parametrize(
    "algorithm",
    [
        adafw.AdaCSFW(0.3, inner_steps=1, inner="corrective"),
        adafw.AdaCSFW(lambda t: 1.0, inner="corrective"),
        adafw.AdaCSFW(np.inf, inner="corrective"),
        adafw.AdaSPIDERFW(0.3, inner="corrective"),
    ],
)
def test_what_no_kernel_knows_runs_in_the_one_loop(algorithm):
    A, y = adafw.datasets.support_vector(60, 20, seed=1)
    f = adafw.LinearModel(A, y, losses.Logistic())
    with pytest.raises(ValueError, match="fused"):
        adafw.minimize(f, adafw.L1Ball(1.0), algorithm, max_iterations=2, path="fused")
    r = adafw.minimize(f, adafw.L1Ball(1.0), algorithm, max_iterations=30)
    assert np.isfinite(r.value)
    assert r.trace[-1].violation <= 1e-12


@pytest.mark.parametrize("constraint", [adafw.L1Ball(4.0), adafw.LInfBall(0.3)])
@pytest.mark.parametrize("projected", [False, True])
def test_where_the_estimate_is_zero_nothing_is_counted_on_any_path(constraint, projected):
    """A batch that meets only targets of 0 at x = 0 leaves g = 0."""
    A, _ = adafw.datasets.support_vector(60, 20, seed=1)
    y = np.zeros(60)
    y[:3] = 1.0
    f = adafw.LinearModel(sparse.csr_array(A), y, losses.Squared())
    paths = ["generic", "fused", *(["lazy"] if isinstance(constraint, adafw.L1Ball) else [])]
    algorithm = (
        adafw.AdaGrad(0.3, gradient=gradients.CSFW(2))
        if projected
        else adafw.AdaCSFW(0.3, batch_size=2, inner="corrective")
    )
    counts = set()
    for path in paths:
        s = adafw.minimize(f, constraint, algorithm, max_iterations=30, path=path).state
        counts.add((s.lmo_calls, s.projections))
    assert len(counts) == 1
    lmo, projections = counts.pop()
    each = 1 if isinstance(constraint, adafw.LInfBall) else 2
    assert 0 < (projections if projected else lmo / each) < 30
    assert (lmo if projected else projections) == 0
