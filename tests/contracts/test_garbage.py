"""Runs and fits leave nothing to Python's collector: data held in circles pile up till it comes."""

import gc

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.sklearn import FrankWolfeClassifier, FrankWolfeRegressor, MatrixCompletion, radius_path

PRESETS = [
    "FW",
    "AFW",
    "PFW",
    "BPCG",
    "Corrective",
    "SFW",
    "CSFW",
    "SVRF",
    "ORGFW",
    "SPIDERFW",
    "SAGAFW",
    "LSVRFW",
    "PAGEFW",
    "MSFW",
    "LuFreundFW",
    "BoostFW",
    "BoostCSFW",
    "CGS",
    "SCGS",
    "STORC",
    "AdaSFW",
    "AdaSVRF",
    "AdaCSFW",
    "AdamSFW",
    "AdaGrad",
    "AMSGrad",
]

rng = np.random.default_rng(0)
SPARSE = sparse.random_array((60, 30), density=0.3, rng=rng, format="csr")
DATA = {
    "dense": rng.normal(size=(60, 8)),
    "single": rng.normal(size=(60, 8)).astype(np.float32),
    "sparse": SPARSE,
}
Y = np.where(rng.random(60) < 0.5, -1.0, 1.0)


def held_in_circles(run):
    """What a second run leaves unreachable but not freed: arrays, and objects of adafw."""
    run()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        run()
        gc.collect()
        return [
            type(one).__qualname__
            for one in gc.garbage
            if isinstance(one, np.ndarray) or type(one).__module__.startswith(("adafw", "scipy"))
        ]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("preset", PRESETS)
def test_runs(preset, data):
    algorithm = getattr(adafw, preset)()

    def run():
        f = adafw.LinearModel(DATA[data], Y, losses.Logistic())
        adafw.minimize(f, adafw.L1Ball(2.0), algorithm, max_iterations=8)

    assert held_in_circles(run) == []


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("constraint", ["l1", "l2", "linf", "simplex"])
@pytest.mark.parametrize("intercept", [False, True])
def test_fits(constraint, data, intercept):
    settings = {"constraint": constraint, "radius": 0.1, "fit_intercept": intercept}

    def run():
        FrankWolfeClassifier(**settings).fit(DATA[data], Y)
        FrankWolfeClassifier(**settings).fit(DATA[data], np.arange(60) % 3)
        FrankWolfeRegressor(**settings).fit(DATA[data], Y)

    assert held_in_circles(run) == []


def test_paths_and_completions():
    places = np.argwhere(rng.random((5, 4)) < 0.7)

    def run():
        radius_path(SPARSE, Y, radii=[0.05, 0.1])
        MatrixCompletion(radius=2.0).fit(places, np.arange(1.0, len(places) + 1))

    assert held_in_circles(run) == []
