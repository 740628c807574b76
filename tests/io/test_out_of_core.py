"""Data three times as large as memory may be: a fit ends, within three times the time without.

The limit is a real one: a control group of version 1 or 2 where this process may make one (root,
or a delegated group), else one on the address space (which maps count against, too), with the
files dropped from the system's cache before.
"""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from adafw import memory
from adafw.datasets import save_parts, text_like

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")

#: Megabytes: what a bare interpreter with numba takes is about 200.
CAP = 420

FIT = """
import json, resource, sys, time
import adafw
from adafw.datasets import load_parts
start, cpu = time.perf_counter(), time.process_time()
A, y = load_parts(sys.argv[1])
f = adafw.LinearModel(A, y, adafw.losses.Logistic())
for how, algorithm, limits in (
    ("corrective", adafw.Corrective(), {"gap_tolerance": 1e-4, "max_iterations": 30}),
    ("blocks", adafw.AdaCSFW(100.0), {"max_epochs": 2, "record_every": 10**6}),
):
    r = adafw.minimize(f, adafw.L1Ball(100.0), algorithm, seed=adafw.Blocks(0), **limits)
    print(json.dumps({
        "how": how, "value": r.value, "gap": r.gap, "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu, "streamed": f.rows.streamed,
        "rss": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }))
    start, cpu = time.perf_counter(), time.process_time()
"""


class Group:
    """A control group of its own below that of this process; None where none can be made."""

    def __init__(self, megabytes):
        self.folder = None
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, place = line.split(":", 2)
            for named, root, limit in (
                ("memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
                ("", "/sys/fs/cgroup", "memory.max"),
            ):
                if named in controllers.split(","):
                    self._make(Path(f"{root}{place}") / f"adafw-{os.getpid()}", limit, megabytes)

    def _make(self, folder, limit, megabytes):
        if self.folder is not None:
            return
        try:
            folder.mkdir()
            (folder / limit).write_text(str(megabytes << 20))
            self.folder = folder
        except OSError:
            if folder.is_dir():
                folder.rmdir()

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def peak(self):
        for name in ("memory.max_usage_in_bytes", "memory.peak"):
            if (self.folder / name).is_file():
                return int((self.folder / name).read_text()) >> 20
        return 0


@pytest.fixture
def group():
    made = Group(CAP)
    yield made
    if made.folder is not None:
        made.folder.rmdir()


def forget(folder):
    """Takes the files out of the system's cache."""
    for path in folder.iterdir():
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def run(parts, before=None):
    """What FIT prints in a process of its own, by method."""
    forget(parts)
    done = subprocess.run(
        [sys.executable, "-c", FIT, str(parts)], preexec_fn=before, capture_output=True, text=True,
        timeout=1500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return {found["how"]: found for found in map(json.loads, done.stdout.splitlines())}


def write_parts(folder, copies):
    """About 105 MB a copy, of long documents: vectors of one number a row are small."""
    A, y = text_like(30_000, 50_000, nonzeros=300, seed=0)
    from scipy import sparse

    save_parts(folder, sparse.vstack([A] * copies, "csr"), np.tile(y, copies))
    return sum(path.stat().st_size for path in folder.iterdir()) >> 20


@pytest.mark.slow
def test_a_fit_under_a_real_limit_ends_in_time(tmp_path, group):
    size = write_parts(tmp_path / "parts", 14)
    assert size >= 3 * CAP
    free = run(tmp_path / "parts")
    if group.folder is None:
        # Maps count against an address space: they come on top of what the process may hold.
        room = (CAP + 2 * size + 2000) << 20
        capped = run(
            tmp_path / "parts", lambda: resource.setrlimit(resource.RLIMIT_AS, (room, room))
        )
    else:
        capped = run(tmp_path / "parts", group.enter)
        assert group.peak() <= CAP
        assert all(found["streamed"] for found in capped.values())
    for how, found in capped.items():
        assert found["value"] == pytest.approx(free[how]["value"], abs=1e-4)
        print(how, "free", free[how], "capped", found)
    # Together, so that a moment in which the machine is busy decides nothing.
    seconds = [sum(found["seconds"] for found in runs.values()) for runs in (capped, free)]
    assert seconds[0] <= 3 * seconds[1] + 10, (free, capped)


def test_the_limit_of_a_group_is_known(group):
    if group.folder is None:
        pytest.skip("no control group can be made here")
    done = subprocess.run(
        [sys.executable, "-c", "from adafw import memory; print(memory.machine_bytes())"],
        preexec_fn=group.enter, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) == CAP << 20
    assert memory.machine_bytes() > CAP << 20
