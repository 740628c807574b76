"""Every preset against a second implementation written from the paper."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from tests.paper.conftest import paths_of
from tests.paper.reference import iterates

SETS = {"l1": adafw.L1Ball, "linf": adafw.LInfBall, "l2": adafw.L2Ball}
LOSSES = {"squared": adafw.losses.Squared(), "logistic": adafw.losses.Logistic()}
TIMES = (1, 2, 17, 60)

# name -> (preset, how the reference is told of it)
PRESETS = {
    "FW": (adafw.FW(), dict(estimate="full", step="fw")),
    "SFW": (adafw.SFW(), dict(estimate="minibatch", step="fw")),
    "SVRF": (adafw.SVRF(), dict(estimate="svrf", step="fw")),
    "SPIDERFW": (adafw.SPIDERFW(), dict(estimate="spider", step="fw")),
    "ORGFW": (adafw.ORGFW(), dict(estimate="orgfw", step="fw")),
    "CSFW": (adafw.CSFW(), dict(estimate="csfw", step="fw")),
    "CSFW 1/(t+1), b = 7": (
        adafw.CSFW(step_size=lambda t: 1 / (t + 1), batch_size=7),
        dict(estimate="csfw", step="fw", gamma=lambda t: 1 / (t + 1), batch_size=7),
    ),
    "AdaFW": (adafw.AdaFW(0.1), dict(estimate="full", step="adaptive", eta=0.1)),
    "AdaSFW": (
        adafw.AdaSFW(0.3, inner_steps=2),
        dict(estimate="minibatch", step="adaptive", eta=0.3, K=2),
    ),
    "AdaSVRF": (adafw.AdaSVRF(0.1), dict(estimate="svrf", step="adaptive", eta=0.1)),
    "AdaSPIDERFW": (adafw.AdaSPIDERFW(0.1), dict(estimate="spider", step="adaptive", eta=0.1)),
    "AdaORGFW": (adafw.AdaORGFW(0.1), dict(estimate="orgfw", step="adaptive", eta=0.1)),
    "AdaCSFW": (
        adafw.AdaCSFW(0.1, inner_steps=4, max_step=0.3),
        dict(estimate="csfw", step="adaptive", eta=0.1, K=4, bound=0.3),
    ),
    "AdamSFW": (
        adafw.AdamSFW(0.05, betas=(0.8, 0.95)),
        dict(estimate="percent", step="adaptive", eta=0.05, metric="ams", betas=(0.8, 0.95)),
    ),
    "AdaGrad": (adafw.AdaGrad(0.5), dict(estimate="percent", step="projected", eta=0.5)),
    "AMSGrad": (
        adafw.AMSGrad(0.2),
        dict(estimate="percent", step="projected", eta=0.2, metric="ams"),
    ),
    "AdaGrad on CSFW": (
        adafw.AdaGrad(0.5, gradient=adafw.gradients.CSFW()),
        dict(estimate="csfw", step="projected", eta=0.5),
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("ball", SETS)
@pytest.mark.parametrize("name", PRESETS)
def test_preset_follows_the_paper(name, ball, loss):
    rng = np.random.default_rng(11)
    m, n, radius, seed = 400, 9, 2.5, 3
    A = rng.normal(size=(m, n)) * rng.uniform(0.2, 2, size=n)
    y = A @ rng.normal(size=n) + 0.3 * rng.normal(size=m)
    if loss == "logistic":
        y = np.where(y > 0, 1.0, -1.0)
    algorithm, told = PRESETS[name]
    expected = iterates(A, y, loss, ball, radius, T=max(TIMES), seed=seed, **told)
    for data in (A, sparse.csr_array(A)):
        f = adafw.LinearModel(data, y, LOSSES[loss])
        for path in paths_of(f, SETS[ball](radius), algorithm):
            for t in TIMES:
                r = adafw.minimize(
                    f, SETS[ball](radius), algorithm, seed=seed, max_iterations=t, path=path
                )
                assert np.abs(r.x - expected[t]).max() <= 1e-9 * radius


def test_the_papers_loss_without_continuous_data_for_a_few_steps():
    """Squared hinge on signs: only single steps are comparable, as exact zeros turn into 1e-20."""
    A, y = adafw.datasets.support_vector(300, 20, seed=1)
    f = adafw.LinearModel(A, y, adafw.losses.SquaredHinge())
    expected = iterates(
        A.toarray(), y, "squared_hinge", "l2", 1.0, estimate="csfw", step="adaptive", eta=0.1, T=5
    )
    for t in range(1, 6):
        r = adafw.minimize(f, adafw.L2Ball(1.0), adafw.AdaCSFW(0.1), max_iterations=t)
        assert np.abs(r.x - expected[t]).max() <= 1e-9
