"""Does the work of an experiment in parallel, so that a killed or stopped run goes on later."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import connection
from multiprocessing.synchronize import Event

from adafw.experiments.kinds import kind_of
from adafw.experiments.work import SEARCH, AnyItem, finish, is_done, listen_to

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def perform(item: AnyItem) -> None:
    """In a worker: does one piece of work and writes its outcome."""
    kind = kind_of(item)
    if item.role != SEARCH:
        finish(item, kind.run(item))
        return
    tuning = kind.search(item)
    trials = [vars(trial) for trial in tuning.trials]
    exponent = tuning.best.exponent
    finish(item, {"exponent": exponent, "settled": tuning.settled, "trials": trials})


def perform_all(items: Sequence[AnyItem], workers: int, advance: Callable[[], None]) -> None:
    """Does what is left: items whose files are missing; `advance` is called once for each."""
    left = []
    # Asked again here: what a run before this one has done is not done twice.
    for item in items:
        if is_done(item):
            advance()
        else:
            left.append(item)
    if not left:
        return
    # Not fork: BLAS and numba threads of this process would be copied without running.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with (
        _one_thread_each(),
        ProcessPoolExecutor(
            min(workers, len(left)), context, initializer=start_worker, initargs=(stop,)
        ) as pool,
    ):
        waiting: set[Future[None]] = {pool.submit(perform, item) for item in left}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    advance()
        except BaseException:
            # The workers save their states and end; only then does the pool close.
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


@contextlib.contextmanager
def _one_thread_each() -> Iterator[None]:
    """Workers started in here compute on one thread each, so that their CPU time is one core's."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def start_worker(stop: Event) -> None:
    """What a process does first to become a worker, which `stop` asks to end."""
    listen_to(stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us through the event
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    """Ends this process as soon as the main one was killed; finished files are whole whenever.

    At once, as the next run may begin at once, and would not expect others in its folder.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
