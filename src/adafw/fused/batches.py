"""The batches of many iterations, drawn as solver.run draws them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from adafw.gradients import draw
from adafw.random import freeze, thaw
from adafw.rows.base import as_batch

#: Indices drawn in one go: enough to make a kernel's call cheap, few enough to stay in the cache.
_MANY = 1 << 15


class Batches:
    """Draws from the source of a state, several iterations at a time where that changes nothing.

    One call of a numpy Generator for many indices gives the stream that many calls give; a source
    of the user's is called once an iteration, as promised.
    """

    def __init__(self, words: Any, n_terms: int) -> None:
        self._rng = thaw(words)
        self._several = isinstance(words, np.ndarray)
        self._n_terms = n_terms
        self._before: Any = None
        self.ends: Any = np.zeros(1, np.int64)

    def next(self, size: Callable[[int], int], t: int, count: int) -> tuple[Any, Any]:
        """(indices, ends): the batch of iteration t + k is indices[ends[k] : ends[k + 1]].

        They are of iterations t .. t + count - 1 or the first of these; size(t) = 0 draws nothing.
        """
        ends = [0]
        while len(ends) <= count and (len(ends) == 1 or (self._several and ends[-1] < _MANY)):
            ends.append(ends[-1] + size(t + len(ends) - 1))
        self.ends = np.array(ends, dtype=np.int64)
        if self._several:
            self._before = self._rng.bit_generator.state
        return as_batch(self._draw(ends[-1]), self._n_terms), self.ends

    def stop_after(self, done: int) -> None:
        """Forgets the draws of all but the first `done` iterations of the last call."""
        if self._several and done < self.ends.size - 1:
            self._rng.bit_generator.state = self._before
            self._draw(int(self.ends[done]))

    def words(self) -> Any:
        """The source as a state keeps it."""
        return freeze(self._rng)

    def _draw(self, size: int) -> Any:
        return draw(self._rng, self._n_terms, size) if size else np.empty(0, np.int64)
