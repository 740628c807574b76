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
    "SAGAFW": (adafw.SAGAFW(), dict(estimate="saga", step="fw")),
    "MSFW": (adafw.MSFW(), dict(estimate="momentum", step="fw")),
    "LSVRFW": (adafw.LSVRFW(), dict(estimate="lsvrg", step="fw")),
    "LSVRFW, b = 60": (
        adafw.LSVRFW(batch_size=60),
        dict(estimate="lsvrg", step="fw", batch_size=60),
    ),
    "PAGEFW": (adafw.PAGEFW(), dict(estimate="page", step="fw")),
    "PAGEFW, b = 60": (
        adafw.PAGEFW(batch_size=60),
        dict(estimate="page", step="fw", batch_size=60),
    ),
    "LuFreundFW": (adafw.LuFreundFW(), dict(estimate="lu_freund", step="fw")),
    "SAGA, Template 3": (
        adafw.Algorithm(adafw.gradients.SAGA(), adafw.steps.AdaptiveStep(0.1)),
        dict(estimate="saga", step="adaptive", eta=0.1),
    ),
    "PAGE, projected": (
        adafw.Algorithm(adafw.gradients.PAGE(), adafw.steps.ProjectedStep(0.1)),
        dict(estimate="page", step="projected", eta=0.1),
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


@pytest.mark.parametrize("T", [20, 120])
def test_minibatches_of_all_terms_are_exact_in_the_reference_too(T):
    """SFW's b_t reaches m = 60 at t = 22: from then on no index is drawn."""
    rng = np.random.default_rng(4)
    A, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    f = adafw.LinearModel(A, y, adafw.losses.Squared())
    expected = iterates(A, y, "squared", "l2", 1.0, estimate="minibatch", step="fw", T=T)
    r = adafw.minimize(f, adafw.L2Ball(1.0), adafw.SFW(), max_iterations=T)
    assert np.abs(r.x - expected[T]).max() <= 1e-12
    drawn = np.random.default_rng(0)
    for t in range(min(T, 22)):
        drawn.integers(0, 60, size=max(1, int(np.ceil(t**2 / np.sqrt(60)))))
    words = adafw.random.freeze(drawn)
    assert np.array_equal(r.state.rng, words)


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
