"""A linear model to fit over a set, and the algorithms of `adafw` that do so."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Self

import adafw
from adafw import checks, steps
from adafw.experiments.convex.data import load
from adafw.experiments.keys import only
from adafw.experiments.spec import About, Case, Method, read_methods
from adafw.experiments.values import build
from adafw.rows import MatrixRows, as_rows
from adafw.typing import Array, Json, JsonTable, MatrixLike

_FAMILIES: tuple[tuple[type[steps.Step], str], ...] = (
    (steps.FrankWolfeStep, "frank-wolfe"),
    (steps.AdaptiveStep, "adaptive"),
    (steps.ProjectedStep, "projected"),
)


@dataclass(frozen=True)
class LinearMethod(Method):
    """A preset by name, or a pair of a gradient estimator and a step, made once."""

    algorithm: adafw.Algorithm = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        table = dict(self.table)
        if "step" in table:
            only(table, ("gradient", "step"), f"algorithm {self.label!r}")
            made = adafw.Algorithm(
                build("gradient", table["gradient"]), build("step", table["step"]), self.label
            )
        else:
            made = replace(build("algorithm", table), name=self.label)
        object.__setattr__(self, "algorithm", made)

    @property
    def family(self) -> str:
        step = self.algorithm.step
        if isinstance(step, steps.AdaptiveStep) and step.inner_gap is not None:
            return "other"  # it solves the subproblem instead of making a few steps
        if isinstance(step, steps.AdaptiveStep) and step.corrective:
            return "corrective"  # not the paper's loop: claims about that one are not about this
        return next((name for kind, name in _FAMILIES if isinstance(step, kind)), "other")

    @property
    def estimator(self) -> str:
        return type(self.algorithm.gradient).__name__

    @property
    def parts(self) -> str:
        return f"{self.algorithm.gradient}, {self.algorithm.step}"


@dataclass(frozen=True, kw_only=True)
class LinearCase(Case[LinearMethod]):
    """Data, and the names of a loss and a set, both made once.

    `shape`: that of x, where x is a matrix, whose entries the data hold row by row.
    """

    loss: Json
    set: Json
    shape: tuple[int, int] | None = None
    constraint: adafw.Constraint = field(init=False, repr=False, compare=False)
    loss_function: adafw.losses.Loss = field(init=False, repr=False, compare=False)

    needed: ClassVar[tuple[str, ...]] = ("name", "data", "loss", "set", "algorithms")
    optional: ClassVar[tuple[str, ...]] = ("shape",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraint", build("set", self.set))
        object.__setattr__(self, "loss_function", build("loss", self.loss))

    @classmethod
    def read(cls, table: JsonTable, source: str, folder: str) -> Self:
        """From a problem's table."""
        fields = {key: value for key, value in table.items() if key != "algorithms"}
        if "shape" in fields:
            fields["shape"] = _shape(fields["shape"], source)
        methods = read_methods(table["algorithms"], LinearMethod, source)
        return cls(**fields, methods=methods, folder=folder)

    def dataset(self) -> adafw.datasets.Dataset:
        """Loads or makes the data."""
        return load(self.data, Path(self.folder))

    def store(self, parts: Path) -> About:
        """Writes the data as mapped parts; returns what they are."""
        data = self.dataset()
        self.objective(data.A, data.y)  # refuses what the loss cannot take
        adafw.datasets.save_parts(parts, data.A, data.y)
        return {
            "name": data.name, "description": data.description, "is_stand_in": data.is_stand_in,
            "label": data.label, "shape": list(data.A.shape),
        }  # fmt: skip

    def objective(self, A: MatrixLike, y: Array) -> adafw.LinearModel:
        """The mean loss of a linear model on these data."""
        rows = A if self.shape is None else MatrixRows(as_rows(A), self.shape)
        return adafw.LinearModel(rows, y, self.loss_function)

    @property
    def identity(self) -> list[Json]:
        return [self.loss, self.set, *([] if self.shape is None else [self.shape])]

    @property
    def words(self) -> str:
        return f"{type(self.loss_function).__name__} loss; {self.constraint!r}"


def _shape(value: Json, source: str) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(f"shape must be two integers such as [30, 20] in {source}, got {value!r}.")
    height, width = (checks.integer(n, "each number of shape", 1) for n in value)
    return height, width
