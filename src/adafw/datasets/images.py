"""Images: CIFAR-10."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adafw.datasets import store

_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)


@dataclass(frozen=True, eq=False)
class Images:
    """Images as uint8 arrays (number, height, width, channel) and their classes."""

    x_train: NDArray[np.uint8] = field(repr=False)
    y_train: NDArray[np.uint8] = field(repr=False)
    x_test: NDArray[np.uint8] = field(repr=False)
    y_test: NDArray[np.uint8] = field(repr=False)
    classes: tuple[str, ...]
    name: str


def cifar10() -> Images:
    """CIFAR-10: 50 000 + 10 000 colour images, 32 x 32, ten classes (Krizhevsky 2009).

    From cifar10.npz in the data directory, which holds differences of neighbouring pixels.
    """
    path = store.find("cifar10.npz")
    if path is None:
        raise store.missing("CIFAR-10", ("cifar10.npz",))
    names = ("r_train", "y_train", "r_test", "y_test")
    train, y_train, test, y_test = store.arrays(path, *names)
    return Images(_decoded(train), y_train, _decoded(test), y_test, _CLASSES, "CIFAR-10")


def _decoded(differences: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Undoes, modulo 256, differences along rows and columns and of red and blue to green."""
    pixels = differences.cumsum(axis=2, dtype=np.uint8).cumsum(axis=3, dtype=np.uint8)
    pixels[[0, 2]] += pixels[1]
    return np.ascontiguousarray(pixels.transpose(1, 2, 3, 0))
