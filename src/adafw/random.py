"""Where indices come from: generators as plain words, to be saved without pickle, and blocks."""

from functools import lru_cache
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import DTypeLike, NDArray

from adafw import checks

Words = NDArray[np.uint64]
_KINDS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
#: The state of a bit generator: words, integers and more such dicts, as numpy has it.
_BitState: TypeAlias = dict[str, Any]
#: The first word of `Blocks`: then come the rows of a block and the words of its generator.
_BLOCKS = len(_KINDS)


class IndexSource(Protocol):
    """What draws rows: a numpy Generator, `Blocks`, or an object of a user's own."""

    def integers(self, low: int, high: int, size: int | None) -> Any:
        """`size` integers from low to high - 1; a single one if size is None."""


#: What the stream of indices begins from.
Seed: TypeAlias = "int | np.integer[Any] | IndexSource"


class Blocks:
    """Batches of neighbouring rows: an index source for data that are read from a disk.

    A batch of b rows is made of ceil(b / rows) blocks s, s + 1, .., s + rows - 1 (mod m), their
    first rows s drawn i.i.d. uniform over all m; the last block is cut so that there are b. Every
    row of a batch is uniform, so means over a batch are unbiased, as with i.i.d. rows; rows of one
    block come together, so their variance is larger where neighbours are alike: shuffle once.

    Parameters
    ----------
    seed : an int, or a numpy Generator, which draws the first rows.
    rows : of a block. 1000 rows of text are a megabyte: a disk reads them as fast as a whole file.
    """

    def __init__(self, seed: Seed = 0, rows: int = 1000) -> None:
        source = as_source(seed)
        if not isinstance(source, np.random.Generator):
            raise TypeError(
                f"the seed of Blocks must be an integer >= 0 or a numpy Generator, got {seed!r}."
            )
        self.generator = source
        self.rows = checks.integer(rows, "rows", 1)

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """Of the generator that draws first rows: its state is all that changes."""
        return self.generator.bit_generator

    def integers(self, low: int, high: int, size: int | None = None) -> Any:
        """`size` integers from low to high - 1, in blocks; a single one if size is None."""
        if size is None:
            return self.generator.integers(low, high)
        first = self.generator.integers(0, high - low, size=-(-size // self.rows))
        batch = (first[:, None] + np.arange(self.rows)) % (high - low)
        return low + batch.ravel()[:size]

    def __repr__(self) -> str:
        return f"Blocks(rows={self.rows})"


def as_source(seed: Seed) -> IndexSource:
    """What draws the indices: a numpy Generator made from an int, or the object as it is."""
    if isinstance(seed, np.random.Generator) or callable(getattr(seed, "integers", None)):
        return cast(IndexSource, seed)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise TypeError(
            "seed must be an integer >= 0, a numpy Generator, or an object with "
            f"integers(low, high, size), got {seed!r}."
        )
    return np.random.default_rng(int(seed))


def seeded(seed: Seed) -> Words | IndexSource:
    """The same, an int as the words of its generator: making one takes as long as a small step."""
    own = isinstance(seed, bool) or callable(getattr(seed, "integers", None))
    if own or not isinstance(seed, int) or seed < 0:
        return as_source(seed)
    return _words(int(seed)).copy()


@lru_cache(maxsize=64)
def _words(seed: int) -> Words:
    return cast(Words, freeze(as_source(seed)))


def freeze(source: Words | IndexSource) -> Words | IndexSource:
    """A Generator as unsigned 64-bit words: its kind, then its state; others stay."""
    if isinstance(source, Blocks):
        words = freeze(source.generator)
        if not isinstance(words, np.ndarray):
            return source
        return np.concatenate([np.array([_BLOCKS, source.rows], np.uint64), words])
    if not isinstance(source, np.random.Generator):
        return source
    state = dict(source.bit_generator.state)
    if state["bit_generator"] not in _KINDS:
        return source
    found = [_KINDS.index(state["bit_generator"])]
    for leaf in _leaves(state):
        # A leaf is an array of words or an integer of up to 128 bits, written as two words.
        found += [int(w) for w in leaf] if isinstance(leaf, np.ndarray) else _split(int(leaf))
    return np.array(found, dtype=np.uint64)


def thaw(words: Words | IndexSource | None) -> IndexSource:
    """The inverse of `freeze`."""
    if not isinstance(words, np.ndarray):
        return cast(IndexSource, words)
    left = words.tolist()
    if left[0] == _BLOCKS:
        return Blocks(thaw(words[2:]), left[1])
    bits = getattr(np.random, _KINDS[left.pop(0)])(_Unseeded())  # the words replace it
    bits.state = _fill(bits.state, left)
    return np.random.Generator(bits)


class _Unseeded(ISeedSequence):
    """Zeros for a seed: hashing a real one takes longer than a small problem's iteration."""

    def generate_state(self, n_words: int, dtype: DTypeLike = np.uint32) -> NDArray[Any]:
        return np.zeros(n_words, dtype)


def _leaves(state: _BitState) -> list[Any]:
    found: list[Any] = []
    for key in sorted(state):
        if isinstance(state[key], dict):
            found += _leaves(state[key])
        elif not isinstance(state[key], str):
            found.append(state[key])
    return found


def _fill(template: _BitState, words: list[int]) -> _BitState:
    filled: _BitState = {}
    for key in sorted(template):
        old = template[key]
        if isinstance(old, dict):
            filled[key] = _fill(old, words)
        elif isinstance(old, str):
            filled[key] = old
        elif isinstance(old, np.ndarray):
            filled[key] = np.array([words.pop(0) for _ in old], dtype=old.dtype)
        else:
            filled[key] = words.pop(0) << 64 | words.pop(0)
    return filled


def _split(number: int) -> list[int]:
    return [number >> 64, number & (1 << 64) - 1]
