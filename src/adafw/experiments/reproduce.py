"""From an experiment's file to its results, in one call."""

import json
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from adafw import checks
from adafw.experiments import boards, figures, report, results, runner, scaling
from adafw.experiments.claims import check_claims, judge
from adafw.experiments.results import Outcome
from adafw.experiments.search import run_search, searches_of, with_rates
from adafw.experiments.spec import Spec, check_seeds, load_spec
from adafw.io.atomic import discard_partial, write_text
from adafw.tensorboard import writer_class


class Bar(Protocol):
    """What shows how far a run is."""

    def start(self, name: str, total: int) -> None:
        """An experiment of so many runs begins."""

    def advance(self) -> None:
        """A run is done."""


class NoBar:
    """Shows nothing."""

    def start(self, name: str, total: int) -> None:
        """Nothing."""

    def advance(self) -> None:
        """Nothing."""


def reproduce(
    experiment: str | os.PathLike[str],
    out: str | os.PathLike[str] = "out",
    *,
    quick: bool = False,
    full: bool = False,
    seeds: Sequence[int] | None = None,
    workers: int | None = None,
    fresh: bool = False,
    bar: Bar | None = None,
    tensorboard: str | os.PathLike[str] | None = None,
) -> Outcome:
    """Runs an experiment and writes out/<name>/: trace.csv, summary.json, figure.*, report.html.

    Parameters
    ----------
    experiment : a name of `adafw.experiments.names()`, or the path of a TOML file.
    quick : apply the file's [quick] table.
    full : apply the file's [full] table, where the file is a reduced form of something dearer.
    seeds : instead of the file's.
    workers : processes of one thread each; None means one per core.
    fresh : forget what earlier, unfinished or finished, calls have left; otherwise it is used.
    tensorboard : a folder to log every run to, for `tensorboard --logdir`.

    Call it under `if __name__ == "__main__":`, since it starts processes.
    """
    spec = load_spec(experiment, quick, full)
    check_claims(spec)
    if tensorboard is not None:
        writer_class()  # better missed now than after the runs
    if seeds is not None:
        spec = replace(spec, seeds=check_seeds(seeds))
    workers = os.cpu_count() or 1 if workers is None else checks.integer(workers, "workers", 1)
    bar = NoBar() if bar is None else bar
    folder = Path(out) / spec.name
    work = folder / "work"
    if fresh:
        shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True, exist_ok=True)
    discard_partial(work)
    parts = {problem.name: runner.parts_of(problem, work) for problem in spec.problems}
    searches = searches_of(spec, parts, work)
    jobs = runner.jobs_of(spec, parts, work)  # as many as with the rates that are searched for
    bar.start(spec.name, len(searches) + len(jobs))
    _run(searches, workers, bar, run_search, spec, parts)
    spec, tried = with_rates(spec, searches)
    jobs = runner.jobs_of(spec, parts, work)
    _run(jobs, workers, bar, runner.run_one, spec, parts)
    about = {name: json.loads(runner.about_file(path).read_text()) for name, path in parts.items()}
    outcome = results.collect(spec, about, jobs, workers)
    write(outcome, folder, tried)
    if tensorboard is not None:
        boards.log_runs(outcome, Path(tensorboard))
    for path in parts.values():  # large, and of no use once every run is done
        shutil.rmtree(path, ignore_errors=True)
    return outcome


def _run(jobs: Any, workers: int, bar: Bar, run: Any, spec: Spec, parts: dict[str, Path]) -> None:
    """Runs what is left of the jobs; the data are made only if something is."""
    if not all(job.file.is_file() for job in jobs):
        for problem in spec.problems:
            runner.prepare(problem, parts[problem.name])
    runner.run_all(jobs, workers, bar, run)


def write(outcome: Outcome, folder: Path, searches: Sequence[dict[str, Any]] = ()) -> None:
    """All files of a finished experiment."""
    claims = judge(outcome)
    results.write_traces(outcome, folder / "trace.csv")
    more: dict[str, Any] = {"searches": list(searches)} if searches else {}
    if outcome.spec.scaling:
        series = scaling.sizes(outcome)
        more["series"] = {name: [size.table() for size in row] for name, row in series.items()}
    table = _finite(results.summary(outcome, claims, **more))
    write_text(folder / "summary.json", json.dumps(table, indent=2, allow_nan=False) + "\n")
    svg = figures.save(outcome, folder)
    write_text(folder / "report.html", report.render(outcome, claims, svg))


def _finite(thing: Any) -> Any:
    """JSON has no NaN and no infinity: null stands for them."""
    if isinstance(thing, dict):
        return {key: _finite(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_finite(value) for value in thing]
    return None if isinstance(thing, float) and not math.isfinite(thing) else thing
