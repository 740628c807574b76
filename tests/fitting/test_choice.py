"""Which algorithm a fit takes, at the borders of sizes and for every kind of set."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import adafw
from adafw import gradients, losses, steps
from adafw.fitting import Settings
from adafw.fitting.choice import automatic, choose, exact, rate_of, search
from adafw.fitting.settings import Plan


def design(n, m=1000, stored=None, by_coordinates=True):
    """What is asked about the size of data, without the data."""
    stored = m * n if stored is None else stored
    rows = SimpleNamespace(shape=(m, n), stored=stored, by_coordinates=by_coordinates)
    return SimpleNamespace(rows=rows, scale=np.arange(1.0, n + 1))


def joint(constraint, outputs=3, rate="auto"):
    return Plan(Settings(learning_rate=rate), losses.Softmax(), constraint, outputs)


@pytest.mark.parametrize(
    ("n", "constraint", "name"),
    [
        (50, adafw.L1Ball(1.0), "Newton"),
        (51, adafw.L1Ball(1.0), "Corrective"),
        (51, adafw.NuclearBall(1.0), "Corrective"),
        (51, adafw.GroupBall(1.0, np.repeat(np.arange(51)[:, None], 3, axis=1)), "Corrective"),
        (51, adafw.GroupBall(1.0, np.arange(153).reshape(51, 3) // 2), "Spectral"),
        (51, adafw.Columns(adafw.Simplex(1.0)), "Spectral"),
        (51, adafw.SpectralBall(1.0), "Spectral"),
        (51, adafw.UserSet(lambda g: g, np.zeros((51, 3))), "FW"),
    ],
)
def test_several_outputs(n, constraint, name):
    chosen = automatic(design(n), joint(constraint))()
    assert chosen.name == name
    if name != "Spectral":
        return
    scale = chosen.step.scale
    if isinstance(constraint, adafw.SpectralBall):  # a metric would cost many decompositions
        assert scale is None
    else:
        np.testing.assert_array_equal(scale.value[:, 2], np.arange(1.0, n + 1))
        assert scale.value.shape == (n, 3)


def test_several_outputs_with_a_rate():
    made = automatic(design(60), joint(adafw.L1Ball(1.0), rate=0.1))(learning_rate=0.1)
    assert made.name == "AdaGrad"
    assert isinstance(made.gradient, gradients.SVRF)
    bare = adafw.UserSet(lambda g: g, np.zeros((60, 3)))
    assert automatic(design(60), joint(bare, rate=0.1)) is adafw.AdaSVRF


def test_rows_that_are_not_known_by_columns_are_not_corrected_jointly():
    rows = design(60, by_coordinates=False)
    assert automatic(rows, joint(adafw.L1Ball(1.0)))().name == "Spectral"


def test_rows_that_are_not_known_by_columns_are_not_corrected():
    ball = adafw.L1Ball(1.0)
    assert exact(design(60, by_coordinates=False), ball, True).name == "Newton"
    assert exact(design(501, by_coordinates=False), ball, True).name == "Spectral"
    assert exact(design(501), ball, True).name == "Corrective"


@pytest.mark.parametrize(
    ("n", "stored", "constraint", "has_hessian", "name"),
    [
        (500, 8_000_000, adafw.LpBall(1.0, 3.0), True, "Newton"),
        (501, 8_000_000, adafw.LpBall(1.0, 3.0), True, "Spectral"),
        (500, 8_000_001, adafw.LpBall(1.0, 3.0), True, "Spectral"),
        (10, 100, adafw.LpBall(1.0, 3.0), False, "Spectral"),
        (10, 100, adafw.L1Ball(1.0), False, "Spectral"),
        (10, 100, adafw.L1Ball(1.0), True, "Corrective"),
        (10, 100, adafw.L2Ball(1.0), True, "Newton"),
        (501, 100, adafw.UserSet(lambda g: g, np.zeros(501)), True, "FW"),
    ],
)
def test_exact_gradients(n, stored, constraint, has_hessian, name):
    chosen = exact(design(n, stored=stored), constraint, has_hessian)
    assert chosen.name == name
    if name == "Spectral":
        np.testing.assert_array_equal(chosen.step.scale.value, np.arange(1.0, n + 1))


def test_large_data():
    """5e7 stored entries are the most that all gradients are computed of."""
    bare = adafw.UserSet(lambda g: g, np.zeros(600))
    for stored, constraint, name in (
        (50_000_000, bare, "FW"), (50_000_001, bare, "CSFW"),
        (50_000_000, adafw.LpBall(1.0, 3.0), "Spectral"),
        (50_000_001, adafw.L1Ball(1.0), "Corrective"),
    ):  # fmt: skip
        settings = Settings(constraint=constraint, loss=losses.Logistic())
        plan = Plan(settings, losses.Logistic(), constraint)
        assert automatic(design(600, stored=stored), plan)().name == name
    plan = Plan(Settings(), losses.Logistic(), adafw.LpBall(1.0, 3.0))
    made = automatic(design(600, stored=50_000_001), plan)(learning_rate=0.5)
    assert (made.name, type(made.gradient)) == ("AdaGrad", gradients.CSFW)


def test_rates_of_algorithms():
    assert rate_of(adafw.FW()) == math.inf
    assert rate_of(adafw.Algorithm(gradients.Full(), steps.NewtonStep())) == 1.0
    assert rate_of(adafw.AdaCSFW(0.3)) == 0.3
    assert math.isnan(rate_of(adafw.AdaCSFW(lambda t: 1 / (t + 1))))
    assert math.isnan(rate_of(adafw.AdaCSFW()))


def test_what_is_given_is_taken():
    def never(preset):
        raise AssertionError("no rate is looked for")

    def chosen(**given):
        plan = Plan(Settings(**given), losses.Logistic(), adafw.L1Ball(1.0))
        return choose(design(20), plan, never)

    own = adafw.AdaCSFW(0.2)
    assert chosen(algorithm=own).algorithm is own
    assert chosen(algorithm="AdaCSFW", learning_rate=0.7).learning_rate == 0.7
    assert chosen(algorithm="FW").learning_rate == math.inf
    with pytest.raises(ValueError, match="must be 'auto' where algorithm is an Algorithm"):
        chosen(algorithm=own, learning_rate=0.1)
    with pytest.raises(ValueError, match="'FW' has no learning rate"):
        chosen(algorithm="FW", learning_rate=0.1)


def test_a_loss_without_second_derivatives_has_no_corrective_steps():
    """Beyond what passes over all data are cheap for, batches are all that is left."""

    class Plain(losses.Logistic):
        second = losses.Loss.second

    plan = Plan(Settings(), Plain(), adafw.L1Ball(1.0))
    made = automatic(design(600, stored=50_000_001), plan)(learning_rate=0.5)
    assert made.name == "AdaGrad"
    assert automatic(design(600, stored=50_000_000), plan)().name == "Spectral"
    small = automatic(design(10, stored=50_000_001), plan)(learning_rate=0.5)
    assert small.name == "AdaGrad"


def test_matrices_have_no_metric_of_their_columns():
    data = design(600)
    data.rows.shape = (1000, 20, 30)
    chosen = exact(data, adafw.LpBall(1.0, 3.0), True)
    assert chosen.name == "Spectral"
    assert chosen.step.scale is None


def test_the_rate_of_an_algorithm_that_is_given_is_told():
    plan = Plan(Settings(algorithm=adafw.AdaCSFW(0.2)), losses.Logistic(), adafw.L1Ball(1.0))
    assert choose(design(20), plan, None).learning_rate == 0.2


def test_a_search_is_short_and_within_its_seconds(monkeypatch):
    asked = []

    def tune(f, constraint, make, **how):
        asked.append((f, constraint, make(0.3).step.learning_rate(0), how))
        return SimpleNamespace(learning_rate=7.0)

    monkeypatch.setattr("adafw.fitting.choice.tune", tune)
    assert search("f", "set", adafw.AdaCSFW, 9.0) == 7.0
    how = {"max_epochs": 5, "record_every": 10**9, "progress": False, "total_seconds": 9.0}
    assert asked == [("f", "set", 0.3, how)]
    search("f", "set", adafw.AdaCSFW)
    assert asked[1][3]["total_seconds"] == math.inf
