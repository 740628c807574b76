"""What is right, and what it costs to be wrong, for each kind of network."""

import math

import pytest

torch = pytest.importorskip("torch")

from adafw.experiments.networks.lessons import LESSONS  # noqa: E402


def test_images_are_right_where_the_largest_score_is_their_class():
    out = torch.tensor([[0.1, 2.0, -5.0], [3.0, 1.0, 2.0]])
    for name in ("CifarNet", "FashionNet"):
        assert LESSONS[name].correct(out, torch.tensor([1, 2])).tolist() == [True, False]


def test_reviews_are_right_where_the_sign_is():
    out, y = torch.tensor([2.0, -1.0, 0.5, -0.1]), torch.tensor([1.0, 1.0, 0.0, 0.0])
    assert LESSONS["ImdbNet"].correct(out, y).tolist() == [True, False, False, True]
    loss = LESSONS["ImdbNet"].loss_fn(torch.tensor([0.0]), torch.tensor([1.0]))
    assert loss.item() == pytest.approx(math.log(2))


def test_of_a_text_a_share_of_the_characters_is_right():
    """Two texts of two characters, of three kinds."""
    out = torch.tensor([[[0.0, 1, 2], [5, 1, 2]], [[0, 9, 2], [0, 1, 2]]])
    y = torch.tensor([[2, 0], [1, 0]])
    assert LESSONS["CharNet"].correct(out, y).tolist() == [1.0, 0.5]
    level = LESSONS["CharNet"].loss_fn(torch.zeros(2, 2, 3), y)
    assert level.item() == pytest.approx(math.log(3))
    assert [LESSONS[name].measured for name in ("CharNet", "FashionNet")] == [80, 2000]
