"""Experiments that train networks: the same files, runs and reports, measured epoch by epoch.

Reading a file and showing results need no torch: what does is imported where it is used.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from adafw import checks
from adafw.experiments.kind import Extra, Kind
from adafw.experiments.networks import figures, tables
from adafw.experiments.networks.case import NetworkCase, NetworkMethod, need_torch
from adafw.experiments.networks.claims import CLAIMS, judge
from adafw.experiments.networks.data import load
from adafw.experiments.networks.lmo_claims import mean_probes
from adafw.experiments.networks.trace import EpochTrace
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import About, Spec
from adafw.experiments.spread import mean_and_deviation
from adafw.experiments.verdicts import Claim, check_names
from adafw.experiments.work import WorkItem
from adafw.tuning import Measure, Trial, Tuning
from adafw.typing import Json, JsonTable, Plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["NetworksKind"]


class NetworksKind(Kind[NetworkCase, NetworkMethod]):
    """Networks whose every parameter has its set."""

    name, key, is_long = "networks", "network", True
    needed = ("name", "data", "network", "set", "algorithms")
    optional = ("batch_size", "width", "probes")
    trace, step, state_suffix = EpochTrace, "epoch", ".state.pt"
    spread, rule, claims = "Mean and standard deviation", tables.RULE, CLAIMS

    def case(self, table: JsonTable, source: str, folder: str) -> NetworkCase:
        return NetworkCase.read(table, source, folder)

    def budget(self, table: Json, source: str) -> JsonTable:
        if not isinstance(table, Mapping) or set(table) != {"max_epochs"}:
            raise ValueError(
                f"budget of networks must be max_epochs alone in {source}, got {table!r}."
            )
        return {"max_epochs": checks.integer(table["max_epochs"], "max_epochs", 1)}

    def search_budget(self, table: Json, source: str) -> JsonTable:
        """max_epochs, and with `trials` exactly so many runs for each method."""
        trials = {k: checks.integer(v, k, 3) for k, v in table.items() if k == "trials"}
        return self.budget({k: v for k, v in table.items() if k != "trials"}, source) | trials

    def check(self, spec: Spec, source: str) -> None:
        check_names(spec.claims, CLAIMS)
        if spec.goals:
            raise ValueError(f"goals are for problems with a series; {source} has none.")

    def store(self, case: NetworkCase, parts: Path) -> About:
        need_torch()
        from adafw.experiments.networks.run import check

        data = load(case.data, case.network)
        check(case)  # refuses options that no optimizer takes
        data.save(parts)
        return data.about

    def extras(self, spec: Spec, case: NetworkCase) -> list[Extra]:
        return []

    def run(self, item: WorkItem[NetworkCase, NetworkMethod]) -> JsonTable:
        from adafw.experiments.networks.run import run

        return run(item)

    def search(self, item: WorkItem[NetworkCase, NetworkMethod]) -> Tuning:
        from adafw.experiments.networks.tuning import tune_network

        budget = item.budget
        return tune_network(
            item.case, item.method, budget["max_epochs"], item.seed, trials=budget.get("trials")
        )

    def tune(
        self, case: NetworkCase, method: NetworkMethod, budget: Mapping[str, Json],
        measure: Measure, seed: int, report: Callable[[Trial], None] | None,
    ) -> Tuning:  # fmt: skip
        need_torch()
        from adafw.experiments.networks.tuning import tune_network

        whole = {k: int(v) if float(v).is_integer() else v for k, v in budget.items()}  # 20.0
        epochs = self.budget(whole, "the search")["max_epochs"]
        return tune_network(case, method, epochs, seed, report)

    def judge(self, outcome: Outcome) -> list[Claim]:
        return judge(outcome)

    def draw(self, outcome: Outcome) -> "Figure":
        return figures.draw(outcome)

    def tables(self, outcome: Outcome) -> list[str]:
        return [*tables.final_numbers(outcome), *tables.probed(outcome)]

    def final(self, curve: Curve) -> dict[str, dict[str, float]]:
        return {name: mean_and_deviation(curve.final(name)) for name in EpochTrace.columns}

    def summary(self, outcome: Outcome) -> dict[str, Plain]:
        found: list[Plain] = [
            {"problem": curve.case.name, "algorithm": curve.label, **mean_probes(curve)}
            for curve in outcome.curves
            if curve.probes
        ]
        return {"probes": found} if found else {}
