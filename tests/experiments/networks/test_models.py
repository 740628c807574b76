"""The paper's networks, and the loop and measures they are trained with."""

from itertools import accumulate

import pytest
import torch
from torch import nn

from adafw.experiments.networks.batches import (
    ImageBatches,
    ReviewBatches,
    TensorBatches,
    TextBatches,
)
from adafw.experiments.networks.case import NETWORKS
from adafw.experiments.networks.lessons import LESSONS
from adafw.experiments.networks.loop import train
from adafw.experiments.networks.models import CharNet, CifarNet, FashionNet, ImdbNet
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


def by_hand(model, ids):
    """The transformer in the words of its paper: softmax over earlier places, part by part."""
    norm = nn.functional.layer_norm
    width = model.places.weight.shape[1]
    heads, places = max(1, width // 32), ids.shape[1]
    later = torch.ones(places, places).triu(1).bool()
    x = model.characters.weight[ids] + model.places.weight[:places]
    for block in model.blocks:
        seen = norm(x, (width,), block.norm.weight, block.norm.bias)
        q, k, v = (seen @ W.T for W in block.qkv.weight.split(width))
        mixed = []
        for part in torch.arange(width).chunk(heads):
            scores = q[..., part] @ k[..., part].mT / len(part) ** 0.5
            mixed.append(scores.masked_fill(later, -torch.inf).softmax(-1) @ v[..., part])
        x = x + torch.cat(mixed, -1) @ block.out.weight.T
        seen = norm(x, (width,), block.second_norm.weight, block.second_norm.bias)
        x = x + nn.functional.gelu(seen @ block.up.weight.T) @ block.down.weight.T
    return norm(x, (width,), model.norm.weight, model.norm.bias) @ model.head.weight.T


@pytest.mark.parametrize("width", [16, 64])
def test_the_transformer_by_hand(width):
    torch.manual_seed(0)
    model = CharNet(width).double()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.3 * torch.randn_like(p))
    ids = torch.randint(0, 65, (3, 20))
    torch.testing.assert_close(model(ids), by_hand(model, ids))


def test_the_transformer_begins_with_small_embeddings_and_plain_norms():
    torch.manual_seed(0)
    model = CharNet(64)
    for p in (model.characters.weight, model.places.weight, model.head.weight):
        assert p.std().item() == pytest.approx(0.02, rel=0.1)
    for block in model.blocks:
        for p in (block.qkv.weight, block.out.weight, block.up.weight, block.down.weight):
            bound = (6 / sum(p.shape)) ** 0.5
            assert 0.95 * bound < p.abs().max() <= bound
        for norm in (block.norm, block.second_norm, model.norm):
            assert (norm.weight == 1).all()
            assert (norm.bias == 0).all()
    model = FashionNet(8)
    assert not any(model[k].bias.any() for k in (1, 3, 5))


def test_training_is_in_training_mode_and_forgets_old_gradients():
    model = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Dropout(0.0)).eval()
    with torch.no_grad():
        model[0].weight.fill_(1.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    model[0].weight.grad = torch.full((1, 1), 7.0)
    batch = torch.ones(4, 1), torch.zeros(4, 1)
    train(model, optimizer, nn.functional.mse_loss, [batch, batch], 1)
    assert model[1].training
    assert model[0].weight.item() == 0.0  # 1 - 0.5 * 2, then no slope is left


def test_batches_in_another_order_leave_the_first_as_they_were():
    x = torch.arange(10)
    first = TensorBatches(x, batch_size=4)
    other = first.reordered(3, 5, 7)
    passes = [torch.cat([b for (b,) in other]) for _ in range(2)]
    assert [len(b) for (b,) in other] == [3, 3, 1]
    assert not torch.equal(*passes)
    assert all(len(p.unique()) == 7 for p in passes)
    assert [b.tolist() for (b,) in first] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert other.tensors[0] is x
    again = first.reordered(3, 5, 7)
    assert torch.equal(torch.cat([b for (b,) in again]), passes[0])
    with pytest.raises(ValueError, match="batch_size must be an integer"):
        first.reordered(0, None)


def test_pixels_are_between_0_and_1_and_characters_are_numbers():
    pixels = torch.tensor([[0, 51], [102, 255]], dtype=torch.uint8)
    ((x, y),) = ImageBatches(pixels, torch.tensor([1, 2]), batch_size=2)
    torch.testing.assert_close(x, torch.tensor([[0, 0.2], [0.4, 1.0]]))
    assert y.tolist() == [1, 2]
    ((x, y),) = TextBatches(pixels, pixels, batch_size=2)
    assert x.dtype == y.dtype == torch.int64


def test_reviews_end_where_the_words_do():
    with pytest.raises(ValueError, match="and end at the number of ids, got 3 entries ending at 4"):
        ReviewBatches([1, 2, 3], [0, 2, 4], [0, 1], batch_size=1)
    with pytest.raises(ValueError, match="and end at the number of ids"):
        ReviewBatches([1, 2, 3], [0, 1, 2], [0, 1], batch_size=1)
