"""The paper's networks, and the loop and measures they are trained with."""

from itertools import accumulate

import pytest
import torch
from torch import nn

from adafw.experiments.networks.batches import ReviewBatches, TensorBatches
from adafw.experiments.networks.case import NETWORKS
from adafw.experiments.networks.lessons import LESSONS
from adafw.experiments.networks.loop import train
from adafw.experiments.networks.models import CifarNet, ImdbNet
from adafw.torch.measures import evaluate


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


def test_tensor_batches_shuffle_anew_and_the_same_way_for_one_seed():
    x = torch.arange(10)
    passes = [list(TensorBatches(x, 2 * x, batch_size=4, seed=3)) for _ in range(2)]
    assert [len(b) for b, _ in passes[0]] == [4, 4, 2]
    assert all(torch.equal(a[0], b[0]) for a, b in zip(*passes, strict=True))
    assert all(torch.equal(2 * a, b) for a, b in passes[0])
    loader = TensorBatches(x, batch_size=10, seed=3)
    (first,), (second,) = next(iter(loader)), next(iter(loader))
    assert not torch.equal(first, second)
    assert torch.equal(first.sort().values, x)
    assert torch.equal(next(iter(TensorBatches(x, batch_size=10)))[0], x)
    with pytest.raises(ValueError, match="tensors must have equal lengths"):
        TensorBatches(x, x[:3], batch_size=2)


def test_review_batches_hold_each_word_of_a_text_once():
    texts = [[5, 1, 5, 2], [], [7], [2, 2, 2, 1]]
    ids = [word for text in texts for word in text]
    offsets = [0, 4, 4, 5, 9]
    seen = {}
    for words, starts, target in ReviewBatches(ids, offsets, [0, 1, 1, 0], batch_size=3, seed=0):
        ends = [*starts[1:].tolist(), len(words)]
        for start, end, label in zip(starts.tolist(), ends, target.tolist(), strict=True):
            seen[tuple(words[start:end].tolist())] = label
    assert seen == {(1, 2, 5): 0.0, (): 1.0, (7,): 1.0, (1, 2): 0.0}
    with pytest.raises(ValueError, match="offsets must have one entry more than labels"):
        ReviewBatches(ids, offsets, [0, 1], batch_size=3)


@pytest.mark.parametrize("texts", [
    [[], [3], [1, 0]], [[3], [], [], [1, 0]], [[3], [1, 0], []], [[], [4], [], []],
])  # fmt: skip
@pytest.mark.parametrize("seed", [None, 0])
def test_texts_without_words_are_met_wherever_they_stand(texts, seed):
    ids = [word for text in texts for word in text]
    offsets = [0, *accumulate(len(text) for text in texts)]
    loader = ReviewBatches(ids, offsets, range(len(texts)), batch_size=2, seed=seed)
    for _ in range(2):
        seen = []
        for words, starts, target in loader:
            assert 1 <= len(starts) == len(target) <= 2
            ends = [*starts[1:].tolist(), len(words)]
            for start, end, number in zip(starts.tolist(), ends, target.tolist(), strict=True):
                seen.append((int(number), words[start:end].tolist()))
        assert sorted(seen) == [(k, sorted(text)) for k, text in enumerate(texts)]
        assert seed is not None or seen == sorted(seen)


def test_the_old_homes_of_networks_batches_and_loop_still_lead_here():
    from adafw.torch import batches, networks, training

    assert networks.ImdbNet is ImdbNet
    assert networks.CifarNet is CifarNet
    assert batches.ReviewBatches is ReviewBatches
    assert batches.TensorBatches is TensorBatches
    assert training.train is train


def test_every_network_of_a_file_can_be_trained():
    """The table that files are read by and that which needs torch name the same networks."""
    assert LESSONS.keys() == NETWORKS.keys()
    for name, lesson in LESSONS.items():
        assert type(lesson.model()).__name__ == name
