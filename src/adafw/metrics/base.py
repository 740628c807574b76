"""What a metric must know: line 3 of Template 3."""

from abc import ABC, abstractmethod
from typing import ClassVar, Generic

from adafw.typing import Array, S


class Metric(ABC, Generic[S]):
    """Makes the diagonal of H_t, and the linear term of Q_t, from the estimates g_0 .. g_t.

    To add one: a frozen dataclass with `init` and `update`. Its state is a dict of arrays and
    numbers, which `update` may change in place; a TypedDict S says which.
    """

    #: Whether m_t is a momentum; the theorems are about m_t = g_t.
    momentum: ClassVar[bool] = False

    @abstractmethod
    def init(self, x: Array) -> S:
        """The state before t = 0."""

    def prepare(self, x: Array) -> None:
        """Before the clock runs: compiles what `update` will need for points such as x."""

    @abstractmethod
    def update(self, g: Array, t: int, state: S) -> tuple[Array, Array, S]:
        """(m_t, h_t, state): the linear term (g_t, or a momentum), the diagonal, the next state."""
