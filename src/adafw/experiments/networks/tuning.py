"""The learning-rate search for an optimizer of a network; needs torch."""

import math
from collections.abc import Callable

import numpy as np

from adafw.experiments.networks.case import NETWORKS, NetworkCase, NetworkMethod
from adafw.experiments.networks.data import load
from adafw.experiments.networks.run import Training, UntilStopped, batches
from adafw.tuning import Trial, Tuning, search
from adafw.typing import Array

_STEP_SIZES = ("SFW", "SVRF", "SPIDERFW", "ORGFW", "Scion")  # whose lr is gamma
_HELD_OUT = 0.2  # the share of the training data that judges; test data are never looked at


def tune_network(
    case: NetworkCase,
    method: NetworkMethod,
    epochs: int,
    seed: int,
    report: Callable[[Trial], None] | None = None,
    trials: int | None = None,
) -> Tuning:
    """The paper's search; `value` is the error rate on a fifth of the training data held out.

    Of texts it is the loss there. With `trials`, exactly so many rates are tried, from the
    optimizer's usual one on. A step size of Template 1 is at most 1: larger ones count as worst
    and are not run. So does a run that has learnt nothing, as differences between guesses would
    mislead the search.
    """
    import torch

    data = load(case.data, case.network)
    order = np.random.default_rng(seed).permutation(len(data.train["y"]))
    cut = max(1, int(_HELD_OUT * len(order)))
    split = {
        "train": batches(case, data.pick(data.train, order[cut:])),
        "test": batches(case, data.pick(data.train, order[:cut])),
    }
    by_loss = NETWORKS[case.network][1] == "loss"
    guessing = math.inf if by_loss else guessing_error(data.train["y"][order[:cut]])
    is_step_size = method.optimizer in _STEP_SIZES and "rescale" not in method.table

    def run(i: int, learning_rate: float) -> Trial:
        if is_step_size and learning_rate > 1:
            return Trial(i, learning_rate, math.inf, math.nan, "no step size")
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay his own
            training = Training(case, method.with_rate(learning_rate), seed, split)
            for _ in range(epochs):
                training.epoch(UntilStopped(training.loader))
        last = training.records[-1]
        error = last.test_loss if by_loss else 1 - last.test_accuracy
        if not error < guessing:
            status = f"error {error:.3f}, no better than guessing"
            return Trial(i, learning_rate, math.inf, math.nan, status)
        return Trial(i, learning_rate, error, math.nan, "max_epochs")

    if trials is None:
        return search(run, "value", report=report)
    first = method.maker.start
    return search(run, "value", trials, report, first=(first - 1, first, first + 1), exactly=True)


def guessing_error(labels: Array) -> float:
    """The error rate of naming the commonest class, less two standard errors."""
    error = 1 - np.unique(labels, return_counts=True)[1].max() / len(labels)
    return float(error - 2 * math.sqrt(error * (1 - error) / len(labels)))
