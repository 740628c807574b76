"""Limits of memory, read from groups of the test's own."""

import os
import platform
import resource
import subprocess
import sys

import pytest

from adafw import memory


@pytest.fixture
def groups(tmp_path, monkeypatch):
    """A function that writes limits of groups, of version 2 and 1, and this process's place."""
    roots = ((str(tmp_path / "two"), "max"), (str(tmp_path / "one"), "limit"))
    monkeypatch.setattr(memory, "_GROUPS", roots)
    real = memory.Path

    def write(place, **limits):
        listing = tmp_path / "cgroup"
        listing.write_text(place)
        monkeypatch.setattr(memory, "Path", lambda p: listing if "cgroup" in str(p) else real(p))
        for name, limit in limits.items():
            file = tmp_path / name.replace("_", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(limit))

    return write


@pytest.mark.parametrize(("own", "around"), [(3, 7), (7, 3)])
def test_the_smallest_limit_of_all_groups_around_counts(groups, own, around):
    groups("0::/a/b\n", two_max="max", two_a_max=around << 20, two_a_b_max=own << 20)
    assert memory.machine_bytes() == 3 << 20


def test_in_a_container_the_group_is_the_root(groups):
    groups("0::/\n", two_max=5 << 20)
    assert memory.machine_bytes() == 5 << 20


def test_groups_of_version_one_are_found_by_their_controller(groups):
    groups("7:cpu,memory:/x\n3:cpu:/y\n", one_x_limit=4 << 20, one_y_limit=1 << 20)
    assert memory.machine_bytes() == 4 << 20


def test_without_a_limit_it_is_the_machines(groups, monkeypatch):
    groups("0::/a\n", two_a_max="max")
    monkeypatch.setattr(memory, "_address_space", lambda: 1 << 62)
    assert memory.machine_bytes() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(memory, "_address_space", lambda: 9 << 20)
    assert memory.machine_bytes() == 9 << 20


def test_what_is_spare_is_less_what_is_held(monkeypatch):
    monkeypatch.setattr(memory, "machine_bytes", lambda: 1 << 50)
    page = os.sysconf("SC_PAGE_SIZE")

    class Statm:
        def __init__(self, path):
            assert str(path) == "/proc/self/statm"

        def read_text(self):
            return "900 500 200 1 0 1 0\n"

    monkeypatch.setattr(memory, "Path", Statm)
    assert memory.spare_bytes() == (1 << 50) - 300 * page
    monkeypatch.setattr(memory, "machine_bytes", lambda: 299 * page)
    assert memory.spare_bytes() == 0


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (1.72e10, "17.2 GB"), (5e5, "500 kB"),
     (1234567, "1.23 MB"), (2e12, "2 TB"), (3e15, "3e+03 TB")],
)  # fmt: skip
def test_bytes_for_people(size, text):
    assert memory.readable(size) == text


def test_a_limit_on_the_address_space_counts(monkeypatch):
    found = {resource.RLIMIT_AS: (5 << 30, 9 << 30)}
    monkeypatch.setattr(resource, "getrlimit", lambda kind: found.get(kind, (1, 1)))
    assert memory._address_space() == 5 << 30
    found[resource.RLIMIT_AS] = (resource.RLIM_INFINITY, 9 << 30)
    assert memory._address_space() == 1 << 62


def test_where_nothing_is_told_half_is_taken_for_spare(monkeypatch):
    monkeypatch.setattr(memory, "machine_bytes", lambda: 10 << 20)

    class Missing:
        def __init__(self, path):
            pass

        def read_text(self):
            raise FileNotFoundError

    monkeypatch.setattr(memory, "Path", Missing)
    assert memory.spare_bytes() == 5 << 20


_ASKED_AGAIN = """
import resource, sys
import numpy as np
from adafw import memory
if "keep" in sys.argv:
    memory.keep_freed()

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def some():
    for _ in range(20):
        held = [np.ones(2_000_000, np.uint8) for _ in range(6)]
        del held

some()
before = faults()
some()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries free as they like")
def test_what_is_freed_is_kept_for_what_is_asked_for_next(monkeypatch):
    """Some MB asked for twenty times: pages come from the system once, not twenty times."""
    for name in [name for name in os.environ if name.startswith("MALLOC_")]:  # Dask sets one
        monkeypatch.delenv(name)
    given_back, kept = (
        int(subprocess.check_output([sys.executable, "-c", _ASKED_AGAIN, how]))
        for how in ("give back", "keep")
    )
    assert kept < 100 < given_back


def test_too_little_memory_to_keep_is_no_failure(monkeypatch):
    monkeypatch.setattr(memory, "_USUAL", 1 << 62)
    memory.keep_freed.__wrapped__()
