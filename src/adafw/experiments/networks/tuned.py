"""The learning-rate search for an optimizer of a network; needs torch."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from adafw import checks
from adafw.experiments.networks.data import load
from adafw.experiments.networks.problem import NetworkProblem
from adafw.experiments.networks.training import Run, batches
from adafw.experiments.spec import AlgorithmSpec
from adafw.experiments.tuned import with_rate
from adafw.tuning import Trial, Tuning, search

_HELD_OUT = 0.2  # the share of the training data that judges; test data are never looked at


def tune_network(
    problem: NetworkProblem,
    line: AlgorithmSpec,
    budget: Mapping[str, Any],
    seed: int,
    report: Callable[[Trial], None] | None,
) -> Tuning:
    """The paper's search; `value` is the error rate on a fifth of the training data held out.

    A step size of Template 1 is at most 1: larger ones count as worst and are not run. So does a
    run that has learnt nothing, as differences between guesses would mislead the search.
    """
    import torch

    if set(budget) != {"max_epochs"}:
        raise ValueError(f"budget of networks must be max_epochs alone, got {dict(budget)!r}.")
    epochs = budget["max_epochs"]
    whole = int(epochs) if float(epochs).is_integer() else epochs  # the command line has 20.0
    epochs = checks.integer(whole, "max_epochs", 1)
    data = load(problem.data, problem.network)
    order = np.random.default_rng(seed).permutation(len(data.train["y"]))
    cut = max(1, int(_HELD_OUT * len(order)))
    split = {
        "train": batches(data.pick(data.train, order[cut:])),
        "test": batches(data.pick(data.train, order[:cut])),
    }
    guessing = guessing_error(data.train["y"][order[:cut]])
    is_step_size = problem.family(line) == "frank-wolfe" and "rescale" not in line.table

    def run(i: int, learning_rate: float) -> Trial:
        if is_step_size and learning_rate > 1:
            return Trial(i, learning_rate, math.inf, math.nan, "no step size")
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay his own
            run = Run(problem, with_rate(line, learning_rate), seed, split)
            for _ in range(epochs):
                run.epoch(run.loader)
        error = 1 - run.records[-1].test_accuracy
        if error >= guessing:
            status = f"error {error:.3f}, no better than guessing"
            return Trial(i, learning_rate, math.inf, math.nan, status)
        return Trial(i, learning_rate, error, math.nan, "max_epochs")

    return search(run, "value", report=report)


def guessing_error(labels: Any) -> float:
    """The error rate of naming the commonest class, less two standard errors."""
    error = 1 - np.unique(labels, return_counts=True)[1].max() / len(labels)
    return float(error - 2 * math.sqrt(error * (1 - error) / len(labels)))
