"""The sample of terms on which learning_rate="auto" measures what its windows meet.

Where one window ends the next begins, so a sample that stays is asked once a window, not twice. It
only grows: its terms are the first of a fixed order of all.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adafw.integrity import Damaged, expect, expect_number
from adafw.objectives.base import FiniteSum
from adafw.typing import Array, StateDict

#: Strides of this share of a row visit it evenly, however far they have come.
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class KeptSample:
    """The mean gradients of two halves of the first `size` terms, at some x."""

    halves: tuple[Array, ...]
    size: int

    @classmethod
    def at(cls, f: FiniteSum, x: Array, size: int) -> "KeptSample":
        """Asks so many terms; halves of one term are one."""
        terms, parts = _order(size, f.n_terms), range(min(size, 2))
        return cls(tuple(_gradient(f, x, terms[part::2]) for part in parts), size)

    def grown(self, f: FiniteSum, x: Array, size: int) -> "KeptSample":
        """As many terms at the same x, of which only those that are new are asked."""
        if size <= self.size:
            return self
        terms, halves = _order(size, f.n_terms), []
        for half, known in enumerate(self.halves):
            mine = terms[half::2]
            new = mine[(self.size + 1 - half) // 2 :]
            share = new.size / mine.size
            halves.append(known + share * (_gradient(f, x, new) - known) if new.size else known)
        return KeptSample(tuple(halves), size)

    def less(self, other: "KeptSample") -> "KeptSample":
        """What the terms have here more than there."""
        pairs = zip(self.halves, other.halves, strict=True)
        return KeptSample(tuple(here - there for here, there in pairs), self.size)

    def slopes(self, d: Array) -> list[float]:
        """<g, d> of each half."""
        return [float(np.vdot(half, d)) for half in self.halves]

    def mean(self, numbers: list[float]) -> float:
        """Of what each of the halves has, by how many terms it has."""
        weights = [(self.size + 1 - half) // 2 for half in range(len(numbers))]
        return sum(w * number for w, number in zip(weights, numbers, strict=True)) / self.size

    def put(self, search: StateDict) -> None:
        search["sample.size"] = self.size
        search |= {f"sample.{half}": g for half, g in enumerate(self.halves)}


def kept(search: StateDict) -> KeptSample | None:
    """What `put` has put there, if it has."""
    if "sample.size" not in search:
        return None
    size = search["sample.size"]
    return KeptSample(tuple(search[f"sample.{half}"] for half in range(min(size, 2))), size)


def check(search: StateDict, x: Array, n_terms: int) -> None:
    """Refuses what no run leaves."""
    known = {key for key in search if key.startswith("sample.")}
    if not known:
        return
    expect_number(search.get("sample.size"), "search.sample.size", int, min(2, n_terms), n_terms)
    wanted = {f"sample.{half}" for half in range(min(search["sample.size"], 2))}
    if known != {"sample.size", *wanted}:
        raise Damaged("search.sample", "the halves of a sample", ", ".join(sorted(known)))
    for name in sorted(wanted):
        expect(search[name], f"search.{name}", x)


def _gradient(f: FiniteSum, x: Array, terms: NDArray[np.int64]) -> Array:
    """In the precision of x, as a state is saved."""
    g: Array = f.gradient(x, terms).astype(x.dtype, copy=False)
    return g


def _order(size: int, n_terms: int) -> NDArray[np.int64]:
    """The first `size` of an order in which every term comes once, and its parts evenly."""
    stride = max(1, round(_GOLDEN * n_terms))
    while math.gcd(stride, n_terms) > 1:
        stride += 1
    return (stride * np.arange(size, dtype=np.int64) + n_terms // 2) % n_terms
