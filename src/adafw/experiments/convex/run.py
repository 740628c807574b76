"""One run of `minimize` in a worker, and the searches for a learning rate."""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import adafw
from adafw.constraints.base import Stalled
from adafw.datasets import load_parts
from adafw.experiments.convex.audit import AuditedStep
from adafw.experiments.convex.case import LinearCase, LinearMethod
from adafw.experiments.convex.measures import AUDIT, REFERENCE
from adafw.experiments.convex.reference import best_algorithm
from adafw.experiments.work import Stopped, WorkItem, asked_to_stop, set_aside
from adafw.integrity import Damaged
from adafw.recorder import Record, every
from adafw.result import Result
from adafw.solver import State
from adafw.steps import AdaptiveStep
from adafw.tuning import TUNING_SEED, Measure, Trial, Tuning, search
from adafw.typing import Json, JsonTable

STALLED = "stalled projection"  # the status of a run that a projection ended
_SAVE_EVERY = 5.0  # seconds of work that a kill may cost

LinearItem: TypeAlias = WorkItem[LinearCase, LinearMethod]
#: What else a kind measures at the end: (f, set, algorithm, result) -> entries of the outcome.
Measured = Callable[[adafw.LinearModel, adafw.Constraint, adafw.Algorithm, Result], JsonTable]


def solve(item: LinearItem, measured: Measured | None = None) -> JsonTable:
    """Runs an item from its last saved state, if there is one."""
    f, constraint = objective(item), item.case.constraint
    algorithm = _algorithm(item, f)
    warm_up(item, f, algorithm)
    budget = dict(item.budget)
    if isinstance(budget.get("record_every"), dict):
        budget["record_every"] = every(**budget["record_every"])
    start: JsonTable = {"seed": item.seed}
    saver = _Saver(item.state_file)
    state = _saved(item.state_file)
    if state is not None:
        start, saver.records = {"state": state}, list(state.records)
    try:
        result = adafw.minimize(
            f, constraint, algorithm, **start, **budget, callbacks=[saver], progress=False
        )
    except Damaged:  # the file is whole, its content is not what a run leaves: once more
        set_aside(item.state_file)
        return solve(item, measured)
    except Stalled:
        return {"status": STALLED, "records": saver.records, "step": {}}
    if result.status in ("callback", "interrupted"):
        result.state.save(item.state_file)
        raise Stopped
    outcome = {
        "status": result.status,
        "records": [list(record) for record in result.trace],
        "step": {k: v for k, v in result.state.step.items() if isinstance(v, int)},
        "path": "generic" if result.path == "generic" else "compiled",
    }
    return {
        **outcome,
        **(measured(f, constraint, algorithm, result) if measured is not None else {}),
    }


def _saved(path: Path) -> State | None:
    """The state of an unfinished run; None if there is none, or only a damaged one."""
    if not path.is_file():
        return None
    try:
        return State.load(path)
    except ValueError:
        set_aside(path)
        return None


def _algorithm(item: LinearItem, f: adafw.LinearModel) -> adafw.Algorithm:
    """The method's own; of runs that are not compared, a watched one or the best exact one."""
    algorithm = item.method.algorithm
    if item.role == REFERENCE:
        return best_algorithm(f, item.case.constraint)
    if item.role == AUDIT and isinstance(algorithm.step, AdaptiveStep):
        return replace(algorithm, step=AuditedStep(algorithm.step))
    return algorithm


def search_rate(item: LinearItem) -> Tuning:
    """The paper's search, judged by the gap; rates at which a projection stalls count as worst."""
    f = objective(item)
    warm_up(item, f, item.method.algorithm)

    def run(i: int, eta: float) -> Trial:
        try:
            result = adafw.minimize(
                f, item.case.constraint, item.method.with_rate(eta).algorithm, seed=item.seed,
                callbacks=lambda state, record: asked_to_stop(), progress=False, **item.budget,
            )  # fmt: skip
        except Stalled:
            return Trial(i, eta, math.nan, math.nan, STALLED)
        if asked_to_stop():
            raise Stopped
        return Trial(i, eta, result.value, result.gap, result.status)

    return search(run, "gap")


def tune_rate(
    case: LinearCase, method: LinearMethod, budget: Mapping[str, Json], measure: Measure = "gap",
    seed: int = TUNING_SEED, report: Callable[[Trial], None] | None = None,
) -> Tuning:  # fmt: skip
    """`adafw.tune` for a method of a case."""
    data = case.dataset()
    return adafw.tune(
        case.objective(data.A, data.y), case.constraint,
        lambda eta: method.with_rate(eta).algorithm,
        measure=measure, seed=seed, report=report, **budget,
    )  # fmt: skip


#: The objective of the last item, which the next one mostly shares, and what it was made from.
_held: tuple[object, adafw.LinearModel] | None = None


def objective(item: LinearItem) -> adafw.LinearModel:
    """The objective on mapped data."""
    global _held
    key = (item.parts, str(item.case.loss), item.case.shape)
    if _held is None or _held[0] != key:
        _held = (key, item.case.objective(*load_parts(item.parts)))
    return _held[1]


_warm: set[str] = set()


def warm_up(item: LinearItem, f: adafw.LinearModel, algorithm: adafw.Algorithm) -> None:
    """A few iterations off the record: code is compiled and data paged in before the clock runs."""
    key = f"{item.parts} {item.case.name} {item.method.label}"
    if key not in _warm:
        with contextlib.suppress(Stalled):  # the run itself will tell
            adafw.minimize(
                f, item.case.constraint, algorithm, max_iterations=2, record_every=2, progress=False
            )
        _warm.add(key)


class _Saver:
    """A callback that saves the state every few seconds, and stops the run when asked to."""

    def __init__(self, file: Path) -> None:
        self.file, self.saved = file, time.monotonic()
        self.records: list[tuple[float, ...]] = []

    def __call__(self, state: State, record: Record) -> bool:
        self.records = list(state.records)
        if time.monotonic() - self.saved > _SAVE_EVERY:
            state.save(self.file)
            self.saved = time.monotonic()
        return asked_to_stop()
