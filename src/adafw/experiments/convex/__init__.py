"""Experiments on linear models: `minimize` on convex problems, judged by gap and objective."""

from typing import TYPE_CHECKING

from adafw.experiments.convex import figures, tables
from adafw.experiments.convex.case import LinearCase
from adafw.experiments.convex.claims import AUDITED, CLAIMS
from adafw.experiments.convex.linear_kind import LinearKind
from adafw.experiments.convex.measures import AUDIT, lower_bounds
from adafw.experiments.kind import Extra
from adafw.experiments.outcome import Outcome
from adafw.experiments.spec import Spec
from adafw.experiments.verdicts import Claim
from adafw.typing import JsonTable, Plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["ConvexKind"]


class ConvexKind(LinearKind[LinearCase]):
    """Linear models over a set."""

    name, key = "convex", ""
    needed, optional = LinearCase.needed, LinearCase.optional
    spread, rule, claims = "Median and quartiles", tables.RULE, CLAIMS

    def case(self, table: JsonTable, source: str, folder: str) -> LinearCase:
        return LinearCase.read(table, source, folder)

    def check(self, spec: Spec, source: str) -> None:
        super().check(spec, source)
        if spec.claims and "gap_tolerance" in spec.budget:
            raise ValueError(
                "claims compare gaps at the same budget, so they cannot go with a gap_tolerance, "
                "which ends runs at different times: leave out one of them."
            )

    def extras(self, spec: Spec, case: LinearCase) -> list[Extra]:
        """A run that counts active bounds, where that is claimed, and one for the lower bound."""
        ours = next((m for m in case.methods if m.family == "adaptive"), None)
        audited = AUDITED in spec.claims and ours is not None
        audits = [Extra(AUDIT, ours, spec.budget)] if audited and ours else []
        return audits + super().extras(spec, case)

    def judge(self, outcome: Outcome) -> list[Claim]:
        return CLAIMS.judge(outcome)

    def draw(self, outcome: Outcome) -> "Figure":
        return figures.draw(outcome)

    def tables(self, outcome: Outcome) -> list[str]:
        return tables.final_numbers(outcome)

    def summary(self, outcome: Outcome) -> dict[str, Plain]:
        audits = outcome.extras.get(AUDIT, {})
        counts = {name: audit["step"] for name, audit in audits.items()}
        return {**lower_bounds(outcome), "bounds_on_inner_steps": counts}
