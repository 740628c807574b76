"""Many iterations at a time: their batches, drawn as solver.run draws them, and their counts."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from adafw.algorithm import Algorithm
from adafw.fused.problem import calls
from adafw.gradients import CSFW, LSVRG, SAGA, SVRF, GradientEstimator, draw
from adafw.gradients.base import coin
from adafw.gradients.sampling import Sampling
from adafw.kernels.parts import Batches
from adafw.objectives.base import FiniteSum
from adafw.random import Blocks, IndexSource, Words, freeze, thaw
from adafw.rows.base import as_batch
from adafw.solver import Diverged, State
from adafw.typing import Array

#: Indices drawn in one go: enough to make a kernel's call cheap, few enough to stay in the cache.
_MANY = 1 << 15
#: Entries touched in one go: about ten milliseconds, then clock and keyboard are looked at. A call
#: costs some 0.1 ms around its kernel, which a fifth of that would let show.
_WORK = 1 << 24
#: What is done for an iteration outside of the kernel, counted in entries.
_AROUND = 1 << 12


def drive(
    f: FiniteSum, algorithm: Algorithm, s: State, n: int, iterate: Callable[[Batches], int],
    stop: Callable[[], bool], cost: tuple[float, float],
) -> State:  # fmt: skip
    """n iterations in place, by calls iterate(batches) that return how many were done.

    Fewer done than asked for mean that the next estimate was infinite or NaN. n = 0 makes one call
    without iterations, which compiles what n > 0 needs. `cost` is what a row of a batch and what
    an iteration touches beside, in entries. How the iterations are cut into calls depends on t
    and on when `stop` was asked: it must change no bit.
    """
    if n == 0:
        iterate(Batches(s.t, as_batch(np.empty(0, np.int64), f.n_terms), np.zeros(1, np.int64)))
        return s
    # A second Ctrl-C may break in anywhere below: x has then moved, and the counts have not.
    s.torn = True
    source = _Source(s.rng, f.n_terms, cost)
    last = s.t + n
    try:
        while True:
            batches = source.batches(algorithm.gradient, s.t, last - s.t)
            done = iterate(batches)
            for k, drawn in enumerate(np.diff(batches.ends[: done + 1])):
                exact = {"exact": drawn == 0}
                s.gradient_evaluations += algorithm.gradient.spent(s.t + k, f.n_terms, exact)
            s.lmo_calls += done * calls(algorithm)
            s.t += done
            if done < batches.ends.size - 1:
                # The batch that broke g has been drawn.
                source.rewind(algorithm.gradient, batches.t, done + 1)
                raise Diverged(None)
            if s.t == last or stop():
                break
        s.torn = False
    finally:
        s.rng = freeze(source.rng)
    return s


def sees_all(gradient: GradientEstimator, n_terms: int, batches: Batches) -> bool:
    """Whether the first of these iterations begins with a pass over all rows; no other may."""
    if batches.ends.size < 2:
        return False
    if type(gradient) is LSVRG:
        return bool(batches.ends[1] == 0)
    return _sees_all(gradient, batches.t, n_terms)


def _sees_all(gradient: GradientEstimator, t: int, n_terms: int) -> bool:
    """The same of iteration t, where t alone tells."""
    if type(gradient) is SVRF:
        return gradient.is_snapshot(t)
    return (type(gradient) is CSFW or type(gradient) is SAGA) and gradient.is_renewed(t, n_terms)


class _Source:
    """Draws the batches of several iterations at once where that changes nothing.

    One call of a numpy Generator for many indices gives the stream that many calls give; a source
    of the user's is called once an iteration, as promised.
    """

    def __init__(
        self, words: Words | IndexSource | None, n_terms: int, cost: tuple[float, float]
    ) -> None:
        self.rng: Any = thaw(words)  # with a bit_generator where it can draw for several
        self.several = isinstance(words, np.ndarray)
        self.n_terms, self.cost = n_terms, cost
        self.before: object = None

    def batches(self, gradient: GradientEstimator, t: int, count: int) -> Batches:
        """Those of at most `count` iterations from t, up to the next that sees all rows."""
        # To be drawn again if the run ends in the middle of what is drawn here.
        if self.several:
            self.before = self.rng.bit_generator.state
        if type(gradient) is LSVRG:
            ends, indices = self._tossed(gradient, t, count)
        else:
            ends = self._planned(cast(Sampling[Any], gradient), t, count)
            indices = self._draw(ends)
        ends[-1] = len(indices)  # a user's source may return more or fewer than it was asked for
        return Batches(t, as_batch(indices, self.n_terms), np.array(ends, np.int64))

    def rewind(self, gradient: GradientEstimator, t: int, count: int) -> None:
        """Leaves the source as if the last call, from t on, had been for `count` iterations."""
        if self.several:
            self.rng.bit_generator.state = self.before
            self.batches(gradient, t, count)

    def _is_full(self, ends: list[int]) -> bool:
        """Whether these batches are enough for a call: a long one would keep the keyboard waiting.

        None at all are not, and one is where a source of the user's is not to be called ahead.
        """
        done = len(ends) - 1
        work = ends[-1] * self.cost[0] + done * (self.cost[1] + _AROUND)
        return done > 0 and (ends[-1] >= _MANY or work >= _WORK or not self.several)

    def _planned(self, gradient: Sampling[Any], t: int, count: int) -> list[int]:
        """Where the batches end, if t alone tells."""
        ends = [0]
        while len(ends) <= count and not self._is_full(ends):
            now = t + len(ends) - 1
            whole = _sees_all(gradient, now, self.n_terms)
            if whole and len(ends) > 1:
                break
            exact = whole and type(gradient) is SVRF
            ends.append(ends[-1] + (0 if exact else gradient.b(now, self.n_terms)))
        return ends

    def _tossed(self, gradient: LSVRG, t: int, count: int) -> tuple[list[int], Array]:
        """Where the batches end, and what they hold, if a coin tells: drawn one after the other."""
        ends, drawn = [0], [np.empty(0, np.int64)]
        while len(ends) <= count and not self._is_full(ends):
            now = t + len(ends) - 1
            before = self.rng.bit_generator.state if self.several else None
            exact = gradient.is_exact(now, self.n_terms, coin(self.rng))
            if exact and len(ends) > 1:  # the next call begins with it, and tosses the coin again
                self.rng.bit_generator.state = before
                break
            if not exact:
                size = gradient.b(now, self.n_terms)
                drawn.append(np.asarray(draw(self.rng, self.n_terms, size), np.int64))
            ends.append(ends[-1] + (0 if exact else drawn[-1].size))
        return ends, np.concatenate(drawn)

    def _draw(self, ends: list[int]) -> Array:
        # Blocks are cut at the end of every batch: theirs are drawn one by one.
        sizes = np.diff(ends) if isinstance(self.rng, Blocks) else [ends[-1]]
        drawn = [draw(self.rng, self.n_terms, int(size)) for size in sizes if size]
        return np.concatenate(drawn) if drawn else np.empty(0, np.int64)
