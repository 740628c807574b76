"""Problems that several rows share."""

from functools import cache

from data import rcv1

import adafw


@cache
def text_model():
    """Logistic regression on RCV1 (or its shape) over the l1 ball of radius 100."""
    _, A, y = rcv1()
    return adafw.LinearModel(A, y, adafw.losses.Logistic()), adafw.L1Ball(100.0)
