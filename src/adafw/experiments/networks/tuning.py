"""The learning-rate search for an optimizer of a network; needs torch."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from adafw.experiments.networks.case import NetworkCase, NetworkMethod
from adafw.experiments.networks.data import load
from adafw.experiments.networks.run import Training, UntilStopped, batches
from adafw.tuning import Trial, Tuning, search

_HELD_OUT = 0.2  # the share of the training data that judges; test data are never looked at


def tune_network(
    case: NetworkCase,
    method: NetworkMethod,
    epochs: int,
    seed: int,
    report: Callable[[Trial], None] | None = None,
) -> Tuning:
    """The paper's search; `value` is the error rate on a fifth of the training data held out.

    A step size of Template 1 is at most 1: larger ones count as worst and are not run. So does a
    run that has learnt nothing, as differences between guesses would mislead the search.
    """
    import torch

    data = load(case.data, case.network)
    order = np.random.default_rng(seed).permutation(len(data.train["y"]))
    cut = max(1, int(_HELD_OUT * len(order)))
    split = {
        "train": batches(case, data.pick(data.train, order[cut:])),
        "test": batches(case, data.pick(data.train, order[:cut])),
    }
    guessing = guessing_error(data.train["y"][order[:cut]])
    is_step_size = method.family == "frank-wolfe" and "rescale" not in method.table

    def run(i: int, learning_rate: float) -> Trial:
        if is_step_size and learning_rate > 1:
            return Trial(i, learning_rate, math.inf, math.nan, "no step size")
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay his own
            training = Training(case, method.with_rate(learning_rate), seed, split)
            for _ in range(epochs):
                training.epoch(UntilStopped(training.loader))
        error = 1 - training.records[-1].test_accuracy
        if error >= guessing:
            status = f"error {error:.3f}, no better than guessing"
            return Trial(i, learning_rate, math.inf, math.nan, status)
        return Trial(i, learning_rate, error, math.nan, "max_epochs")

    return search(run, "value", report=report)


def guessing_error(labels: Any) -> float:
    """The error rate of naming the commonest class, less two standard errors."""
    error = 1 - np.unique(labels, return_counts=True)[1].max() / len(labels)
    return float(error - 2 * math.sqrt(error * (1 - error) / len(labels)))
