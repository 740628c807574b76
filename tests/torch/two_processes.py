"""One of two gloo processes: `python two_processes.py CASE RANK FOLDER`; see test_sharded.py."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import adafw
from adafw.torch import SFW, SVRF, AdaGrad, AdamSFW, AdaSFW, constrain, make_feasible, sharded

BOUNDS = np.linspace(0.2, 0.6, 35).reshape(5, 7)
#: Name -> (family of sets, rules); 5 and 3 rows do not halve, and the last weight has one row.
SETS = {
    "linf": (adafw.LInfBall, {}),
    "l1": (adafw.L1Ball, {}),
    "l2": (adafw.L2Ball, {}),
    "simplex": (adafw.Simplex, {}),
    "unit_simplex": (adafw.UnitSimplex, {}),
    "box": (lambda r: adafw.Box(-r, r / 2), {"0.weight": adafw.Box(-BOUNDS, BOUNDS)}),
    "free": (adafw.LInfBall, {"*": None}),
}
OPTIMIZERS = {
    "SFW": lambda g: SFW(g, lr=0.1),
    "SFW by gradient": lambda g: SFW(g, lr=0.1, rescale="gradient"),
    "SFW by diameter": lambda g: SFW(g, lr=0.5, rescale="diameter"),
    "AdaSFW": lambda g: AdaSFW(g, lr=0.05, inner_steps=3),
    "AdamSFW": lambda g: AdamSFW(g, lr=0.05),
}


def network():
    torch.manual_seed(0)
    layers = [nn.Linear(7, 5), nn.Tanh(), nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 1)]
    return nn.Sequential(*layers)


def groups_of(model, name):
    family, rules = SETS[name]
    return constrain(model, family, radius=0.9, rules=rules, show=False)


def shard(model):
    mesh = init_device_mesh("cpu", (2,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def pair(name, make):
    """The same model and optimizer, whole and sharded."""
    whole, parts = network(), network()
    for model in (whole, parts):
        make_feasible(groups_of(model, name))
    shard(parts)
    return (whole, make(groups_of(whole, name))), (parts, make(groups_of(parts, name)))


def train(model, optimizer, steps, seed=1, mine=slice(None)):
    rng = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x, y = torch.randn(8, 7, generator=rng), torch.randn(8, 1, generator=rng)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[mine]), y[mine]).backward()
        optimizer.step()


def weights(model):
    return torch.cat([sharded.full(p).detach().reshape(-1) for p in model.parameters()])


def ddp(rank, folder):
    whole, other = network(), network()
    for model in (whole, other):
        make_feasible(groups_of(model, "linf"))
    parallel = DistributedDataParallel(other)
    train(whole, AdamSFW(groups_of(whole, "linf"), lr=0.05), 10)
    mine = slice(4 * rank, 4 * rank + 4)
    train(parallel, AdamSFW(groups_of(parallel, "linf"), lr=0.05), 10, mine=mine)
    torch.testing.assert_close(weights(other), weights(whole), rtol=0, atol=1e-6)
    seen = [torch.empty_like(weights(other)) for _ in range(2)]
    dist.all_gather(seen, weights(other))
    assert torch.equal(*seen)


def fsdp(rank, folder):
    for name in SETS:
        for label, make in OPTIMIZERS.items():
            (whole, one), (parts, two) = pair(name, make)
            train(whole, one, 10)
            train(parts, two, 10)
            difference = (weights(whole) - weights(parts)).abs().max().item()
            assert difference < 1e-6, f"{name}, {label}: {difference}"


def ties(rank, folder):
    """Equal entries on both shards: the lowest index of the whole tensor wins."""
    for family, sign in ((adafw.L1Ball, 1.0), (adafw.Simplex, -1.0)):
        torch.manual_seed(0)
        layer = nn.Linear(3, 4, bias=False)
        groups = [{"params": [layer.weight], "constraint": family(1.0)}]
        make_feasible(groups)
        fully_shard(layer, mesh=init_device_mesh("cpu", (2,)))
        optimizer = SFW([{"params": [layer.weight], "constraint": family(1.0)}], lr=1.0)
        layer.weight.grad = torch.full_like(layer.weight, sign)
        optimizer.step()
        expected = torch.zeros(12)
        expected[0] = -sign
        assert torch.equal(sharded.full(layer.weight).detach().reshape(-1), expected)


def projected(rank, folder):
    for name in ("linf", "box", "free"):
        (whole, one), (parts, two) = pair(name, lambda g: AdaGrad(g, lr=0.1))
        train(whole, one, 5)
        train(parts, two, 5)
        torch.testing.assert_close(weights(parts), weights(whole), rtol=0, atol=1e-6)


def one_gather_per_inner_step(rank, folder):
    (_, _), (parts, optimizer) = pair("l2", lambda g: AdamSFW(g, lr=0.05, inner_steps=4))
    calls, gather = [], sharded._gather
    sharded._gather = lambda *a: calls.append(1) or gather(*a)
    train(parts, optimizer, 3)
    assert len(calls) == 3 * 4


def refused(rank, folder):
    model = shard(network())
    user = adafw.UserSet(lambda g: -g.sign(), lambda shape, dtype: torch.zeros(shape))
    messages = []
    for make in (
        lambda: AdaSFW([{"params": list(model.parameters()), "constraint": user}], lr=0.1),
        lambda: AdaGrad(constrain(model, adafw.L2Ball, radius=9.0, show=False), lr=0.1),
        lambda: SVRF(constrain(model, adafw.L2Ball, radius=9.0, show=False), lr=0.1),
        lambda: AdaSFW(constrain(model, adafw.LInfBall, radius=1e-3, show=False), lr=0.1),
    ):
        try:
            make()
        except (TypeError, ValueError) as error:
            messages.append(str(error))
    assert len(messages) == 4
    assert "needs the whole tensor, but parameter 0 of shape (5, 7) is sharded" in messages[0]
    assert "sharded parameters take LInfBall, Box or None here" in messages[1]
    assert "SVRF works on whole tensors" in messages[2]
    assert "'0.weight' starts outside LInfBall(radius=0.001): its norm is 0.3" in messages[3]


def float64(rank, folder):
    """All sums and vertices keep the digits of float64."""
    for name in SETS:
        ends = []
        for cut in (False, True):
            model = network().double()
            make_feasible(groups_of(model, name))
            model = shard(model) if cut else model
            optimizer = AdamSFW(groups_of(model, name), lr=0.05)
            rng = torch.Generator().manual_seed(1)
            for _ in range(10):
                optimizer.zero_grad()
                x = torch.randn(8, 7, generator=rng, dtype=torch.float64)
                (model(x) ** 2).mean().backward()
                optimizer.step()
            ends.append(weights(model))
        torch.testing.assert_close(ends[1], ends[0], rtol=0, atol=1e-12, msg=name)


def feasible(rank, folder):
    """Shards are moved as the whole tensor is, also where the model was made without data."""
    for family in (adafw.L1Ball, adafw.LInfBall, adafw.Simplex, adafw.NuclearBall):
        whole = network()
        with torch.device("meta"):
            parts = network()
        shard(parts)
        parts.to_empty(device="cpu")
        groups = constrain(parts, family, radius=0.05, show=False)
        for p, q in zip(parts.parameters(), whole.parameters(), strict=True):
            with torch.no_grad():
                sharded.assign(p, q.detach())
        assert torch.equal(weights(parts), weights(whole))
        moved = make_feasible(groups)
        assert moved == make_feasible(constrain(whole, family, radius=0.05, show=False))
        assert moved
        assert torch.equal(weights(parts), weights(whole))
        assert make_feasible(groups) == []


def checkpoints(rank, folder):
    for label in ("SFW", "AdamSFW"):
        _, (model, optimizer) = pair("l1", OPTIMIZERS[label])
        train(model, optimizer, 4)
        saved = {"model": get_model_state_dict(model),
                 "optimizer": get_optimizer_state_dict(model, optimizer)}  # fmt: skip
        checkpoint.save(saved, checkpoint_id=f"{folder}/{label}")
        train(model, optimizer, 4, seed=2)

        _, (again, resumed) = pair("l1", OPTIMIZERS[label])
        state = {"model": get_model_state_dict(again),
                 "optimizer": get_optimizer_state_dict(again, resumed)}  # fmt: skip
        checkpoint.load(state, checkpoint_id=f"{folder}/{label}")
        set_model_state_dict(again, state["model"])
        set_optimizer_state_dict(again, resumed, state["optimizer"])
        train(again, resumed, 4, seed=2)
        assert torch.equal(weights(again), weights(model)), label


if __name__ == "__main__":
    case, rank, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder / 'rendezvous'}", rank=rank, world_size=2
    )
    globals()[case](rank, folder)
    dist.destroy_process_group()
