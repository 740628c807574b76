"""Series: one problem at growing dimension, by an adaptive Frank-Wolfe and a projected method."""

from collections import Counter
from typing import Any

from adafw import checks


def check_series(problems: Any, goals: Any, source: str) -> tuple[float, ...]:
    """The goals (relative gaps) of an experiment on series; refuses what cannot be compared."""
    if not any(getattr(problem, "series", "") for problem in problems):
        if goals:
            raise ValueError(f"goals are for problems with a series; {source} has none.")
        return ()
    sizes = Counter(getattr(problem, "series", "") for problem in problems)
    if min(sizes.values()) < 2 or "" in sizes:
        raise ValueError(
            f"problems must all have a series, and each series two problems or more, in {source}, "
            f"got {dict(sizes)}."
        )
    for problem in problems:
        pair(problem)
    found = tuple(checks.real(goal, "goals", 0, 1, above=True) for goal in goals)
    if not found:
        raise ValueError(f"goals must be given with series, such as [0.1, 0.01], in {source}.")
    return found


def pair(problem: Any) -> tuple[Any, Any]:
    """(adaptive, projected): the lines to compare, which differ in nothing but the step."""
    by_family = {problem.family(line): line for line in problem.algorithms}
    if len(problem.algorithms) != 2 or set(by_family) != {"adaptive", "projected"}:
        raise ValueError(
            f"problem {problem.name!r} must have two algorithms, an adaptive Frank-Wolfe method and"
            f" a projected one, got {[line.label for line in problem.algorithms]}."
        )
    ours, theirs = by_family["adaptive"], by_family["projected"]
    a, b = ours.build(), theirs.build()
    if (a.gradient, a.step.metric) != (b.gradient, b.step.metric):
        raise ValueError(
            f"the algorithms of problem {problem.name!r} must have the same gradient estimator and "
            f"metric, got {a.gradient} with {a.step.metric} and {b.gradient} with {b.step.metric}."
        )
    return ours, theirs
