"""The data of a network: those of a source, or a part of them, or what stands in for them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adafw import checks
from adafw.datasets import DataMissing
from adafw.experiments.keys import only
from adafw.experiments.networks.sources import SOURCES, SPLITS, Arrays, DataSource, Split
from adafw.experiments.spec import About
from adafw.io.arrays import write_npy
from adafw.io.atomic import replacing
from adafw.io.mapped import mapped as map_array
from adafw.typing import Json

__all__ = ["SPLITS", "Arrays", "NetworkData", "Split", "load", "mapped"]


@dataclass(frozen=True, eq=False)
class NetworkData:
    """Arrays by name (y and ids, offsets or x) for training and test, and what they are.

    `pick(arrays, rows)` takes some samples out of such arrays.
    """

    train: Arrays
    test: Arrays
    about: About
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


def load(table: Mapping[str, Json], network: str) -> NetworkData:
    """The data of a table {name, source, rows, test_rows, epoch_rows}, in one order for all runs.

    `rows` and `test_rows` keep so many; `epoch_rows` are drawn for each epoch, all by default. With
    source "any", similar data or generated ones stand in for missing files; "stand-in" asks for
    generated ones; the default is to say what is missing.
    """
    only(table, ("name", "source", "rows", "test_rows", "epoch_rows"), "data")
    name, source = table.get("name"), table.get("source", "auto")
    if name not in SOURCES:
        raise ValueError(f"data of a network must be one of {', '.join(SOURCES)}, got {name!r}.")
    origin = SOURCES[name]
    if network != origin.network:
        raise ValueError(f"network of {name} must be {origin.network}, got {network!r}.")
    if source not in ("auto", "any", "stand-in"):
        raise ValueError(f"source must be auto, any or stand-in, got {source!r}.")
    if table.get("epoch_rows") is not None:
        checks.integer(table["epoch_rows"], "epoch_rows", 1)
    whole, description, stand_in = _found(origin, source)
    wanted = {"train": table.get("rows"), "test": table.get("test_rows")}
    kept = {split: _some(whole[split], wanted[split], origin.pick) for split in SPLITS}
    about = _about(origin.title, description, whole, kept, stand_in)
    return NetworkData(kept["train"], kept["test"], about, origin.pick)


def _found(origin: DataSource, source: str) -> tuple[dict[Split, Arrays], str, bool]:
    """The arrays, what they are, and whether they stand in for the data that are asked for."""
    places = {"auto": origin.places[:1], "any": origin.places, "stand-in": ()}[source]
    for i, (description, read) in enumerate(places):
        try:
            return read(), description, i > 0
        except DataMissing:
            if source == "auto":
                raise
    return origin.generate(), "generated data of its kind", True


def _about(
    title: str,
    description: str,
    whole: Mapping[Split, Arrays],
    kept: Mapping[Split, Arrays],
    stand_in: bool,
) -> About:
    sizes, all_sizes = ([len(arrays[s]["y"]) for s in SPLITS] for arrays in (kept, whole))
    part = sizes != all_sizes
    if part:
        description += ", {} + {} of {} + {} drawn at random".format(*sizes, *all_sizes)
    label = f"{title} ({sizes[0]} to train, {sizes[1]} to test)"
    if stand_in or part:
        label += f", STAND-IN: {description}"
    return {
        "name": title, "description": description, "is_stand_in": stand_in or part,
        "label": label, "shape": sizes,
    }  # fmt: skip


def _some(arrays: Arrays, rows: int | None, pick: Callable[..., Arrays]) -> Arrays:
    n = len(arrays["y"])
    if rows is None or checks.integer(rows, "rows", 1) >= n:
        return arrays
    return pick(arrays, np.random.default_rng(0).permutation(n)[:rows])
