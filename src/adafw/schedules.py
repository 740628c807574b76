"""Functions of the iteration t: learning rates, step sizes, bounds and batch sizes.

Wherever the paper has a subscript t, a number, one of these or any function of t is accepted.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from typing import Literal, TypeAlias

from adafw import checks
from adafw.typing import ScheduleLike


@dataclass(frozen=True)
class OpenLoop:
    """t -> numerator / (t + shift), Frank-Wolfe's step size: 2 / (t + 2) if left alone."""

    numerator: float = 2.0
    shift: float = 2.0

    def __post_init__(self) -> None:
        checks.real(self.numerator, "numerator")
        checks.real(self.shift, "shift", 0, above=True)

    def __call__(self, t: int) -> float:
        return self.numerator / (t + self.shift)


@dataclass(frozen=True)
class LogOpenLoop:
    """t -> (2 + ln(t + 1)) / (t + 2 + ln(t + 1)): every rate of the schedules l / (t + l) at once.

    With l / (t + l) Frank-Wolfe goes like t^-l at best, where f and the set allow for it (Wirth,
    Kerdreux, Pokutta 2023); a growing l needs no choice (Pokutta 2024).
    """

    def __call__(self, t: int) -> float:
        grown = 2 + math.log(t + 1)
        return grown / (t + grown)


@dataclass(frozen=True)
class LuFreundStep:
    """t -> 2 (2 p + t) / ((t + 1) (4 p + t)): x_t is the mean of the vertices, weighted 2 p + t.

    `parts` (p): m / b, the iterations of an epoch. Lu and Freund (2021).
    """

    parts: float

    def __post_init__(self) -> None:
        checks.real(self.parts, "parts", 0, above=True)

    def __call__(self, t: int) -> float:
        return 2 * (2 * self.parts + t) / ((t + 1) * (4 * self.parts + t))


@dataclass(frozen=True)
class Power:
    """t -> factor * (t + shift) ** exponent."""

    factor: float
    exponent: float
    shift: float = 1.0

    def __post_init__(self) -> None:
        checks.real(self.factor, "factor")
        checks.real(self.exponent, "exponent")
        checks.real(self.shift, "shift", 0, above=self.exponent < 0)

    def __call__(self, t: int) -> float:
        try:
            return float(self.factor * (t + self.shift) ** self.exponent)
        except OverflowError:  # whoever asks has a range
            return math.copysign(math.inf, self.factor)


@dataclass(frozen=True)
class Scaled:
    """t -> factor * rule(t)."""

    rule: Callable[[int], float]
    factor: float

    def __post_init__(self) -> None:
        _check_rule(self.rule)
        checks.real(self.factor, "factor")

    def __call__(self, t: int) -> float:
        return self.factor * self.rule(t)


@dataclass(frozen=True)
class Capped:
    """t -> min(rule(t), high)."""

    rule: Callable[[int], float]
    high: float

    def __post_init__(self) -> None:
        _check_rule(self.rule)
        checks.real(self.high, "high", infinite=True)

    def __call__(self, t: int) -> float:
        return min(self.rule(t), self.high)


def _check_rule(rule: object) -> None:
    if not callable(rule):
        raise TypeError(f"rule must be a function of t, got {rule!r}.")


@dataclass(frozen=True)
class Stages:
    """Stages s = 1, 2, ... of ceil(2^(s/2 + 2)) iterations: 6, 8, 12, 16, 23, ... (STORC)."""

    def around(self, t: int) -> tuple[int, int]:
        """(first iteration, length) of the stage that holds t."""
        begin, s = 0, 1
        while begin + (length := math.ceil(2 ** (s / 2 + 2))) <= t:
            begin, s = begin + length, s + 1
        return begin, length


@dataclass(frozen=True)
class Schedule:
    """A number or a function of t whose values are held to a range, each time it is asked.

    A number is checked when the schedule is made, a function at every t it is called with.
    """

    rule: float | Callable[[int], float]
    name: str
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    infinite: bool = False

    def __post_init__(self) -> None:
        if not callable(self.rule):
            object.__setattr__(self, "rule", self._checked(self.rule, self.name))

    def __call__(self, t: int) -> float:
        if isinstance(self.rule, float):
            return self.rule
        return self._checked(self.rule(t), f"{self.name} at t = {t}")

    def _checked(self, value: object, name: str) -> float:
        return checks.real(
            value, name, self.low, self.high, above=self.above, infinite=self.infinite
        )

    def __repr__(self) -> str:
        return f"{self.rule:g}" if isinstance(self.rule, float) else _label(self.rule)


#: What is taken for a learning rate, and what a step keeps: "auto" is for `minimize` to fill in.
RateLike: TypeAlias = ScheduleLike | str
Rate: TypeAlias = Schedule | Literal["auto"]


def as_schedule(value: ScheduleLike, name: str, low: float, high: float = math.inf,
                *, above: bool = False, infinite: bool = False) -> Schedule:  # fmt: skip
    """`value` as a schedule with a checked range, one that has another range already included."""
    rule = value.rule if isinstance(value, Schedule) else value
    if not (callable(rule) or checks.is_real(rule)):
        raise TypeError(f"{name} must be a number or a function of t, got {rule!r}.")
    return Schedule(rule, name, low, high, above, infinite)


def as_rate(value: RateLike, *, infinite: bool = False) -> Rate:
    """`value` as a schedule of learning rates; "auto" stays, and is left to the run."""
    if isinstance(value, str) and value == "auto":
        return "auto"
    if not (callable(value) or checks.is_real(value)):
        kind = ValueError if isinstance(value, str) else TypeError
        raise kind(f'learning_rate must be a number, a function of t or "auto", got {value!r}.')
    return as_schedule(value, "learning_rate", 0, above=True, infinite=infinite)


def at(kept: RateLike, t: int) -> float:
    """The value at t of a field in which `as_schedule` or `as_rate` has put a schedule."""
    if isinstance(kept, Schedule):
        return kept(t)
    raise TypeError(
        f"a step needs a learning rate that is a number or a function of t, got {kept!r}, which "
        "minimize alone can do without."
    )


def as_probability(value: ScheduleLike | None) -> Schedule | None:
    """`value` as a schedule of probabilities; None stays None."""
    return None if value is None else as_schedule(value, "probability", 0, 1)


@dataclass(frozen=True)
class Share:
    """b_t = max(1, m // parts): the paper's constant batch sizes, a hundredth of the data."""

    parts: int = 100

    def __post_init__(self) -> None:
        checks.integer(self.parts, "parts", 1)

    def __call__(self, t: int, n_terms: int) -> int:
        return max(1, n_terms // self.parts)


@dataclass(frozen=True)
class QuadraticGrowth:
    """b_t = min(m, max(1, ceil(t^2 / sqrt(m)))): SFW and AdaSFW (section 4.1)."""

    def __call__(self, t: int, n_terms: int) -> int:
        return min(n_terms, max(1, math.ceil(t * t / math.sqrt(n_terms))))


@dataclass(frozen=True)
class LinearGrowth:
    """b_t = min(max(1, m // 10), max(1, t)): SVRF and AdaSVRF (section 4.1)."""

    def __call__(self, t: int, n_terms: int) -> int:
        return min(max(1, n_terms // 10), max(1, t))


@dataclass(frozen=True)
class Doubling:
    """b_t = min(m, 2^floor(log2(t + 1))): SPIDER-FW (section 4.1)."""

    def __call__(self, t: int, n_terms: int) -> int:
        return min(n_terms, 1 << ((t + 1).bit_length() - 1))


@dataclass(frozen=True)
class GivenBatch:
    """A user's b_t, rounded up; more than m is allowed, as indices are drawn with replacement."""

    rule: Schedule

    def __call__(self, t: int, n_terms: int) -> int:
        return math.ceil(self.rule(t))

    def __repr__(self) -> str:
        return repr(self.rule)


#: (t, m) -> b_t, an integer >= 1.
BatchSize: TypeAlias = Callable[[int, int], int]
BatchSizeRule: TypeAlias = Share | QuadraticGrowth | LinearGrowth | Doubling | GivenBatch
#: What is taken for a batch size: a number, a function of t, or one of the rules above.
BatchSizeLike: TypeAlias = ScheduleLike | BatchSizeRule


def as_batch_size(value: BatchSizeLike | None, default: BatchSizeRule) -> BatchSizeRule:
    """A batch-size rule: `default` for None, a number or a function of t rounded up."""
    if value is None:
        return default
    if isinstance(value, BatchSizeRule):
        return value
    return GivenBatch(as_schedule(value, "batch_size", 0, above=True))


def _label(rule: object) -> str:
    return repr(rule) if is_dataclass(rule) else getattr(rule, "__name__", "f(t)")
