"""Single updates of one tensor, at numbers where a condition decides."""

import math

import pytest
import torch

import adafw
from adafw.torch import updates


@pytest.mark.parametrize(
    ("slope", "curvature", "gamma"),
    [(4.0, 8.0, 0.25), (400.0, 8.0, 0.75), (-1.0, 8.0, 0.0), (0.0, 8.0, 0.0), (0.0, 0.0, 0.0)],
)
def test_a_short_step_is_never_uphill_nor_beyond_its_bound(slope, curvature, gamma):
    """min(eta slope / curvature, 0.75) with eta = 1/2, of numbers and of tensors alike."""
    assert updates.short_step(slope, curvature, 0.5, 0.75) == gamma
    both = (torch.tensor(number, dtype=torch.float64) for number in (slope, curvature))
    assert updates.short_step(*both, 0.5, 0.75).item() == gamma


def test_a_direction_of_length_zero_is_not_taken():
    assert updates.short_step(1.0, 0.0, 0.5, 0.75) == 0.0


def test_what_is_no_number_is_handed_on():
    assert math.isnan(updates.short_step(math.nan, 1.0, 0.5, 0.75))


@pytest.mark.parametrize("ball", [adafw.L1Ball(1.0), adafw.LInfBall(1.0), None], ids=repr)
def test_a_gradient_with_entries_of_zero_moves_the_others(ball):
    x = torch.tensor([0.5, 0.25, 0.0], dtype=torch.float64)
    before, h = x.clone(), torch.ones_like(x)
    updates.projected(x, torch.zeros_like(x), h, ball, {"lr": 0.5})
    assert torch.equal(x, before)
    updates.projected(x, torch.tensor([1.0, 0.0, 0.0], dtype=x.dtype), h, ball, {"lr": 0.5})
    assert x.tolist() == [0.0, 0.25, 0.0]


@pytest.mark.parametrize(
    "ball", [adafw.L1Ball(0.7), adafw.L2Ball(0.7), adafw.Simplex(0.7)], ids=repr
)
def test_without_a_gradient_a_point_keeps_its_bits(ball):
    """Projected again, one on the border would be rounded."""
    for seed in range(40):
        rng = torch.Generator().manual_seed(seed)
        x = ball.project(torch.randn(7, generator=rng, dtype=torch.float64) + 1)
        x = x * (1 + 4e-16)  # as far outside as rounding goes
        before = x.clone()
        updates.projected(x, torch.zeros_like(x), torch.ones_like(x), ball, {"lr": 0.5})
        assert torch.equal(x, before)


@pytest.mark.parametrize(
    "ball", [adafw.L1Ball(1.0), adafw.L2Ball(1.0), adafw.Box(-1.0, 1.0)], ids=repr
)
def test_numbers_without_dimensions_take_inner_steps(ball):
    x, m, h = (torch.tensor(v, dtype=torch.float64) for v in (0.25, 2.0, 4.0))
    options = {"lr": 0.5, "inner_steps": 3, "max_step": 1.0}
    updates.adaptive(x, m, h, ball, options)
    assert x.item() == pytest.approx(0.25 - 0.5 * 2 / 4)  # inside: the minimiser of Q


def test_working_memory_is_kept_unless_it_is_large(monkeypatch):
    monkeypatch.setattr(updates, "_KEPT", 10)
    updates._memory.__dict__.clear()
    large = updates.scratch(torch.zeros(11), 2)
    assert [room.numel() for room in large] == [11, 11]
    assert not updates._memory.__dict__
    small = updates.scratch(torch.zeros(2, 3), 4)
    assert [tuple(room.shape) for room in small] == [(2, 3)] * 4
    assert len({room.data_ptr() for room in small}) == 4
    again = updates.scratch(torch.zeros(5), 3)
    assert [a.data_ptr() for a in again] == [a.data_ptr() for a in small[:3]]
    longer = updates.scratch(torch.zeros(10), 1)
    assert longer[0].numel() == 10
    assert updates.scratch(torch.zeros(2, dtype=torch.float64), 1)[0].dtype is torch.float64
    updates._memory.__dict__.clear()
