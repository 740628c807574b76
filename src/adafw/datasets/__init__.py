"""Data: generators here, files of the literature through a data directory."""

from adafw.datasets.libsvm import read_libsvm, write_libsvm
from adafw.datasets.synthetic import support_vector

__all__ = ["read_libsvm", "support_vector", "write_libsvm"]
