"""Many iterations at a time: their batches, drawn as solver.run draws them, and their counts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adafw import gradients
from adafw.algorithms import Algorithm
from adafw.gradients import draw
from adafw.objectives.base import FiniteSum
from adafw.random import freeze, thaw
from adafw.rows.base import as_batch
from adafw.solver import Diverged, State

#: Indices drawn in one go: enough to make a kernel's call cheap, few enough to stay in the cache.
_MANY = 1 << 15


def drive(
    f: FiniteSum, algorithm: Algorithm, s: State, n: int, iterate: Callable[[Any, Any], int],
    stop: Callable[[], bool],
) -> State:  # fmt: skip
    """n iterations in place, by calls iterate(indices, ends) that return how many were done.

    The batch of the k-th iteration of a call is indices[ends[k] : ends[k + 1]]. Fewer done than
    asked for mean that the next estimate was infinite or NaN. n = 0 makes one call without
    iterations, which compiles what n > 0 needs.
    """
    s.torn = True
    source = _Source(s.rng, f.n_terms)
    last = s.t + n
    try:
        while True:
            indices, ends = source.batches(algorithm.gradient, s.t, last - s.t)
            done = iterate(indices, ends)
            for t in range(s.t, s.t + done):
                s.gradient_evaluations += algorithm.gradient.evaluations(t, f.n_terms)
            s.lmo_calls += done * algorithm.step.most_lmo_calls
            s.t += done
            if done < ends.size - 1:
                source.rewind(int(ends[done + 1]))  # the batch that broke g has been drawn
                raise Diverged(None)
            if s.t == last or stop():
                break
        s.torn = False
    finally:
        s.rng = freeze(source.rng)
    return s


class _Source:
    """Draws the batches of several iterations at once where that changes nothing.

    One call of a numpy Generator for many indices gives the stream that many calls give; a source
    of the user's is called once an iteration, as promised.
    """

    def __init__(self, words: Any, n_terms: int) -> None:
        self.rng = thaw(words)
        self.several = isinstance(words, np.ndarray)
        self.n_terms = n_terms
        self.before: Any = None

    def batches(self, gradient: Any, t: int, count: int) -> tuple[Any, Any]:
        """(indices, ends) of at most `count` iterations from t, up to the next snapshot."""
        ends = [0]
        while len(ends) <= count:
            now = t + len(ends) - 1
            exact = type(gradient) is gradients.SVRF and gradient.is_snapshot(now)
            if len(ends) > 1 and (exact or not self.several or ends[-1] >= _MANY):
                break
            ends.append(ends[-1] + (0 if exact else gradient.batch_size(now, self.n_terms)))
        if self.several:
            self.before = self.rng.bit_generator.state
        drawn = self._draw(ends[-1])
        ends[-1] = len(drawn)  # a user's source may return more or fewer than it was asked for
        return as_batch(drawn, self.n_terms), np.array(ends, np.int64)

    def rewind(self, size: int) -> None:
        """Leaves the source as if the last call had drawn `size` indices only."""
        if self.several:
            self.rng.bit_generator.state = self.before
            self._draw(size)

    def _draw(self, size: int) -> Any:
        return draw(self.rng, self.n_terms, size) if size else np.empty(0, np.int64)
