"""How much memory there is, so that what cannot fit is refused, or left on the disk, in time."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

#: Where the groups of version 2 and of version 1 lie, and what their limits are called.
_GROUPS = (("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"))

#: The most that glibc takes for a size that is asked for again and again.
_USUAL = (1 << 25) - (1 << 16)


@cache
def keep_freed() -> None:
    """Has the C library keep memory that is freed, up to 64 MB, for what is asked for next.

    A run asks for arrays of some MB again and again. Given back to the system each time, their
    pages are empty ones to be had anew: a third of the time of a fit of 20 ms. glibc learns what is
    usual from the largest size that was freed. It does not where MALLOC_MMAP_THRESHOLD_ or
    MALLOC_TRIM_THRESHOLD_ is set, as by Dask for its workers; other C libraries do as they please.
    """
    with suppress(MemoryError):
        np.empty(_USUAL, np.uint8)  # never touched, and freed at once


def machine_bytes() -> int:
    """Bytes of memory this process may hope for: the machine's, or less where a limit is set.

    Limits are those of its control groups, its own and all around it, and of its address space.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        total = 1 << 62
    for path in _limit_files():
        try:
            total = min(total, int(path.read_text()))
        except (OSError, ValueError):  # no such group, or the word max
            continue
    return min(total, _address_space())


def spare_bytes() -> int:
    """What is left of `machine_bytes` beside what this process holds now, files in memory aside."""
    try:
        _, resident, shared = Path("/proc/self/statm").read_text().split()[:3]
        held = (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):  # no /proc: half of it is a guess as good as any
        held = machine_bytes() // 2
    return max(0, machine_bytes() - held)


def _limit_files() -> Iterator[Path]:
    """The limits of this process's groups; in a container its own group is the root."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        lines = []
    for (root, name), controllers in zip(_GROUPS, ("", "memory"), strict=True):
        yield Path(root) / name
        for line in lines:
            _, named, place = line.split(":", 2)
            if controllers not in named.split(","):
                continue
            group = Path(place).relative_to("/")
            yield from (Path(root) / part / name for part in (group, *group.parents))


def _address_space() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 1 << 62
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 1 << 62 if limit == resource.RLIM_INFINITY else limit


def readable(size: float) -> str:
    """Bytes for people: 17.2 GB."""
    power = min(4, max(0, int(math.log(max(size, 1), 1000))))
    return f"{size / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
