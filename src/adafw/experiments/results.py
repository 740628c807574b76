"""The outcome of an experiment: curves, medians and bands over seeds, the files of record."""

import csv
import io
import json
import math
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.experiments.runner import Job
from adafw.experiments.spec import AlgorithmSpec, AnyProblem, Spec
from adafw.io.atomic import write_text

Column = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Line:
    """One algorithm on one problem: a trace and a status for every seed."""

    problem: AnyProblem
    spec: AlgorithmSpec
    setting: str
    traces: dict[int, Any]
    statuses: dict[int, str]
    path: str = ""
    step_seconds: dict[int, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name in legends and tables."""
        return self.spec.label

    @property
    def family(self) -> str:
        """frank-wolfe, adaptive, projected, or other."""
        return self.problem.family(self.spec)

    @property
    def estimator(self) -> str:
        """The gradient estimator's name."""
        return type(self.spec.build().gradient).__name__

    @property
    def minibatch(self) -> bool:
        """Whether gradients are plain minibatch means."""
        return self.problem.minibatch(self.spec)

    def final(self, column: str) -> Column:
        """The column's last entry, one for each seed; inf where the run diverged."""
        values = [
            math.inf if self.statuses[seed] == "diverged" and column in ("gap", "value") else
            float(trace[-1]._asdict()[column])
            for seed, trace in self.traces.items()
        ]  # fmt: skip
        return np.array(values)

    def seconds_to(self, gap: float) -> float:
        """Median CPU seconds until the gap is at most this; inf where most runs never got there."""
        return float(np.median(self.each_seconds_to(gap)))

    def each_seconds_to(self, gap: float) -> Column:
        """CPU seconds until the gap is at most this, one for each seed; inf if never.

        Between two records the logarithm of the gap is taken to fall evenly.
        """
        return np.array([_time_to(trace, gap) for trace in self.traces.values()])


@dataclass(frozen=True, eq=False)
class Outcome:
    """All lines of an experiment and what is needed to judge and to repeat it."""

    spec: Spec
    data: dict[str, dict[str, Any]]
    lines: tuple[Line, ...]
    audits: dict[str, dict[str, int]]
    environment: dict[str, Any]
    references: dict[str, Any] = field(default_factory=dict)

    def of(self, problem: AnyProblem) -> list[Line]:
        """The lines of one problem."""
        return [line for line in self.lines if line.problem is problem]

    def reference(self, problem: AnyProblem) -> float:
        """The best lower bound on the minimum that any run proved."""
        return float(np.nanmax([trace["lower_bound"].max() for trace in self._traces(problem)]))

    def doubt(self, problem: AnyProblem) -> float:
        """How far above that bound the minimum may lie: where the best run got, or rounding."""
        bound = self.reference(problem)
        least = float(np.nanmin([trace["value"].min() for trace in self._traces(problem)]))
        return max(least - bound, 1e-15 * abs(bound))

    def _traces(self, problem: AnyProblem) -> list[Any]:
        found = [trace for line in self.of(problem) for trace in line.traces.values()]
        extra = self.references.get(problem.name)
        found = found if extra is None else [*found, extra]
        return [trace for trace in found if len(trace)]


def _time_to(trace: Any, gap: float) -> float:
    below = np.flatnonzero(trace["gap"] <= gap)
    if not below.size:
        return math.inf
    i, seconds, gaps = int(below[0]), trace["cpu_seconds"], trace["gap"]
    if i == 0 or not 0 < gaps[i] < gaps[i - 1] < math.inf:
        return float(seconds[i])
    share = math.log(gaps[i - 1] / gap) / math.log(gaps[i - 1] / gaps[i])
    return float(seconds[i - 1] + share * (seconds[i] - seconds[i - 1]))


def collect(spec: Spec, data: dict[str, dict[str, Any]], jobs: list[Job], workers: int) -> Outcome:
    """Reads the files of all finished runs."""
    lines, audits, references, made = [], {}, {}, []
    for problem in spec.problems:
        mine = [job for job in jobs if job.problem is problem]
        for algorithm in problem.algorithms:
            traces, statuses, steps, path = {}, {}, {}, ""
            for seed in spec.seeds:
                runs = [
                    json.loads(job.file.read_text())
                    for job in mine
                    if job.algorithm is algorithm and job.seed == seed and job.kind == "run"
                ]
                traces[seed], statuses[seed] = _merged(runs, problem.trace), runs[0]["status"]
                path = runs[0].get("path", "")
                made += [run["made"] for run in runs if "made" in run]
                if "step_seconds" in runs[0]:
                    steps[seed] = float(np.median([run["step_seconds"] for run in runs]))
            setting = spec.setting(problem, algorithm)
            lines.append(Line(problem, algorithm, setting, traces, statuses, path, steps))
        for job in mine:
            if job.kind == "audit":
                audits[problem.name] = json.loads(job.file.read_text())["step"]
            elif job.kind == "reference":
                rows = json.loads(job.file.read_text())["records"]
                references[problem.name] = problem.trace([tuple(row) for row in rows])
    about = {**environment(workers), "runs": _provenance(made)}
    return Outcome(spec, data, tuple(lines), audits, about, references)


def _provenance(made: list[dict[str, str]]) -> dict[str, Any]:
    """When the runs ended, and the marks of the sources that made them."""
    dates = sorted(run["date"] for run in made)
    return {
        "first": dates[0] if dates else None,
        "last": dates[-1] if dates else None,
        "sources": sorted({run["source"] for run in made}),
    }


def _merged(runs: list[dict[str, Any]], kind: Any) -> Any:
    """Repeats of one seed do the same work; what differs is time, of which the median is taken."""
    rows = [list(row) for row in runs[0]["records"]]
    for name in ("cpu_seconds", "wall_seconds"):
        column = kind.columns.index(name)
        for i, row in enumerate(rows):
            times = [run["records"][i][column] for run in runs if _same(run["records"], i, row)]
            row[column] = float(np.median(times))
    return kind([tuple(row) for row in rows])


def _same(records: list[Any], i: int, row: list[Any]) -> bool:
    return i < len(records) and records[i][0] == row[0]


def band(
    line: Line, x: str, y: str, shift: float = 0.0
) -> tuple[Column, Column, Column, Column] | None:
    """(x, median, lower and upper quartile of y - shift over seeds) on a common grid of x.

    Curves are interpolated in logarithms, over the range of x that every seed has covered.
    """
    curves = []
    for trace in line.traces.values():
        at, values = trace[x].astype(float), trace[y] - shift
        keep = (at > 0) & (values > 0) & np.isfinite(values)
        # A grid value needs increasing x: of records at one x the last counts.
        at, values = at[keep], values[keep]
        last = np.append(np.diff(at) > 0, True) if at.size else np.zeros(0, bool)
        curves.append((np.log(at[last]), np.log(values[last])))
    if any(len(at) < 2 for at, _ in curves):
        return None
    low, high = max(at[0] for at, _ in curves), min(at[-1] for at, _ in curves)
    if low >= high:
        return None
    grid = np.unique(np.concatenate([at[(at >= low) & (at <= high)] for at, _ in curves]))
    if len(grid) > 150:
        grid = np.linspace(low, high, 150)
    table = np.exp([np.interp(grid, at, values) for at, values in curves])
    lower, middle, upper = np.quantile(table, [0.25, 0.5, 0.75], axis=0)
    return np.exp(grid), middle, lower, upper


def write_traces(outcome: Outcome, path: Path) -> None:
    """trace.csv: algorithm, setting, seed, then the columns of a trace."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["algorithm", "setting", "seed", *outcome.spec.problems[0].trace.columns])
    for line in outcome.lines:
        for seed, trace in line.traces.items():
            writer.writerows([line.label, line.setting, seed, *record] for record in trace)
    write_text(path, text.getvalue())


def quartiles(values: Column) -> dict[str, float]:
    """Median and quartiles over seeds."""
    # Between infinite values (diverged runs) there is nothing to interpolate.
    method: Any = "linear" if np.isfinite(values).all() else "nearest"
    lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75], method=method)
    return {"median": float(middle), "lower": float(lower), "upper": float(upper)}


def summary(outcome: Outcome, claims: list[Any], **more: Any) -> dict[str, Any]:
    """summary.json: final medians and spread, verdicts, settings, data, environment; and more."""
    spec = outcome.spec
    lower_bounds = (
        {} if spec.networks else
        {"lower_bound": {p.name: outcome.reference(p) for p in spec.problems},
         "minimum_above_it_by_at_most": {p.name: outcome.doubt(p) for p in spec.problems}}
    )  # fmt: skip
    final = last_epoch if spec.networks else last_iterate
    return {
        "experiment": spec.name,
        "title": spec.title,
        "quick": spec.quick,
        "reduced": spec.reduced,
        "budget": dict(spec.budget),
        "seeds": list(spec.seeds),
        "repeats": spec.repeats,
        "notes": list(spec.notes),
        "data": outcome.data,
        **lower_bounds,
        "algorithms": [
            {
                "problem": line.problem.name,
                "algorithm": line.label,
                "setting": line.setting,
                "note": line.spec.note,
                "code": line.path,
                "status": {str(seed): status for seed, status in line.statuses.items()},
                "final": final(line),
            }
            for line in outcome.lines
        ],
        "bounds_on_inner_steps": outcome.audits,
        **more,
        "claims": [vars(claim) for claim in claims],
        "environment": outcome.environment,
    }


def last_iterate(line: Line) -> dict[str, dict[str, float]]:
    """Median and quartiles over seeds at the end of the runs."""
    columns = ("gap", "value", "epoch", "iteration", "lmo_calls", "projections", "cpu_seconds",
               "nonzeros", "violation")  # fmt: skip
    return {name: quartiles(line.final(name)) for name in columns}


def last_epoch(line: Line) -> dict[str, dict[str, float]]:
    """Mean and standard deviation over seeds after the last epoch."""
    return {name: mean_and_deviation(line.final(name)) for name in line.problem.trace.columns}


def mean_and_deviation(values: Column) -> dict[str, float]:
    """Mean and standard deviation (n - 1 in the denominator) over seeds; 0 for a single one."""
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    return {"mean": float(values.mean()), "deviation": float(deviation)}


def mean_curve(line: Line, column: str) -> Column:
    """The mean of a column over seeds, record by record; for runs of equally many records."""
    return np.mean([trace[column] for trace in line.traces.values()], axis=0)


def environment(workers: int) -> dict[str, Any]:
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
