"""Data: generators, files of the literature through a data directory, LIBSVM text, mapped parts.

Loaders return a `Dataset`, which says what it is; generators and readers plain (A, y).
"""

from adafw.datasets.dataset import Dataset
from adafw.datasets.files import from_libsvm, from_parts
from adafw.datasets.images import cifar10, fashion_mnist
from adafw.datasets.store import DataMissing, data_directory
from adafw.datasets.synthetic import (
    correlated_regression,
    low_rank,
    matching,
    support_vector,
    text_like,
)
from adafw.datasets.text import imdb, rcv1, tiny_shakespeare
from adafw.datasets.year_msd import standardised, year_prediction
from adafw.io.libsvm import read_libsvm, write_libsvm
from adafw.io.parts import libsvm_to_parts, load_parts, save_parts

__all__ = [
    "DataMissing",
    "Dataset",
    "cifar10",
    "correlated_regression",
    "data_directory",
    "fashion_mnist",
    "from_libsvm",
    "from_parts",
    "imdb",
    "libsvm_to_parts",
    "load_parts",
    "low_rank",
    "matching",
    "rcv1",
    "read_libsvm",
    "save_parts",
    "standardised",
    "support_vector",
    "text_like",
    "tiny_shakespeare",
    "write_libsvm",
    "year_prediction",
]
