"""The public names of adafw.metrics, imported when the first of them is asked for."""

from adafw.metrics.adabound import AdaBound
from adafw.metrics.adadelta import AdaDelta
from adafw.metrics.adagrad import AdaGrad
from adafw.metrics.adam import Adam
from adafw.metrics.amsgrad import AMSGrad
from adafw.metrics.base import Metric
from adafw.metrics.clipped import Clipped
from adafw.metrics.rmsprop import RMSProp

__all__ = ["AMSGrad", "AdaBound", "AdaDelta", "AdaGrad", "Adam", "Clipped", "Metric", "RMSProp"]
