"""Where the data of networks come from: files, similar ones, and generated stand-ins."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adafw import datasets

Arrays = dict[str, NDArray[Any]]
Split = Literal["train", "test"]
Splits = dict[Split, Arrays]
SPLITS: tuple[Split, ...] = ("train", "test")
WINDOW = 64  # characters that the network for texts looks at
_VOCABULARY = 8185
_STAND_IN_SIZES = {"train": 2_000, "test": 1_000}


@dataclass(frozen=True)
class DataSource:
    """A data set by name: what it is called, which network it is for, how its arrays are made.

    `places`: descriptions and readers, the data set itself first, then what is like it.
    `pick(arrays, rows)` takes some samples out of its arrays.
    """

    title: str
    network: str
    places: tuple[tuple[str, Callable[[], Splits]], ...]
    generate: Callable[[], Splits]
    pick: Callable[[Arrays, NDArray[np.int64]], Arrays]


# Texts -----------------------------------------------------------------------------------------


def _imdb() -> Splits:
    data = datasets.imdb()
    return {
        split: {
            "ids": getattr(data, f"ids_{split}"),
            "offsets": getattr(data, f"offsets_{split}"),
            "y": getattr(data, f"y_{split}"),
        }
        for split in SPLITS
    }


def _pick_texts(arrays: Arrays, rows: NDArray[np.int64]) -> Arrays:
    ids, offsets = arrays["ids"], arrays["offsets"]
    texts = [ids[offsets[i] : offsets[i + 1]] for i in rows]
    ends = np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64)
    return {"ids": np.concatenate(texts), "offsets": ends, "y": arrays["y"][rows]}


def _generated_texts() -> Splits:
    """Words of Zipf's law; a tenth of a text's words come from the lexicon of its class."""
    rng = np.random.default_rng(0)
    lexicon = rng.permutation(np.arange(100, _VOCABULARY))[:800].reshape(2, 400)
    chance = 1 / np.arange(1, _VOCABULARY)
    chance /= chance.sum()
    made: Splits = {}
    for split in SPLITS:
        m = _STAND_IN_SIZES[split]
        lengths = rng.integers(40, 200, size=m)
        y = rng.integers(0, 2, size=m).astype(np.uint8)
        ids = 1 + rng.choice(_VOCABULARY - 1, size=lengths.sum(), p=chance)
        own = lexicon[np.repeat(y, lengths), rng.integers(0, 400, size=len(ids))]
        ids = np.where(rng.random(len(ids)) < 0.1, own, ids).astype(np.uint16)
        made[split] = {"ids": ids, "offsets": np.cumsum([0, *lengths], dtype=np.int64), "y": y}
    return made


# Images ----------------------------------------------------------------------------------------


def _cifar10() -> Splits:
    data = datasets.cifar10()
    return {
        split: {
            "x": np.ascontiguousarray(getattr(data, f"x_{split}").transpose(0, 3, 1, 2)),
            "y": getattr(data, f"y_{split}"),
        }
        for split in SPLITS
    }


def _generated_images() -> Splits:
    """A smooth pattern for each of ten classes, shifted at random, in noise."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(60, 196, size=(10, 3, 8, 8))
    patterns = coarse.repeat(4, axis=2).repeat(4, axis=3)
    made: Splits = {}
    for split in SPLITS:
        y = rng.integers(0, 10, size=_STAND_IN_SIZES[split]).astype(np.uint8)
        shifts = rng.integers(-4, 5, size=(len(y), 2))
        clean = [
            np.roll(patterns[c], tuple(s), axis=(1, 2)) for c, s in zip(y, shifts, strict=True)
        ]
        noisy = np.array(clean) + rng.normal(scale=40, size=(len(y), 3, 32, 32))
        made[split] = {"x": noisy.clip(0, 255).astype(np.uint8), "y": y}
    return made


def _pick_rows(arrays: Arrays, rows: NDArray[np.int64]) -> Arrays:
    return {name: array[rows] for name, array in arrays.items()}


def _fashion() -> Splits:
    data = datasets.fashion_mnist()
    return {
        split: {"x": getattr(data, f"x_{split}")[..., 0], "y": getattr(data, f"y_{split}")}
        for split in SPLITS
    }


def _grey_cifar10() -> Splits:
    """The inner 28 x 28 pixels of CIFAR-10's images in grey, by the weights of Rec. 601."""
    weights = np.array([0.299, 0.587, 0.114])
    data = datasets.cifar10()
    return {
        split: {
            "x": (getattr(data, f"x_{split}")[:, 2:-2, 2:-2] @ weights).round().astype(np.uint8),
            "y": getattr(data, f"y_{split}"),
        }
        for split in SPLITS
    }


def _generated_clothes() -> Splits:
    made = _generated_images()
    return {split: {"x": made[split]["x"][:, 0, 2:-2, 2:-2], "y": made[split]["y"]}
            for split in SPLITS}  # fmt: skip


# Characters ------------------------------------------------------------------------------------


def _shakespeare() -> Splits:
    return _windows(datasets.tiny_shakespeare().ids)


def _windows(ids: NDArray[np.uint8]) -> Splits:
    """Windows of a text one after the other, the last tenth to test; y is x one character on."""
    count = (len(ids) - 1) // WINDOW
    x = ids[: count * WINDOW].reshape(count, WINDOW)
    y = ids[1 : count * WINDOW + 1].reshape(count, WINDOW)
    cut = count - count // 10
    return {"train": {"x": x[:cut], "y": y[:cut]}, "test": {"x": x[cut:], "y": y[cut:]}}


def _generated_plays() -> Splits:
    """Words of one to eight letters, drawn by Zipf's law, and spaces."""
    rng = np.random.default_rng(0)
    words = [rng.integers(1, 27, size=n) for n in rng.integers(1, 9, size=300)]
    chance = 1 / np.arange(1, 301)
    drawn = rng.choice(300, size=30_000, p=chance / chance.sum())
    pieces = [piece for i in drawn for piece in (words[i], [0])]
    return _windows(np.concatenate(pieces).astype(np.uint8))


SOURCES = {
    "imdb": DataSource(
        "IMDB", "ImdbNet", (("reviews in 8 185 subwords", _imdb),), _generated_texts, _pick_texts
    ),
    "cifar10": DataSource(
        "CIFAR-10", "CifarNet", (("colour images in ten classes", _cifar10),), _generated_images,
        _pick_rows,
    ),
    "fashion": DataSource(
        "Fashion-MNIST", "FashionNet",
        (("grey images in ten classes", _fashion),
         ("CIFAR-10 in grey, 28 x 28 pixels of it", _grey_cifar10)),
        _generated_clothes, _pick_rows,
    ),
    "shakespeare": DataSource(
        "Tiny Shakespeare", "CharNet", (("plays as characters, 64 at once", _shakespeare),),
        _generated_plays, _pick_rows,
    ),
}  # fmt: skip
