import numpy as np

import adafw
from adafw.datasets import support_vector
from adafw.experiments.convex.audit import AuditedStep
from adafw.steps import AdaptiveStep


def problem():
    A, y = support_vector(80, 9, seed=2)
    return adafw.LinearModel(A, y, adafw.losses.Logistic()), adafw.L1Ball(3.0)


def run(step, n=25):
    f, ball = problem()
    algorithm = adafw.Algorithm(adafw.gradients.CSFW(), step)
    return adafw.minimize(f, ball, algorithm, max_iterations=n, record_every=1)


def test_audited_step_changes_no_bit_and_counts():
    step = AdaptiveStep(learning_rate=30.0, inner_steps=3)
    plain, audited = run(step), run(AuditedStep(step))
    np.testing.assert_array_equal(plain.x, audited.x)
    state = audited.state.step
    assert state["inner"] == 25 * 3
    assert 0 < state["exceeded"] <= state["inner"]
    assert state["cut"] <= state["exceeded"]
