"""What is measured of trained networks beside their records."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from adafw.experiments.networks import probes  # noqa: E402


def network():
    model = nn.Sequential(nn.Linear(3, 2))
    with torch.no_grad():
        model[0].weight.copy_(torch.tensor([[4.0, 0.0, 0.0], [0.0, -3.0, 0.5]]))
        model[0].bias.copy_(torch.tensor([0.0, 0.25]))
    return model


def right(out, y):
    return out.argmax(1) == y


def test_of_a_matrix_the_largest_are_kept_and_at_least_one():
    w = torch.tensor([[4.0, -0.1, 0.2], [0.3, -3.0, 0.5]])
    assert probes._largest(w, 0.01).tolist() == [[4, 0, 0], [0, 0, 0]]
    assert probes._largest(w, 1 / 3).tolist() == [[4, 0, 0], [0, -3, 0]]
    assert probes._largest(w, 0.5).tolist() == [[4, 0, 0], [0, -3, 0.5]]


def test_accuracies_are_those_of_copies_whose_vectors_are_whole():
    """Only the third input, and the bias alone, tell of class 1 here."""
    model = network()
    x = torch.tensor([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    test = nn.functional.cross_entropy, [(x, torch.tensor([1, 0, 0, 1]))], right
    before = {name: p.clone() for name, p in model.state_dict().items()}
    found = probes.probe(model, test, seed=3)
    assert all(torch.equal(p, before[name]) for name, p in model.state_dict().items())
    assert list(found["kept"]) == [f"{share:g}" for share in probes.KEPT]
    assert (found["kept"]["1"], found["kept"]["0.5"]) == (1.0, 1.0)
    assert (found["kept"]["0.3"], found["kept"]["0.01"]) == (0.75, 0.75)
    assert list(found["noise"]) == [f"{level:g}" for level in probes.NOISE]
    assert all(0.25 <= accuracy <= 1 for accuracy in found["noise"].values())
    assert found == probes.probe(model, test, seed=3)


def test_noise_is_drawn_anew_from_the_seed_and_averaged():
    model = network()
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    test = nn.functional.cross_entropy, [(x, model(x).argmax(1))], right
    found = [probes.probe(model, test, seed)["noise"] for seed in (1, 2)]
    assert found[0] != found[1]
    rng = torch.Generator().manual_seed(1)
    for level in probes.NOISE:
        accuracies = []
        for _ in range(3):
            other = network()
            with torch.no_grad():
                w = other[0].weight
                size = (w**2).mean() ** 0.5
                w += level * size * torch.randn(2, 3, generator=rng)
            accuracies.append((other(x).argmax(1) == test[1][0][1]).double().mean().item())
        assert found[0][f"{level:g}"] == pytest.approx(sum(accuracies) / 3)
