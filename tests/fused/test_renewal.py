"""CSFW's sum of gradients is made anew now and then: deterministic in t, and no work counted."""

import numpy as np
import pytest
from fused_problems import after, fresh, linear_model, same_bits, same_counts
from scipy import sparse

import adafw
from adafw import solver
from adafw.fused.lazy import LazyL1
from adafw.fused.linear import LinearBalls

RUNS = {"generic": solver.run, "fused": LinearBalls().run, "lazy": LazyL1().run}
BALL = adafw.L1Ball(5.0)
ALGORITHMS = [adafw.CSFW(batch_size=20), adafw.AdaCSFW(1.0, 3, batch_size=20)]


@pytest.mark.parametrize("path", RUNS)
def test_the_sum_does_not_drift(path):
    """In float32, whose roundings have added up to 30 units and more after 5000 iterations."""
    f = linear_model(20, 30, 3, loss="squared", dtype=np.float32)
    s = after(RUNS[path], f, BALL, adafw.CSFW(0.5, batch_size=20), [5001])
    alpha, A = s.gradient["alpha"].astype(np.float64), f.rows.matrix.toarray().astype(np.float64)
    unit = np.finfo(np.float32).eps * (np.abs(alpha) @ np.abs(A)).max()
    assert np.abs(s.gradient["gradient"] - alpha @ A).max() <= 3 * unit


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
def test_all_paths_renew_at_the_same_iterations(algorithm):
    f = linear_model(20, 30, 4)  # an epoch is one iteration: renewed at t = 100, 200
    expected = after(RUNS["generic"], f, BALL, algorithm, [250])
    for path in ("fused", "lazy"):
        got = after(RUNS[path], f, BALL, algorithm, [250])
        assert np.abs(got.x - expected.x).max() <= 1e-9 * BALL.radius
        assert same_counts(got, expected)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=str)
@pytest.mark.parametrize("path", RUNS)
def test_stopping_around_a_renewal_changes_no_bit(path, algorithm, tmp_path):
    f = linear_model(20, 30, 5)
    whole = after(RUNS[path], f, BALL, algorithm, [230])
    s = fresh(f, BALL, algorithm)
    for n in (99, 1, 0, 1, 99, 30):
        RUNS[path](f, BALL, algorithm, s, n)
        s.save(tmp_path / "state.npz")
        s = adafw.State.load(tmp_path / "state.npz")
    assert same_bits(s, whole)


def test_it_is_no_evaluation():
    f = adafw.Counted(linear_model(20, 30, 6))
    s = after(solver.run, f, BALL, ALGORITHMS[0], [150])
    unique = f.gradients  # a row that stands twice in a batch is evaluated once
    assert unique <= 150 * 20 == s.gradient_evaluations


@pytest.mark.parametrize("path", ["generic", "fused"])
def test_sagas_sum_does_not_drift_either(path):
    f = linear_model(20, 30, 3, loss="squared", dtype=np.float32)
    s = after(RUNS[path], f, BALL, adafw.SAGAFW(0.5, batch_size=20), [2001])
    alpha, A = s.gradient["alpha"].astype(np.float64), f.rows.matrix.toarray().astype(np.float64)
    unit = np.finfo(np.float32).eps * (np.abs(alpha) @ np.abs(A)).max()
    assert np.abs(s.gradient["gradient"] - alpha @ A).max() <= 3 * unit


def test_saga_is_renewed_at_the_same_iterations_and_stopping_there_changes_no_bit():
    f, algorithm = linear_model(20, 30, 4), adafw.SAGAFW(batch_size=20)
    expected = after(RUNS["generic"], f, BALL, algorithm, [250])
    whole = after(RUNS["fused"], f, BALL, algorithm, [250])
    assert np.abs(whole.x - expected.x).max() <= 1e-9 * BALL.radius
    assert same_counts(whole, expected)
    assert same_bits(whole, after(RUNS["fused"], f, BALL, algorithm, [99, 1, 1, 99, 50]))


def test_the_lazy_sum_of_float32_is_made_in_double_precision():
    A = np.zeros((5, 2100), np.float32)  # so many columns that rows are summed as they come
    A[:, 3] = 1.0
    f = adafw.LinearModel(sparse.csr_array(A), np.ones(5), adafw.losses.Squared())
    algorithm, path = adafw.CSFW(batch_size=2), LazyL1()
    s = fresh(f, BALL, algorithm)
    path.run(f, BALL, algorithm, s, 0)
    s.gradient["alpha"][:] = [1e8, 1.0, 2.0, -1e8, 0.5]
    path._renew(f, algorithm, s)
    assert s.gradient["gradient"].dtype == np.float32
    assert s.gradient["gradient"][3] == 3.5
    assert s.workspace["table"][3, 1] == 3.5
