"""The zoo: every method there is on the same problems, compared by families."""

from collections.abc import Callable, Mapping
from typing import Any

from adafw.experiments.convex import run
from adafw.experiments.convex.budget import check_budget
from adafw.experiments.convex.case import LinearMethod
from adafw.experiments.convex.measures import REFERENCE, last_iterate, lower_bounds
from adafw.experiments.convex.reference import REFERENCE_METHOD, budget_of
from adafw.experiments.kind import Extra, Kind
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Spec
from adafw.experiments.verdicts import Claim, check_names
from adafw.experiments.work import WorkItem
from adafw.experiments.zoo import figures, tables
from adafw.experiments.zoo.case import ZooCase
from adafw.experiments.zoo.claims import CLAIMS
from adafw.experiments.zoo.ranking import ranking
from adafw.recorder import Trace
from adafw.tuning import Measure, Trial, Tuning

__all__ = ["ZooKind"]


class ZooKind(Kind[ZooCase, LinearMethod]):
    """Linear models, all methods of the families named."""

    name, key = "zoo", "zoo"
    needed, optional = ZooCase.needed, ZooCase.optional
    trace, step, state_suffix = Trace, "iteration", ".state.npz"
    spread, rule, claims = "Median", tables.RULE, CLAIMS

    def case(self, table: dict[str, Any], source: str, folder: str) -> ZooCase:
        return ZooCase.read(table, source, folder)

    def budget(self, table: Any, source: str) -> dict[str, Any]:
        return check_budget(table, source)

    def check(self, spec: Spec, source: str) -> None:
        check_names(spec.claims, CLAIMS)
        if spec.goals:
            raise ValueError(f"goals are for problems with a series; {source} has none.")

    def store(self, case: ZooCase, parts: Any) -> dict[str, Any]:
        return case.store(parts)

    def extras(self, spec: Spec, case: ZooCase) -> list[Extra]:
        """A run for the lower bound."""
        return [Extra(REFERENCE, REFERENCE_METHOD, budget_of(spec.budget))]

    def run(self, item: WorkItem[ZooCase, LinearMethod]) -> dict[str, Any]:
        return run.solve(item)

    def search(self, item: WorkItem[ZooCase, LinearMethod]) -> Tuning:
        return run.search_rate(item)

    def tune(
        self, case: ZooCase, method: LinearMethod, budget: Mapping[str, Any], measure: Measure,
        seed: int, report: Callable[[Trial], None] | None,
    ) -> Tuning:  # fmt: skip
        return run.tune_rate(case, method, budget, measure, seed, report)

    def judge(self, outcome: Outcome) -> list[Claim]:
        return CLAIMS.judge(outcome)

    def draw(self, outcome: Outcome) -> Any:
        return figures.draw(outcome)

    def tables(self, outcome: Outcome) -> list[str]:
        return tables.zoo_tables(outcome)

    def final(self, curve: Curve) -> dict[str, dict[str, float]]:
        return last_iterate(curve)

    def summary(self, outcome: Outcome) -> dict[str, Any]:
        return {
            **lower_bounds(outcome),
            "bounds_on_inner_steps": {},
            "ranking": ranking(outcome),
        }
