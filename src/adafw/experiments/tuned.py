"""The learning-rate search on a line of an experiment."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import adafw
from adafw.experiments.networks.problem import need_torch
from adafw.experiments.spec import AlgorithmSpec, AnyProblem, Problem, Spec
from adafw.tuning import TUNING_SEED, Trial, Tuning


def tune_line(
    spec: Spec,
    label: str,
    problem_name: str | None,
    budget: Mapping[str, Any],
    measure: Any = "gap",
    seed: int | None = None,
    report: Callable[[Trial], None] | None = None,
) -> Tuning:
    """`adafw.tune` for the algorithm of this label; the file's own learning rate is not used."""
    problem, line = _find(spec, label, problem_name)
    seed = TUNING_SEED if seed is None else seed
    if seed in spec.seeds:
        raise ValueError(f"seed must not be one that judges {spec.name}, {spec.seeds}, got {seed}.")
    if not isinstance(problem, Problem):
        need_torch()
        from adafw.experiments.networks.tuned import tune_network

        return tune_network(problem, line, budget, seed, report)
    data = problem.dataset()
    return adafw.tune(
        problem.objective(data.A, data.y),
        problem.constraint(),
        lambda eta: with_rate(line, eta).build(),
        measure=measure,
        seed=seed,
        report=report,
        **budget,
    )


def _find(spec: Spec, label: str, problem_name: str | None) -> tuple[AnyProblem, AlgorithmSpec]:
    problems = [p for p in spec.problems if problem_name in (None, p.name)]
    if not problems:
        names = ", ".join(problem.name for problem in spec.problems)
        raise ValueError(f"problem must be one of {names}, got {problem_name!r}.")
    for problem in problems:
        for line in problem.algorithms:
            if line.label == label:
                if "learning_rate" not in line.options:
                    raise ValueError(f"algorithm must have a learning rate, got {label!r}.")
                return problem, line
    labels = dict.fromkeys(line.label for problem in problems for line in problem.algorithms)
    raise ValueError(f"algorithm must be one of {', '.join(labels)}, got {label!r}.")


def with_rate(line: AlgorithmSpec, eta: float | str) -> AlgorithmSpec:
    """The same line with another learning rate, a number or as the paper writes it."""
    if "learning_rate" in line.table:
        return replace(line, table={**line.table, "learning_rate": eta})
    return replace(line, table={**line.table, "step": {**line.table["step"], "learning_rate": eta}})
