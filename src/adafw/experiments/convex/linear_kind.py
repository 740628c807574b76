"""What kinds of experiment that run `minimize` on linear models share."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from adafw.experiments.convex import run
from adafw.experiments.convex.budget import check_budget
from adafw.experiments.convex.case import LinearCase, LinearMethod
from adafw.experiments.convex.measures import REFERENCE, last_iterate
from adafw.experiments.convex.reference import REFERENCE_METHOD, budget_of
from adafw.experiments.kind import Extra, Kind
from adafw.experiments.outcome import Curve
from adafw.experiments.spec import About, Spec
from adafw.experiments.verdicts import check_names
from adafw.experiments.work import WorkItem
from adafw.recorder import Trace
from adafw.tuning import Measure, Trial, Tuning
from adafw.typing import Json, JsonTable

C = TypeVar("C", bound=LinearCase)


class LinearKind(Kind[C, LinearMethod]):
    """Linear models over a set: a run is that of `minimize`, its end the last iterate."""

    trace, step, state_suffix = Trace, "iteration", ".state.npz"

    def budget(self, table: Json, source: str) -> JsonTable:
        return check_budget(table, source)

    def check(self, spec: Spec, source: str) -> None:
        check_names(spec.claims, self.claims)
        if spec.goals:
            raise ValueError(f"goals are for problems with a series; {source} has none.")

    def store(self, case: C, parts: Path) -> About:
        return case.store(parts)

    def extras(self, spec: Spec, case: C) -> list[Extra]:
        """A run for the lower bound."""
        return [Extra(REFERENCE, REFERENCE_METHOD, budget_of(spec.budget))]

    def run(self, item: WorkItem[C, LinearMethod]) -> JsonTable:
        return run.solve(item)

    def search(self, item: WorkItem[C, LinearMethod]) -> Tuning:
        return run.search_rate(item)

    def tune(
        self, case: C, method: LinearMethod, budget: Mapping[str, Json], measure: Measure,
        seed: int, report: Callable[[Trial], None] | None,
    ) -> Tuning:  # fmt: skip
        return run.tune_rate(case, method, budget, measure, seed, report)

    def final(self, curve: Curve) -> dict[str, dict[str, float]]:
        return last_iterate(curve)
