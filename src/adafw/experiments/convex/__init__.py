"""Experiments on linear models: `minimize` on convex problems, judged by gap and objective."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adafw.experiments.convex import figures, run, tables
from adafw.experiments.convex.budget import check_budget
from adafw.experiments.convex.case import LinearCase, LinearMethod
from adafw.experiments.convex.claims import AUDITED, CLAIMS
from adafw.experiments.convex.measures import AUDIT, REFERENCE, last_iterate, lower_bounds
from adafw.experiments.convex.reference import REFERENCE_METHOD, budget_of
from adafw.experiments.convex.run import LinearItem
from adafw.experiments.kind import Extra, Kind
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Spec
from adafw.experiments.verdicts import Claim, check_names
from adafw.recorder import Trace
from adafw.tuning import Measure, Trial, Tuning

__all__ = ["ConvexKind"]


class ConvexKind(Kind[LinearCase, LinearMethod]):
    """Linear models over a set."""

    name, key = "convex", ""
    needed, optional = LinearCase.needed, LinearCase.optional
    trace, step, state_suffix = Trace, "iteration", ".state.npz"
    spread, rule, claims = "Median and quartiles", tables.RULE, CLAIMS

    def case(self, table: dict[str, Any], source: str, folder: str) -> LinearCase:
        return LinearCase.read(table, source, folder)

    def budget(self, table: Any, source: str) -> dict[str, Any]:
        return check_budget(table, source)

    def check(self, spec: Spec, source: str) -> None:
        check_names(spec.claims, CLAIMS)
        if spec.goals:
            raise ValueError(f"goals are for problems with a series; {source} has none.")
        if spec.claims and "gap_tolerance" in spec.budget:
            raise ValueError(
                "claims compare gaps at the same budget, so they cannot go with a gap_tolerance, "
                "which ends runs at different times: leave out one of them."
            )

    def store(self, case: LinearCase, parts: Path) -> dict[str, Any]:
        return case.store(parts)

    def extras(self, spec: Spec, case: LinearCase) -> list[Extra]:
        """A run that counts active bounds, where that is claimed, and one for the lower bound."""
        ours = next((m for m in case.methods if m.family == "adaptive"), None)
        found = []
        if AUDITED in spec.claims and ours is not None:
            found.append(Extra(AUDIT, ours, spec.budget))
        found.append(Extra(REFERENCE, REFERENCE_METHOD, budget_of(spec.budget)))
        return found

    def run(self, item: LinearItem) -> dict[str, Any]:
        return run.solve(item)

    def search(self, item: LinearItem) -> Tuning:
        return run.search_rate(item)

    def tune(
        self, case: LinearCase, method: LinearMethod, budget: Mapping[str, Any], measure: Measure,
        seed: int, report: Callable[[Trial], None] | None,
    ) -> Tuning:  # fmt: skip
        return run.tune_rate(case, method, budget, measure, seed, report)

    def judge(self, outcome: Outcome) -> list[Claim]:
        return CLAIMS.judge(outcome)

    def draw(self, outcome: Outcome) -> Any:
        return figures.draw(outcome)

    def tables(self, outcome: Outcome) -> list[str]:
        return tables.final_numbers(outcome)

    def final(self, curve: Curve) -> dict[str, dict[str, float]]:
        return last_iterate(curve)

    def summary(self, outcome: Outcome) -> dict[str, Any]:
        audits = outcome.extras.get(AUDIT, {})
        counts = {name: audit["step"] for name, audit in audits.items()}
        return {**lower_bounds(outcome), "bounds_on_inner_steps": counts}
