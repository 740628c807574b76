"""From an experiment's file to its results, in one call."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from adafw import checks
from adafw.experiments import boards, figures, report, results
from adafw.experiments.kinds import kind_of
from adafw.experiments.load import check_seeds, load_spec
from adafw.experiments.outcome import Outcome
from adafw.experiments.plan import about_file, parts_of, prepare, runs_of, searches_of, with_rates
from adafw.experiments.spec import Spec
from adafw.experiments.work import AnyItem, is_done
from adafw.experiments.workers import perform_all
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
    parts = {case.name: parts_of(case, work) for case in spec.cases}
    searches = searches_of(spec, parts, work)
    runs = runs_of(spec, parts, work)  # as many as with the rates that are searched for
    bar.start(spec.name, len(searches) + len(runs))
    _perform(searches, workers, bar, spec, parts)
    # The files of the runs are named by their settings, so that they are known only now.
    spec, tried = with_rates(spec, searches)
    runs = runs_of(spec, parts, work)
    _perform(runs, workers, bar, spec, parts)
    about = {name: json.loads(about_file(path).read_text()) for name, path in parts.items()}
    outcome = results.collect(spec, about, runs, workers, tried)
    write(outcome, folder)
    if tensorboard is not None:
        boards.log_runs(outcome, Path(tensorboard))
    for path in parts.values():  # large, and of no use once every run is done
        shutil.rmtree(path, ignore_errors=True)
    discard_partial(work)  # a worker outlives a killed run by moments, and may have left one since
    return outcome


def _perform(
    items: Sequence[AnyItem],
    workers: int,
    bar: Bar,
    spec: Spec,
    parts: dict[str, Path],
) -> None:
    """Does what is left of the work; the data are made only if something is."""
    if not all(is_done(item) for item in items):
        for case in spec.cases:
            prepare(spec, case, parts[case.name])
    perform_all(items, workers, bar.advance)


def write(outcome: Outcome, folder: Path) -> None:
    """All files of a finished experiment."""
    claims = kind_of(outcome.spec).judge(outcome)
    results.write_traces(outcome, folder / "trace.csv")
    results.write_summary(outcome, claims, folder / "summary.json")
    svg = figures.save(outcome, folder)
    write_text(folder / "report.html", report.render(outcome, claims, svg))
