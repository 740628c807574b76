"""What is left of an experiment: its runs read back, trace.csv and summary.json."""

import csv
import io
import json
import math
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import cast

import numpy as np

from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import About, Case, Method, Spec
from adafw.experiments.verdicts import Claim
from adafw.experiments.work import RUN, AnyItem
from adafw.io.atomic import write_text
from adafw.recorder import AnyRecords
from adafw.typing import JsonTable, Plain


def collect(
    spec: Spec,
    data: dict[str, About],
    items: Sequence[AnyItem],
    workers: int,
    searches: Sequence[JsonTable] = (),
) -> Outcome:
    """Reads the files of all finished runs; `searches`: what was tried before them."""
    curves: list[Curve] = []
    extras: dict[str, dict[str, JsonTable]] = {}
    compared: dict[tuple[str, str, int], list[JsonTable]] = {}
    for item in items:
        found = json.loads(item.file.read_text())
        # Repeats of a seed come one after the other, in the order of the plan.
        if item.role == RUN:
            compared.setdefault((item.case.name, item.method.label, item.seed), []).append(found)
        else:
            extras.setdefault(item.role, {})[item.case.name] = found
    for case in spec.cases:
        for method in case.methods:
            runs = {seed: compared[case.name, method.label, seed] for seed in spec.seeds}
            curves.append(_curve(case, method, runs, kind_of(spec).trace))
    made = [run["made"] for runs in compared.values() for run in runs if "made" in run]
    about = {**environment(workers), "runs": _provenance(made)}
    return Outcome(spec, data, tuple(curves), extras, about, searches)


def _curve(
    case: Case[Method],
    method: Method,
    runs: dict[int, list[JsonTable]],
    trace: type[AnyRecords],
) -> Curve:
    """The runs of one method on one case: for each seed, its repeats."""
    first = {seed: repeats[0] for seed, repeats in runs.items()}
    return Curve(
        case,
        method,
        {seed: _merged(repeats, trace) for seed, repeats in runs.items()},
        {seed: run["status"] for seed, run in first.items()},
        next((run["path"] for run in first.values() if "path" in run), ""),
        {
            seed: float(np.median([run["step_seconds"] for run in repeats]))
            for seed, repeats in runs.items()
            if "step_seconds" in repeats[0]
        },
        {seed: run["probes"] for seed, run in first.items() if "probes" in run},
    )


def _provenance(made: list[dict[str, str]]) -> dict[str, Plain]:
    """When the runs ended, and the marks of the sources that made them."""
    dates = sorted(run["date"] for run in made)
    return {
        "first": dates[0] if dates else None,
        "last": dates[-1] if dates else None,
        "sources": sorted({run["source"] for run in made}),
    }


def _merged(runs: list[JsonTable], trace: type[AnyRecords]) -> AnyRecords:
    """Repeats of one seed do the same work; what differs is time, of which the median is taken."""
    rows = [list(row) for row in runs[0]["records"]]
    for name in ("cpu_seconds", "wall_seconds"):
        column = trace.columns.index(name)
        for i, row in enumerate(rows):
            # Where records go by the clock, repeats may have other ones, or fewer.
            times = [run["records"][i][column] for run in runs if _same(run["records"], i, row)]
            row[column] = float(np.median(times))
    return trace([tuple(row) for row in rows])


def _same(records: list[list[float]], i: int, row: list[float]) -> bool:
    return i < len(records) and records[i][0] == row[0]


def write_traces(outcome: Outcome, path: Path) -> None:
    """trace.csv: algorithm, setting, seed, then the columns of a trace."""
    spec = outcome.spec
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["algorithm", "setting", "seed", *kind_of(spec).trace.columns])
    for curve in outcome.curves:
        setting = spec.setting(curve.case, curve.method)
        for seed, trace in curve.traces.items():
            writer.writerows([curve.label, setting, seed, *record] for record in trace)
    write_text(path, text.getvalue())


def write_summary(outcome: Outcome, claims: Sequence[Claim], path: Path) -> None:
    """summary.json: final numbers and spread, verdicts, settings, data, environment."""
    table = _finite(summary(outcome, claims))
    write_text(path, json.dumps(table, indent=2, allow_nan=False) + "\n")


def summary(outcome: Outcome, claims: Sequence[Claim]) -> dict[str, Plain]:
    """What summary.json holds. Files of earlier runs have the same keys: keep them."""
    spec, kind = outcome.spec, kind_of(outcome.spec)
    return {
        "experiment": spec.name,
        "title": spec.title,
        "kind": spec.kind,
        "quick": spec.quick,
        "reduced": spec.reduced,
        "budget": dict(spec.budget),
        "seeds": list(spec.seeds),
        "repeats": spec.repeats,
        "notes": list(spec.notes),
        "data": cast(dict[str, Plain], dict(outcome.data)),
        "algorithms": [
            {
                "problem": curve.case.name,
                "algorithm": curve.label,
                "setting": spec.setting(curve.case, curve.method),
                "note": curve.method.note,
                "code": curve.path,
                "status": {str(seed): status for seed, status in curve.statuses.items()},
                "final": kind.final(curve),
            }
            for curve in outcome.curves
        ],
        **kind.summary(outcome),
        **({"searches": list(outcome.searches)} if outcome.searches else {}),
        "claims": [vars(claim) for claim in claims],
        "environment": dict(outcome.environment),
    }


def _finite(thing: Plain) -> Plain:
    """JSON has no NaN and no infinity: null stands for them."""
    if isinstance(thing, dict):
        return {key: _finite(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [_finite(value) for value in thing]
    return None if isinstance(thing, float) and not math.isfinite(thing) else thing


def environment(workers: int) -> dict[str, Plain]:
    """Machine and versions."""
    packages = ("adafw", "numpy", "scipy", "numba", "matplotlib", "torch")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "processes": workers,
        "threads_per_process": 1,
    }


def version(package: str) -> str:
    """The installed version, or what the source says."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        import adafw

        return adafw.__version__ if package == "adafw" else "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()
