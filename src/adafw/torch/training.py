"""The training loop, which lives with the experiments: kept here for old imports."""

from adafw.experiments.networks.loop import train

__all__ = ["train"]
