"""Series: one problem at growing dimension, by an adaptive Frank-Wolfe and a projected method."""

from collections import Counter
from dataclasses import dataclass
from typing import cast

from adafw.experiments.convex.case import LinearCase, LinearMethod
from adafw.experiments.spec import Spec
from adafw.steps import AdaptiveStep, ProjectedStep


@dataclass(frozen=True, kw_only=True)
class SeriesCase(LinearCase):
    """A linear model that is one size of a `series`."""

    series: str

    @property
    def pair(self) -> tuple[LinearMethod, LinearMethod]:
        """(adaptive, projected): the methods to compare, which differ in nothing but the step."""
        # The inner loop of the adaptive one may be the paper's or corrective.
        names = {"corrective": "adaptive"}
        by_family = {names.get(m.family, m.family): m for m in self.methods}
        if len(self.methods) != 2 or set(by_family) != {"adaptive", "projected"}:
            raise ValueError(
                f"problem {self.name!r} must have two algorithms, an adaptive Frank-Wolfe method "
                f"and a projected one, got {[method.label for method in self.methods]}."
            )
        return by_family["adaptive"], by_family["projected"]


def check_series(spec: Spec, source: str) -> None:
    """Refuses what cannot be compared."""
    cases = cast(tuple[SeriesCase, ...], spec.cases)
    sizes = Counter(case.series for case in cases)
    if min(sizes.values()) < 2:
        raise ValueError(
            f"problems must all have a series, and each series two problems or more, in {source}, "
            f"got {dict(sizes)}."
        )
    for case in cases:
        a, b = (_compared(method) for method in case.pair)
        if a != b:
            raise ValueError(
                f"the algorithms of problem {case.name!r} must have the same gradient estimator "
                f"and metric, got {a[0]} with {a[1]} and {b[0]} with {b[1]}."
            )
    if not spec.goals:
        raise ValueError(f"goals must be given with series, such as [0.1, 0.01], in {source}.")


def _compared(method: LinearMethod) -> tuple[object, object]:
    """What both sides must share: the gradient estimator and the metric."""
    step = method.algorithm.step
    assert isinstance(step, AdaptiveStep | ProjectedStep)  # by `pair`
    return method.algorithm.gradient, step.metric
