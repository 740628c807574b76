"""The paper's networks, and the loop and measures they are trained with."""

import pytest
import torch
from torch import nn

from adafw.torch.measures import evaluate
from adafw.torch.networks import CifarNet, ImdbNet
from adafw.torch.training import train


def test_the_sizes_are_the_paper_s():
    assert sum(p.numel() for p in CifarNet().parameters()) == 122_570
    assert sum(p.numel() for p in ImdbNet().parameters()) == 8185 * 64 + 64 + 64 + 1
    assert CifarNet()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


def test_rows_of_ids_are_products_with_multi_hot_vectors():
    torch.manual_seed(0)
    model = ImdbNet(vocabulary=20, hidden=4)
    with torch.no_grad():
        model.first_bias.normal_()
    reviews = [torch.tensor([3, 7, 19]), torch.tensor([0]), torch.tensor([5, 6])]
    hot = torch.stack([nn.functional.one_hot(r, 20).sum(0) for r in reviews]).float()
    hidden = torch.relu(hot @ model.first.weight + model.first_bias)
    expected = (hidden @ model.last.weight.T + model.last.bias).squeeze(1)
    torch.testing.assert_close(model(torch.cat(reviews), torch.tensor([0, 3, 4])), expected)


def test_weights_begin_as_glorot_says_and_biases_at_zero():
    torch.manual_seed(0)
    model = CifarNet()
    bound = (6 / (3 * 9 + 32 * 9)) ** 0.5
    assert 0.9 * bound < model[0].weight.abs().max() <= bound
    assert not model[0].bias.any()


def test_evaluate_weighs_batches_by_size_and_restores_modes():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.9))
    x = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([0, 1, 0, 0, 1, 1, 1])
    right = lambda out, target: out.argmax(1) == target  # noqa: E731
    loss_fn = nn.CrossEntropyLoss()
    loss, accuracy = evaluate(model, loss_fn, [(x[:5], y[:5]), (x[5:], y[5:])], right)
    assert model[1].training
    out = model[0](x)
    assert loss == pytest.approx(loss_fn(out, y).item(), rel=1e-6)
    assert accuracy == pytest.approx((out.argmax(1) == y).float().mean().item())
    with pytest.raises(ValueError, match="loader must go through the data once"):
        evaluate(model, loss_fn, [], right)


def test_training_stops_when_told():
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = []
    train(model, optimizer, nn.functional.mse_loss, [(torch.ones(2, 1), torch.ones(2, 1))], 9,
          lambda epoch: seen.append(epoch) or epoch == 3)  # fmt: skip
    assert seen == [1, 2, 3]
