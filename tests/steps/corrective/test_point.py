"""Where a corrective step stands: step lengths along parabolas, moves, intercepts, entries."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.objectives import WithIntercept
from adafw.rows import as_rows
from adafw.steps.corrective.point import ARMIJO, Point, Standpoint, largest_entries


class Bowl(Standpoint):
    """f = size (z - 1)^2 + floor of one number; what was asked for is written down."""

    free = False

    def __init__(self, z=0.0, floor=0.0, size=3.0):
        self.asked, self.floor, self.size = [], floor, size
        self.start(np.array([z]))

    def curves_at(self, z):
        self.asked.append(float(z[0]))
        value = self.size * float(z[0] - 1) ** 2 + self.floor
        return value, 2 * self.size * (z - 1), np.full(1, 2 * self.size)

    def raised_bends(self, dz):
        return np.full(1, 6.0)


@pytest.mark.parametrize(
    ("length", "tried"),
    [
        (0.5, [1.0]),
        (1.9, [1.0]),
        (2.0, [1.0, 0.5]),
        (4.0, [1.0, 0.25]),
        (10.0, [1.0, 0.1]),
        (40.0, [1.0, 0.1, 0.025]),
    ],
)
@pytest.mark.parametrize("size", [3.0, 3e-3])
def test_steps_that_are_too_long_are_cut_to_the_lowest_point(length, tried, size):
    """Of a parabola one look more is enough, at no less than a tenth of the step before."""
    point, dz = Bowl(size=size), np.array([length])
    del point.asked[:]
    t = point.step_size(dz, float(point.slopes @ dz))
    assert t == pytest.approx(tried[-1], rel=1e-12)
    np.testing.assert_allclose(point.asked, np.array(tried) * length)
    point.move(dz, t)
    assert len(point.asked) == len(tried)  # what was tried last costs nothing more
    assert point.z[0] == pytest.approx(t * length)
    assert point.value == pytest.approx(size * (t * length - 1) ** 2, abs=1e-20)
    assert point.slopes[0] == pytest.approx(2 * size * (t * length - 1), abs=1e-12)


def test_a_price_on_the_way_shortens_steps():
    """f(t dz) + t toll has its minimum where f falls by the price: 6 * 3 (3 t - 1) = -9."""
    point, dz = Bowl(), np.array([3.0])
    assert point.step_size(dz, -18 + 9.0, 9.0) == pytest.approx(1 / 6)


def test_a_step_must_reach_its_share_of_the_promise():
    """Lengths just below 2 descend by too little: (z - 1)^2 = 1 - 2 share length there."""
    slope = -6.0
    for length, enough in ((2 - 3 * ARMIJO, True), (2 - 1 * ARMIJO, False)):
        t = Bowl().step_size(np.array([length]), slope * length)
        assert t == (1.0 if enough else 0.5)


def test_rounding_of_the_value_is_no_ascent():
    """1e-15 of it, whatever its sign: a step that changes nothing more is taken as it is."""
    for floor in (0.0, -6.0):
        noise = 4 * np.finfo(float).eps * 3.0
        assert Bowl(floor=floor).step_size(np.zeros(1), -0.8 * noise / ARMIJO) == 1.0
        assert Bowl(floor=floor).step_size(np.zeros(1), -1.2 * noise / ARMIJO) < 1.0


def test_a_promise_that_is_never_kept_is_no_step():
    point = Bowl(1.0, floor=1e-3)
    assert point.step_size(np.array([1.0]), -1e9) == 0.0
    assert len(point.asked) == 1 + 40


class Wall(Bowl):
    """Falls by `fall` a unit up to 0.5; beyond, it is no number that says anything."""

    def __init__(self, fall, beyond):
        self.fall, self.beyond = fall, beyond
        super().__init__()

    def curves_at(self, z):
        super().curves_at(z)
        value = self.beyond if z[0] > 0.5 else 1 - self.fall * float(z[0])
        return value, np.full(1, -self.fall), np.zeros(1)


@pytest.mark.parametrize("beyond", [np.inf, np.nan])
def test_values_that_overflow_cut_a_step_to_a_tenth(beyond):
    point = Wall(2 * ARMIJO, beyond)
    assert point.step_size(np.ones(1), -1.0) == 0.1  # twice the share of its own promise
    assert point.asked[1:] == [1.0, 0.1]


def test_steps_are_at_least_halved():
    """Though a parabola through a value that fell by a little would ask for more."""
    point = Wall(ARMIJO / 2, np.inf)
    assert point.step_size(np.ones(1), -1.0) < 1e-9  # where rounding is more than it promises
    np.testing.assert_array_equal(point.asked[1:4], [1.0, 0.1, 0.05])


def test_a_length_that_was_not_tried_last_is_computed():
    point, dz = Bowl(), np.array([0.5])
    point.move(dz, 0.4)
    assert (point.z[0], point.value) == (0.2, pytest.approx(3 * 0.8**2))
    point.step_size(dz, -1.0)
    point.move(dz, 0.5)
    assert point.z[0] == pytest.approx(0.45)
    asked = len(point.asked)
    point.move(dz, 0.5)  # what was tried before the last move is of no use
    assert len(point.asked) == asked + 1
    assert point.z[0] == pytest.approx(0.7)
    assert point.curves == (point.value, point.slopes, point.bends)


def test_what_is_known_at_the_start_is_not_computed_again():
    point = Bowl()
    del point.asked[:]
    point.start(np.array([2.0]), (3.0, np.array([6.0]), np.array([6.0])))
    assert (point.asked, point.value, point.z[0]) == ([], 3.0, 2.0)


def test_bends_that_were_met_before_a_move_are_not_forgotten():
    point = Bowl()
    assert point.over(np.array([9.0]))[0] == 9.0
    assert point.over(np.array([4.0]))[0] == 6.0


def model(kind="plain", dtype=np.float64, loss=losses.Squared()):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 5)) * (rng.random((30, 5)) < 0.6) + 0.5
    y = A @ rng.standard_normal(5) + 3.0
    y = np.where(y > np.median(y), 1.0, -1.0) if loss.task == "classification" else y
    rows = as_rows(sparse.csr_array(A.astype(dtype)))
    rows = rows.centred()[0] if kind == "centred" else rows
    f = adafw.LinearModel(rows, y.astype(dtype), loss, rng.random(30))
    return (WithIntercept(f) if kind == "intercept" else f), A, rng.standard_normal(5).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["plain", "intercept", "centred"])
def test_a_point_has_the_derivatives_of_the_model(kind, dtype):
    f, A, x = model(kind, dtype)
    point = Point(f, x)
    z = f.rows.dot(x) + (f.best_intercept(x) if kind == "intercept" else 0)
    digits = 1e-5 if dtype == np.float32 else 1e-12
    assert point.z.dtype == np.float64
    assert point.free is (kind != "plain")
    np.testing.assert_allclose(point.z, z, atol=20 * digits)
    rows = f.model if kind == "intercept" else f
    w = rows.sample_weight / rows.sample_weight.sum()
    assert point.value == pytest.approx(f.value(x), rel=digits)
    np.testing.assert_allclose(point.slopes, 2 * w * (z - rows.y), atol=20 * digits)
    np.testing.assert_allclose(point.bends, 2 * w, rtol=digits)
    first = point.rows.dot(np.eye(5, dtype=dtype)[0])  # as they are stored, without a centre
    np.testing.assert_allclose(first, A[:, 0], rtol=1e-6)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.Huber(0.5)])
def test_bends_met_on_the_way_are_secants_of_the_slopes(loss):
    f, _, x = model(loss=loss)
    point = Point(f, x)
    dz = 4 * np.random.default_rng(1).standard_normal(30)
    secant = (point.curves_at(point.z + dz)[1] - point.slopes) / dz
    np.testing.assert_allclose(
        point.raised_bends(dz), np.maximum(point.bends, secant), rtol=1e-9, atol=1e-15
    )


def test_the_intercept_follows_to_second_order():
    """Of squares that is exactly: the slopes sum to 0 after x and b have moved."""
    f, _, x = model()
    point, dx = Point(WithIntercept(f), x), np.array([1.0, 0.0, -2.0, 0.5, 0.0])
    point.start(point.z + 0.7)  # an intercept that is not the best
    dz = f.rows.dot(dx)
    shift = point.shift(float(point.bends @ dz), float(point.bends.sum()))
    point.move(dz + shift, 1.0)
    assert point.slopes.sum() == pytest.approx(0, abs=1e-14)
    assert point.shift(1.0, 0.0) == 0.0
    assert Point(f, x).shift(1.0, 2.0) == 0.0
    bowl = Bowl(3.0)
    bowl.free = True
    assert bowl.shift(0.5, 0.25) == -(12 + 0.5) / 0.25


@pytest.mark.parametrize("kind", ["plain", "intercept"])
def test_a_point_begins_with_what_the_model_remembers(kind):
    class Counted(Point):
        asked = 0

        def curves_at(self, z):
            self.asked += 1
            return super().curves_at(z)

    f, _, x = model(kind)
    f.value_and_gradient(x)
    assert Counted(f, x).asked == 0


def test_largest_entries_and_ties():
    values = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 4.0, 1.0])
    assert largest_entries(values, 1).tolist() == [4]
    assert largest_entries(values, 2).tolist() == [2, 4]
    assert largest_entries(values, 3).tolist() == [2, 4, 5]
    assert largest_entries(values, 5).tolist() == [0, 1, 2, 4, 5]
    assert largest_entries(values, 7).tolist() == largest_entries(values, 9).tolist() == [*range(7)]
    assert largest_entries(-values, 2).tolist() == [1, 3]
