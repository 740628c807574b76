"""Optimizers that experiments put together themselves."""

import copy

import torch
from torch import nn

from adafw.experiments.networks.optimizers import TorchMuon


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))


def test_muon_and_adamw_are_one_optimizer():
    """Each of torch's own on its tensors, with the same gradients, ends at the same weights."""
    ours, theirs = network(), network()
    optimizer = TorchMuon(ours, lr=0.02, weight_decay=0.05)
    matrices = {p.shape for p in optimizer.parts[0].param_groups[0]["params"]}
    assert all(len(shape) == 2 for shape in matrices)
    assert len(optimizer.param_groups) == sum(len(part.param_groups) for part in optimizer.parts)
    names = {id(p): name for name, p in ours.named_parameters()}
    other = dict(theirs.named_parameters())
    parts = [
        kind([{**group, "params": [other[names[id(p)]] for p in group["params"]]}
              for group in part.param_groups], lr=0.02)
        for kind, part in zip((torch.optim.Muon, torch.optim.AdamW), optimizer.parts, strict=True)
    ]  # fmt: skip
    assert sum(len(g["params"]) for g in optimizer.param_groups) == len(other) == 6
    x = torch.randn(5, 6)
    for step in range(3):

        def closure(optimizer=optimizer):
            optimizer.zero_grad()
            assert all(p.grad is None for p in ours.parameters())
            loss = ours(x).square().mean()
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        for part in parts:
            part.zero_grad()
        wanted = theirs(x).square().mean()
        wanted.backward()
        for part in parts:
            part.step()
        assert loss.item() == wanted.item()
        for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(p, q, rtol=0, atol=0)
        if step == 0:  # goes on from what was kept
            state = copy.deepcopy(optimizer.state_dict())
            optimizer = TorchMuon(ours, lr=0.02, weight_decay=0.05)
            optimizer.load_state_dict(state)
