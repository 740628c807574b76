"""The paper's two neural networks, which live with the experiments: kept here for old imports."""

from adafw.experiments.networks.models import CifarNet, ImdbNet, glorot_

__all__ = ["CifarNet", "ImdbNet", "glorot_"]
