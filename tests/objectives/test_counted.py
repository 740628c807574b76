import numpy as np
import pytest

import adafw


def test_it_counts_what_was_really_evaluated(logistic):
    counted = adafw.Counted(logistic)
    x = np.zeros(12)
    counted.value(x)
    counted.gradient(x)
    counted.gradient(x, np.array([1, 1, 2]))
    counted.slopes(x, np.array([4]))
    assert (counted.values, counted.gradients) == (1, 60 + 3 + 1)


def test_a_run_does_no_more_than_the_textbook_says(logistic):
    counted = adafw.Counted(logistic)
    r = adafw.minimize(counted, adafw.L1Ball(1.0), adafw.SVRF(), max_iterations=30)
    measured = 60 * len(r.trace)
    assert counted.gradients == r.trace[-1].gradient_evaluations + measured
    assert counted.values == len(r.trace)


def test_csfw_is_refused_for_a_sum_that_is_not_separable():
    counted = adafw.Counted(adafw.UserSum(2, lambda x: 0.0, lambda x, batch: x))
    with pytest.raises(TypeError, match="CSFW needs"):
        adafw.minimize(counted, adafw.L1Ball(1.0), adafw.CSFW(), x0=np.zeros(2))
