"""A cluster that is lost in the middle of anything: its state goes on as if nothing had been."""

import numpy as np
import pytest

import adafw
from adafw.gradients import SAGA
from adafw.objectives.base import Unavailable
from adafw.steps import FrankWolfeStep

pytest.importorskip("distributed", reason="needs Dask: pip install 'adafw[dask]'")

SET = adafw.L1Ball(4.0)
MEASURED = ("iteration", "value", "gap", "nonzeros")
COUNTED = ("gradient_evaluations", "lmo_calls", "projections")


class Losses:
    """Every question counts; the one of number `at` finds no one there."""

    def __init__(self, model, monkeypatch):
        self.model, self.asked, self.at = model, 0, None
        engine = model.rows.plain[0].engine
        ask = engine.ask

        def flaky(*words, **how):
            self.asked += 1
            if self.asked == self.at:
                raise Unavailable("planted")
            return ask(*words, **how)

        monkeypatch.setattr(engine, "ask", flaky)

    def run(self, algorithm, at=None, **how):
        self.model.value(np.full(14, 0.1))  # what it remembers is of nowhere on the way
        self.model.predictions(np.full(14, 0.1))
        self.asked, self.at = 0, at
        return adafw.minimize(
            self.model, SET, algorithm, max_iterations=9, record_every=3, path="generic", **how
        )


@pytest.mark.parametrize(
    "algorithm",
    [
        adafw.Corrective(), adafw.AFW(), adafw.LSVRFW(), adafw.AdaSVRF(learning_rate=0.3),
        adafw.AdaFW(), adafw.AdaSPIDERFW(), adafw.AdaGrad(),
    ],
    ids=lambda algorithm: algorithm.name,
)  # fmt: skip
def test_wherever_the_cluster_is_lost(model, monkeypatch, algorithm):
    """To the bit, counts included: nothing of the iteration that was cut off is left."""
    losses = Losses(model, monkeypatch)
    losses.run(algorithm)  # some things are asked for once, by whoever comes first
    whole = losses.run(algorithm)
    times = np.random.default_rng(3).choice(np.arange(2, losses.asked + 1), 5, replace=False)
    for at in sorted(times.tolist()):
        with pytest.raises(Unavailable, match="planted") as lost:
            losses.run(algorithm, at)
        again = losses.run(algorithm, state=lost.value.state)
        np.testing.assert_array_equal(again.x, whole.x)
        for column in MEASURED:
            np.testing.assert_array_equal(again.trace[column], whole.trace[column])
        for column in COUNTED:  # a search that was cut off counts at the next record
            assert again.trace[column][-1] == whole.trace[column][-1]


@pytest.mark.parametrize("algorithm", [adafw.SFW(batch_size=3), adafw.LSVRFW()], ids=str)
def test_a_regression_with_an_intercept_goes_on_as_well(model, monkeypatch, algorithm):
    """Its rows are those less their mean, and as far away."""
    rows = model.rows.centred()[0]
    losses = Losses(adafw.LinearModel(rows, model.y, adafw.losses.Squared()), monkeypatch)
    losses.run(algorithm)
    whole = losses.run(algorithm)
    for at in (3, losses.asked // 2, losses.asked - 2):
        with pytest.raises(Unavailable, match="planted") as lost:
            losses.run(algorithm, at)
        again = losses.run(algorithm, state=lost.value.state)
        np.testing.assert_array_equal(again.x, whole.x)
        for column in COUNTED:
            assert again.trace[column][-1] == whole.trace[column][-1]


class Asking(FrankWolfeStep):
    """A user's step that asks f something after the estimate has been made."""

    def update(self, f, constraint, x, g, t, state):
        f.gradient(x + t + 1)
        return super().update(f, constraint, x, g, t, state)


def test_a_state_that_cannot_go_on_says_so(model, monkeypatch):
    """SAGA's table has moved, x has not: no one could tell where to go on from."""
    losses = Losses(model, monkeypatch)
    algorithm = adafw.Algorithm(SAGA(), Asking())
    losses.run(algorithm)
    for at in range(2, losses.asked + 1):
        with pytest.raises(Unavailable) as lost:
            losses.run(algorithm, at)
        if lost.value.state.torn:
            break
    with pytest.raises(ValueError, match="in the middle of an iteration"):
        losses.run(algorithm, state=lost.value.state)
