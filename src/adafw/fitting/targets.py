"""What is to be predicted, as losses take it: numbers, or labels one against the rest."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from adafw.fitting.settings import Plan, Settings
from adafw.losses import AnyLoss, JointLoss, Loss, Softmax, Task
from adafw.names import loss_class

#: Whole numbers of at most so many kinds are taken for labels.
MOST_CLASSES = 20


@dataclass(frozen=True)
class Targets:
    """One vector a fit; `classes` in the order of the scores, and `labels`, their numbers.

    Two classes need one score, whose sign tells them apart. Where scores are fitted jointly,
    `outputs` is their number, and the one entry of `vectors` holds the class numbers or, one column
    a score, the numbers to be predicted; else `outputs` is 0.
    """

    vectors: tuple[NDArray[Any], ...]
    classes: NDArray[Any] | None = None
    labels: NDArray[Any] | None = None
    outputs: int = 0

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def task(self) -> Task:
        """Whether there are classes."""
        return "regression" if self.classes is None else "classification"

    @property
    def scores(self) -> int:
        """Rows of the coefficients."""
        return self.outputs or len(self.vectors)

    def plan(self, settings: Settings, n_features: int) -> Plan:
        """Loss and set of these settings for these targets."""
        return settings.plan(self.task, self.outputs, n_features)

    def points(self, coef: NDArray[Any]) -> list[NDArray[Any]]:
        """Coefficients, one row a score, as the fits take them: a vector each, or one matrix."""
        return [np.ascontiguousarray(coef.T)] if self.outputs else list(coef)

    @classmethod
    def of_numbers(cls, y: NDArray[Any], dtype: DTypeLike) -> "Targets":
        """One score for each column of y, fitted jointly; one for a vector."""
        if y.dtype.kind not in "biuf":
            raise ValueError(f"targets of a regression must be numbers, got {y.flat[0]!r}.")
        return cls((y.astype(dtype, copy=False),), outputs=y.shape[1] if y.ndim == 2 else 0)

    @classmethod
    def of_classes(
        cls, y: NDArray[Any], classes: NDArray[Any] | None = None, joint: bool = False
    ) -> "Targets":
        """Labels -1 and +1: one vector for two classes, else one a class, or all `joint`ly."""
        if classes is None:
            classes = np.unique(y)
        # np.unique's own inverse sorts all of y, and two classes need no search.
        two = len(classes) == 2
        labels = np.asarray(y == classes[1], np.intp) if two else np.searchsorted(classes, y)
        if joint and len(classes) > 2:
            return cls((labels,), classes, labels, len(classes))
        positive = range(1, 2) if two else range(len(classes))
        vectors = tuple(np.where(labels == k, 1.0, -1.0) for k in positive)
        return cls(vectors, classes, labels)

    def weights(
        self,
        class_weight: str | Mapping[Hashable, float] | None,
        sample_weight: NDArray[Any] | None,
        dtype: DTypeLike,
    ) -> NDArray[Any] | None:
        """`class_weights`; fewer than two classes of positive weight are refused."""
        weight = self.class_weights(class_weight, sample_weight, dtype)
        if self.classes is None or self.labels is None:
            return weight
        seen = self.labels if weight is None else self.labels[weight > 0]
        present = np.flatnonzero(np.bincount(seen))
        if len(present) < 2:
            found = self.classes[present[0]] if len(present) else "none"
            raise ValueError(
                "a classifier needs samples of at least two classes with positive weight, got "
                f"{len(present)} class: {found}."
            )
        return weight

    def class_weights(
        self,
        class_weight: str | Mapping[Hashable, float] | None,
        sample_weight: NDArray[Any] | None,
        dtype: DTypeLike,
    ) -> NDArray[Any] | None:
        """Sample weights times those of the classes; None for all 1."""
        if class_weight is None or self.classes is None or self.labels is None:
            return sample_weight
        of_class = _class_weights(class_weight, self.classes, self.labels, sample_weight)
        ones = np.ones(len(self.labels)) if sample_weight is None else sample_weight
        return np.asarray((ones * of_class[self.labels]).astype(dtype))


def losses_of(
    loss: AnyLoss, scores: NDArray[Any], y: NDArray[Any], classes: NDArray[Any] | None
) -> NDArray[Any]:
    """The loss of every row of scores; for several that were fitted one by one, their sum."""
    joint = isinstance(loss, JointLoss)
    if classes is None:
        targets = Targets.of_numbers(y, np.float64)
    else:
        targets = Targets.of_classes(y, classes, joint=isinstance(loss, Softmax))
    if joint:
        return np.asarray(loss.value(scores.reshape(len(scores), -1), targets.vectors[0]))
    columns = scores.reshape(len(scores), -1).T
    return np.sum([loss.value(z, t) for z, t in zip(columns, targets.vectors, strict=True)], axis=0)


def decide_task(y: NDArray[Any], asked: str = "auto", loss: str | Loss | None = None) -> Task:
    """What was asked for, else what the loss is for, else what the targets look like."""
    of_loss: Task | None = None if loss is None else loss_class(loss).task
    if asked != "auto":
        wanted: Task = "classification" if asked == "classification" else "regression"
        if of_loss not in (None, wanted):
            raise ValueError(f"loss {loss} does not fit the task {wanted}.")
        return wanted
    return of_loss or ("classification" if looks_like_classes(y) else "regression")


def looks_like_classes(y: ArrayLike) -> bool:
    """Whether targets are text, of two kinds, or whole numbers of at most 20 kinds."""
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return True
    kinds = np.unique(values)
    whole = bool((kinds == np.round(kinds)).all())
    return kinds.size <= 2 or (whole and kinds.size <= MOST_CLASSES)


def _class_weights(
    wanted: str | Mapping[Hashable, float] | None,
    classes: NDArray[Any],
    labels: NDArray[Any],
    sample_weight: NDArray[Any] | None,
) -> NDArray[np.float64]:
    """One weight a class: given, or "balanced": total / (classes * weight of this class)."""
    if isinstance(wanted, str) and wanted == "balanced":
        count = np.bincount(labels, sample_weight, minlength=len(classes))
        present = count > 0
        out = np.zeros(len(classes))
        return np.divide(count.sum(), present.sum() * count, out=out, where=present)
    if not isinstance(wanted, Mapping):
        raise ValueError(
            f"class_weight must be None, 'balanced' or a dict {{class: weight}}, got {wanted!r}."
        )
    known = classes.tolist()
    unknown = [label for label in wanted if label not in known]
    # Classes that are missing from y are fine where all of those in it have a weight.
    if unknown and not all(label in wanted for label in known):
        raise ValueError(f"class_weight must name classes of y, got {unknown[0]!r}.")
    return np.array([float(wanted.get(label, 1.0)) for label in known])
