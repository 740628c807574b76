"""Sharded parameters against whole ones: the ranks are threads of this process.

Torch tests its own shards so. What needs real processes (DDP, FSDP2, checkpoints) is in
test_sharded.py, and slow.
"""

import threading
import warnings

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

import adafw
from adafw.torch import SFW, AdamSFW, AdaSFW, Muon, Scion

threaded = pytest.importorskip("torch.testing._internal.distributed.multi_threaded_pg")
ROWS, COLUMNS, STEPS = 5, 4, 3

SETS = {
    "linf": adafw.LInfBall(0.3),
    "box": adafw.Box(-0.2, 0.4),
    "box of arrays": adafw.Box(
        -0.1 - np.arange(20.0).reshape(5, 4) / 99, 0.2 + np.arange(20.0).reshape(5, 4) / 50
    ),
    "l1": adafw.L1Ball(0.9),
    "l2": adafw.L2Ball(0.7),
    "simplex": adafw.Simplex(1.2),
    "unit simplex": adafw.UnitSimplex(0.8),
    "k-sparse": adafw.KSparse(0.3, 3),
    "nuclear": adafw.NuclearBall(0.8),
    "none": None,
}
OPTIMIZERS = {
    "SFW": lambda groups: SFW(groups, lr=0.3),
    "by gradient": lambda groups: SFW(groups, lr=0.1, rescale="gradient", momentum=0.5),
    "by gradient, far": lambda groups: SFW(groups, lr=99.0, rescale="gradient"),
    "by diameter": lambda groups: SFW(groups, lr=0.2, rescale="diameter"),
    "by diameter, far": lambda groups: SFW(groups, lr=99.0, rescale="diameter"),
    "short": lambda groups: SFW(groups, lr=0.1, rescale="short"),
    "AdaSFW": lambda groups: AdaSFW(groups, lr=0.05, inner_steps=3, max_step=0.8),
    "AdamSFW": lambda groups: AdamSFW(groups, lr=0.05, inner_steps=2),
    "Muon": lambda groups: Muon(groups, lr=0.05, weight_decay=0.5),
    "Scion": lambda groups: Scion(groups, lr=0.1, norm="sign"),
}
OWN_BALL = ("Muon", "Scion")
#: Lengths relative to a set: where there is none they do not apply.
PAIRS = [
    (kind, name) for kind in OPTIMIZERS for name in SETS
    if (name == "none") >= (kind in OWN_BALL) and (name != "none" or " " not in kind)
]  # fmt: skip


def gradients(name):
    """The same on every rank; with equal entries, so that ties show."""
    rng = np.random.default_rng(len(name))
    for _ in range(STEPS):
        g = rng.standard_normal((ROWS, COLUMNS))
        g[1], g[-1] = g[0], -g[0]
        yield torch.tensor(g)


def trained(kind, name, place):
    """The weights after some steps; `place` cuts a whole tensor, or leaves it."""
    start = torch.zeros(ROWS, COLUMNS, dtype=torch.float64)
    if SETS[name] is not None:
        start = SETS[name].start((ROWS, COLUMNS), torch.float64)
        start = torch.as_tensor(start, dtype=torch.float64)
    p = nn.Parameter(place(start.clone()))
    group = {"params": [p]}
    if kind not in OWN_BALL:
        group["constraint"] = SETS[name]
    optimizer = OPTIMIZERS[kind]([group])
    for g in gradients(name):
        p.grad = place(g)
        optimizer.step()
    whole = p.full_tensor() if hasattr(p, "full_tensor") else p
    return whole.detach().clone()


def in_threads(world, work):
    """[work(rank) for each rank], the ranks being threads that talk to each other."""
    found, failed, store = {}, [], dist.HashStore()
    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    threaded._install_threaded_pg()

    def begin(rank):
        try:
            dist.init_process_group("threaded", rank=rank, world_size=world, store=store)
            found[rank] = work()
        except BaseException as error:
            failed.append(error)
            threaded.ProcessLocalGroup.exception_handle(error)
        finally:
            if dist.is_initialized():
                dist.destroy_process_group()

    ranks = [threading.Thread(target=begin, args=(rank,)) for rank in range(world)]
    try:
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    finally:
        threaded._uninstall_threaded_pg()
        threaded.ProcessLocalGroup.reset()
        torch._C._distributed_c10d._set_thread_isolation_mode(False)
    if failed:
        raise failed[0]
    return [found[rank] for rank in range(world)]


@pytest.mark.parametrize(("world", "dim"), [(4, 0), (3, 1)])
def test_shards_take_the_steps_of_the_whole(world, dim):
    """Four ranks over five rows: 2, 2, 1 and none."""
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    def work():
        mesh = init_device_mesh("cpu", (world,))
        place = lambda x: distribute_tensor(x, mesh, [Shard(dim)])  # noqa: E731
        return {(kind, name): trained(kind, name, place) for kind, name in PAIRS}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own, about its own
        ranks = in_threads(world, work)
    for kind, name in PAIRS:
        expected = trained(kind, name, lambda x: x)
        for found in ranks:
            off = (found[kind, name] - expected).abs().max().item()
            assert off <= 1e-10, f"{kind} over {name}: off by {off}"
        if SETS[name] is not None:
            assert SETS[name].contains(expected)
