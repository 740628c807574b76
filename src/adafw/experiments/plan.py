"""The work of an experiment: which runs in which order, which searches first, where files lie."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import adafw
from adafw.experiments.kinds import kind_of
from adafw.experiments.spec import Case, Method, Spec
from adafw.experiments.work import RUN, SEARCH, AnyItem, WorkItem, digest
from adafw.io.atomic import write_text
from adafw.tuning import TUNING_SEED, power_of_ten
from adafw.typing import Json, JsonTable


def parts_of(case: Case[Method], work: Path) -> Path:
    """Where the case's data lie, to be mapped, while runs are left to do."""
    data = dict(case.data)
    folder = os.path.abspath(case.folder) if "path" in data else None  # paths start there
    origin = [data, folder, os.environ.get("ADAFW_DATA")]
    return work / f"data-{digest(origin)}.parts"


def prepare(spec: Spec, case: Case[Method], parts: Path) -> None:
    """Makes the parts, once: workers map the same pages, a run that goes on does not load again."""
    if parts.is_dir() and about_file(parts).is_file():
        return
    write_text(about_file(parts), json.dumps(kind_of(spec).store(case, parts)))


def about_file(parts: Path) -> Path:
    """Where it is written what the data are."""
    return parts.with_suffix(".json")


def runs_of(spec: Spec, parts: Mapping[str, Path], work: Path) -> list[AnyItem]:
    """All runs, interleaved: each repeat and seed goes through all cases and methods.

    So that whatever else the machine does hits every method alike. Those that are not compared come
    last.
    """
    found = []
    for repeat in range(spec.repeats):
        for seed in spec.seeds:
            for case in spec.cases:
                start = f"run{repeat}-{case.name}-seed{seed}"
                found += [
                    _item(spec, RUN, case, method, seed, spec.budget, parts, work / start)
                    for method in case.methods
                ]
    for case in spec.cases:
        seed = spec.seeds[0]
        for role, method, budget in kind_of(spec).extras(spec, case):
            start = f"{role}-{case.name}-seed{seed}"
            found.append(_item(spec, role, case, method, seed, budget, parts, work / start))
    return found


def searches_of(spec: Spec, parts: Mapping[str, Path], work: Path) -> list[AnyItem]:
    """The searches that the file asks for by learning_rate = "search"."""
    return [
        _item(
            spec, SEARCH, case, method, TUNING_SEED, spec.search, parts,
            work / f"search-{case.name}",
        )
        for case in spec.cases
        for method in case.methods
        if method.searched
    ]  # fmt: skip


def _item(
    spec: Spec, role: str, case: Case[Method], method: Method, seed: int,
    budget: Mapping[str, Json], parts: Mapping[str, Path], start: Path,
) -> AnyItem:  # fmt: skip
    where = parts[case.name]
    # Whatever changes the outcome is in the file's name, so that no stale run is ever taken up.
    what = [where.name, *case.identity, dict(method.table), dict(budget), adafw.__version__]
    file = start.with_name(f"{start.name}-{digest([method.label, *what])}.json")
    state_file = file.with_suffix(kind_of(spec).state_suffix)
    return WorkItem(spec.kind, role, case, method, seed, dict(budget), where, file, state_file)


def with_rates(spec: Spec, searches: Sequence[AnyItem]) -> tuple[Spec, list[JsonTable]]:
    """The experiment with the rates that were found, and what every search tried."""
    rates, tried = {}, []
    for item in searches:
        outcome = json.loads(item.file.read_text())
        rates[item.case.name, item.method.label] = power_of_ten(outcome["exponent"])
        found = {key: outcome[key] for key in ("exponent", "settled", "trials")}
        tried.append({"problem": item.case.name, "algorithm": item.method.label, **found})

    def rated(case: Case[Method], method: Method) -> Method:
        rate = rates.get((case.name, method.label))
        if rate is None:
            return method
        note = f"η by the paper's search on seed {TUNING_SEED}, as this run began"
        return replace(method.with_rate(rate), note=method.note or note)

    cases = tuple(
        replace(case, methods=tuple(rated(case, method) for method in case.methods))
        for case in spec.cases
    )
    return replace(spec, cases=cases), tried
