"""Learning rates that a file leaves to the paper's search, found before the runs."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import adafw
from adafw.constraints.base import Stalled
from adafw.experiments import runner
from adafw.experiments.spec import SEARCHED, AlgorithmSpec, Problem, Spec, digest
from adafw.experiments.tuned import with_rate
from adafw.io.atomic import write_text
from adafw.tuning import TUNING_SEED, Trial, power_of_ten, search


@dataclass(frozen=True)
class Search:
    """One search: everything a worker needs, and where its outcome goes."""

    problem: Problem
    algorithm: AlgorithmSpec
    budget: Mapping[str, Any]
    parts: Path
    file: Path


def searches_of(spec: Spec, parts: dict[str, Path], work: Path) -> list[Search]:
    """The searches that the file asks for by learning_rate = "search"."""
    found = []
    for problem in spec.problems:
        for line in problem.algorithms:
            if isinstance(problem, Problem) and line.options.get("learning_rate") == SEARCHED:
                where = parts[problem.name]
                what = [where.name, *problem.identity, dict(line.table), dict(spec.search),
                        adafw.__version__]  # fmt: skip
                file = work / f"search-{problem.name}-{digest([line.label, *what])}.json"
                found.append(Search(problem, line, spec.search, where, file))
    return found


def run_search(job: Search) -> None:
    """Runs a search and writes its trials."""
    f, constraint = runner.objective(job.problem, job.parts), job.problem.constraint()
    runner.warm_up(f, job, constraint, job.algorithm.build())

    def run(i: int, eta: float) -> Trial:
        try:
            result = adafw.minimize(
                f, constraint, with_rate(job.algorithm, eta).build(), seed=TUNING_SEED,
                callbacks=lambda state, record: runner.asked_to_stop(), progress=False,
                **job.budget,
            )  # fmt: skip
        except Stalled:
            return Trial(i, eta, math.nan, math.nan, runner.STALLED)
        if runner.asked_to_stop():
            raise runner.Stopped
        return Trial(i, eta, result.value, result.gap, result.status)

    tuning = search(run, "gap")
    outcome = {"exponent": tuning.best.exponent, "settled": tuning.settled,
               "trials": [vars(trial) for trial in tuning.trials]}  # fmt: skip
    write_text(job.file, json.dumps(outcome))


def with_rates(spec: Spec, searches: list[Search]) -> tuple[Spec, list[dict[str, Any]]]:
    """The experiment with the rates that were found, and what every search tried."""
    rates, tried = {}, []
    for job in searches:
        outcome = json.loads(job.file.read_text())
        rates[job.problem.name, job.algorithm.label] = power_of_ten(outcome["exponent"])
        tried.append({"problem": job.problem.name, "algorithm": job.algorithm.label, **outcome})

    def found(problem: Any, line: AlgorithmSpec) -> AlgorithmSpec:
        rate = rates.get((problem.name, line.label))
        if rate is None:
            return line
        return replace(
            with_rate(line, rate),
            note=line.note or f"η by the paper's search on seed {TUNING_SEED}, as this run began",
        )

    problems: Any = tuple(
        replace(problem, algorithms=tuple(found(problem, line) for line in problem.algorithms))
        for problem in spec.problems
    )
    return replace(spec, problems=problems), tried
