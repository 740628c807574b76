"""One of some gloo processes: `python two_processes.py CASE RANK FOLDER WORLD`."""

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
from adafw.torch import (
    SFW,
    SVRF,
    AdaGrad,
    AdamSFW,
    AdaSFW,
    AMSGrad,
    Lion,
    Monitor,
    Muon,
    NewtonSchulzBall,
    PowerNuclearBall,
    Scion,
    constrain,
    make_feasible,
    owners,
    sharded,
)

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
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
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
        dtype = next(model.parameters()).dtype
        x, y = x.to(dtype), y.to(dtype)
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
    messages = []
    for make in (
        lambda: Monitor(SFW(constrain(model, adafw.L2Ball, radius=9.0, show=False), lr=0.1)),
        lambda: SVRF(constrain(model, adafw.L2Ball, radius=9.0, show=False), lr=0.1),
        lambda: AdaSFW(constrain(model, adafw.LInfBall, radius=1e-3, show=False), lr=0.1),
    ):
        try:
            make()
        except (TypeError, ValueError) as error:
            messages.append(str(error))
    assert len(messages) == 3
    assert "Monitor works on whole tensors, but parameter '0.weight' is sharded" in messages[0]
    assert "SVRF works on whole tensors" in messages[1]
    assert "'0.weight' starts outside LInfBall(radius=0.001): its norm is 0.3" in messages[2]


#: Sets that need the whole tensor; those of matrices get no biases.
WHOLE = {
    "spectral": NewtonSchulzBall,
    "spectral, exact": adafw.SpectralBall,
    "nuclear": adafw.NuclearBall,
    "nuclear, by powers": PowerNuclearBall,
    "row": adafw.RowBall,
    "column": adafw.ColumnBall,
    "rms": adafw.RMSBall,
    "sparse": lambda r: adafw.KSparse(r, 4),
    "user": lambda r: adafw.UserSet(
        lambda g: -r * g.sign(),
        lambda shape, dtype: torch.zeros(shape, dtype=dtype),
        lambda x: bool((abs(x) <= r * (1 + 1e-5)).all()),
        lambda x: x.clamp(-r, r),
    ),
}


def against_one_process(make_groups, make, prepare=True, steps=4, dtype=torch.float64):
    """The largest difference between the weights of a sharded run and those of one process.

    In float64, as a difference of one rounding may turn a sign, or the choice among entries that
    are equal but for rounding, which adaptive steps make as equal as they can.
    """
    ends = []
    for cut in (False, True):
        model = network().to(dtype)
        if prepare:
            make_feasible(make_groups(model))
        model = shard(model) if cut else model
        optimizer = make(make_groups(model))
        train(model, optimizer, steps)
        ends.append(weights(model))
    return (ends[0] - ends[1]).abs().max().item()


def matrices(rank, folder):
    rules = {"*.bias": adafw.L2Ball(0.9)}

    def groups_in(family):
        return lambda model: constrain(model, family, radius=0.9, rules=rules, show=False)

    for name, family in WHOLE.items():
        for label in ("SFW", "SFW by gradient", "AdamSFW"):
            difference = against_one_process(groups_in(family), OPTIMIZERS[label])
            assert difference < 1e-9, f"{name}, {label}: {difference}"
    for name in ("spectral", "nuclear", "row", "column"):
        difference = against_one_process(
            groups_in(WHOLE[name]), OPTIMIZERS["SFW"], dtype=torch.float32
        )
        assert difference < 1e-6, f"{name}, float32: {difference}"
    for name in ("spectral", "spectral, exact", "nuclear", "nuclear, by powers", "row", "column"):
        for rescale in (None, "gradient", "short"):
            difference = classifiers(WHOLE[name], rescale)
            assert difference < 1e-6, f"{name}, classifier, {rescale}: {difference}"
    assert against_one_process(groups_in(adafw.L2Ball), lambda g: AMSGrad(g, lr=0.05)) < 1e-9
    short = {"lr": 0.5, "rescale": "short"}
    for name in ("spectral", "row"):
        assert against_one_process(groups_in(WHOLE[name]), lambda g: SFW(g, **short)) < 1e-9, name


def classifiers(family, rescale):
    """The same difference in float32, where gradients are of low rank.

    Their smallest singular values are roundings, which spectral steps raise two thousandfold: one
    bit more or less anywhere, and the runs part.
    """
    ends = []
    rules = {"*.bias": adafw.LInfBall(1.0)}
    for cut in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Linear(6, 70), nn.Tanh(), nn.Linear(70, 41), nn.Tanh(), nn.Linear(41, 3)
        )
        make_feasible(constrain(model, family, radius=2.0, rules=rules, show=False))
        model = shard(model) if cut else model
        groups = constrain(model, family, radius=2.0, rules=rules, show=False)
        optimizer = SFW(groups, lr=0.1, rescale=rescale)
        rng = torch.Generator().manual_seed(1)
        for _ in range(5):
            x, y = torch.randn(8, 6, generator=rng), torch.randint(0, 3, (8,), generator=rng)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        ends.append(weights(model))
    return (ends[0] - ends[1]).abs().max().item()


def tall(rank, folder):
    """Rows that far outnumber columns stay where they are; small sums are exchanged."""

    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(7, 61), nn.Tanh(), nn.Linear(61, 1))

    def groups(model):
        rules = {"*.bias": None, "2.weight": None}
        return constrain(model, NewtonSchulzBall, radius=0.9, rules=rules, show=False)

    def scion(g):
        return Scion([{"params": p["params"]} for p in g], lr=0.05, norm="auto")

    calls, exchange = [], dist.all_to_all_single
    dist.all_to_all_single = lambda *a, **k: calls.append(1) or exchange(*a, **k)
    makers = {"SFW": lambda g: SFW(g, lr=0.1), "Scion": scion,
              "by diameter": lambda g: SFW(g, lr=0.5, rescale="diameter")}  # fmt: skip
    for dtype, bound in ((torch.float32, 1e-6), (torch.float64, 1e-9)):
        for label, make in makers.items():
            ends = []
            for cut in (False, True):
                net = model().to(dtype)
                make_feasible(groups(net))
                net = shard(net) if cut else net
                optimizer = make([g for g in groups(net) if g["constraint"] is not None])
                train(net, optimizer, 5)
                ends.append(weights(net))
            difference = (ends[0] - ends[1]).abs().max().item()
            assert difference < bound, f"{label}, {dtype}: {difference}"
    assert not calls
    net = shard(model())  # nothing moves where nothing pulls, and NaN stops nobody
    make_feasible(groups(net))
    optimizer = SFW(groups(net), lr=0.1, momentum=0.0)
    before = weights(net)
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    assert torch.equal(weights(net), before)
    if rank == 0:
        net[0].weight.grad.to_local()[0, 0] = torch.nan
    optimizer.step()
    assert sharded.full(net[0].weight).isnan().any()


def presets(rank, folder):
    makers = {
        "muon": lambda g: Muon(g, lr=0.02),
        "scion": lambda g: Scion(g, lr=0.01),
        "lion": lambda g: Lion(g, lr=0.01, weight_decay=0.1),
    }
    for recipe, make in makers.items():
        groups = lambda m, r=recipe: constrain(m, recipe=r, show=False)  # noqa: E731
        difference = against_one_process(groups, make, prepare=False)
        assert difference < 1e-9, f"{recipe}: {difference}"
    for norm in ("row", "column", "embedding", "sign"):

        def groups(model, norm=norm):
            return [{"params": [p], "norm": norm if p.dim() == 2 else "rms"}
                    for p in model.parameters()]  # fmt: skip

        difference = against_one_process(groups, lambda g: Scion(g, lr=0.05), prepare=False)
        assert difference < 1e-9, f"{norm}: {difference}"


def two_exchanges(rank, folder):
    """One to the owners and one back, whatever the number of tensors; and the work is shared."""
    model = network()
    rules = {"*.bias": None}
    make_feasible(constrain(model, NewtonSchulzBall, radius=0.9, rules=rules, show=False))
    model = shard(model)
    optimizer = SFW(constrain(model, NewtonSchulzBall, radius=0.9, rules=rules, show=False), lr=0.1)
    calls, exchange = [], dist.all_to_all_single
    dist.all_to_all_single = lambda *a, **k: calls.append(1) or exchange(*a, **k)
    train(model, optimizer, 3)
    assert len(calls) == 3 * 2
    jobs = [owners.Job(sharded.Shard((9, 9), 0, 0, None, 0), [], None, None) for _ in range(4)]
    assert sorted(owners._owners(jobs, 2)) == [0, 0, 1, 1]


def nan_gradients(rank, folder):
    """They reach the weights; no rank waits for another."""
    model = network()
    rules = {"*.bias": None}
    make_feasible(constrain(model, NewtonSchulzBall, radius=0.9, rules=rules, show=False))
    model = shard(model)
    optimizer = SFW(constrain(model, NewtonSchulzBall, radius=0.9, rules=rules, show=False), lr=0.1)
    train(model, optimizer, 1)
    for p in model.parameters():
        if rank == 0 and p.grad.to_local().numel():
            p.grad.to_local().reshape(-1)[0] = torch.nan
    optimizer.step()
    assert sharded.full(model[0].weight).isnan().any()


def _muon(model):
    return Muon(constrain(model, recipe="muon", show=False), lr=0.02)


def save_sharded(rank, folder):
    model = shard(network())
    optimizer = _muon(model)
    train(model, optimizer, 4)
    saved = {"model": get_model_state_dict(model),
             "optimizer": get_optimizer_state_dict(model, optimizer)}  # fmt: skip
    checkpoint.save(saved, checkpoint_id=f"{folder}/saved")


def load_sharded(rank, folder):
    """Under another number of processes: the run goes on as one process would have."""
    whole = network()
    one = _muon(whole)
    train(whole, one, 4)
    train(whole, one, 4, seed=2)
    model = shard(network())
    optimizer = _muon(model)
    state = {"model": get_model_state_dict(model),
             "optimizer": get_optimizer_state_dict(model, optimizer)}  # fmt: skip
    checkpoint.load(state, checkpoint_id=f"{folder}/saved")
    set_model_state_dict(model, state["model"])
    set_optimizer_state_dict(model, optimizer, state["optimizer"])
    train(model, optimizer, 4, seed=2)
    torch.testing.assert_close(weights(model), weights(whole), rtol=0, atol=1e-6)


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
    case, rank, folder, world = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    torch.set_num_threads(1)
    meeting = f"file://{folder / f'rendezvous-{case}'}"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)
    globals()[case](rank, folder)
    dist.destroy_process_group()
