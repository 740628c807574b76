"""AdaGrad's metric."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from adafw import checks
from adafw.arrays import LONG
from adafw.metrics.base import Metric
from adafw.typing import Array


class Squares(TypedDict):
    """sum_s g_s^2."""

    sum_squares: Array


@dataclass(frozen=True)
class AdaGrad(Metric[Squares]):
    """h_t = offset + sqrt(sum_{s <= t} g_s^2), m_t = g_t (Duchi, Hazan, Singer 2011; Algorithm 2).

    `offset` (delta) > 0.
    """

    offset: float = 1e-8

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", checks.real(self.offset, "offset", 0, above=True))

    def init(self, x: Array) -> Squares:
        return {"sum_squares": np.zeros_like(x)}

    def prepare(self, x: Array) -> None:
        if x.size >= LONG:
            some = np.zeros(LONG, x.dtype)
            self.update(some, 0, self.init(some))

    def update(self, g: Array, t: int, state: Squares) -> tuple[Array, Array, Squares]:
        squares = state["sum_squares"]
        if squares.size < LONG or not g.flags.c_contiguous:
            squares += g * g
            return g, self.offset + np.sqrt(squares), state
        from adafw.kernels import vectors

        h = np.empty_like(squares)
        vectors.accumulate(g.reshape(-1), squares.reshape(-1), self.offset, h.reshape(-1))
        return g, h, state
