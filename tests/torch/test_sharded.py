"""DDP and FSDP2 with two and four gloo processes against one process."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from adafw.torch.sharded import Shard

SCRIPT = Path(__file__).with_name("two_processes.py")
CASES = ["ddp", "fsdp", "ties", "projected", "one_gather_per_inner_step", "refused", "checkpoints",
         "float64", "feasible", "two_exchanges", "nan_gradients"]  # fmt: skip


def run(case, folder, world):
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", str(SCRIPT), case, str(rank), str(folder), str(world)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(world)
    ]  # fmt: skip
    try:
        # Generous: four processes that train hundreds of little networks on a busy machine.
        printed = [process.communicate(timeout=1200)[0] for process in ranks]
    finally:
        for process in ranks:
            process.kill()
    assert [process.returncode for process in ranks] == [0] * world, "\n".join(printed)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes(case, tmp_path):
    run(case, tmp_path, 2)


@pytest.mark.slow
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("case", ["matrices", "tall", "presets"])
def test_sets_that_need_the_whole_tensor(case, world, tmp_path):
    run(case, tmp_path, world)


@pytest.mark.slow
def test_a_checkpoint_goes_on_under_another_number_of_processes(tmp_path):
    run("save_sharded", tmp_path, 2)
    run("load_sharded", tmp_path, 4)


@pytest.mark.parametrize("world", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("dim", [0, 1])
def test_shards_lie_where_torch_cuts(dim, world):
    """Also where ranks are left without a row: 4 over 5 rows have 2, 2, 1 and none."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor import Shard as Cut

    whole = torch.arange(5 * 6).reshape(5, 6)
    parts = [*whole.chunk(world, dim), *[whole.narrow(dim, 0, 0)] * world][:world]
    for rank, part in enumerate(parts):
        mesh = SimpleNamespace(
            get_local_rank=lambda i, rank=rank: rank if i == 1 else 0,
            size=lambda i: world if i == 1 else 3, get_group=lambda i: i,
        )  # fmt: skip
        p = SimpleNamespace(shape=whole.shape, device_mesh=mesh, placements=(Replicate(), Cut(dim)))
        shard = Shard.of(p)
        assert (shard.dim, shard.rank, shard.group) == (dim, rank, 1)
        assert torch.equal(whole.narrow(dim, shard.start, part.shape[dim]), part)


@pytest.mark.parametrize(("dim", "start", "length"), [(0, 2, 2), (1, 1, 2), (2, 3, 1)])
def test_global_indices_are_those_of_the_whole_tensor(dim, start, length):
    whole = torch.arange(4 * 3 * 5).reshape(4, 3, 5)
    part = whole.narrow(dim, start, length)
    shard = Shard((4, 3, 5), dim, start, None, 0)
    for i, index in enumerate(part.reshape(-1).tolist()):
        assert shard.global_index(torch.tensor(i), part.shape).item() == index
    assert torch.equal(shard.part(whole, part), part)
    assert torch.equal(shard.part(torch.tensor(2.0), part), torch.full(part.shape, 2.0))
