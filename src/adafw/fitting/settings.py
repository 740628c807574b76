"""The options of a fit, each once: name, default, help; and what they stand for."""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from adafw import checks
from adafw.algorithm import Algorithm
from adafw.constraints.base import Constraint
from adafw.describe import describe
from adafw.fitting.matrix_sets import OF_MATRICES, as_set_of_matrices, set_of_matrices
from adafw.gradients import CSFW, SAGA, LuFreund
from adafw.kernels import threads
from adafw.losses import AnyLoss, Logistic, Loss, Outputs, Softmax, Task
from adafw.names import ALGORITHMS, LOSSES, NEEDED, VECTOR_SETS, losses_for, takes_rate
from adafw.typing import Plain

#: How more than two classes are fitted.
MULTI_CLASS = ("auto", "ovr", "multinomial")
#: What loss=None means.
USUAL_LOSS: dict[Task, str] = {"classification": "logistic", "regression": "squared"}


def _option(default: Any, help: str, identity: bool = True) -> Any:
    """A field; `identity` says that it changes the iterates, not only when they end."""
    return field(default=default, metadata={"help": help, "identity": identity})


def _besides() -> str:
    """The parameters of all sets in words."""
    parts = []
    for entry in VECTOR_SETS:
        keys = [
            key if value in (NEEDED, None) else f"{key} ({value} if left out)"
            for key, value in entry.parameters.items()
        ]
        if keys:
            parts.append(f"{', '.join(keys)} for {entry.name}")
    return f"what a named set needs besides: {'; '.join(parts)}"


@dataclass(frozen=True)
class Settings:
    """What to fit and how far, as users give it: the only list of these options.

    The command line's options, the model file's header, the checkpoint's identity and the
    docstrings of the scikit-learn estimators are made from it.
    """

    loss: str | Loss | None = _option(
        None,
        f"for classes {losses_for('classification')}, for numbers {losses_for('regression')}; "
        "by default the first of either",
    )
    delta: float = _option(1.0, "of the Huber loss: where the parabola ends")
    constraint: str | Constraint = _option("l1", f"the set of the coefficients: {VECTOR_SETS}")
    radius: float = _option(100.0, "size of the set (tau), for those that have one")
    constraint_params: Mapping[str, object] | None = _option(None, _besides())
    algorithm: str | Algorithm | Callable[..., Algorithm] = _option(
        "auto",
        "auto, or a preset such as AdaCSFW; auto: corrective steps on the l1 ball, "
        "simplices and boxes; on other sets Newton steps up to 50 features, and up to 500 where "
        "there are no corrective steps, taken else; on sets without them, up to 5e7 stored entries "
        "spectral projected gradients where the set has a projection and Frank-Wolfe with line "
        "search where not; above that AdaGrad with CSFW's gradients, or CSFW where there is no "
        "projection",
    )
    learning_rate: float | Literal["auto"] = _option(
        "auto",
        "eta, for algorithms that have one; auto searches half decades on a sample of 10000 rows "
        "(section 3.6 of the paper)",
    )
    fit_intercept: bool = _option(True, "whether there is an intercept b, which no set bounds")
    class_weight: str | Mapping[Hashable, float] | None = _option(
        None, "balanced weighs classes by their rarity"
    )
    multi_class: str = _option(
        "auto",
        "more than two classes one against the rest (ovr), or in one problem with probabilities "
        "that are softmax of the scores (multinomial); auto: multinomial for the logistic loss; "
        "the sets are then sets of matrices: rows are the groups of group, simplex and other "
        "polytopes hold each class",
    )
    tol: float = _option(1e-4, "stop when gap <= tol * max(|objective|, 1e-12)", False)
    max_epochs: float = _option(1000.0, "passes over the data at most", False)
    max_seconds: float | None = _option(None, "seconds at most, of the whole fit", False)
    n_jobs: int | None = _option(
        None, "classes fitted at a time, in threads; -1 means one a core; the result is the same",
        False,
    )  # fmt: skip
    seed: int = _option(0, "of the batches")

    def __post_init__(self) -> None:
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept must be True or False, got {self.fit_intercept!r}.")
        checks.real(self.tol, "tol", 0)
        checks.real(self.max_epochs, "max_epochs", 0, above=True)
        if self.max_seconds is not None:
            checks.real(self.max_seconds, "max_seconds", 0, above=True)
        rate = self.learning_rate
        if isinstance(rate, str) and rate != "auto":
            raise ValueError(f"learning_rate must be auto or a number, got {rate!r}.")
        if self.multi_class not in MULTI_CLASS:
            raise ValueError(
                f"multi_class must be one of {', '.join(MULTI_CLASS)}, got {self.multi_class!r}."
            )
        # Asked for to be refused here, before data are read.
        _ = self.jobs
        known = isinstance(self.algorithm, Algorithm) or callable(self.algorithm)
        if not (known or self.algorithm == "auto" or self.algorithm in ALGORITHMS):
            raise ValueError(
                "algorithm must be 'auto', an adafw.Algorithm, a preset such as adafw.AdaCSFW or "
                f"one of {ALGORITHMS}, got {self.algorithm!r}."
            )
        _ = self.joint

    @property
    def jobs(self) -> int:
        """n_jobs as a number of threads; negative ones count down from the cores, as joblib's."""
        n = self.n_jobs
        if n is None:
            return 1
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n == 0:
            raise ValueError(f"n_jobs must be None or an integer other than 0, got {n!r}.")
        return int(n) if n > 0 else max(1, threads.cores() + 1 + int(n))

    @property
    def joint(self) -> bool:
        """Whether more than two classes are one problem."""
        logistic = self.loss is None or isinstance(self.loss, Logistic) or (
            isinstance(self.loss, str) and self.loss in ("logistic", "Logistic")
        )  # fmt: skip
        if self.multi_class == "multinomial" and not logistic:
            raise ValueError(
                f"multi_class='multinomial' needs loss='logistic', got {self.loss!r}; take "
                "multi_class='ovr'."
            )
        if self.multi_class == "auto":
            # An algorithm that was asked for by name may know losses of one prediction only.
            return logistic and not self._one_by_one
        return self.multi_class != "ovr"

    @property
    def _one_by_one(self) -> bool:
        """Whether the algorithm keeps one slope a sample, as CSFW and SAGA do."""
        wanted = self.algorithm
        if isinstance(wanted, str):
            if wanted == "auto":
                return False
            wanted = ALGORITHMS.find(wanted).make
        if not isinstance(wanted, Algorithm):
            wanted = wanted(learning_rate=1.0) if takes_rate(wanted) else wanted()
        return isinstance(wanted.gradient, CSFW | SAGA | LuFreund)

    def plan(self, task: Task, outputs: int = 0, n_features: int = 0) -> "Plan":
        """The objects that the names stand for; a name that has no meaning is refused.

        `outputs` scores that are fitted jointly have a loss and a set of matrices; 0: vectors.
        """
        loss: AnyLoss = self._loss(task)
        if outputs:
            loss = Softmax() if task == "classification" else Outputs(self._loss(task))
        return Plan(self, loss, self._set(outputs, n_features), outputs)

    def check(self, task: Task) -> None:
        """Refuses names that have no meaning, before it is known how many outputs there are."""
        entry = VECTOR_SETS.find(self.constraint) if self.constraint in VECTOR_SETS else None
        free = entry is not None and any(key in entry.parameters for key in OF_MATRICES)
        several = self.joint if task == "classification" else True
        self.plan(task, *((3, 3) if free and several and not self.constraint_params else ()))

    def plain(self) -> dict[str, Plain]:
        """All options as JSON holds them, names in their short form."""
        found = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        for key, names in (("loss", LOSSES), ("constraint", VECTOR_SETS)):
            if found[key] in names:
                found[key] = names.find(found[key]).name
        return found

    def _loss(self, task: Task) -> Loss:
        known = losses_for(task)
        if isinstance(self.loss, Loss):
            if self.loss.task != task:
                raise ValueError(f"loss must be one for {task}, such as {known}, got {self.loss}.")
            return self.loss
        entry = known.find(USUAL_LOSS[task] if self.loss is None else self.loss)
        return entry.make(self.delta) if "delta" in entry.parameters else entry.make()

    def _set(self, outputs: int = 0, n_features: int = 0) -> Constraint:
        if isinstance(self.constraint, Constraint):
            if self.constraint_params:
                raise ValueError("constraint_params must be None where constraint is a set itself.")
            if outputs:
                return as_set_of_matrices(self.constraint, n_features, outputs)
            return self.constraint
        if self.constraint not in VECTOR_SETS:
            raise ValueError(
                f"constraint must be a set or one of {VECTOR_SETS}, got {self.constraint!r}."
            )
        entry, given = VECTOR_SETS.find(self.constraint), dict(self.constraint_params or {})
        for key in given:
            if key not in entry.parameters:
                known = ", ".join(entry.parameters)
                allowed = f"may hold {known}" if known else "must be None"
                raise ValueError(
                    f"constraint_params {allowed} for constraint={entry.name!r}, got {key!r}."
                )
        parameters = {**entry.parameters, **given}
        for key, value in parameters.items():
            if value is NEEDED and not (outputs and key in OF_MATRICES):
                raise ValueError(
                    f"constraint={entry.name!r} needs {key}: give constraint_params="
                    f"{{{key!r}: ...}}."
                )
        size = {"radius": self.radius} if entry.sized else {}
        if outputs:
            return set_of_matrices(entry, {**size, **parameters}, n_features, outputs)
        return entry.make(**size, **parameters)


@dataclass(frozen=True)
class Plan:
    """Settings, the loss and the set that they name, and how many scores are fitted jointly."""

    settings: Settings
    loss: AnyLoss
    constraint: Constraint
    outputs: int = 0

    def identity(self) -> dict[str, Plain]:
        """Everything but the data that changes the iterates: what a checkpoint must agree with."""
        # These are in the descriptions of loss and set, by value: l1 and L1Ball are one.
        named = ("loss", "delta", "constraint", "radius", "constraint_params")
        return {
            "loss": _plain(describe(self.loss)),
            "constraint": _plain(self.constraint.describe()),
            **{
                f.name: _plain(getattr(self.settings, f.name))
                for f in fields(Settings)
                if f.metadata["identity"] and f.name not in named
            },
        }


def help_of(name: str) -> str:
    """What an option does."""
    texts: dict[str, str] = {f.name: f.metadata["help"] for f in fields(Settings)}
    return texts[name]


def _plain(value: object) -> Plain:
    """As JSON holds it: objects by their description, null for what it has no number for."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value] if len(value) <= 16 else _plain(np.asarray(value))
    if isinstance(value, np.ndarray):
        return _plain(describe(value))
    if isinstance(value, Constraint | Algorithm):
        return _plain(value.describe())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    found = describe(value)
    return _plain(found) if isinstance(found, dict) else found
