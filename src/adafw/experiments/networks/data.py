"""Data for networks: IMDB and CIFAR-10, parts of them, and generated stand-ins of their shape."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from adafw import checks, datasets
from adafw.datasets import DataMissing
from adafw.experiments.keys import only
from adafw.io.arrays import write_npy
from adafw.io.atomic import replacing
from adafw.io.mapped import mapped as map_array

Arrays = dict[str, NDArray[Any]]
Split = Literal["train", "test"]
SPLITS: tuple[Split, ...] = ("train", "test")
_VOCABULARY = 8185
_STAND_IN_SIZES = {"train": 2_000, "test": 1_000}


@dataclass(frozen=True, eq=False)
class NetworkData:
    """Arrays by name (y and ids, offsets or x) for training and test, and what they are.

    `pick(arrays, rows)` takes some samples out of such arrays.
    """

    train: Arrays
    test: Arrays
    about: dict[str, Any]
    pick: Callable[[Arrays, NDArray[np.int64]], Arrays]

    def save(self, folder: Path) -> None:
        """One .npy file for each array; the folder is there whole or not at all."""
        with replacing(folder, folder=True) as partial:
            for split in SPLITS:
                for name, array in getattr(self, split).items():
                    write_npy(partial / f"{split}-{name}.npy", array)


def mapped(folder: Path, split: Split) -> Arrays:
    """The arrays of a split that `NetworkData.save` wrote."""
    files = sorted(folder.glob(f"{split}-*.npy"))
    return {f.stem.removeprefix(f"{split}-"): map_array(f) for f in files}


def load(table: Mapping[str, Any], network: str) -> NetworkData:
    """The data of a table {name, source, rows, test_rows}, in an order drawn once for all runs.

    `rows` and `test_rows` keep so many. With source "any", generated data stand in for missing
    files; "stand-in" asks for them; the default is to say what is missing.
    """
    only(table, ("name", "source", "rows", "test_rows"), "data")
    name, source = table.get("name"), table.get("source", "auto")
    if name not in _SOURCES:
        raise ValueError(f"data of a network must be one of {', '.join(_SOURCES)}, got {name!r}.")
    origin = _SOURCES[name]
    if network != origin.network:
        raise ValueError(f"network of {name} must be {origin.network}, got {network!r}.")
    if source not in ("auto", "any", "stand-in"):
        raise ValueError(f"source must be auto, any or stand-in, got {source!r}.")
    found = None
    if source != "stand-in":
        try:
            found = origin.read()
        except DataMissing:
            if source != "any":
                raise
    stand_in = found is None
    whole = origin.generate() if found is None else found
    wanted = {"train": table.get("rows"), "test": table.get("test_rows")}
    kept = {split: _some(whole[split], wanted[split], origin.pick) for split in SPLITS}
    about = _about(origin, whole, kept, stand_in)
    return NetworkData(kept["train"], kept["test"], about, origin.pick)


def _about(origin: "_Source", whole: Any, kept: Any, stand_in: bool) -> dict[str, Any]:
    sizes, all_sizes = ([len(arrays[s]["y"]) for s in SPLITS] for arrays in (kept, whole))
    description = "generated data of its kind" if stand_in else origin.description
    part = sizes != all_sizes
    if part:
        description += ", {} + {} of {} + {} drawn at random".format(*sizes, *all_sizes)
    label = f"{origin.title} ({sizes[0]} to train, {sizes[1]} to test)"
    if stand_in or part:
        label += f", STAND-IN: {description}"
    return {
        "name": origin.title, "description": description, "is_stand_in": stand_in or part,
        "label": label, "shape": sizes,
    }  # fmt: skip


def _some(arrays: Arrays, rows: int | None, pick: Callable[..., Arrays]) -> Arrays:
    n = len(arrays["y"])
    if rows is None or checks.integer(rows, "rows", 1) >= n:
        return arrays
    return pick(arrays, np.random.default_rng(0).permutation(n)[:rows])


# Texts -----------------------------------------------------------------------------------------


def _imdb() -> dict[str, Arrays]:
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


def _generated_texts() -> dict[str, Arrays]:
    """Words of Zipf's law; a tenth of a text's words come from the lexicon of its class."""
    rng = np.random.default_rng(0)
    lexicon = rng.permutation(np.arange(100, _VOCABULARY))[:800].reshape(2, 400)
    chance = 1 / np.arange(1, _VOCABULARY)
    chance /= chance.sum()
    made: dict[str, Arrays] = {}
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


def _cifar10() -> dict[str, Arrays]:
    data = datasets.cifar10()
    return {
        split: {
            "x": np.ascontiguousarray(getattr(data, f"x_{split}").transpose(0, 3, 1, 2)),
            "y": getattr(data, f"y_{split}"),
        }
        for split in SPLITS
    }


def _pick_images(arrays: Arrays, rows: NDArray[np.int64]) -> Arrays:
    return {name: array[rows] for name, array in arrays.items()}


def _generated_images() -> dict[str, Arrays]:
    """A smooth pattern for each of ten classes, shifted at random, in noise."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(60, 196, size=(10, 3, 8, 8))
    patterns = coarse.repeat(4, axis=2).repeat(4, axis=3)
    made: dict[str, Arrays] = {}
    for split in SPLITS:
        y = rng.integers(0, 10, size=_STAND_IN_SIZES[split]).astype(np.uint8)
        shifts = rng.integers(-4, 5, size=(len(y), 2))
        clean = [
            np.roll(patterns[c], tuple(s), axis=(1, 2)) for c, s in zip(y, shifts, strict=True)
        ]
        noisy = np.array(clean) + rng.normal(scale=40, size=(len(y), 3, 32, 32))
        made[split] = {"x": noisy.clip(0, 255).astype(np.uint8), "y": y}
    return made


@dataclass(frozen=True)
class _Source:
    title: str
    description: str
    network: str
    read: Callable[[], dict[str, Arrays]]
    generate: Callable[[], dict[str, Arrays]]
    pick: Callable[[Arrays, NDArray[np.int64]], Arrays]


_SOURCES = {
    "imdb": _Source(
        "IMDB", "reviews in 8 185 subwords", "ImdbNet", _imdb, _generated_texts, _pick_texts
    ),
    "cifar10": _Source(
        "CIFAR-10", "colour images in ten classes", "CifarNet", _cifar10, _generated_images,
        _pick_images,
    ),
}  # fmt: skip
