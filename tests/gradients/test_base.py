"""What estimators share: draws, coins, and when a sum of slopes is made anew."""

import numpy as np
import pytest

import adafw
from adafw import gradients
from adafw.gradients.base import coin, draw, renews


class Source:
    """An index source that gives what it was told to, and notes what it was asked."""

    def __init__(self, answer):
        self.answer, self.asked = answer, []

    def integers(self, low, high, size):
        self.asked.append((low, high, size))
        return self.answer


def test_a_coin_is_a_number_of_53_bits():
    for bits, toss in ((0, 0.0), (1, 2.0**-53), (2**52, 0.5), (2**53 - 1, 1 - 2.0**-53)):
        source = Source(bits)
        assert coin(source) == toss < 1
        assert source.asked == [(0, 2**53, None)]


def test_a_batch_is_one_call_with_replacement():
    source = Source([3, 3, 1])
    np.testing.assert_array_equal(draw(source, 7, 3), [3, 3, 1])
    assert source.asked == [(0, 7, 3)]


@pytest.mark.parametrize(("n", "size", "epoch"), [(60, 7, 9), (60, 10, 6), (3, 5, 1), (1, 1, 1)])
def test_a_sum_is_made_anew_every_hundred_epochs(n, size, epoch):
    """An epoch that is not a whole number of batches is rounded up; never at t = 0."""
    found = [t for t in range(2000) if renews(t, n, lambda t, n: size)]
    assert found == list(range(100 * epoch, 2000, 100 * epoch))


@pytest.mark.parametrize("gradient", [gradients.CSFW(20), gradients.SAGA(20)], ids=repr)
def test_what_rounding_added_to_a_sum_is_lost_by_then(gradient, logistic):
    """A sum that is off, as by the rounding of many updates, is right again after the renewal."""
    rng, x = np.random.default_rng(0), np.zeros(12)
    state = gradient.init(logistic, x)
    for t in range(299):
        _, state = gradient.update(logistic, x, t, state, rng)
    state["gradient"] = state["gradient"] + 1.0
    _, state = gradient.update(logistic, x, 299, state, rng)
    exact = logistic.combine(state["alpha"])
    np.testing.assert_allclose(state["gradient"], exact + 1.0, atol=1e-12)
    g, state = gradient.update(logistic, x, 300, state, rng)
    np.testing.assert_allclose(state["gradient"], logistic.combine(state["alpha"]), atol=1e-12)
    np.testing.assert_allclose(g, logistic.gradient(x), atol=1e-12)


ESTIMATORS = [
    gradients.Full(), gradients.Minibatch(4), gradients.SVRF(4, k0=1), gradients.StagedSVRG(4),
    gradients.SPIDER(4), gradients.ORGFW(4), gradients.CSFW(4), gradients.SAGA(4),
    gradients.Momentum(4), gradients.LSVRG(4, probability=0.3), gradients.PAGE(4, probability=0.3),
    gradients.LuFreund(4),
]  # fmt: skip


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_layout_is_that_of_the_state(gradient, dtype, regression):
    """States from files are held against it: names, shapes and dtypes, before every iteration."""
    A, y = regression
    f = adafw.LinearModel(A.astype(dtype), y, adafw.losses.Squared())
    rng, x = np.random.default_rng(0), np.zeros(12, dtype)
    state = gradient.init(f, x)
    for t in range(12):
        layout = gradient.layout(f, x, t)
        assert layout.keys() == state.keys()
        for name, value in state.items():
            assert np.shape(layout[name]) == np.shape(value)
            assert np.asarray(layout[name]).dtype.kind == np.asarray(value).dtype.kind
            if isinstance(value, np.ndarray):
                assert layout[name].dtype == value.dtype == dtype
        x = (x + 0.1).astype(dtype)
        _, state = gradient.update(f, x, t, state, rng)


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=repr)
def test_an_exact_point_is_one(gradient, logistic):
    """Where a state says that it holds a point with its gradient; and it says so when it does."""
    rng, path = np.random.default_rng(1), np.random.default_rng(2).normal(size=(20, 12)) / 9
    state, told = gradient.init(logistic, path[0]), []
    for t, x in enumerate(path):
        known = gradient.exact_point(state, t)
        if known is not None:
            told.append(t)
            np.testing.assert_allclose(known[1], logistic.gradient(known[0]), atol=1e-13)
            assert any(np.array_equal(known[0], earlier) for earlier in path[:t])
        _, state = gradient.update(logistic, x, t, state, rng)
    kind = type(gradient)
    if kind in (gradients.SVRF, gradients.StagedSVRG, gradients.LSVRG):
        assert told == list(range(1, 20))
    elif kind is gradients.SPIDER:
        assert told == [1, 2, 4, 8, 16]
    elif kind is gradients.PAGE:
        assert told == [1, 7]  # by this coin
    else:
        assert told == []


@pytest.mark.parametrize("gradient", ESTIMATORS, ids=repr)
def test_what_estimators_say_of_themselves(gradient, logistic):
    kind = type(gradient)
    assert gradient.exact == (kind is gradients.Full)
    assert gradient.recursive == (kind in (gradients.SPIDER, gradients.PAGE))
    state = gradient.init(logistic, np.zeros(12))
    _, state = gradient.update(logistic, np.zeros(12), 0, state, np.random.default_rng(0))
    kept = gradient.remembered(state)
    if kind is gradients.CSFW:
        np.testing.assert_allclose(kept, logistic.combine(state["alpha"]), atol=1e-14)
    else:
        assert kept is None
    assert hash(gradient) is not None
    with pytest.raises(AttributeError):
        gradient.batch_size = 3


def test_sizes_of_batches_where_nobody_gives_another():
    """Those of Table 1, and m // 100 where it has none."""
    for kind in (gradients.Minibatch, gradients.ORGFW, gradients.CSFW, gradients.SAGA,
                 gradients.Momentum, gradients.LSVRG, gradients.PAGE, gradients.LuFreund,
                 gradients.StagedSVRG):  # fmt: skip
        assert [kind().b(t, 1234) for t in (0, 1, 50)] == [12, 12, 12]
        assert kind().b(3, 60) == 1
    assert [gradients.SPIDER().b(t, 50) for t in (0, 1, 2, 3, 6, 7, 100)] == [1, 2, 2, 4, 4, 8, 50]
    assert [gradients.SVRF().b(t, 500) for t in (1, 2, 30, 49, 50, 51)] == [1, 2, 30, 49, 50, 50]
    assert gradients.SVRF().k0 == 4
    assert [t for t in range(130) if gradients.SVRF().is_snapshot(t)] == [0, 16, 48, 112]


def test_how_much_is_forgotten_where_nobody_says():
    for t in (0, 1, 7, 100):
        assert gradients.Momentum().forgetting(t) == pytest.approx(min(1, 4 / (t + 8) ** (2 / 3)))
        assert gradients.ORGFW().forgetting(t) == pytest.approx((t + 1) ** (-2 / 3))
        assert gradients.LuFreund().step_size(t) == 2 / (t + 2)
    assert gradients.LuFreund().forgetting is None


@pytest.mark.parametrize(
    ("gradient", "counts"),
    [
        (gradients.Full(), [60, 60, 60, 60]),
        (gradients.Minibatch(4), [4, 4, 4, 4]),
        (gradients.Minibatch(90), [60, 60, 60, 60]),
        (gradients.SVRF(4, k0=0), [60, 60, 8, 60]),
        (gradients.SPIDER(4), [60, 60, 8, 60]),
        (gradients.ORGFW(4), [4, 8, 8, 8]),
        (gradients.CSFW(4), [4, 4, 4, 4]),
        (gradients.SAGA(4), [4, 4, 4, 4]),
        (gradients.Momentum(4), [4, 4, 4, 4]),
        (gradients.LuFreund(4), [60, 4, 4, 4]),
        (gradients.StagedSVRG(4), [60, 8, 8, 8]),
        (gradients.PAGE(4), [60, 60, 60, 60]),
        (gradients.LSVRG(40), [80, 80, 80, 80]),
    ],
    ids=repr,
)
def test_how_many_terms_an_iteration_evaluates_at_most(gradient, counts):
    assert [gradient.evaluations(t, 60) for t in range(4)] == counts


def test_lu_and_freunds_predictions_follow_the_vertices(regression):
    """s_j <- (1 - rho) s_j + rho <a_j, v>, v where the last step went; only of the batch."""
    A, y = regression
    f = adafw.LinearModel(A, y, adafw.losses.Squared())
    m = len(A)
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    path = np.random.default_rng(4).normal(size=(6, A.shape[1]))
    for forgetting in (None, 0.25):
        gradient = gradients.LuFreund(7, step_size=lambda t: 1 / (t + 2), forgetting=forgetting)
        state, s = gradient.init(f, path[0]), A @ path[0]
        for t, x in enumerate(path):
            g, state = gradient.update(f, x, t, state, rng)
            if t:
                batch = np.unique(twin.integers(0, m, size=7))
                v = path[t - 1] + (x - path[t - 1]) * (t + 1)
                rho = 2 * (m / 7) / (2 * (m / 7) + t) if forgetting is None else forgetting
                s[batch] = (1 - rho) * s[batch] + rho * (A[batch] @ v)
            np.testing.assert_allclose(state["predictions"], s, atol=1e-12)
            np.testing.assert_allclose(g, 2 * (s - y) @ A / m, atol=1e-12)


@pytest.mark.parametrize(
    ("gradient", "chance"),
    [
        (gradients.PAGE(15), 15 / 75),  # b / (m + b)
        (gradients.LSVRG(15), 15 / 60),  # b / m
        (gradients.PAGE(15, probability=lambda t: t / 10), 3 / 10),
        (gradients.LSVRG(15, probability=0.0), 0.0),
        (gradients.PAGE(15, probability=1.0), 1.0),
    ],
    ids=repr,
)
def test_the_chance_of_an_exact_gradient(gradient, chance, logistic):
    class Tossed:
        """A coin that falls where it was told to; batches of the first terms."""

        def __init__(self, toss):
            self.toss = toss

        def integers(self, low, high, size):
            return round(self.toss * 2**53) if size is None else np.arange(size)

    x = np.zeros(12)
    _, before = gradient.update(logistic, x + 1, 0, gradient.init(logistic, x), Tossed(0.999))
    assert before["exact"] == 1  # at t = 0 whatever the coin says
    for toss in (chance - 1e-9, chance + 1e-9, 0.99):
        if 0 <= toss < 1:
            g, state = gradient.update(logistic, x, 3, dict(before), Tossed(toss))
            assert state["exact"] == int(toss < chance)
            assert np.array_equal(g, logistic.gradient(x)) == (toss < chance)
            assert gradient.spent(3, 60, state) == (60 if toss < chance else 30)


def test_a_batch_as_large_as_the_data_is_all_of_it():
    rng = np.random.default_rng(0)
    f = adafw.LinearModel(rng.normal(size=(6, 3)), rng.normal(size=6), adafw.losses.Squared())
    x = rng.normal(size=3)
    for size in (6, 7):
        g, _ = adafw.gradients.Minibatch(size).update(f, x, 0, {}, None)  # draws nothing
        np.testing.assert_array_equal(g, f.gradient(x))


def test_averaged_predictions_forget_by_the_schedule_of_this_iteration():
    rng = np.random.default_rng(1)
    f = adafw.LinearModel(rng.normal(size=(6, 3)), rng.normal(size=6), adafw.losses.Squared())
    points, gamma, rho = rng.normal(size=(4, 3)), [0.5, 0.4, 0.3, 0.2], [1.0, 0.9, 0.6, 0.25]
    made = adafw.gradients.LuFreund(6, gamma.__getitem__, rho.__getitem__)
    draws = np.random.default_rng(2)
    _, state = made.update(f, points[0], 0, {}, draws)
    for t in (1, 2, 3):
        before, s = points[t - 1], state["predictions"].copy()
        g, state = made.update(f, points[t], t, state, draws)
        v = before + (points[t] - before) / gamma[t - 1]
        moved = (1 - rho[t]) * s + rho[t] * f.rows.dot(v)
        near = np.isclose(state["predictions"], moved, rtol=1e-12)
        np.testing.assert_array_equal(state["predictions"][~near], s[~near])
        assert near.any()
        np.testing.assert_allclose(g, f.combine(f.slopes_at(state["predictions"]) / 6), rtol=1e-9)
