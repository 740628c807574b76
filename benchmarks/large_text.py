"""Text-like data of any size, written as LIBSVM text in bounded memory.

python benchmarks/large_text.py big.svm --gigabytes 10 [--vw big.vw]

Rows are documents: log-normal lengths, about 75 terms of a million with the frequencies of Zipf's
law, weights (1 + ln count) times a rarity, norm 1, four decimals. The label is the sign of a
planted model with 2 000 terms, 5 % flipped. Every block of rows has a seed of its own.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from adafw.kernels.jit import jit

TERMS, PLANTED, SHIFT = 1_000_000, 2_000, 50.0
BLOCK = 50_000  # rows written at a time


def planted(seed: int = 0) -> Any:
    """The model behind the labels, and the score above which a label is +1."""
    rng = np.random.default_rng([seed, 0])
    # Frequent terms among them, else most documents would have no term of the model.
    spread = SHIFT * (((TERMS + SHIFT) / SHIFT) ** rng.random(PLANTED) - 1)
    u = np.zeros(TERMS)
    u[np.minimum(spread.astype(np.int64), TERMS - 1)] = rng.standard_normal(PLANTED)
    return u


def block(number: int, u: Any, cut: float, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """(starts, terms counted from 1, weights in 1e-4, labels) of one block of rows."""
    rng = np.random.default_rng([seed, 1 + number])
    lengths = 1 + rng.poisson(85 * rng.lognormal(-0.18, 0.6, BLOCK))
    draws = SHIFT * (((TERMS + SHIFT) / SHIFT) ** rng.random(lengths.sum()) - 1)
    terms = np.minimum(draws.astype(np.int64), TERMS - 1).astype(np.uint32)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    out_starts = np.zeros(BLOCK + 1, np.int64)
    weights, scores = np.empty(terms.size, np.uint32), np.empty(BLOCK)
    _documents(starts, terms, u, out_starts, weights, scores)
    size = out_starts[-1]
    labels = np.where(scores > cut, 1, -1) * np.where(rng.random(BLOCK) < 0.05, -1, 1)
    return out_starts, terms[:size] + 1, weights[:size], labels


@jit
def _documents(starts: Any, terms: Any, u: Any, out_starts: Any, weights: Any, scores: Any) -> None:
    """Terms of each document sorted, repeats counted, weighed and scaled, closed up in place."""
    size = 0
    for i in range(starts.size - 1):
        words = np.sort(terms[starts[i] : starts[i + 1]])
        first, k = size, 0
        values = np.empty(words.size)
        square = score = 0.0
        while k < words.size:
            count, j = 1, words[k]
            while k + count < words.size and words[k + count] == j:
                count += 1
            value = (1.0 + np.log(count)) * (1.0 + np.log(1.0 + j / SHIFT))
            terms[size], values[size - first] = j, value
            square += value * value
            score += value * u[j]
            size += 1
            k += count
        for k in range(first, size):
            weights[k] = max(1, int(1e4 * values[k - first] / np.sqrt(square) + 0.5))
        scores[i] = score / np.sqrt(square)
        out_starts[i + 1] = size


@jit
def _text(starts: Any, terms: Any, weights: Any, labels: Any, bar: bool, out: Any) -> int:
    """LIBSVM lines, or Vowpal Wabbit's with a bar, into out; returns the bytes written."""
    at = 0
    digits = np.empty(20, np.uint8)
    for i in range(labels.size):
        out[at], out[at + 1] = 43 if labels[i] > 0 else 45, 49
        at += 2
        if bar:
            out[at], out[at + 1] = 32, 124
            at += 2
        for k in range(starts[i], starts[i + 1]):
            out[at] = 32
            at += 1
            j, size = terms[k], 0
            while j > 0:
                digits[size] = 48 + j % 10
                j //= 10
                size += 1
            for d in range(size):
                out[at + d] = digits[size - 1 - d]
            at += size
            out[at], out[at + 1], value = 58, 46, weights[k]
            at += 2
            if value >= 10000:  # 1.0000
                out[at - 1] = 49
                continue
            for d in range(4):
                out[at + 3 - d] = 48 + value % 10
                value //= 10
            at += 4
        out[at] = 10
        at += 1
    return at


def threshold(u: Any, seed: int) -> float:
    """The median score of a block that is not written."""
    number = 10**9
    starts, terms, weights, _ = block(number, u, 0.0, seed)
    scores = np.add.reduceat(u[terms - 1] * weights, starts[:-1]) * 1e-4
    return float(np.median(scores))


def write(path: str, size: float, vw: str | None, first: int, seed: int) -> int:
    """Blocks from number `first` on until the file has that many bytes; returns its rows."""
    u = planted(seed)
    cut, number, rows, written = threshold(u, seed), first, 0, 0
    with open(path, "wb") as svm, open(vw or "/dev/null", "wb") as other:
        while written < size:
            starts, terms, weights, labels = block(number, u, cut, seed)
            room = np.empty(16 * terms.size + 8 * labels.size, np.uint8)
            for file, bar in ((svm, False), (other, True)):
                if file is svm or vw:
                    count = _text(starts, terms, weights, labels, bar, room)
                    file.write(room[:count].data)
                    written += 0 if bar else count
            number, rows = number + 1, rows + BLOCK
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--vw", help="the same in Vowpal Wabbit's notation")
    parser.add_argument("--first", type=int, default=0, help="number of the first block")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rows = write(given.path, 1e9 * given.gigabytes, given.vw, given.first, given.seed)
    print(f"{rows} rows, {Path(given.path).stat().st_size / 1e9:.3f} GB")
