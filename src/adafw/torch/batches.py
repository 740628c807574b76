"""Batches for the training loop, which live with the experiments: kept here for old imports."""

from adafw.experiments.networks.batches import ImageBatches, ReviewBatches, TensorBatches

__all__ = ["ImageBatches", "ReviewBatches", "TensorBatches"]
