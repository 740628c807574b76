"""Images: CIFAR-10 and Fashion-MNIST."""

import gzip
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path

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


_FASHION = tuple(
    store.Place(
        what="Fashion-MNIST",
        files=(name,),
        sample="",
        url=f"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/{name}",
        checksum=checksum,
    )
    for name, checksum in {
        "train-images-idx3-ubyte.gz":
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte.gz":
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte.gz":
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte.gz":
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }.items()
)  # fmt: skip
_CLOTHES = (
    "T-shirt",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def fashion_mnist() -> Images:
    """Fashion-MNIST: 60 000 + 10 000 grey images, 28 x 28, ten classes (Xiao et al. 2017).

    From the four idx files (train-images-idx3-ubyte.gz and so on) in the data directory; those
    that are missing are downloaded, with checksums.
    """
    shapes = ((60_000, 28, 28), (60_000,), (10_000, 28, 28), (10_000,))
    x, y, x_test, y_test = (
        _idx(place.file(), shape) for place, shape in zip(_FASHION, shapes, strict=True)
    )
    return Images(x[..., None], y, x_test[..., None], y_test, _CLOTHES, "Fashion-MNIST")


def _idx(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The bytes of an idx file: two zeros, 8 for bytes, the number of sides, the sides, numbers."""
    wanted = bytes([0, 0, 8, len(shape)]) + np.array(shape, ">u4").tobytes()
    try:
        with gzip.open(path) as file:
            content = file.read()
    except (OSError, EOFError, zlib.error):  # no gzip file, the beginning of one, or damaged
        content = b""
    if not content.startswith(wanted) or len(content) != len(wanted) + math.prod(shape):
        raise ValueError(
            f"{path} must be an idx file of bytes of shape {shape}, got another or a damaged one; "
            "remove it."
        )
    return np.frombuffer(content, np.uint8, offset=len(wanted)).reshape(shape)
