"""An experiment as a small TOML file: data, loss, set, algorithms with settings, budget, seeds."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

import adafw
from adafw import checks
from adafw.constraints import group_ball
from adafw.experiments.keys import check_types, only
from adafw.experiments.series import check_series
from adafw.rows import MatrixRows, as_rows
from adafw.tuning import TUNING_SEED

#: A learning rate that is left to the paper's search, run before the experiment itself.
SEARCHED = "search"

#: Limits of `minimize` that a budget may set.
_LIMITS = ("max_iterations", "max_epochs", "max_seconds", "max_cpu_seconds", "max_lmo_calls")


@dataclass(frozen=True)
class AlgorithmSpec:
    """One line of a figure: a label, and the table that the algorithm is built from."""

    label: str
    table: Mapping[str, Any]
    note: str = ""

    def build(self) -> adafw.Algorithm:
        """The algorithm, a preset by name or a pair of a gradient estimator and a step."""
        table = dict(self.table)
        if "step" in table:
            only(table, ("gradient", "step"), f"algorithm {self.label!r}")
            gradient = build("gradient", table["gradient"])
            return adafw.Algorithm(gradient, build("step", table["step"]), self.label)
        return replace(build("algorithm", table), name=self.label)

    @property
    def options(self) -> dict[str, Any]:
        """All settings by name, those of a step among them."""
        step = self.table.get("step")
        return {**self.table, **(step if isinstance(step, dict) else {})}

    @property
    def setting(self) -> str:
        """The settings in words: what trace.csv and the figures show."""
        table = {k: v for k, v in self.table.items() if k != "name"}
        return ", ".join(f"{key}={_words(value)}" for key, value in table.items()) or "defaults"


@dataclass(frozen=True)
class Problem:
    """Data, loss and set, and the algorithms that are compared on them.

    `shape`: that of x, where x is a matrix, whose entries the data hold row by row. `series`: what
    this problem is one size of, where an experiment asks how things change with the dimension.
    """

    name: str
    data: Mapping[str, Any]
    loss: Any
    set: Any
    algorithms: tuple[AlgorithmSpec, ...]
    folder: str = "."
    shape: tuple[int, int] | None = None
    series: str = ""

    trace: ClassVar[Any] = adafw.Trace

    def dataset(self) -> adafw.datasets.Dataset:
        """Loads or makes the data."""
        from adafw.experiments.data import load

        return load(self.data, Path(self.folder))

    def store(self, parts: Path) -> dict[str, Any]:
        """Writes the data as mapped parts for the workers; returns what they are."""
        data = self.dataset()
        self.objective(data.A, data.y)  # refuses what the loss cannot take, before any run
        adafw.datasets.save_parts(parts, data.A, data.y)
        return {
            "name": data.name, "description": data.description, "is_stand_in": data.is_stand_in,
            "label": data.label, "shape": list(data.A.shape),
        }  # fmt: skip

    def constraint(self) -> adafw.Constraint:
        """The set."""
        return build("set", self.set)

    def objective(self, A: Any, y: Any) -> adafw.LinearModel:
        """The mean loss of a linear model on these data."""
        rows = A if self.shape is None else MatrixRows(as_rows(A), self.shape)
        return adafw.LinearModel(rows, y, build("loss", self.loss))

    @property
    def identity(self) -> list[Any]:
        """Whatever changes the outcome of a run, beside data and algorithm."""
        return [self.loss, self.set, *([] if self.shape is None else [self.shape])]

    @property
    def words(self) -> str:
        """Loss and set in words."""
        loss = self.loss if isinstance(self.loss, str) else self.loss.get("name")
        return f"{loss} loss; {self.constraint()!r}"

    def family(self, line: AlgorithmSpec) -> str:
        """frank-wolfe, adaptive, projected, or other: the alternatives of section 3.1, say."""
        step = line.build().step
        if isinstance(step, adafw.steps.AdaptiveStep) and step.inner_gap is not None:
            return "other"
        for kind, name in (
            (adafw.steps.FrankWolfeStep, "frank-wolfe"), (adafw.steps.AdaptiveStep, "adaptive"),
            (adafw.steps.ProjectedStep, "projected"),
        ):  # fmt: skip
            if isinstance(step, kind):
                return name
        return "other"

    def minibatch(self, line: AlgorithmSpec) -> bool:
        """Whether gradients are plain minibatch means."""
        return isinstance(line.build().gradient, adafw.gradients.Minibatch)

    def parts(self, line: AlgorithmSpec) -> str:
        """What the algorithm is, spelled out for the report."""
        algorithm = line.build()
        return f"{algorithm.gradient}, {algorithm.step}"


if TYPE_CHECKING:
    from adafw.experiments.networks.problem import NetworkProblem

AnyProblem: TypeAlias = "Problem | NetworkProblem"


@dataclass(frozen=True)
class Spec:
    """An experiment: problems, the budget of every run, seeds and repeats, what is claimed."""

    name: str
    title: str
    problems: tuple[AnyProblem, ...]
    budget: Mapping[str, Any]
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5)
    repeats: int = 1
    notes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    goals: tuple[float, ...] = ()
    search: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    reduced: bool = False

    @property
    def networks(self) -> bool:
        """Whether the problems are networks to train; all are or none is."""
        return not isinstance(self.problems[0], Problem)

    @property
    def scaling(self) -> bool:
        """Whether the problems are series of growing dimension; all are or none is."""
        return isinstance(self.problems[0], Problem) and bool(self.problems[0].series)

    def setting(self, problem: AnyProblem, algorithm: AlgorithmSpec) -> str:
        """The settings of a line, with the problem in front where there are several."""
        several = len(self.problems) > 1
        return f"{problem.name}: {algorithm.setting}" if several else algorithm.setting


def form(spec: Spec) -> str:
    """Which form of the experiment it is, in a word."""
    return "quick" if spec.quick else "reduced" if spec.reduced else "full"


def names() -> list[str]:
    """The experiments that come with the package."""
    folder = resources.files("adafw.experiments") / "specs"
    return sorted(p.name.removesuffix(".toml") for p in folder.iterdir() if p.name[-5:] == ".toml")


def load_spec(source: str | os.PathLike[str], quick: bool = False, full: bool = False) -> Spec:
    """The experiment of this name, or of this TOML file; `quick` applies its [quick] table.

    A file with a [full] table is a reduced form of a dearer experiment; `full` applies that table.
    """
    if quick and full:
        raise ValueError("an experiment runs in its quick form or in its full one, got both.")
    text, folder = _text(source)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{source} must be a TOML file: {error}.") from None
    forms = {name: document.pop(name, {}) for name in ("quick", "full")}
    reduced = bool(forms["full"]) and not full
    if quick or full:
        document = _merged(document, forms["quick" if quick else "full"])
    return replace(_spec(document, str(source), folder), quick=quick, reduced=reduced)


def _text(source: str | os.PathLike[str]) -> tuple[str, str]:
    if str(source) in names():
        path = resources.files("adafw.experiments") / "specs" / f"{source}.toml"
        return path.read_text(encoding="utf-8"), "."
    file = Path(source)
    if not file.is_file():
        raise ValueError(
            f"experiment must be one of {', '.join(names())} or a TOML file, got {str(source)!r}."
        )
    return file.read_text(encoding="utf-8"), str(file.parent)


def _merged(document: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """The document with the quick table laid over it; data.<problem> where there are several."""
    merged = dict(document)
    for key, value in overrides.items():
        if key == "data" and "problems" in document:
            merged["problems"] = [
                {**problem, "data": {**problem["data"], **value.get(problem["name"], {})}}
                for problem in document["problems"]
            ]
        elif key == "data":
            merged[key] = {**document.get(key, {}), **value}
        else:
            merged[key] = value
    return merged


def _spec(document: dict[str, Any], source: str, folder: str) -> Spec:
    single = ("data", "loss", "shape", "network", "batch_size", "set", "algorithms")
    known = ("name", "title", "budget", "seeds", "repeats", "notes", "claims", "goals", "search")
    only(document, (*known, "problems", *single), source)
    check_types(document, source)
    name = document.get("name", Path(source).stem)
    tables = document.get("problems")
    if tables is None:
        tables = [{"name": name, **{k: document[k] for k in single if k in document}}]
    problems = tuple(_problem(table, source, folder) for table in tables)
    _check_name("name", name, source)
    for problem in problems:
        _check_name("the name of a problem", problem.name, source)
    if len({problem.name for problem in problems}) < len(problems):
        raise ValueError(f"names of problems must differ in {source}.")
    networks = {not isinstance(problem, Problem) for problem in problems}
    if len(networks) != 1:
        raise ValueError(f"problems must all have a network or none in {source}.")
    goals = check_series(problems, document.get("goals", ()), source)
    return Spec(
        name=name,
        title=document.get("title", name),
        problems=problems,
        budget=_budget(document.get("budget"), source, networks=networks.pop()),
        seeds=check_seeds(document.get("seeds", (1, 2, 3, 4, 5))),
        repeats=checks.integer(document.get("repeats", 1), "repeats", 1),
        notes=tuple(document.get("notes", ())),
        claims=tuple(document.get("claims", ())),
        goals=goals,
        search=_search_budget(document.get("search", {}), problems, source),
    )


def check_seeds(seeds: Any) -> tuple[int, ...]:
    """Seeds to judge by: different ones, and not the one that learning rates are tuned on."""
    found = tuple(checks.integer(seed, "seeds", 0) for seed in seeds)
    if not found or len(set(found)) < len(found) or TUNING_SEED in found:
        raise ValueError(
            f"seeds must be different, at least one, and not {TUNING_SEED}, by which learning "
            f"rates are tuned, got {list(found)}."
        )
    return found


def _check_name(what: str, name: Any, source: str) -> None:
    """Names become names of files."""
    if not re.fullmatch(r"[\w.-]*\w[\w.-]*", str(name)):
        raise ValueError(
            f"{what} must be letters, digits, '.', '_' and '-' in {source}, got {name!r}."
        )


def _budget(table: Any, source: str, networks: bool) -> dict[str, Any]:
    if networks:
        if not isinstance(table, dict) or set(table) != {"max_epochs"}:
            raise ValueError(
                f"budget of networks must be max_epochs alone in {source}, got {table!r}."
            )
        return {"max_epochs": checks.integer(table["max_epochs"], "max_epochs", 1)}
    if not isinstance(table, dict) or not any(key in _LIMITS for key in table):
        raise ValueError(f"budget must set one of {', '.join(_LIMITS)} in {source}, got {table!r}.")
    only(table, (*_LIMITS, "gap_tolerance", "record_every"), f"budget of {source}")
    return table


def _search_budget(table: Any, problems: Any, source: str) -> dict[str, Any]:
    wanted = any(
        line.options.get("learning_rate") == SEARCHED
        for problem in problems
        for line in problem.algorithms
    )
    if wanted != bool(table):
        raise ValueError(
            f'learning_rate = "{SEARCHED}" and a budget for each run of the search, such as search '
            f"= {{ max_epochs = 20 }}, must come together in {source}."
        )
    return _budget(table, source, networks=False) if wanted else {}


def _problem(table: dict[str, Any], source: str, folder: str) -> AnyProblem:
    check_types(table, source)
    trained = "network" in table
    keys = ("name", "data", "network" if trained else "loss", "set", "algorithms")
    only(table, (*keys, *(("batch_size",) if trained else ("shape", "series"))), source)
    for key in keys:
        if not table.get(key):
            raise ValueError(f"{key} must be given in {source}.")
    lines = _lines(table, source)
    if trained:
        from adafw.experiments.networks.problem import NetworkProblem

        return NetworkProblem(**{**table, "algorithms": lines}, folder=folder)
    shape = None if "shape" not in table else _shape(table["shape"], source)
    problem = Problem(
        table["name"], table["data"], table["loss"], table["set"], lines, folder, shape,
        str(table.get("series", "")),
    )  # fmt: skip
    problem.constraint()  # everything that can be built is, before any work starts
    build("loss", problem.loss)
    for line in lines:
        line.build()
    return problem


def _shape(value: Any, source: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"shape must be two integers such as [30, 20] in {source}, got {value!r}.")
    height, width = (checks.integer(n, "each number of shape", 1) for n in value)
    return height, width


def _lines(table: dict[str, Any], source: str) -> tuple[AlgorithmSpec, ...]:
    lines = []
    for entry in table["algorithms"]:
        check_types({key: entry[key] for key in ("label", "note") if key in entry}, source)
        settings = {k: v for k, v in entry.items() if k not in ("label", "note")}
        label = entry.get("label", entry.get("name"))
        paired = "step" in settings and "gradient" in settings
        if label is None or ("name" in settings) == paired:
            raise ValueError(
                f"an algorithm needs a name, or a label, a gradient and a step, in {source}, "
                f"got {entry!r}."
            )
        lines.append(AlgorithmSpec(label, settings, entry.get("note", "")))
    labels = [line.label for line in lines]
    if len(set(labels)) < len(labels):
        raise ValueError(f"labels of algorithms must differ in {source}, got {labels}.")
    return tuple(lines)


# What a name may stand for, by the key it is given under: where it is looked up, what it must be.
_PLACES: dict[str, tuple[Any, Any]] = {
    "algorithm": (adafw, adafw.Algorithm),
    "loss": (adafw.losses, adafw.losses.Loss),
    "set": (adafw, adafw.Constraint),
    "groups": (group_ball, np.ndarray),
    "gradient": (adafw.gradients, adafw.gradients.GradientEstimator),
    "metric": (adafw.metrics, adafw.metrics.Metric),
    "step": (adafw.steps, adafw.steps.Step),
    "step_size": (adafw.schedules, Callable),
    "max_step": (adafw.schedules, Callable),
    "inner_gap": (adafw.schedules, Callable),
    "batch_size": (adafw.schedules, Callable),
    "learning_rate": (adafw.schedules, Callable),
}


def build(key: str, value: Any) -> Any:
    """The object a TOML value stands for: a name, a table with a name and options, or a number.

    A learning rate may be written as the paper does, "10^-3/2". One that is still to be searched
    for counts as 1.
    """
    if (key, value) == ("learning_rate", SEARCHED):
        return 1.0
    if key not in _PLACES or not isinstance(value, str | dict):
        return value
    if isinstance(value, str) and value.startswith("10^"):
        try:
            return 10.0 ** float(Fraction(value[3:]))
        except (ValueError, ZeroDivisionError):
            raise ValueError(f'{key} must be a number or "10^<fraction>", got {value!r}.') from None
    table = {"name": value} if isinstance(value, str) else dict(value)
    name = table.pop("name", None)
    place, kind = _PLACES[key]
    options = {k: build(k, v) for k, v in table.items()}
    if isinstance(name, str) and name.isidentifier() and hasattr(place, name):
        try:
            made = getattr(place, name)(**options)
        except TypeError as error:
            raise ValueError(f"{key} {name} cannot be made: {error}") from None
        if isinstance(made, kind):
            return made
    raise ValueError(f"{key} must be a name in {place.__name__}, got {name!r}.")


def _words(value: Any) -> str:
    if isinstance(value, dict):
        inside = ", ".join(f"{k}={_words(v)}" for k, v in value.items() if k != "name")
        return f"{value.get('name', '')}({inside})" if inside else str(value.get("name"))
    return str(value)


def digest(thing: Any) -> str:
    """A short mark that tells one plain table from another."""
    text = json.dumps(thing, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
