"""Any number of parts gives the iterates of one machine."""

import numpy as np
import pytest

import adafw
from adafw.names import ALGORITHMS, takes_rate

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

RADIUS = 4.0


def algorithm(name):
    make = ALGORITHMS.find(name).make
    return make(learning_rate=0.3) if takes_rate(make) else make()


def both(f, g, constraint, algorithm, **how):
    runs = [adafw.minimize(h, constraint, algorithm, path="generic", **how) for h in (f, g)]
    far = np.abs(runs[0].x - runs[1].x).max()
    return runs[0], runs[1], far


@pytest.mark.parametrize("name", [entry.name for entry in ALGORITHMS])
def test_every_preset_goes_the_same_way(model, single, name):
    constraint = adafw.L1Ball(RADIUS)
    there, here, far = both(
        model, single, constraint, algorithm(name), max_iterations=8, record_every=4
    )
    assert far <= 1e-9 * RADIUS
    assert there.state.gradient_evaluations == here.state.gradient_evaluations
    np.testing.assert_allclose(there.trace["gap"], here.trace["gap"], rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("cuts", [(0, 120), (0, 30, 60, 90, 120), tuple(range(0, 121, 10))])
def test_any_cut_goes_the_same_way(client, parts, single, cuts):
    from adafw.distributed import DistributedLinearModel

    f = DistributedLinearModel.from_parts(parts(cuts), single.loss, client=client)
    for name in ("AdaCSFW", "Corrective"):
        _, _, far = both(f, single, adafw.L1Ball(RADIUS), algorithm(name), max_iterations=6)
        assert far <= 1e-9 * RADIUS


def test_many_rows_begin_with_the_same_sample(client, data, parts, monkeypatch):
    from adafw.distributed import DistributedLinearModel
    from adafw.steps.corrective import sample

    m, loss = 2_000, adafw.losses.Logistic()
    monkeypatch.setattr(sample, "LEAST_ROWS", m)
    A, y, _ = data(m=m)
    here = adafw.LinearModel(A, y, loss)
    there = DistributedLinearModel.from_parts(parts((0, 700, m), m=m), loss, client=client)
    constraint, how = adafw.L1Ball(RADIUS), {"max_iterations": 1}
    x, _, far = both(there, here, constraint, adafw.Corrective(), **how)
    assert far <= 1e-9 * RADIUS
    # What has to travel is bounded: with a smaller sample, another point.
    monkeypatch.setattr(sample, "TRAVEL", 12 * A.nnz // 10)
    monkeypatch.setattr(sample, "LEAST_ROWS", m // 2)
    before = there.traffic.received
    fewer = adafw.minimize(there, constraint, adafw.Corrective(), **how)
    assert there.traffic.received - before < 12 * A.nnz
    assert np.abs(fewer.x - x.x).max() > 1e-3
    assert fewer.gap <= 0.2 * there.value(np.zeros(14))


@pytest.mark.parametrize(
    "constraint",
    [
        adafw.LInfBall(0.5), adafw.L2Ball(2.0), adafw.Simplex(3.0), adafw.KSparse(0.5, 4),
        adafw.GroupBall(3.0, np.arange(14) // 2), adafw.Box(-0.3, 0.4),
    ],
    ids=repr,
)  # fmt: skip
def test_corrective_steps_on_every_set(model, single, constraint):
    # Of boxes and l2 balls one machine keeps a matrix from model to model, and takes other steps.
    other = isinstance(constraint, adafw.LInfBall | adafw.L2Ball | adafw.Box)
    there, here, far = both(
        model, single, constraint, adafw.Corrective(), max_iterations=30,
        gap_tolerance=1e-12 if other else 1e-7,
    )  # fmt: skip
    assert there.status == here.status == "converged"
    # What a matrix costs decides how old it may be: a gradient more or less.
    assert other or abs(there.trace[-1].iteration - here.trace[-1].iteration) <= 1
    assert far <= 1e-6 * constraint.scale


def test_weights_are_those_of_one_machine(client, data, parts):
    from adafw.distributed import DistributedLinearModel

    A, y, w = data(weights=True)
    here = adafw.LinearModel(A, y, adafw.losses.SquaredHinge(), w)
    there = DistributedLinearModel.from_parts(
        parts(weights=True), adafw.losses.SquaredHinge(), client=client
    )
    x = np.random.default_rng(0).normal(size=14)
    assert there.value(x) == pytest.approx(here.value(x), rel=1e-13)
    np.testing.assert_allclose(there.gradient(x), here.gradient(x), atol=1e-13)
    batch = np.array([3, 99, 50])
    np.testing.assert_allclose(there.gradient(x, batch), here.gradient(x, batch), atol=1e-13)


def test_many_atoms_are_corrected_on_columns_brought_here(client, data, parts, monkeypatch):
    from adafw.distributed import DistributedLinearModel, working

    monkeypatch.setattr(working, "MOST_ATOMS", 0)
    A, y, _ = data()
    f = DistributedLinearModel.from_parts(parts(), adafw.losses.Logistic(), client=client)
    r = adafw.minimize(f, adafw.L1Ball(RADIUS), adafw.Corrective(), gap_tolerance=1e-8)
    exact = adafw.minimize(
        adafw.LinearModel(A, y, adafw.losses.Logistic()), adafw.L1Ball(RADIUS),
        adafw.Corrective(), gap_tolerance=1e-10,
    )  # fmt: skip
    assert r.status == "converged"
    assert 0 <= r.value - exact.value + 1e-10 <= 1e-7


def test_dask_arrays_are_taken_as_they_are_cut(client, data):
    da = pytest.importorskip("dask.array")
    from adafw.distributed import DistributedLinearModel

    A, y, _ = data()
    dense = A.toarray()
    X = da.from_array(dense, chunks=(37, 5))
    f = DistributedLinearModel(
        X, da.from_array(y, chunks=50), adafw.losses.Logistic(), client=client
    )
    assert "4 parts" in repr(f)
    here = adafw.LinearModel(dense, y, adafw.losses.Logistic())
    x = np.random.default_rng(0).normal(size=14)
    np.testing.assert_allclose(f.gradient(x), here.gradient(x), atol=1e-14)
    csr = da.from_array(dense, chunks=(60, 14)).map_blocks(_sparse)
    f = DistributedLinearModel(csr, y, adafw.losses.Logistic(), client=client)
    assert "csr in 2 parts" in repr(f)
    np.testing.assert_allclose(f.gradient(x), here.gradient(x), atol=1e-14)


_sparse = eval("lambda block: __import__('scipy.sparse').sparse.csr_matrix(block)")


def test_a_state_goes_on_with_another_cut(client, parts, single):
    from adafw.distributed import DistributedLinearModel

    f, g = (
        DistributedLinearModel.from_parts(parts(cuts), single.loss, client=client)
        for cuts in ((0, 120), (0, 33, 120))
    )
    C, algo = adafw.L1Ball(RADIUS), adafw.AdaCSFW(learning_rate=0.3)
    half = adafw.minimize(f, C, algo, max_iterations=5)
    whole = adafw.minimize(g, C, algo, state=half.state, max_iterations=10)
    alone = adafw.minimize(single, C, algo, max_iterations=10)
    assert np.abs(whole.x - alone.x).max() <= 1e-9 * RADIUS


def test_local_steps_reach_the_same_minimum(model, single):
    from adafw.distributed import LocalCSFW

    C = adafw.L1Ball(RADIUS)
    exact = adafw.minimize(single, C, adafw.Corrective(), gap_tolerance=1e-10)
    r = adafw.minimize(model, C, LocalCSFW(10, share=0.2), max_iterations=40, record_every=1)
    assert (r.trace["value"] - r.trace["gap"] <= exact.value + 1e-12).all()  # it certifies
    assert r.value - exact.value < 0.02 * (single.value(np.zeros(14)) - exact.value)
    assert r.state.gradient_evaluations == 40 * (120 + 10 * 24)
    again = adafw.minimize(model, C, LocalCSFW(10, share=0.2), max_iterations=40)
    assert np.abs(again.x - r.x).max() <= 1e-9 * RADIUS
    with pytest.raises(TypeError, match="need a DistributedLinearModel"):
        adafw.minimize(single, C, LocalCSFW())
