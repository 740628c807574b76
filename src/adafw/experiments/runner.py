"""Runs an experiment: interleaved, in parallel, and so that a killed run goes on where it stopped.

Every finished run is one file, written whole or not at all; a run in progress saves its state every
few seconds and is taken up from there, bit for bit.
"""

import contextlib
import copy
import functools
import json
import multiprocessing
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import adafw
from adafw.constraints.base import Stalled
from adafw.datasets import load_parts
from adafw.experiments.audit import AuditedStep
from adafw.experiments.reference import REFERENCE, best_algorithm, budget_of
from adafw.experiments.spec import AlgorithmSpec, AnyProblem, Problem, Spec, digest
from adafw.io.atomic import write_text
from adafw.recorder import Record, every
from adafw.solver import State
from adafw.steps import AdaptiveStep

STALLED = "stalled projection"  # the status of a run that a projection ended
AUDITED = "bounds not active"  # the claim that needs runs of its own
_SAVE_EVERY = 5.0  # seconds of work that a kill may cost
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Job:
    """One run: everything a worker needs, and where its outcome goes."""

    problem: AnyProblem
    algorithm: AlgorithmSpec
    seed: int
    budget: dict[str, Any]
    parts: Path
    file: Path
    kind: str = "run"  # "audit" and "reference" are runs that are not compared

    @property
    def state_file(self) -> Path:
        """Where the state of the unfinished run is kept."""
        return self.file.with_suffix(
            ".state.npz" if isinstance(self.problem, Problem) else ".state.pt"
        )


class Stopped(Exception):
    """The run was asked to stop and has saved its state."""


# In the main process ---------------------------------------------------------------------------


def parts_of(problem: AnyProblem, work: Path) -> Path:
    """Where the problem's data lie as mapped parts while runs are left to do."""
    data = dict(problem.data)
    folder = os.path.abspath(problem.folder) if "path" in data else None  # paths start there
    origin = [data, folder, os.environ.get("ADAFW_DATA")]
    return work / f"data-{digest(origin)}.parts"


def prepare(problem: AnyProblem, parts: Path) -> None:
    """Makes the parts, once: workers map the same pages, a run that goes on does not load again."""
    if parts.is_dir() and about_file(parts).is_file():
        return
    write_text(about_file(parts), json.dumps(problem.store(parts)))


def about_file(parts: Path) -> Path:
    """Where it is written what the data are."""
    return parts.with_suffix(".json")


def jobs_of(spec: Spec, parts: dict[str, Path], work: Path) -> list[Job]:
    """All runs, interleaved: each repeat and seed goes through all problems and algorithms.

    So that whatever else the machine does hits every algorithm alike. Up to two more runs for each
    problem are not compared: one counts how often bounds on the inner step sizes would have been
    active, where that is claimed; and one, but for series and networks, bounds the minimum below.
    """
    found = []
    for repeat in range(spec.repeats):
        for seed in spec.seeds:
            for problem in spec.problems:
                place = parts[problem.name]
                found += [
                    _job(spec, problem, line, seed, place, work / f"run{repeat}")
                    for line in problem.algorithms
                ]
    for problem in spec.problems:
        seed, place = spec.seeds[0], parts[problem.name]
        line = next((a for a in problem.algorithms if problem.family(a) == "adaptive"), None)
        if AUDITED in spec.claims and line is not None:
            found.append(_job(spec, problem, line, seed, place, work / "audit", "audit"))
        if not (spec.networks or spec.scaling):
            found.append(
                _job(spec, problem, REFERENCE, seed, place, work / "reference", "reference")
            )
    return found


def _job(
    spec: Spec, problem: AnyProblem, line: AlgorithmSpec, seed: int, parts: Path, prefix: Path,
    kind: str = "run",
) -> Job:  # fmt: skip
    budget = dict(spec.budget)
    if kind == "reference":
        budget = budget_of(budget)
    # Whatever changes the outcome is in the file's name, so that no stale run is ever taken up.
    what = [parts.name, *problem.identity, dict(line.table), budget, adafw.__version__]
    mark = digest([line.label, *what])
    file = prefix.with_name(f"{prefix.name}-{problem.name}-seed{seed}-{mark}.json")
    return Job(problem, line, seed, budget, parts, file, kind)


def run_all(jobs: Any, workers: int, bar: Any, run: Callable[[Any], None]) -> None:
    """Runs, by `run`, the jobs whose files are missing; `bar.advance()` is called once for each."""
    left = []
    for job in jobs:
        if job.file.is_file():
            bar.advance()
        else:
            left.append(job)
    if not left:
        return
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with (
        _one_thread_each(),
        ProcessPoolExecutor(
            min(workers, len(left)), context, initializer=_start_worker, initargs=(stop,)
        ) as pool,
    ):
        waiting: set[Future[None]] = {pool.submit(run, job) for job in left}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    bar.advance()
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


# In a worker -----------------------------------------------------------------------------------

_stop: Any = None


def _start_worker(stop: Any) -> None:
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us through the event
    threading.Thread(target=_die_with, args=(os.getppid(),), daemon=True).start()


def asked_to_stop() -> bool:
    """Whether this worker is to save what it has and end."""
    return _stop is not None and _stop.is_set()


def _die_with(parent: int) -> None:
    """Ends this process when the main one was killed; finished files are whole whenever it is."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def run_one(job: Job) -> None:
    """Runs a job from its last saved state, if there is one, and writes its outcome."""
    if isinstance(job.problem, Problem):
        _minimize(job, job.problem)
    else:
        from adafw.experiments.networks.training import run

        run(job, job.problem)


def _minimize(job: Job, problem: Problem) -> None:
    f = objective(problem, job.parts)
    algorithm = job.algorithm.build()
    if job.kind == "reference":
        algorithm = best_algorithm(f, problem.constraint())
    if job.kind == "audit" and isinstance(algorithm.step, AdaptiveStep):
        algorithm = replace(algorithm, step=AuditedStep(algorithm.step))
    warm_up(f, job, problem.constraint(), algorithm)
    budget = dict(job.budget)
    seconds = budget.get("record_every")
    if isinstance(seconds, dict):
        budget["record_every"] = every(**seconds)
    start: dict[str, Any] = {"seed": job.seed}
    saver = _Saver(job.state_file)
    if job.state_file.is_file():
        state = State.load(job.state_file)
        start, saver.records = {"state": state}, list(state.records)
    try:
        result = adafw.minimize(
            f, problem.constraint(), algorithm, **start, **budget, callbacks=[saver], progress=False
        )
    except Stalled:
        finish(job, {"status": STALLED, "records": saver.records, "step": {}})
        return
    if result.status in ("callback", "interrupted"):
        result.state.save(job.state_file)
        raise Stopped
    outcome: dict[str, Any] = {
        "status": result.status,
        "records": [list(record) for record in result.trace],
        "step": {k: v for k, v in result.state.step.items() if isinstance(v, int)},
        "path": "generic" if result.path == "generic" else "compiled",
    }
    if problem.series and result.status != "diverged":
        constraint = problem.constraint()
        with contextlib.suppress(Stalled):
            outcome["step_seconds"] = step_seconds(f, constraint, algorithm, result.state)
    finish(job, outcome)


def finish(job: Job, outcome: dict[str, Any]) -> None:
    """Writes the outcome of a run, and when and by which source it was made."""
    made = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "source": source()}
    write_text(job.file, json.dumps({**outcome, "made": made}))
    job.state_file.unlink(missing_ok=True)


@functools.cache
def source() -> str:
    """A mark of the package's source, which tells more than its version."""
    root = Path(adafw.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))]
    return digest(texts)


def step_seconds(
    f: Any, constraint: adafw.Constraint, algorithm: adafw.Algorithm, state: State
) -> float:
    """CPU seconds of one step alone, exact gradient given, at the end of a run: median of a few.

    That is K linear minimisations, or one projection, and the metric and vector work around them,
    by the code for any problem, whatever code the run itself used.
    """
    s = state.copy()
    g = f.gradient(s.x)
    times: list[float] = []
    while not times or (len(times) < 25 and sum(times) < 0.2):
        memory = copy.deepcopy(s.step)
        begun = time.process_time()
        algorithm.step.update(f, constraint, s.x, g, s.t, memory)
        times.append(time.process_time() - begun)
    return statistics.median(times)


#: The objective of the last job, which the next one mostly shares, and what it was made from.
_held: tuple[Any, Any] = (None, None)


def objective(problem: Problem, parts: Path) -> adafw.LinearModel:
    """The objective on mapped data."""
    global _held
    key = (parts, str(problem.loss), problem.shape)
    if _held[0] != key:
        _held = (key, problem.objective(*load_parts(parts)))
    return _held[1]


_warm: set[str] = set()


def warm_up(
    f: adafw.LinearModel, job: Any, constraint: adafw.Constraint, algorithm: adafw.Algorithm
) -> None:
    """A few iterations off the record: code is compiled and data paged in before the clock runs."""
    key = f"{job.parts} {job.problem.name} {job.algorithm.label}"
    if key not in _warm:
        with contextlib.suppress(Stalled):  # the run itself will tell
            adafw.minimize(
                f, constraint, algorithm, max_iterations=2, record_every=2, progress=False
            )
        _warm.add(key)


class _Saver:
    """A callback that saves the state every few seconds, and stops the run when asked to."""

    def __init__(self, file: Path) -> None:
        self.file, self.saved = file, time.monotonic()
        self.records: list[Any] = []

    def __call__(self, state: State, record: Record) -> bool:
        self.records = list(state.records)
        if time.monotonic() - self.saved > _SAVE_EVERY:
            state.save(self.file)
            self.saved = time.monotonic()
        return asked_to_stop()
