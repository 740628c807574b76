"""Work split over the cores. Kernels release the interpreter's lock, so plain threads will do."""

import os
import threading
from collections.abc import Callable


def cores() -> int:
    """How many threads to use: OMP_NUM_THREADS if set, else the cores this process may run on.

    Of a list, one number for each level of nesting, the first counts. This is the one place that
    decides it.
    """
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # there is none on macOS and Windows
        return os.cpu_count() or 1


def bounds(n: int, parts: int) -> list[tuple[int, int]]:
    """0 .. n cut into that many nearly equal ranges."""
    return [(n * k // parts, n * (k + 1) // parts) for k in range(parts)]


def share(work: Callable[[int], None], parts: int) -> None:
    """Calls work(0) .. work(parts - 1), each once, on all cores.

    Threads live for one call only: a pool that outlives it would not survive a fork.
    """
    todo = iter(range(parts))
    lock = threading.Lock()
    failures: list[BaseException] = []

    def labour() -> None:
        while not failures:
            with lock:
                part = next(todo, None)
            if part is None:
                return
            try:
                work(part)
            except BaseException as failure:
                failures.append(failure)

    helpers = [threading.Thread(target=labour) for _ in range(min(cores(), parts) - 1)]
    for helper in helpers:
        helper.start()
    labour()
    for helper in helpers:
        helper.join()
    if failures:
        raise failures[0]
