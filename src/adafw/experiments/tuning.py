"""The learning-rate search on a method of an experiment, for `adafw tune`."""

from collections.abc import Callable, Mapping

from adafw.experiments.kinds import kind_of
from adafw.experiments.spec import Case, Method, Spec
from adafw.tuning import TUNING_SEED, Measure, Trial, Tuning
from adafw.typing import Json


def tune_method(
    spec: Spec,
    label: str,
    case_name: str | None,
    budget: Mapping[str, Json],
    measure: Measure = "gap",
    seed: int | None = None,
    report: Callable[[Trial], None] | None = None,
) -> Tuning:
    """The search for the method of this label; the file's own learning rate is not used."""
    case, method = _find(spec, label, case_name)
    seed = TUNING_SEED if seed is None else seed
    if seed in spec.seeds:
        raise ValueError(f"seed must not be one that judges {spec.name}, {spec.seeds}, got {seed}.")
    return kind_of(spec).tune(case, method, budget, measure, seed, report)


def _find(spec: Spec, label: str, case_name: str | None) -> tuple[Case[Method], Method]:
    cases = [case for case in spec.cases if case_name in (None, case.name)]
    if not cases:
        names = ", ".join(case.name for case in spec.cases)
        raise ValueError(f"problem must be one of {names}, got {case_name!r}.")
    for case in cases:
        for method in case.methods:
            if method.label == label:
                if "learning_rate" not in method.options:
                    raise ValueError(f"algorithm must have a learning rate, got {label!r}.")
                return case, method
    labels = dict.fromkeys(method.label for case in cases for method in case.methods)
    raise ValueError(f"algorithm must be one of {', '.join(labels)}, got {label!r}.")
