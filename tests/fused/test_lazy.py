import numpy as np
import pytest
from fused_problems import after, fresh, linear_model, same_bits, same_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adafw
from adafw import paths, solver
from adafw.fused import lazy
from adafw.fused.lazy import LazyL1
from adafw.fused.linear import LinearBalls

LAZY, FUSED = LazyL1(), LinearBalls()
#: So little room for candidates that every way of handling the list is gone.
TINY = LazyL1(room=4, times=2)


def algorithm(K, batch, eta=1.0, max_step=1.0):
    if K == 0:
        return adafw.CSFW(batch_size=batch)
    if K is None:
        return adafw.AdaCSFW(eta, batch_size=batch, inner="corrective")
    if K == "projected":
        return adafw.AdaGrad(eta, gradient=adafw.gradients.CSFW(batch))
    return adafw.AdaCSFW(eta, K, max_step, batch_size=batch)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_lazy_equals_generic_on_random_problems(data):
    draw = data.draw
    m, n = draw(st.integers(1, 40)), draw(st.integers(1, 80))
    loss = draw(st.sampled_from(["squared", "logistic", "hinge"]))
    f = linear_model(
        m, n, draw(st.integers(0, 99)), loss, weighted=draw(st.booleans()),
        density=draw(st.sampled_from([0.05, 0.3])),
    )  # fmt: skip
    constraint = adafw.L1Ball(draw(st.sampled_from([0.1, 5.0])))
    algo = algorithm(
        draw(st.sampled_from([0, 1, 3, 6, None, "projected"])),
        draw(st.sampled_from([1, 3, 5, 2 * m + 1, lambda t: t % 4 + 0.5])),
        draw(st.sampled_from([0.05, 1.0, lambda t: 2 / (t + 1)])),
        draw(st.sampled_from([1.0, lambda t: 2 / (t + 2)])),
    )
    seed = draw(st.integers(0, 5))
    got = after(LAZY.run, f, constraint, algo, draw(st.sampled_from([(30,), (1, 29)])), seed)
    expected = after(solver.run, f, constraint, algo, [30], seed)
    assert np.abs(got.x - expected.x).max() <= 1e-9 * constraint.radius
    assert same_counts(got, expected)
    for part in ("gradient", "step"):
        assert getattr(got, part).keys() == getattr(expected, part).keys()
        for key, value in getattr(expected, part).items():
            np.testing.assert_allclose(getattr(got, part)[key], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("K", [0, 1, 5, None])
@pytest.mark.parametrize("batch", [1, 5])
def test_stale_reads_thinnings_and_rebuilds_happen_and_change_nothing(K, batch):
    rng = np.random.default_rng(K or 7)
    A = sparse.random_array((400, 900), density=0.02, rng=rng, data_sampler=rng.standard_normal)
    y = A @ (rng.standard_normal(900) * (rng.random(900) < 0.05))
    f = adafw.LinearModel(A.tocsr(), y, adafw.losses.Squared())
    # The ball is so large that the gradient, and with it the threshold, has far to fall.
    constraint, algo = adafw.L1Ball(100.0), algorithm(K, batch, 3.0)
    got = after(TINY.run, f, constraint, algo, [6000])
    stale, thinned, rebuilt = got.workspace["work"]
    assert stale > 1000
    assert thinned > 0
    assert rebuilt > 0
    expected = after(FUSED.run, f, constraint, algo, [6000])
    assert np.abs(got.x - expected.x).max() <= 1e-9 * constraint.radius
    assert same_counts(got, expected)


@pytest.mark.parametrize("K", [0, 5, None, "projected"])
def test_stopping_saving_and_resuming_changes_no_bit(K, tmp_path):
    f = linear_model(200, 300, 1, density=0.05)
    constraint, algo = adafw.L1Ball(20.0), algorithm(K, 3)
    whole = after(TINY.run, f, constraint, algo, [400])
    parts = fresh(f, constraint, algo)
    for n in (1, 133, 0, 66):
        TINY.run(f, constraint, algo, parts, n)
        parts.save(tmp_path / "state.npz")
        parts = adafw.State.load(tmp_path / "state.npz").copy()
    TINY.run(f, constraint, algo, parts, 200)
    assert same_bits(whole, parts)


@pytest.mark.parametrize("K", [0, 5, None, "projected"])
def test_recording_changes_no_bit(K):
    f, constraint, algo = (
        linear_model(100, 200, 2, density=0.05),
        adafw.L1Ball(9.0),
        algorithm(K, 3),
    )
    often = adafw.minimize(f, constraint, algo, max_iterations=60, path="lazy", record_every=1)
    never = adafw.minimize(f, constraint, algo, max_iterations=60, path="lazy", record_every=60)
    assert same_bits(often.state, never.state)


@pytest.mark.parametrize("K", [0, 5, None, "projected"])
def test_a_path_can_be_left_and_taken_up_again(K):
    f, constraint, algo = (
        linear_model(100, 200, 3, density=0.05),
        adafw.L1Ball(9.0),
        algorithm(K, 3),
    )
    straight = adafw.minimize(f, constraint, algo, max_iterations=100, path="generic")
    r = adafw.minimize(f, constraint, algo, max_iterations=20, path="lazy")
    for k, path in enumerate(("generic", "lazy", "fused", "lazy"), start=2):
        before = r.x.copy()
        later = adafw.minimize(f, constraint, algo, state=r.state, max_iterations=20 * k, path=path)
        np.testing.assert_array_equal(r.x, before)  # a result never changes afterwards
        r = later
    assert np.abs(r.x - straight.x).max() <= 1e-9 * constraint.radius
    assert r.trace[-1].gradient_evaluations == straight.trace[-1].gradient_evaluations


def test_ties_beyond_the_room_are_kept_together():
    # All columns are equal up to the sign: every |g_j| ties, and the lowest index must win.
    rng = np.random.default_rng(0)
    column, signs = rng.standard_normal((50, 1)), rng.choice([-1.0, 1.0], 300)
    f = adafw.LinearModel(
        sparse.csr_array(column * signs), np.sign(column.ravel()), adafw.losses.Logistic()
    )
    for K in (0, 1):
        s = after(TINY.run, f, adafw.L1Ball(1.0), algorithm(K, 4), [30])
        np.testing.assert_array_equal(np.flatnonzero(s.x), [0])


def test_a_large_support_does_not_crowd_the_candidates_out():
    # All of the support is among the largest |g_j|: a list that had room for these alone would be
    # made anew, by a pass over n, in every fourth iteration.
    rng = np.random.default_rng(55)
    A = sparse.random_array((200, 400), density=0.03, rng=rng, data_sampler=rng.standard_normal)
    y = A @ (rng.standard_normal(400) * (rng.random(400) < 0.3))
    f = adafw.LinearModel(A.tocsr(), y, adafw.losses.Squared())
    constraint, algo = adafw.L1Ball(300.0), algorithm(1, 20, 0.3)
    got = after(TINY.run, f, constraint, algo, [1500])
    assert np.count_nonzero(got.x) > 20
    assert 0 < got.workspace["work"][2] < 40
    expected = after(FUSED.run, f, constraint, algo, [1500])
    assert np.abs(got.x - expected.x).max() <= 1e-9 * constraint.radius


def test_an_infinite_estimate_ends_the_run():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 6)) * 1e200
    f = adafw.LinearModel(sparse.csr_array(A), A @ np.ones(6), adafw.losses.Squared())
    constraint = adafw.L1Ball(2.0)
    for K in (0, 5):
        states = [fresh(f, constraint, algorithm(K, 3)) for _ in range(2)]
        for run, s in zip((solver.run, LAZY.run), states, strict=True):
            with pytest.raises(solver.Diverged), np.errstate(all="ignore"):
                run(f, constraint, algorithm(K, 3), s, 50)
        assert same_counts(*states)
        assert np.isfinite(states[1].x).all()


def test_float32_data_stay_float32():
    f = linear_model(50, 30, 3, dtype=np.float32)
    constraint, algo = adafw.L1Ball(2.0), algorithm(5, 9)
    expected = after(solver.run, f, constraint, algo, [10])
    got = after(LAZY.run, f, constraint, algo, [10])
    assert got.x.dtype == np.float32
    assert np.abs(got.x - expected.x).max() <= 1e-4 * constraint.radius


def test_it_is_chosen_where_features_by_far_outnumber_the_non_zeros_of_a_batch():
    A = sparse.random_array((200, 5000), density=0.001, rng=np.random.default_rng(0)).tocsr()
    f = adafw.LinearModel(A, np.ones(200), adafw.losses.Squared())
    ball = adafw.L1Ball(1.0)
    chosen = {
        "lazy": (ball, adafw.CSFW(batch_size=10)),
        "fused": (ball, adafw.CSFW(batch_size=200)),
    }
    for name, (constraint, algo) in chosen.items():
        assert paths.find(f, constraint, algo).name == name
    assert paths.find(f, ball, adafw.SVRF()).name == "fused"
    assert paths.find(f, adafw.LInfBall(1.0), adafw.CSFW(batch_size=10)).name == "fused"


def test_accumulators_survive_a_gradient_that_is_zero_everywhere():
    """All margins are beyond the hinge, so that g = 0; some columns have not been seen."""
    A = sparse.csr_array(np.array([[1.0, 0, 0], [1, 2, 0], [2, 0, 0], [1, 1, 0]]))
    f = adafw.LinearModel(A, np.ones(4), adafw.losses.SquaredHinge())
    ball, algo = adafw.L1Ball(5.0), adafw.AdaCSFW(1.0, 1, batch_size=4)
    s = after(solver.run, f, ball, algo, [30])
    assert not s.gradient["gradient"].any()
    squares = s.step["sum_squares"].copy()
    assert squares.tolist()[2] == 0 < squares[0]
    LAZY.run(f, ball, algo, s, 3)
    np.testing.assert_array_equal(s.step["sum_squares"], squares)


@pytest.mark.parametrize("K", [0, 3, None, "projected"])
def test_a_coordinate_without_data_holds_no_other_back(K):
    """The last of the support never has a gradient; the others move as ever."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 6))
    A[:, [0, 5]] = 0
    f = adafw.LinearModel(sparse.csr_array(A), rng.standard_normal(30), adafw.losses.Squared())
    ball, algo = adafw.L1Ball(50.0), algorithm(K, 4, 0.1)
    x0 = np.array([0.3, 0.1, -0.2, 0.1, 0.2, 0.4])
    ends = []
    for run in (solver.run, LAZY.run, FUSED.run):
        s = solver.start(f, ball, algo, x0.copy(), np.random.default_rng(0))
        ends.append(run(f, ball, algo, s, 12))
    for s in ends[1:]:
        np.testing.assert_allclose(s.x, ends[0].x, rtol=0, atol=1e-10)
        assert same_counts(s, ends[0])
    if K in (None, "projected"):
        assert ends[0].x[[0, 5]].tolist() == [0.3, 0.4]
    assert not np.allclose(ends[0].x[1:5], x0[1:5])


def test_a_new_list_has_room_for_the_longest_row_beside_its_own():
    A = np.zeros((4, 30))
    A[1, :7], A[2, 3:5] = 1.0, 2.0
    f = adafw.LinearModel(sparse.csr_array(A), np.ones(4), adafw.losses.Squared())
    ball = adafw.L1Ball(1.0)
    for path, K, capacity in ((TINY, 0, 8 + 7), (TINY, 3, 24 + 7), (LAZY, 3, 2048 + 7),
                              (LAZY, 400, 3200 + 7)):  # fmt: skip
        s = fresh(f, ball, algorithm(K, 2))
        path.run(f, ball, algorithm(K, 2), s, 0)
        assert s.workspace["capacity"] == capacity
        path.run(f, ball, algorithm(K, 2), s, 5)
        assert s.workspace["candidates"].base is None, "no more is kept than the candidates"
        assert s.workspace["support"].base is None


def test_rows_of_the_table_lie_within_cache_lines():
    for n in (1, 3, 50, 1001):
        table = lazy._aligned_zeros(n)
        assert table.shape == (n, 4)
        assert table.ctypes.data % 64 == 0
        assert not table.any()
        assert lazy._aligned(table) is table
        room = np.zeros(4 * n + 9)
        offset = 1 + (-(room.ctypes.data // 8)) % 4
        wrong = room[offset : offset + 4 * n].reshape(n, 4)
        wrong[:] = np.arange(4 * n).reshape(n, 4)
        assert wrong.ctypes.data % 32 != 0
        moved = lazy._aligned(wrong)
        assert moved.ctypes.data % 64 == 0
        assert np.array_equal(moved, wrong)
        turned = lazy._aligned(np.asfortranarray(wrong))
        assert np.array_equal(turned, wrong)
        assert turned.flags.c_contiguous
