"""Every preset stays in every set: violation is rounding error only, and never grows.

A set is picked up from `adafw.constraints` by its name; EXAMPLES says how to make one.
"""

from types import FunctionType

import numpy as np
import pytest

import adafw
from adafw import constraints, losses
from tests.contracts.test_sets import SETS as CASES
from tests.paper.conftest import paths_of

VECTOR, MATRIX, SQUARE = (6,), (4, 3), (3, 3)
EXAMPLES = {
    "L1Ball": (lambda C: C(1.5), VECTOR),
    "L2Ball": (lambda C: C(0.7), VECTOR),
    "LInfBall": (lambda C: C(0.4), VECTOR),
    "LpBall": (lambda C: C(1.2, 1.5), VECTOR),
    "Box": (lambda C: C(np.linspace(-1, 0, 6), np.linspace(0, 2, 6)), VECTOR),
    "Simplex": (lambda C: C(2.0), VECTOR),
    "UnitSimplex": (lambda C: C(2.0), VECTOR),
    "KSparse": (lambda C: C(0.5, 2), VECTOR),
    "GroupBall": (lambda C: C(1.0, np.array([0, 0, 1, 2, 1, 2])), VECTOR),
    "Hull": (lambda C: C(np.random.default_rng(1).standard_normal((9, 6))), VECTOR),
    "NuclearBall": (lambda C: C(1.5), MATRIX),
    "SpectralBall": (lambda C: C(0.8), MATRIX),
    "RowBall": (lambda C: C(0.4), MATRIX),
    "ColumnBall": (lambda C: C(0.5), MATRIX),
    "RMSBall": (lambda C: C(0.3), VECTOR),
    "Columns": (lambda C: C(adafw.Simplex(1.0)), MATRIX),
    "Monotone": (lambda C: C(0.8), VECTOR),
    "Nonnegative": (lambda C: C(0.6), VECTOR),
    "Birkhoff": (lambda C: C(), SQUARE),
    "Polytope": (lambda C: C(np.ones((1, 6)), np.ones(1), bounds=[(-1, 1)] * 6), VECTOR),
    "Product": (lambda C: C([(adafw.L1Ball(1.0), 2), (adafw.Simplex(1.0), 4)]), VECTOR),
    "UserSet": (
        lambda C: C(adafw.L1Ball(1.0).lmo, np.zeros(6), adafw.L1Ball(1.0).contains),
        VECTOR,
    ),
}
#: Any other set is tried as the contract of all sets tries it.
EXAMPLES = {type(c.set).__name__: (lambda C, c=c: c.set, c.shape) for c in CASES} | EXAMPLES
#: Sets whose vertices are known to the last digit: there, violation is rounding of x alone.
EXACT = ("L1Ball", "L2Ball", "LInfBall", "Box", "Simplex", "UnitSimplex")
SETS = sorted(set(constraints.__all__) - {"Constraint"})
PRESETS = {
    "FW": adafw.FW(),
    "FW short": adafw.FW(adafw.steps.ShortStep()),
    "FW search": adafw.FW(adafw.steps.LineSearch()),
    "FW backtracking": adafw.FW(adafw.steps.Backtracking()),
    "SFW": adafw.SFW(),
    "SVRF": adafw.SVRF(),
    "SPIDERFW": adafw.SPIDERFW(),
    "ORGFW": adafw.ORGFW(),
    "CSFW": adafw.CSFW(),
    "AdaFW": adafw.AdaFW(learning_rate=1.0),
    "AdaSFW": adafw.AdaSFW(learning_rate=1.0),
    "AdaSVRF": adafw.AdaSVRF(learning_rate=1.0),
    "AdaSPIDERFW": adafw.AdaSPIDERFW(learning_rate=1.0),
    "AdaORGFW": adafw.AdaORGFW(learning_rate=1.0),
    "AdaCSFW": adafw.AdaCSFW(learning_rate=1.0),
    "AdamSFW": adafw.AdamSFW(learning_rate=1.0),
    "AdaGrad": adafw.AdaGrad(learning_rate=1.0),
    "AMSGrad": adafw.AMSGrad(learning_rate=1.0),
    "SAGAFW": adafw.SAGAFW(),
    "MSFW": adafw.MSFW(),
    "LSVRFW": adafw.LSVRFW(),
    "PAGEFW": adafw.PAGEFW(),
    "LuFreundFW": adafw.LuFreundFW(),
    "BoostCSFW": adafw.BoostCSFW(),
    "BoostFW": adafw.BoostFW(adafw.steps.ShortStep(L=10.0), rounds=3),
    "CGS": adafw.CGS(L=1.0, diameter=10.0),
    "SCGS": adafw.SCGS(L=1.0, diameter=10.0),
    "STORC": adafw.STORC(L=1.0, diameter=10.0),
}


def problem(name, dtype=np.float64):
    """A set of that name and an objective over it."""
    make, shape = EXAMPLES[name]
    rng = np.random.default_rng(0)
    if len(shape) == 1:
        A = rng.standard_normal((25, *shape)).astype(dtype)
        f = adafw.LinearModel(A, rng.choice([-1.0, 1.0], 25), losses.Logistic())
    else:
        rows, cols = rng.integers(0, shape[0], 25), rng.integers(0, shape[1], 25)
        values = rng.standard_normal(25).astype(dtype)
        f = adafw.MatrixCompletion(rows, cols, values, shape)
    return f, make(getattr(constraints, name))


def test_every_set_has_an_example():
    assert set(SETS) <= set(EXAMPLES), "add a line to SETS of tests/contracts/test_sets.py"


#: Presets whose own tests keep them inside: they need polytopes, or correctors of their own.
ELSEWHERE = {"AFW", "BPCG", "Corrective", "PFW"}


def test_every_preset_is_run():
    here = {n: part for n, part in vars(adafw.algorithms).items() if n in adafw.__all__}
    presets = {n for n, part in here.items() if isinstance(part, FunctionType)}
    assert len(presets) > 10
    assert presets <= set(PRESETS) | ELSEWHERE


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_runs_stay_inside(name, preset, dtype):
    f, constraint = problem(name, dtype)
    algorithm = PRESETS[preset]
    if preset in ("AdaGrad", "AMSGrad") and constraint.projection != "metric":
        with pytest.raises(TypeError, match="needs a set with a projection in a diagonal metric"):
            adafw.minimize(f, constraint, algorithm, max_iterations=1)
        return
    for path in paths_of(f, constraint, algorithm):
        inside = []
        r = adafw.minimize(
            f,
            constraint,
            algorithm,
            max_iterations=25,
            record_every=5,
            callbacks=[lambda s, _, inside=inside: inside.append(constraint.contains(s.x))],
            path=path,
        )
        assert len(inside) == 6
        assert all(inside)
        assert name not in EXACT or r.trace["violation"].max() <= 40 * np.finfo(dtype).eps
        assert r.status == "max_iterations"
        assert r.x.dtype == dtype
        assert np.isfinite(r.value)
