"""How many iterations a call of a kernel gets, and that its batches are those of the one loop."""

from itertools import pairwise

import numpy as np
import pytest
from fused_problems import fresh, linear_model

import adafw
from adafw import gradients
from adafw.fused import problem
from adafw.fused.batches import _Source, drive, sees_all
from adafw.kernels.parts import Batches
from adafw.random import freeze
from adafw.rows.base import as_batch
from adafw.solver import Diverged

M = 1000


def source(seed=0, cost=(0.0, 0.0), words=True):
    rng = np.random.default_rng(seed)
    return _Source(freeze(rng) if words else Draws(rng), M, cost)


class Draws:
    """A source of the user's own."""

    def __init__(self, rng):
        self.rng = rng

    def integers(self, low, high, size):
        return self.rng.integers(low, high, size)


@pytest.mark.parametrize(
    ("batch", "cost", "count"),
    [(1000, (0.0, 0.0), 33), (1, (0.0, 0.0), 4096), (2, (10.0, 100.0), 3980),
     (1, (1e7, 0.0), 2), (1, (0.0, 2.0**24), 1), (1 << 15, (0.0, 0.0), 1),
     (1 << 14, (0.0, 0.0), 2)],
)  # fmt: skip
def test_a_call_is_as_long_as_clock_and_keyboard_can_wait(batch, cost, count):
    """2^15 indices or 2^24 entries, 2^12 of which are counted for every iteration."""
    for kind in (gradients.SVRF, gradients.CSFW):
        found = source(cost=cost).batches(kind(batch), 1, 10**6)
        most = count if kind is gradients.CSFW else min(count, found.ends.size - 1)
        assert found.ends.size - 1 == most
        assert np.diff(found.ends).tolist() == [batch] * most
    assert source(cost=cost, words=False).batches(gradients.CSFW(batch), 1, 99).ends.size == 2


def test_no_more_than_is_asked_for_and_none_beyond_a_pass_over_all_rows():
    assert source().batches(gradients.CSFW(3), 5, 7).ends.size == 8
    renewed = gradients.CSFW(100)  # an epoch is ten iterations: anew at 1000
    found = source().batches(renewed, 990, 99)
    assert found.ends.size - 1 == 10
    assert not sees_all(renewed, M, found)
    again = source().batches(renewed, 1000, 99)
    assert np.diff(again.ends).tolist() == [100] * 99
    assert sees_all(renewed, M, again)
    svrf = gradients.SVRF(5)
    snapshots = [t for t in range(40) if svrf.is_snapshot(t)]
    for t, following in pairwise(snapshots[1:]):
        found = source().batches(svrf, t, 99)
        assert sees_all(svrf, M, found)
        assert np.diff(found.ends).tolist() == [0] + [5] * (following - t - 1)
    empty = Batches(0, as_batch(np.empty(0, np.int64), M), np.zeros(1, np.int64))
    assert not sees_all(svrf, M, empty)


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("gradient", [gradients.CSFW(lambda t: t % 4 + 1), gradients.SVRF(3),
                                      gradients.SAGA(5), gradients.LSVRG(4, 0.3)],
                         ids=lambda g: type(g).__name__)  # fmt: skip
def test_indices_are_those_of_single_draws(gradient, words):
    """A coin first, where there is one; what was drawn too far ahead is drawn again."""
    got, one, t = source(7, words=words), np.random.default_rng(7), 0
    while t < 60:
        batches = got.batches(gradient, t, 60 - t)
        for k in range(batches.ends.size - 1):
            exact = isinstance(gradient, gradients.SVRF) and gradient.is_snapshot(t)
            if isinstance(gradient, gradients.LSVRG):
                toss = int(one.integers(0, 2**53)) / 2**53
                exact = gradient.is_exact(t, M, toss)
            wanted = [] if exact else one.integers(0, M, size=gradient.b(t, M)).tolist()
            assert batches.indices[batches.ends[k] : batches.ends[k + 1]].tolist() == wanted, t
            assert batches.t + k == t
            t += 1
    assert t == 60


def test_blocks_are_cut_at_the_end_of_every_batch():
    gradient, one = gradients.CSFW(lambda t: t % 4 + 2), adafw.Blocks(7, 3)
    batches = _Source(freeze(adafw.Blocks(7, 3)), M, (0.0, 0.0)).batches(gradient, 0, 30)
    assert batches.ends.size == 31
    for t in range(30):
        wanted = one.integers(0, M, gradient.b(t, M)).tolist()
        assert batches.indices[batches.ends[t] : batches.ends[t + 1]].tolist() == wanted, t


def test_a_run_that_ends_in_the_middle_of_a_call_has_drawn_what_it_used():
    f, ball = linear_model(50, 8), adafw.L1Ball(1.0)
    for batch, done in ((3, 4), (7, 0)):
        algorithm = adafw.CSFW(batch_size=batch)
        s = fresh(f, ball, algorithm)
        with pytest.raises(Diverged):
            drive(f, algorithm, s, 20, lambda batches, n=done: n, lambda: False, (1.0, 1.0))
        assert (s.t, s.gradient_evaluations, s.lmo_calls) == (done, done * batch, done)
        assert s.torn
        rng = np.random.default_rng(0)
        rng.integers(0, 50, size=(done + 1) * batch)  # that of the batch which broke it, too
        assert np.array_equal(s.rng, freeze(rng))


def test_a_run_stops_between_two_calls():
    f, ball, algorithm = linear_model(50, 8), adafw.L1Ball(1.0), adafw.AdaCSFW(1.0, 3, batch_size=5)
    s, calls = fresh(f, ball, algorithm), []

    def iterate(batches):
        calls.append((batches.t, batches.ends.size - 1))
        return batches.ends.size - 1

    drive(f, algorithm, s, 20, iterate, lambda: len(calls) == 2, (0.0, 2.0**22))
    assert calls == [(0, 4), (4, 4)]
    assert (s.t, s.gradient_evaluations, s.lmo_calls, s.torn) == (8, 40, 24, False)
    drive(f, algorithm, s, 12, iterate, lambda: False, (0.0, 2.0**22))
    assert calls[2:] == [(8, 4), (12, 4), (16, 4)]
    assert s.t == 20
    drive(f, algorithm, s, 0, iterate, lambda: True, (0.0, 0.0))
    assert calls[-1] == (20, 0)
    assert problem.calls(algorithm) == 3


@pytest.mark.parametrize(
    ("algorithm", "ball", "lmo", "projections"),
    [(adafw.AdaGrad(0.1, gradient=gradients.CSFW(2)), adafw.L1Ball(1.0), 0, 5),
     (adafw.AdaCSFW(0.1, inner="corrective"), adafw.L1Ball(1.0), 10, 0),
     (adafw.AdaCSFW(0.1, inner="corrective"), adafw.LInfBall(1.0), 5, 0)],
)  # fmt: skip
def test_minimisers_are_counted_as_what_they_stand_for(algorithm, ball, lmo, projections):
    f = linear_model(50, 8)
    s = fresh(f, ball, algorithm)
    problem.count_minimisers(ball, algorithm, s, 5)
    assert (s.lmo_calls, s.projections) == (lmo, projections)
    assert problem.calls(algorithm) == 0
    assert problem.is_projected(algorithm)
    assert not problem.is_projected(adafw.AdaCSFW(0.1))


def test_schedules_are_written_out_for_the_iterations_to_come():
    squares = np.ones(3)
    algorithm = adafw.AdaCSFW(lambda t: 1 / (t + 1), 4, lambda t: 0.5 ** (t % 2), offset=1e-3)
    steps = problem.steps(algorithm, 5, 3, squares)
    np.testing.assert_allclose(steps.sizes, [1 / 6, 1 / 7, 1 / 8])
    assert steps.bounds.tolist() == [0.5, 1.0, 0.5]
    assert (steps.inner_steps, steps.offset) == (4, 1e-3)
    assert steps.sum_squares is squares
    plain = problem.steps(adafw.CSFW(), 2, 2, squares)
    assert plain.sizes.tolist() == [0.5, 0.4]
    assert plain.inner_steps == 1
    projected = problem.steps(adafw.AdaGrad(0.3, 1e-2), 2, 2, squares)
    assert projected.sizes.tolist() == [0.3, 0.3]
    assert (projected.inner_steps, projected.offset) == (0, 1e-2)
    assert len({steps.kind, plain.kind, projected.kind}) == 3


def test_room_for_active_coordinates():
    support = np.array([3, 5])
    assert problem.active(support, 4, 10).index.size == 6
    assert problem.active(support, 40, 10).index.size == 10
    assert problem.active(support, 0, 10).index.tolist() == [3, 5]
