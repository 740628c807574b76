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
from adafw.torch import (
    ORGFW,
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
    Scion,
    Signum,
    constrain,
    gap,
    make_feasible,
)
from adafw.torch.owners import Job, _owners
from adafw.torch.sharded import Shard as Part

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


#: (shape, set, options of its group): tall enough for a Gram matrix, for an owner, entry by entry.
MIXED = [
    ((40, 3), NewtonSchulzBall(0.5), {}),
    ((6, 5), adafw.NuclearBall(0.8), {}),
    ((5, 4), adafw.LInfBall(0.3), {}),
    ((24, 3), NewtonSchulzBall(0.7), {}),
    ((8,), adafw.L1Ball(0.9), {}),
    ((3, 2, 2), adafw.L2Ball(0.7), {}),
    ((4, 6), NewtonSchulzBall(0.6, 2), {}),
    ((48, 3), NewtonSchulzBall(0.6, 2), {}),
    ((72, 2, 3), NewtonSchulzBall(0.5), {}),
    ((7,), None, {}),
]
INNER = [{"inner_steps": 1 + i % 3} for i in range(len(MIXED))]
PROJECTED = [
    ((5, 4), adafw.LInfBall(0.3), {}),
    ((5, 4), SETS["box of arrays"], {}),
    ((8,), adafw.L1Ball(0.9), {}),
    ((6, 2), adafw.L2Ball(0.7), {}),
    ((7,), None, {}),
]
NORMS = [
    ((40, 3), None, {"norm": "spectral"}),
    ((6, 5), None, {"norm": "spectral"}),
    ((6, 4), None, {"norm": "row"}),
    ((6, 4), None, {"norm": "column"}),
    ((9, 3), None, {"norm": "embedding"}),
    ((5,), None, {"norm": "rms"}),
    ((5, 3), None, {"norm": "sign"}),
]
PRESET = [((40, 3), None, {}), ((6, 5), None, {}), ((4, 6), None, {"split": 2}),
          ((7,), None, {"adamw": True}), ((24, 3), None, {}),
          ((48, 3), None, {"split": 2})]  # fmt: skip
SIGNS = [((5, 4), None, {}), ((7,), None, {"weight_decay": 0.5}), ((3, 2), None, {"adamw": True})]
MANY = {
    "SFW": (MIXED, lambda g: SFW(g, lr=0.3)),
    "SFW with betas": (MIXED, lambda g: SFW(g, lr=0.3, betas=(0.5, 0.9), start="zero")),
    "SFW without momentum": (MIXED, lambda g: SFW(g, lr=0.3, momentum=0.0)),
    "by gradient": (MIXED, lambda g: SFW(g, lr=0.1, rescale="gradient")),
    "by diameter": (MIXED, lambda g: SFW(g, lr=0.2, rescale="diameter")),
    "short": (MIXED, lambda g: SFW(g, lr=0.1, rescale="short", momentum=0.0)),
    "AdaSFW": ([(s, c, o) for (s, c, _), o in zip(MIXED, INNER, strict=True)],
               lambda g: AdaSFW(g, lr=0.05)),
    "AdamSFW": ([(s, c, o) for (s, c, _), o in zip(MIXED, INNER, strict=True)],
                lambda g: AdamSFW(g, lr=0.05, max_step=0.6)),
    "AdaGrad": (PROJECTED, lambda g: AdaGrad(g, lr=0.1)),
    "AMSGrad": (PROJECTED, lambda g: AMSGrad(g, lr=0.05)),
    "Scion": (NORMS, lambda g: Scion(g, lr=0.1, scale=2.0)),
    "Muon": (PRESET, lambda g: Muon(g, lr=0.05, weight_decay=0.5)),
    "Lion": (SIGNS, lambda g: Lion(g, lr=0.05, weight_decay=0.2)),
    "Signum": (SIGNS, lambda g: Signum(g, lr=0.05, weight_decay=0.2, momentum=0.0)),
}  # fmt: skip


def network(kind, place, whole_gradients=lambda g: g, **options):
    """All parameters of a list in one optimizer; some gradients are 0, one is missing."""
    listed, make = MANY[kind]
    rng = np.random.default_rng(7)
    dtype = options.pop("dtype", torch.float64)
    params, groups = [], []
    for shape, constraint, more in listed:
        x = torch.tensor(0.1 * rng.standard_normal(shape), dtype=dtype)
        params.append(nn.Parameter(place(x)))
        group = {"params": [params[-1]], **more, **options}
        if kind not in ("Scion", "Muon", "Lion", "Signum"):
            group["constraint"] = constraint
        groups.append(group)
    moved = make_feasible([{"constraint": None, **group} for group in groups])
    optimizer = make(groups)
    for t in range(3):
        for i, p in enumerate(params):
            g = torch.tensor(rng.standard_normal(tuple(p.shape)), dtype=dtype)
            g = 0 * g if t == 1 and i % 2 == 0 else g
            p.grad = None if (t, i) == (1, 1) else whole_gradients(g) if t == 2 else place(g)
        optimizer.step()
    wholes = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in params]
    return [w.detach().clone() for w in wholes], moved, optimizer.describe()


@pytest.mark.parametrize(("world", "dim"), [(1, 0), (3, 0), (2, 1)])
def test_many_parameters_of_many_kinds_in_one_optimizer(world, dim):
    """Each is exchanged in its own way; gradients may be whole, and are then cut."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    halves = {"dtype": torch.bfloat16, "masters": True}
    asked = [(kind, {}) for kind in MANY] + [("SFW", halves), ("Muon", halves), ("AdaSFW", halves)]

    def work():
        mesh = init_device_mesh("cpu", (world,))
        place = lambda x: distribute_tensor(x, mesh, [Shard(min(dim, x.dim() - 1))])  # noqa: E731
        whole = lambda g: distribute_tensor(g, mesh, [Replicate()])  # noqa: E731
        return [network(kind, place, whole, **options) for kind, options in asked]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own, about its own
        ranks = in_threads(world, work)
        expected = [network(kind, lambda x: x, **options) for kind, options in asked]
    for found in ranks:
        for (kind, options), one, other in zip(asked, found, expected, strict=True):
            assert one[1:] == other[1:], kind
            for (shape, *_), a, b in zip(MANY[kind][0], one[0], other[0], strict=True):
                off = (a.double() - b.double()).abs().max().item()
                assert off <= (0.004 if options else 1e-9), f"{kind}, {shape}: off by {off}"
    assert any(moved for _, moved, _ in expected)


def test_a_mesh_may_copy_in_one_dimension_and_cut_in_another():
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    def work():
        mesh = init_device_mesh("cpu", (2, 2))
        place = lambda x: distribute_tensor(x, mesh, [Replicate(), Shard(0)])  # noqa: E731
        copied = lambda x: distribute_tensor(x, mesh, [Replicate(), Replicate()])  # noqa: E731
        twice = nn.Parameter(distribute_tensor(torch.zeros(8, 2), mesh, [Shard(0), Shard(1)]))
        with pytest.raises(TypeError, match="sharded over one mesh dimension and replicated"):
            SFW([{"params": [twice], "constraint": None}], lr=0.1)
        return [network(kind, cut, cut)[0] for kind in ("SFW", "AdaSFW") for cut in (place, copied)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks = in_threads(4, work)
        expected = [network(kind, lambda x: x)[0] for kind in ("SFW", "SFW", "AdaSFW", "AdaSFW")]
    for found in ranks:
        for one, other in zip(found, expected, strict=True):
            for a, b in zip(one, other, strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


def test_a_gradient_that_is_not_finite_on_one_rank_lets_no_other_wait():
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    def work():
        mesh = init_device_mesh("cpu", (2,))
        place = lambda x: distribute_tensor(x, mesh, [Shard(0)])  # noqa: E731
        found = []
        for make in (lambda g: SFW(g, lr=0.1), lambda g: AdaSFW(g, lr=0.1)):
            p = nn.Parameter(place(torch.zeros(4, 3)))
            optimizer = make([{"params": [p], "constraint": adafw.NuclearBall(1.0)}])
            g = torch.ones(4, 3)
            g[3, 1] = torch.nan
            p.grad = place(g)
            optimizer.step()
            found.append(p.full_tensor().detach().clone())
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in in_threads(2, work):
            assert all(torch.isnan(x).all() for x in found)


@pytest.mark.parametrize(("world", "rows"), [(3, 60), (6, 25)])
@pytest.mark.parametrize("rescale", [None, "diameter"])
def test_a_tall_matrix_of_few_entries_is_bounded_by_its_rows_and_columns(world, rows, rescale):
    """One entry a row: its largest column and row bound it better than the sum of squares.

    Of six ranks the last has none of 25 rows.
    """
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    rng = np.random.default_rng(0)
    g = torch.zeros(rows, 3, dtype=torch.float64)
    places = torch.arange(rows), torch.tensor(rng.integers(0, 3, rows))
    g[places] = torch.tensor(rng.random(rows) + 0.5)
    assert g.sum(0).max() * g.max() < (g**2).sum()

    def step(place):
        p = nn.Parameter(place(torch.zeros_like(g)))
        p.grad = place(g)
        group = {"params": [p], "constraint": NewtonSchulzBall(1.0, iterations=4)}
        SFW([group], lr=0.5, rescale=rescale).step()
        return p.full_tensor().detach().clone() if hasattr(p, "full_tensor") else p.detach()

    def work():
        mesh = init_device_mesh("cpu", (world,))
        return step(lambda x: distribute_tensor(x, mesh, [Shard(0)]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found in in_threads(world, work):
            torch.testing.assert_close(found, step(lambda x: x), rtol=0, atol=1e-9)


def test_owners_share_the_work():
    """The dearest first, each to who has least to do; of a matrix it is that of a product."""

    def job(*shape):
        return Job(Part(shape, 0, 0, None, 0), [torch.zeros(shape)], None, None)

    assert [job(*s).cost for s in ((6, 4), (4, 6), (5,), (3, 2, 2), ())] == [96, 96, 5, 36, 1]
    jobs = [job(2, 2), job(10, 10), job(3, 3), job(9, 9), job(8, 8)]
    assert _owners(jobs, 2) == [0, 0, 0, 1, 1]
    assert _owners(jobs, 3) == [2, 0, 2, 1, 2]
    assert job(5, 2).shapes(4) == [(2, 2), (2, 2), (1, 2), (0, 2)]
    cut = Job(Part((2, 5, 3), 1, 0, None, 0), [], None, None)
    assert cut.shapes(2) == [(2, 3, 3), (2, 2, 3)]


def test_where_an_entry_of_a_part_lies_in_the_whole():
    whole = torch.arange(60).reshape(3, 5, 4)
    for dim, start, length in ((0, 1, 2), (1, 3, 2), (2, 1, 3)):
        part = whole.narrow(dim, start, length)
        shard = Part((3, 5, 4), dim, start, None, 0)
        flat = torch.arange(part.numel())
        assert torch.equal(shard.global_index(flat, part.shape), part.reshape(-1))
        assert torch.equal(shard.part(whole, part), part)
        assert torch.equal(shard.part(torch.tensor(7), part), torch.full(part.shape, 7))


def in_silence(world, work):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own, about its own
        return in_threads(world, work)


def test_what_needs_whole_tensors_refuses_shards():
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    def work():
        mesh = init_device_mesh("cpu", (2,))
        p = nn.Parameter(distribute_tensor(torch.zeros(4, 3), mesh, [Shard(0)]))
        groups = [{"params": [p], "names": ["w"], "constraint": adafw.LInfBall(1.0)}]
        told = []
        for act in (
            lambda: gap(nn.Linear(2, 1), nn.functional.mse_loss, [], groups),
            lambda: Monitor(SFW(groups, lr=0.1)),
            lambda: SVRF(groups, lr=0.1),
            lambda: ORGFW(groups, lr=0.1),
        ):
            with pytest.raises(TypeError, match="on whole tensors, but parameter 'w'") as error:
                act()
            told.append(str(error.value).split()[0])
        return told

    assert in_silence(2, work) == 2 * [["gap", "Monitor", "SVRF", "ORGFW"]]


def test_sums_that_are_still_to_be_made_are_no_parameter():
    from torch.distributed.tensor import DTensor, Partial, init_device_mesh

    def work():
        mesh = init_device_mesh("cpu", (2,))
        p = nn.Parameter(DTensor.from_local(torch.zeros(4, 3), mesh, [Partial()]))
        with pytest.raises(TypeError, match="sharded over one mesh dimension and replicated"):
            SFW([{"params": [p], "constraint": None}], lr=0.1)

    in_silence(2, work)


def test_names_are_those_of_the_plain_model_under_data_parallelism():
    def work():
        model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        wrapped = nn.parallel.DistributedDataParallel(model)
        rules = {"1.*": None}
        groups = constrain(wrapped, adafw.LInfBall, radius=1.0, rules=rules, show=False)
        return [group["names"] for group in groups]

    assert in_silence(1, work) == [[["0.weight", "0.bias"], ["1.weight", "1.bias"]]]


def test_tensors_of_several_precisions_go_to_their_owners():
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    def moved(place):
        rng = torch.Generator().manual_seed(0)
        params = [nn.Parameter(place(torch.zeros(4, 3, dtype=dtype)))
                  for dtype in (torch.float32, torch.float64, torch.float64)]  # fmt: skip
        optimizer = SFW([{"params": params, "constraint": adafw.NuclearBall(1.5)}], lr=0.3)
        for p in params:
            g = torch.randn(4, 3, generator=rng, dtype=torch.float64)
            p.grad = place(g.to(p.dtype))
        optimizer.step()
        return [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach() for p in params]

    def work():
        mesh = init_device_mesh("cpu", (2,))
        return moved(lambda x: distribute_tensor(x, mesh, [Shard(0)]))

    for found in in_silence(2, work):
        for a, b in zip(found, moved(lambda x: x), strict=True):
            assert a.dtype is b.dtype
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12 if a.dtype.itemsize == 8 else 1e-6)


def test_the_vertex_of_a_gradient_that_is_nowhere_negative():
    """0 is a vertex of the unit simplex, and the best one there; ranks without a part have none."""
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    g = torch.tensor([[2.0, 1.0], [0.0, 3.0], [0.0, 0.0]], dtype=torch.float64)
    balls = (adafw.UnitSimplex(2.0), adafw.Simplex(0.6), adafw.L1Ball(2.0))
    cases = [(kind, ball, h) for kind in (SFW, AdaSFW) for ball in balls for h in (g, 1 + g)]

    def moved(place):
        found = []
        for kind, ball, h in cases:
            p = nn.Parameter(place(torch.full((3, 2), 0.1, dtype=torch.float64)))
            optimizer = kind([{"params": [p], "constraint": ball}], lr=0.5)
            p.grad = place(h)
            optimizer.step()
            found.append((p.full_tensor() if hasattr(p, "full_tensor") else p).detach())
        return found

    def work():
        mesh = init_device_mesh("cpu", (4,))
        return moved(lambda x: distribute_tensor(x, mesh, [Shard(0)]))

    expected = moved(lambda x: x)
    for found in in_silence(4, work):
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("world", "dim"), [(2, 0), (3, 0), (2, 1), (3, 1)])
def test_of_equal_entries_on_several_ranks_the_first_of_the_whole_is_taken(world, dim):
    """Cut by columns, the first is not always on the first rank."""
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    places = [(0, 3), (1, 0), (2, 2)]  # the first in the last column, the second in the first
    tied = [[places[i] for i in chosen] for chosen in ((0, 1), (1, 2), (0, 2), (0, 1, 2))]
    balls = (adafw.L1Ball(2.0), adafw.Simplex(0.6), adafw.UnitSimplex(0.8))
    kinds = (
        lambda groups: SFW(groups, lr=1.0),
        lambda groups: AdaSFW(groups, lr=0.5, inner_steps=1),
    )
    cases = [(make, ball, some) for make in kinds for ball in balls for some in tied]

    def moved(place):
        found = []
        for make, ball, some in cases:
            g = torch.full((3, 4), 0.5, dtype=torch.float64)
            g[tuple(zip(*some, strict=True))] = -3.0
            p = nn.Parameter(place(torch.as_tensor(ball.start((3, 4), torch.float64))))
            optimizer = make([{"params": [p], "constraint": ball}])
            p.grad = place(g)
            optimizer.step()
            found.append((p.full_tensor() if hasattr(p, "full_tensor") else p).detach())
        return found

    def work():
        mesh = init_device_mesh("cpu", (world,))
        return moved(lambda x: distribute_tensor(x, mesh, [Shard(dim)]))

    expected = moved(lambda x: x)
    for (_, ball, some), whole in zip(cases[: len(cases) // 2], expected, strict=False):
        assert whole[some[0]] == ball.radius
        assert whole.count_nonzero() == 1
    for found in in_silence(world, work):
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_a_set_of_one_point_has_no_diameter_to_divide_by():
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    def work():
        mesh = init_device_mesh("cpu", (2,))
        place = lambda x: distribute_tensor(x, mesh, [Shard(0)])  # noqa: E731
        p = nn.Parameter(place(torch.tensor([1.5], dtype=torch.float64)))
        group = [{"params": [p], "constraint": adafw.Simplex(1.5)}]
        for rescale in ("diameter", "gradient", "short"):
            p.grad = place(torch.ones(1, dtype=torch.float64))
            SFW(group, lr=0.2, rescale=rescale).step()
        return p.full_tensor().item()

    assert in_silence(2, work) == [1.5, 1.5]


def test_copies_that_are_not_finite_spread_as_parts_do():
    from torch.distributed.tensor import Replicate, distribute_tensor, init_device_mesh

    def work():
        mesh = init_device_mesh("cpu", (2,))
        place = lambda x: distribute_tensor(x, mesh, [Replicate()])  # noqa: E731
        p = nn.Parameter(place(torch.zeros(4, 3)))
        optimizer = SFW([{"params": [p], "constraint": adafw.NuclearBall(1.0)}], lr=0.1)
        p.grad = place(torch.full((4, 3), torch.nan))
        optimizer.step()
        return bool(torch.isnan(p.full_tensor()).all())

    assert in_silence(2, work) == [True, True]
