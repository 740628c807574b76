"""How much memory there is, so that what cannot fit is refused before it is asked for."""

import math
import os
from pathlib import Path

_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def machine_bytes() -> int:
    """Bytes of memory this process may hope for: the machine's, or its container's if less."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        total = 1 << 62
    for name in _LIMITS:
        try:
            total = min(total, int(Path(name).read_text()))
        except (OSError, ValueError):  # no such group, or the word max
            continue
    return total


def readable(size: float) -> str:
    """Bytes for people: 17.2 GB."""
    power = min(4, max(0, int(math.log(max(size, 1), 1000))))
    return f"{size / 1000**power:.3g} {('bytes', 'kB', 'MB', 'GB', 'TB')[power]}"
