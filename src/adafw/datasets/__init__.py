"""Data: generators here, files of the literature through a data directory."""

from adafw.datasets.libsvm import read_libsvm, write_libsvm
from adafw.datasets.parts import libsvm_to_parts, load_parts, save_parts
from adafw.datasets.synthetic import support_vector

__all__ = [
    "libsvm_to_parts",
    "load_parts",
    "read_libsvm",
    "save_parts",
    "support_vector",
    "write_libsvm",
]
