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
