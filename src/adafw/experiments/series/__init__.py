"""Experiments on series: one problem at growing dimension, adaptive Frank-Wolfe and projected."""

from typing import TYPE_CHECKING

from adafw.experiments.convex import run
from adafw.experiments.convex import tables as convex_tables
from adafw.experiments.convex.case import LinearMethod
from adafw.experiments.convex.linear_kind import LinearKind
from adafw.experiments.convex.measures import lower_bounds
from adafw.experiments.kind import Extra
from adafw.experiments.outcome import Outcome
from adafw.experiments.series import figures, tables
from adafw.experiments.series.advantage import GROWS_CLAIM, judge_series, sizes
from adafw.experiments.series.case import SeriesCase, check_series
from adafw.experiments.series.costs import measure_step
from adafw.experiments.spec import Spec
from adafw.experiments.verdicts import Claim, check_names
from adafw.experiments.work import WorkItem
from adafw.typing import JsonTable, Plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["SeriesKind"]


class SeriesKind(LinearKind[SeriesCase]):
    """Linear models at growing dimension: the same runs, judged by times to goals."""

    name, key = "series", "series"
    needed, optional = (*SeriesCase.needed, "series"), SeriesCase.optional
    spread, rule, claims = "Median and quartiles", tables.RULE, (GROWS_CLAIM,)

    def case(self, table: JsonTable, source: str, folder: str) -> SeriesCase:
        return SeriesCase.read(table, source, folder)

    def check(self, spec: Spec, source: str) -> None:
        check_names(spec.claims, self.claims)
        check_series(spec, source)

    def extras(self, spec: Spec, case: SeriesCase) -> list[Extra]:
        """None: the bounds that the compared runs prove are good enough for relative gaps."""
        return []

    def run(self, item: WorkItem[SeriesCase, LinearMethod]) -> JsonTable:
        return run.solve(item, measured=measure_step)

    def judge(self, outcome: Outcome) -> list[Claim]:
        return judge_series(outcome) if outcome.spec.claims else []

    def draw(self, outcome: Outcome) -> "Figure":
        return figures.draw(outcome)

    def tables(self, outcome: Outcome) -> list[str]:
        return [*tables.series_tables(outcome), *convex_tables.final_numbers(outcome)]

    def summary(self, outcome: Outcome) -> dict[str, Plain]:
        series = {name: [size.table() for size in row] for name, row in sizes(outcome).items()}
        return {**lower_bounds(outcome), "bounds_on_inner_steps": {}, "series": series}
