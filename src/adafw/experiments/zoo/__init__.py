"""The zoo: every method there is on the same problems, compared by families."""

from typing import TYPE_CHECKING

from adafw.experiments.convex.linear_kind import LinearKind
from adafw.experiments.convex.measures import lower_bounds
from adafw.experiments.outcome import Outcome
from adafw.experiments.verdicts import Claim
from adafw.experiments.zoo import figures, tables
from adafw.experiments.zoo.case import ZooCase
from adafw.experiments.zoo.claims import CLAIMS
from adafw.experiments.zoo.ranking import ranking
from adafw.typing import JsonTable, Plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["ZooKind"]


class ZooKind(LinearKind[ZooCase]):
    """Linear models, all methods of the families named."""

    name, key = "zoo", "zoo"
    needed, optional = ZooCase.needed, ZooCase.optional
    spread, rule, claims = "Median", tables.RULE, CLAIMS

    def case(self, table: JsonTable, source: str, folder: str) -> ZooCase:
        return ZooCase.read(table, source, folder)

    def judge(self, outcome: Outcome) -> list[Claim]:
        return CLAIMS.judge(outcome)

    def draw(self, outcome: Outcome) -> "Figure":
        return figures.draw(outcome)

    def tables(self, outcome: Outcome) -> list[str]:
        return tables.zoo_tables(outcome)

    def summary(self, outcome: Outcome) -> dict[str, Plain]:
        return {
            **lower_bounds(outcome),
            "bounds_on_inner_steps": {},
            "ranking": ranking(outcome),
        }
