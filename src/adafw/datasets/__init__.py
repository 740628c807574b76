"""Data: generators here, files of the literature through a data directory."""

from adafw.datasets.synthetic import support_vector

__all__ = ["support_vector"]
