"""Experiments on series: one problem at growing dimension, adaptive Frank-Wolfe and projected."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adafw.experiments.convex import run
from adafw.experiments.convex import tables as convex_tables
from adafw.experiments.convex.budget import check_budget
from adafw.experiments.convex.case import LinearMethod
from adafw.experiments.convex.measures import last_iterate, lower_bounds
from adafw.experiments.kind import Extra, Kind
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.series import figures, tables
from adafw.experiments.series.advantage import GROWS_CLAIM, judge_series, sizes
from adafw.experiments.series.case import SeriesCase, check_series
from adafw.experiments.series.costs import measure_step
from adafw.experiments.spec import Spec
from adafw.experiments.verdicts import Claim, check_names
from adafw.experiments.work import WorkItem
from adafw.recorder import Trace
from adafw.tuning import Measure, Trial, Tuning

__all__ = ["SeriesKind"]


class SeriesKind(Kind[SeriesCase, LinearMethod]):
    """Linear models at growing dimension: the same runs, judged by times to goals."""

    name, key = "series", "series"
    needed, optional = (*SeriesCase.needed, "series"), SeriesCase.optional
    trace, step, state_suffix = Trace, "iteration", ".state.npz"
    spread, rule, claims = "Median and quartiles", tables.RULE, (GROWS_CLAIM,)

    def case(self, table: dict[str, Any], source: str, folder: str) -> SeriesCase:
        return SeriesCase.read(table, source, folder)

    def budget(self, table: Any, source: str) -> dict[str, Any]:
        return check_budget(table, source)

    def check(self, spec: Spec, source: str) -> None:
        check_names(spec.claims, self.claims)
        check_series(spec, source)

    def store(self, case: SeriesCase, parts: Path) -> dict[str, Any]:
        return case.store(parts)

    def extras(self, spec: Spec, case: SeriesCase) -> list[Extra]:
        """None: the bounds that the compared runs prove are good enough for relative gaps."""
        return []

    def run(self, item: WorkItem[SeriesCase, LinearMethod]) -> dict[str, Any]:
        return run.solve(item, measured=measure_step)

    def search(self, item: WorkItem[SeriesCase, LinearMethod]) -> Tuning:
        return run.search_rate(item)

    def tune(
        self, case: SeriesCase, method: LinearMethod, budget: Mapping[str, Any], measure: Measure,
        seed: int, report: Callable[[Trial], None] | None,
    ) -> Tuning:  # fmt: skip
        return run.tune_rate(case, method, budget, measure, seed, report)

    def judge(self, outcome: Outcome) -> list[Claim]:
        return judge_series(outcome) if outcome.spec.claims else []

    def draw(self, outcome: Outcome) -> Any:
        return figures.draw(outcome)

    def tables(self, outcome: Outcome) -> list[str]:
        return [*tables.series_tables(outcome), *convex_tables.final_numbers(outcome)]

    def final(self, curve: Curve) -> dict[str, dict[str, float]]:
        return last_iterate(curve)

    def summary(self, outcome: Outcome) -> dict[str, Any]:
        series = {name: [size.table() for size in row] for name, row in sizes(outcome).items()}
        return {**lower_bounds(outcome), "bounds_on_inner_steps": {}, "series": series}
