"""The terms by which windows of learning_rate="auto" are judged: asked once, in an even order."""

import numpy as np
import pytest

import adafw
from adafw import losses
from adafw.integrity import Damaged
from adafw.kept_sample import KeptSample, _order, check, kept


class Counting:
    """A sum of squares (x - i)^2 / 2 of its terms i, which notes what it is asked."""

    def __init__(self, m):
        self.n_terms, self.asked = m, []

    def gradient(self, x, terms):
        self.asked += list(terms)
        return x - np.mean(terms)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 12, 100, 610, 987, 4096])
def test_an_order_has_every_term_once_and_is_even(m):
    order = _order(m, m)
    assert sorted(order) == list(range(m))
    for size in (1, 2, m // 3, m):
        assert (_order(size, m) == order[:size]).all()
    if m >= 100:
        # Gaps between neighbours of the first twelve: of the golden section none is large.
        gaps = np.diff(np.sort(order[:12]), prepend=np.sort(order[:12])[-1] - m)
        assert gaps.max() <= 0.16 * m
        assert gaps.min() >= 0.03 * m


@pytest.mark.parametrize(("size", "grown"), [(1, 2), (2, 3), (4, 4), (5, 8), (6, 9), (7, 50)])
def test_a_sample_that_grows_asks_only_what_is_new(size, grown):
    f, x = Counting(50), np.array([3.0, -1.0])
    if size == 1:
        size, grown, f.n_terms = 1, 1, 1
    small = KeptSample.at(f, x, size)
    large = small.grown(f, x, grown)
    assert sorted(f.asked) == sorted(_order(grown, f.n_terms))
    once = KeptSample.at(f, x, grown)
    assert large.size == grown
    for one, other in zip(large.halves, once.halves, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
    assert small.grown(f, x, size - 1) is small


def test_means_are_those_of_the_terms():
    f = adafw.LinearModel(np.random.default_rng(0).normal(size=(7, 3)), np.ones(7),
                          losses.Logistic())  # fmt: skip
    x, y, d = np.random.default_rng(1).normal(size=(3, 3))
    one, other = (KeptSample.at(f, point, 7) for point in (x, y))
    assert one.mean(one.slopes(d)) == pytest.approx(f.gradient(x) @ d, rel=1e-13)
    difference = one.less(other)
    assert difference.mean(difference.slopes(d)) == pytest.approx(
        (f.gradient(x) - f.gradient(y)) @ d, rel=1e-13
    )
    assert len(KeptSample.at(f, x, 1).halves) == 1


def test_what_was_kept_is_found_and_damage_is_refused():
    f, x = Counting(9), np.ones(2)
    search = {}
    assert kept(search) is None
    check(search, x, 9)
    KeptSample.at(f, x, 5).put(search)
    check(search, x, 9)
    found = kept(search)
    assert found.size == 5
    assert [h.tolist() for h in found.halves] == [search[f"sample.{k}"].tolist() for k in (0, 1)]
    for changes in ({"sample.size": 10}, {"sample.size": 0}, {"sample.size": 5.0},
                    {"sample.0": np.ones(3)}, {"sample.1": np.full(2, np.nan)},
                    {"sample.2": np.ones(2)}, {"sample.size": 1}):  # fmt: skip
        with pytest.raises(Damaged, match="sample"):
            check({**search, **changes}, x, 9)
    alone = {"sample.size": 1, "sample.0": np.ones(2)}
    with pytest.raises(Damaged, match="sample"):
        check(alone, x, 9)
    check(alone, x, 1)
    for name in search:
        with pytest.raises(Damaged, match="sample"):
            check({k: v for k, v in search.items() if k != name}, x, 9)


@pytest.mark.parametrize("inner", ["frank_wolfe", "corrective"])
def test_a_state_without_a_sample_goes_on(inner):
    """As one saved by a version that kept none: both ends of the open window are asked."""
    rng = np.random.default_rng(0)
    f = adafw.LinearModel(rng.normal(size=(300, 6)), rng.choice([-1.0, 1.0], 300),
                          losses.Logistic())  # fmt: skip
    algorithm, ball = adafw.AdaCSFW(inner=inner), adafw.L1Ball(2.0)
    runs = []
    for forget in (False, True):
        state = adafw.minimize(f, ball, algorithm, max_iterations=155).state
        assert "end" in state.search
        assert "sample.size" in state.search
        if forget:
            state.search = {k: v for k, v in state.search.items() if not k.startswith("sample.")}
        runs.append(adafw.minimize(f, ball, algorithm, max_iterations=165, state=state))
    first, second = runs
    np.testing.assert_array_equal(first.x, second.x)
    # And 12 terms more may be the ones after which a look is due.
    assert second.state.gradient_evaluations >= first.state.gradient_evaluations + 12
