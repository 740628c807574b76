"""A linear model for all methods there are, by families."""

from dataclasses import dataclass
from typing import ClassVar, Self

from adafw import steps
from adafw.experiments.convex.case import LinearCase, LinearMethod
from adafw.experiments.spec import Method, read_methods
from adafw.typing import JsonTable

#: The families, in the order of figures and tables.
EXACT, STOCHASTIC, ADAPTIVE, PROJECTED = "exact", "stochastic", "adaptive", "projected"
FAMILIES = (EXACT, STOCHASTIC, ADAPTIVE, PROJECTED)

_CSFW = {"gradient": "CSFW"}
#: What runs if a file names the family; no learning rate is given, so all of them are "auto".
ROSTER: dict[str, tuple[JsonTable, ...]] = {
    EXACT: (
        {"name": "FW"},
        {"name": "AFW"}, {"name": "PFW"}, {"name": "BPCG"}, {"name": "BoostFW"}, {"name": "CGS"},
        {"name": "Corrective"},
    ),
    STOCHASTIC: tuple({"name": name} for name in (
        "SFW", "SVRF", "SPIDERFW", "ORGFW", "CSFW", "SAGAFW", "MSFW", "LSVRFW", "PAGEFW",
        "LuFreundFW", "BoostCSFW", "SCGS", "STORC",
    )),
    ADAPTIVE: (
        *({"name": name} for name in (
            "AdaFW", "AdaSFW", "AdaSVRF", "AdaSPIDERFW", "AdaORGFW", "AdaCSFW", "AdamSFW",
        )),
        {"name": "AdaCSFW", "label": "AdaCSFW, corrective", "inner": "corrective"},
        *({"label": f"Ada{label}-FW", "gradient": name,
           "step": {"name": "AdaptiveStep", "learning_rate": "auto"}}
          for label, name in (("SAGA", "SAGA"), ("LSVR", "LSVRG"), ("PAGE", "PAGE"))),
    ),
    PROJECTED: (
        {"name": "AdaGrad"}, {"name": "AMSGrad"},
        {"name": "AdaGrad", "label": "AdaGrad + CSFW", **_CSFW},
        {"name": "AMSGrad", "label": "AMSGrad + CSFW", **_CSFW},
    ),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ZooCase(LinearCase):
    """A linear model and the families, `zoo`, all of whose methods run on it."""

    zoo: tuple[str, ...]

    needed: ClassVar[tuple[str, ...]] = ("name", "data", "loss", "set", "zoo")
    optional: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, table: JsonTable, source: str, folder: str) -> Self:
        """From a problem's table."""
        families = table["zoo"]
        if not isinstance(families, list) or not set(families) <= set(FAMILIES):
            raise ValueError(
                f"zoo must be a list of {', '.join(FAMILIES)} in {source}, got {families!r}."
            )
        entries = [entry for family in FAMILIES if family in families for entry in ROSTER[family]]
        methods = read_methods(entries, LinearMethod, source)
        return cls(**{**table, "zoo": tuple(families)}, methods=methods, folder=folder)


def family_of(method: Method) -> str:
    """The family of a method, by its parts."""
    assert isinstance(method, LinearMethod)
    step, gradient = method.algorithm.step, method.algorithm.gradient
    if isinstance(step, steps.ProjectedStep):
        return PROJECTED
    if isinstance(step, steps.AdaptiveStep):
        return ADAPTIVE
    return EXACT if gradient.exact else STOCHASTIC
