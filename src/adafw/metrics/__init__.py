"""Metrics: the diagonal matrices H_t of adaptive gradients."""

from adafw.metrics.adagrad import AdaGrad
from adafw.metrics.amsgrad import AMSGrad
from adafw.metrics.base import Metric
from adafw.metrics.clipped import Clipped

__all__ = ["AMSGrad", "AdaGrad", "Clipped", "Metric"]
