import numpy as np
import pytest
from fused_problems import after, fresh, linear_model, same_bits, same_counts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import adafw
from adafw import gradients, paths, solver, steps
from adafw.fused.linear import LinearBalls

FUSED = LinearBalls()
SETS = {"l1": adafw.L1Ball, "linf": adafw.LInfBall}


def algorithm(name, eta=1.0, K=5, batch=None, gamma=None, max_step=1.0):
    if name in ("CSFW", "SVRF", "SAGAFW", "LSVRFW"):
        size = {} if gamma is None else {"step_size": gamma}
        return getattr(adafw, name)(batch_size=batch, **size)
    kind, _, estimate = name.partition(" on ")
    if estimate:
        gradient = getattr(gradients, estimate)(batch)
        if kind == "AdaGrad":
            return adafw.AdaGrad(eta, gradient=gradient)
        return adafw.Algorithm(gradient, steps.AdaptiveStep(eta, K, max_step))
    return getattr(adafw, name)(eta, K, max_step, batch_size=batch)


NAMES = (
    "CSFW", "AdaCSFW", "SVRF", "AdaSVRF", "SAGAFW", "Ada on SAGA", "LSVRFW", "Ada on LSVRG",
    "AdaGrad on CSFW", "AdaGrad on SVRF", "AdaGrad on SAGA", "AdaGrad on LSVRG",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("set_name", ["l1", "linf"])
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_fused_equals_generic_on_random_problems(kind, set_name, name, data):
    draw = data.draw
    m, n = draw(st.integers(1, 40)), draw(st.integers(1, 60))
    # The hinge leaves exact zeros, whose rounding noise sign() would blow up on the linf ball. An
    # estimate made of two gradients may cancel to 0 on one path and to noise on the other.
    hinges = set_name == "l1" and name in ("CSFW", "AdaCSFW", "AdaGrad on CSFW")
    loss = draw(st.sampled_from(["squared", "logistic"] + ["hinge"] * hinges))
    f = linear_model(m, n, draw(st.integers(0, 99)), loss, kind, weighted=draw(st.booleans()))
    constraint = SETS[set_name](draw(st.sampled_from([0.1, 3.0])))
    batch = draw(st.sampled_from([None, 1, 3, 2 * m + 1, lambda t: t + 0.5]))
    eta = draw(st.sampled_from([0.05, 1.0, lambda t: 2 / (t + 1)]))
    algo = algorithm(
        name, eta, draw(st.integers(1, 6)), batch,
        draw(st.sampled_from([None, 0.3, lambda t: 1 / (t + 1)])),
        draw(st.sampled_from([1.0, 0.2, lambda t: 2 / (t + 2)])),
    )  # fmt: skip
    if name.startswith("AdaGrad") and loss == "squared":
        algo = algorithm(name, 0.05, batch=batch)
    stretches = draw(st.sampled_from([(20,), (1, 19), (7, 0, 13)]))
    run = paths.find(f, constraint, algo, "fused").run
    seed = draw(st.integers(0, 5))
    expected = after(solver.run, f, constraint, algo, [20], seed)
    got = after(run, f, constraint, algo, stretches, seed)
    assert np.abs(got.x - expected.x).max() <= 1e-9 * constraint.radius
    assert same_counts(got, expected)
    assert constraint.contains(got.x)
    for part in ("gradient", "step"):
        assert getattr(got, part).keys() == getattr(expected, part).keys()
        for key, value in getattr(expected, part).items():
            np.testing.assert_allclose(getattr(got, part)[key], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("set_name", ["l1", "linf"])
def test_stopping_saving_and_resuming_changes_no_bit(name, set_name, tmp_path):
    f = linear_model(60, 40, 1)
    constraint, algo = SETS[set_name](2.0), algorithm(name, batch=7)
    whole = after(FUSED.run, f, constraint, algo, [90])
    parts = fresh(f, constraint, algo)
    for n in (1, 30, 0, 29):
        FUSED.run(f, constraint, algo, parts, n)
        parts.save(tmp_path / "state.npz")
        parts = adafw.State.load(tmp_path / "state.npz").copy()
    FUSED.run(f, constraint, algo, parts, 30)
    assert same_bits(whole, parts)


@pytest.mark.parametrize("name", NAMES)
def test_a_path_can_be_left_and_taken_up_again(name):
    f = linear_model(60, 40, 2)
    constraint, algo = adafw.L1Ball(2.0), algorithm(name, batch=7)
    expected = after(solver.run, f, constraint, algo, [60])
    s = fresh(f, constraint, algo)
    for run in (solver.run, FUSED.run, solver.run, FUSED.run):
        run(f, constraint, algo, s, 15)
    assert np.abs(s.x - expected.x).max() <= 1e-9 * constraint.radius
    assert same_counts(s, expected)


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("name", ["CSFW", "AdaCSFW", "AdaGrad on CSFW", "SAGAFW", "LSVRFW"])
def test_float32_data_stay_float32(kind, name):
    f = linear_model(50, 30, 3, kind=kind, dtype=np.float32)
    constraint, algo = adafw.L1Ball(2.0), algorithm(name, batch=9)
    expected = after(solver.run, f, constraint, algo, [10])
    got = after(paths.find(f, constraint, algo).run, f, constraint, algo, [10])
    assert got.x.dtype == np.float32
    assert np.abs(got.x - expected.x).max() <= 1e-4 * constraint.radius


def test_a_source_of_the_users_is_called_once_an_iteration():
    class Source:
        def __init__(self):
            self.rng, self.sizes = np.random.default_rng(3), []

        def integers(self, low, high, size):
            self.sizes.append(size)
            return self.rng.integers(low, high, size)

    f, constraint = linear_model(30, 20, 4), adafw.L1Ball(1.0)
    algo = algorithm("AdaCSFW", batch=lambda t: t + 1)
    source = Source()
    got = after(FUSED.run, f, constraint, algo, [6], source)
    assert source.sizes == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(got.x, after(FUSED.run, f, constraint, algo, [6], 3).x)


@pytest.mark.parametrize("set_name", ["l1", "linf"])
@pytest.mark.parametrize(
    "name", ["CSFW", "AdaCSFW", "AdaGrad on CSFW", "SAGAFW", "LSVRFW", "Ada on LSVRG"]
)
def test_an_infinite_estimate_ends_the_run_as_it_does_the_generic_one(set_name, name):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 6)) * 1e200
    f = adafw.LinearModel(A, A @ np.ones(6), adafw.losses.Squared())
    constraint, algo = SETS[set_name](2.0), algorithm(name, batch=3)
    states = [fresh(f, constraint, algo), fresh(f, constraint, algo)]
    for run, s in zip((solver.run, FUSED.run), states, strict=True):
        with pytest.raises(solver.Diverged), np.errstate(all="ignore"):
            run(f, constraint, algo, s, 50)
    generic, fast = states
    assert same_counts(generic, fast)
    assert fast.torn
    assert np.isfinite(fast.x).all()
    np.testing.assert_allclose(fast.x, generic.x, atol=1e-9)


@pytest.mark.parametrize(("dtype", "scale"), [(np.float64, 1e77), (np.float32, 1e10)])
@pytest.mark.parametrize("set_name", ["l1", "linf"])
@pytest.mark.parametrize("name", ["AdaCSFW", "AdaSVRF", "AdaGrad on CSFW", "Ada on SAGA"])
def test_an_accumulator_that_overflows_ends_the_run_on_every_path(set_name, name, dtype, scale):
    # g itself is finite; its squares, or their sums, are not, and no step would move x any more.
    rng = np.random.default_rng(0)
    A = sparse.csr_array((rng.standard_normal((30, 20)) * scale).astype(dtype))
    f = adafw.LinearModel(A, A @ np.ones(20, dtype), adafw.losses.Squared())
    constraint, algo = SETS[set_name](2.0), algorithm(name, batch=3)
    for path in ("generic", "fused", "lazy"):
        lazy = set_name == "l1" and name in ("AdaCSFW", "AdaGrad on CSFW")
        if path == "lazy" and not (lazy and dtype is np.float64):
            continue  # there is none, or its accumulators are float64 and hold the squares
        r = adafw.minimize(f, constraint, algo, max_iterations=30, path=path)
        assert r.status == "diverged"
        assert np.isfinite(r.x).all()


def test_an_estimate_of_zero_moves_nothing():
    f = adafw.LinearModel(np.ones((4, 3)), np.zeros(4), adafw.losses.Squared())
    for constraint in (adafw.L1Ball(1.0), adafw.LInfBall(1.0)):
        for name in NAMES:
            s = after(FUSED.run, f, constraint, algorithm(name), [5])
            assert not s.x.any()
            assert same_counts(s, after(solver.run, f, constraint, algorithm(name), [5]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("set_name", ["l1", "linf"])
def test_an_x_that_others_kept_stays_as_it_was(name, set_name):
    f = linear_model(60, 40, 3)
    constraint, algo = SETS[set_name](2.0), algorithm(name, batch=7)
    s = fresh(f, constraint, algo)
    for _ in range(2):
        kept, before = s.x, s.x.copy()
        FUSED.run(f, constraint, algo, s, 3)
        np.testing.assert_array_equal(kept, before)
        assert (s.x != before).any()


def test_equal_entries_are_settled_by_the_lowest_index():
    # Columns 1, 2 and 700 are equal, so their |g_j| tie in one block and across blocks.
    rng = np.random.default_rng(1)
    A = 0.1 * rng.standard_normal((30, 1000))
    A[:, 2] = A[:, 700] = A[:, 1] = rng.standard_normal(30)
    f = adafw.LinearModel(A, np.sign(A[:, 1]), adafw.losses.Logistic())
    s = after(FUSED.run, f, adafw.L1Ball(1.0), adafw.CSFW(batch_size=30), [1])
    np.testing.assert_array_equal(np.flatnonzero(s.x), [1])


def test_the_support_forgets_what_has_become_negligible():
    f = linear_model(60, 40, 5)
    s = after(FUSED.run, f, adafw.L1Ball(1.0), adafw.CSFW(0.9, batch_size=60), [40])
    sizes = np.abs(s.x[s.x != 0])
    assert sizes.min() >= 1e-18
    assert np.count_nonzero(s.x) < 30


@pytest.mark.parametrize("unit", [2.0**-70, 2.0**70], ids=["small", "large"])
@pytest.mark.parametrize("path", ["fused", "lazy"])
@pytest.mark.parametrize("name", ["CSFW", "AdaCSFW", "AdaGrad"])
def test_runs_do_not_feel_the_units_of_the_features(name, path, unit):
    """In other units radius and iterates are other numbers, by a power of two; no bit changes."""
    rng = np.random.default_rng(5)
    A = sparse.random(60, 40, 0.3, random_state=5, format="csr", data_rvs=rng.standard_normal)
    y = np.where(A @ rng.standard_normal(40) > 0, 1.0, -1.0)

    def run(unit):
        eta, metric = 0.3 * unit, adafw.metrics.AdaGrad(1e-8 / unit)
        step = {
            "CSFW": steps.FrankWolfeStep(0.75),
            "AdaCSFW": steps.AdaptiveStep(eta, 3, 0.75, metric),
            "AdaGrad": steps.ProjectedStep(eta, metric),
        }[name]
        f = adafw.LinearModel(A / unit, y, adafw.losses.Logistic())
        algo = adafw.Algorithm(gradients.CSFW(20), step)
        return adafw.minimize(f, adafw.L1Ball(unit), algo, max_iterations=60, path=path)

    expected, found = run(1.0), run(unit)
    assert 0 < np.count_nonzero(expected.x) < 40
    np.testing.assert_array_equal(found.x / unit, expected.x)
    assert found.gap == expected.gap


def test_minimize_agrees_on_every_path_it_is_asked_for():
    f, constraint, algo = linear_model(80, 60, 6), adafw.L1Ball(5.0), algorithm("AdaCSFW", batch=8)
    runs = {
        path: adafw.minimize(f, constraint, algo, max_iterations=50, path=path)
        for path in paths.NAMES
    }
    for r in runs.values():
        np.testing.assert_allclose(r.trace["gap"], runs["generic"].trace["gap"], atol=1e-9)
        assert list(r.trace["lmo_calls"]) == list(runs["generic"].trace["lmo_calls"])
        assert r.status == "max_iterations"


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
@pytest.mark.parametrize("name", ["CSFW", "SAGAFW", "LSVRFW"])
def test_any_generator_of_numpy_gives_the_stream_that_single_draws_give(kind, name):
    """An odd batch leaves half a word of the generator to the next draw, or to the next coin."""
    f, constraint = linear_model(37, 20, 7), adafw.L1Ball(1.0)
    algo = algorithm(name, batch=lambda t: 2 * (t % 3) + 1)
    generators = [np.random.Generator(getattr(np.random, kind)(5)) for _ in range(2)]
    states = [
        after(run, f, constraint, algo, [9, 8], rng)
        for run, rng in zip((solver.run, FUSED.run), generators, strict=True)
    ]
    assert same_counts(*states)
    np.testing.assert_allclose(states[0].x, states[1].x, atol=1e-12)


def test_a_users_generator_is_left_where_the_run_left_it():
    f, constraint, algo = linear_model(37, 20, 8), adafw.L1Ball(1.0), algorithm("AdaCSFW", batch=5)
    drawn = []
    for path in ("generic", "fused", "lazy"):
        rng = np.random.default_rng(1)
        adafw.minimize(f, constraint, algo, seed=rng, max_iterations=11, path=path)
        drawn.append(rng.integers(0, 1000, 5).tolist())
    assert drawn[0] == drawn[1] == drawn[2]


@pytest.mark.parametrize("path", ["fused", "lazy"])
def test_an_infinite_learning_rate_leaves_template_1(path):
    f, constraint = linear_model(50, 40, 10), adafw.L1Ball(3.0)
    adaptive = algorithm("AdaCSFW", float("inf"), 1, 5, max_step=lambda t: 2 / (t + 2))
    runs = [
        after(paths.find(f, constraint, algo, path).run, f, constraint, algo, [30])
        for algo in (adaptive, algorithm("CSFW", batch=5))
    ]
    np.testing.assert_allclose(runs[0].x, runs[1].x, atol=1e-12)
    assert runs[0].x.any()


def test_a_coin_is_tossed_once_an_iteration_in_the_order_of_the_one_loop():
    class Source:
        def __init__(self):
            self.rng, self.asked = np.random.default_rng(3), []

        def integers(self, low, high, size):
            self.asked.append(size)
            return self.rng.integers(low, high, size)

    f, constraint = linear_model(30, 20, 4), adafw.L1Ball(1.0)
    algo = adafw.LSVRFW(batch_size=4, probability=0.3)
    sources = Source(), Source()
    a, b = (
        after(run, f, constraint, algo, [20], source)
        for run, source in zip((solver.run, FUSED.run), sources, strict=True)
    )
    assert sources[0].asked == sources[1].asked
    assert sources[0].asked[:2] == [None, None]  # t = 0 is exact, and draws no batch
    assert 22 < len(sources[0].asked) < 40
    assert a.gradient_evaluations == b.gradient_evaluations
    np.testing.assert_allclose(a.x, b.x, atol=1e-12)
    np.testing.assert_array_equal(b.x, after(FUSED.run, f, constraint, algo, [20], 3).x)


@pytest.mark.parametrize("probability", [0.0, 0.5, 1.0])
def test_stopping_before_and_after_every_coin_changes_no_bit(probability):
    f, constraint = linear_model(50, 20, 4), adafw.L1Ball(1.0)
    algo = adafw.LSVRFW(batch_size=3, probability=probability)
    whole = after(FUSED.run, f, constraint, algo, [25])
    assert same_bits(whole, after(FUSED.run, f, constraint, algo, [1] * 25))
    assert same_counts(whole, after(solver.run, f, constraint, algo, [25]))


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("K", [0, 2, "projected"])
def test_an_infinite_gradient_ends_a_run_on_every_path(K, bad):
    """The value is finite at the start, the gradient in one entry is not: infinity, or NaN."""
    A = np.ones((4, 3))
    A[:, 0] = 1e160
    y = np.full(4, -1e150)
    if np.isnan(bad):  # +inf and -inf in one sum
        A[:2, 0], y[:2] = -1e160, -1e150
    f = adafw.LinearModel(A, y, adafw.losses.Squared())
    algorithm = {
        0: adafw.CSFW(batch_size=4), 2: adafw.AdaCSFW(1.0, 2, batch_size=4),
        "projected": adafw.AdaGrad(1.0, gradient=adafw.gradients.CSFW(4)),
    }[K]  # fmt: skip
    ends = []
    for path in ("generic", "fused"):
        with np.errstate(all="ignore"):
            r = adafw.minimize(f, adafw.L1Ball(1.0), algorithm, max_iterations=3, path=path, seed=1)
        assert np.isfinite(r.x).all()
        ends.append((r.status, r.state.t))
    assert ends[0] == ends[1]
    assert ends[0][0] == "diverged"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("K", [2, "projected"])
def test_squares_that_overflow_end_a_run_on_every_path(K, dtype):
    """Value and gradient are finite, the sum of squares is not."""
    size = 1e80 if dtype is np.float64 else 1e10
    A = np.ones((4, 3), dtype)
    A[:, 0] = size
    f = adafw.LinearModel(A, np.full(4, -size), adafw.losses.Squared())
    algorithm = {
        2: adafw.AdaCSFW(1.0, 2, batch_size=4),
        "projected": adafw.AdaGrad(1.0, gradient=adafw.gradients.CSFW(4)),
    }[K]
    ends = []
    for path in ("generic", "fused"):
        with np.errstate(all="ignore"):
            r = adafw.minimize(f, adafw.L1Ball(1.0), algorithm, max_iterations=3, path=path, seed=1)
        ends.append((r.status, r.state.t, r.x.tolist()))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("K", [2, "projected"])
def test_squares_whose_sum_overflows_later_end_a_run_on_every_path(K):
    """Every square is finite, and so is the sum of the first: the second iteration is too many."""
    A = sparse.csr_array(np.full((4, 3), 1e100) * [1.0, 1.0, 1e-100])
    f = adafw.LinearModel(A, np.full(4, -5.5e53), adafw.losses.Squared())
    algorithm = {
        2: adafw.AdaCSFW(1e-60, 2, batch_size=4),
        "projected": adafw.AdaGrad(1e-60, gradient=adafw.gradients.CSFW(4)),
    }[K]
    for path in ("generic", "fused", "lazy"):
        with np.errstate(all="ignore"):
            r = adafw.minimize(f, adafw.L1Ball(1e-50), algorithm, max_iterations=9, path=path)
        assert (r.status, r.state.t) == ("diverged", 1)
        assert r.x[:2].all()
        assert np.isfinite(r.x).all()


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("name", NAMES)
def test_fused_equals_generic_over_several_blocks_of_coordinates(kind, name):
    """Blocks of 512: some that hold the support and nothing steep, some the other way round."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 1300)) * (rng.random((40, 1300)) < 0.1)
    A[:, 600:1100] *= 0.01  # here nothing is steep
    A[:, [5, 511, 512, 1023, 1024, 1299]] = 2 * rng.standard_normal((40, 6))
    y = A[:, [511, 1299]] @ [1.0, -2.0] + 0.1 * rng.standard_normal(40)
    f = adafw.LinearModel(sparse.csr_array(A) if kind == "csr" else A, y, adafw.losses.Squared())
    x0 = np.zeros(1300)
    x0[[0, 511, 512, 700, 1023, 1024, 1299]] = 0.2, -0.3, 0.1, 0.4, -0.2, 0.1, 0.05
    ball, algo = adafw.L1Ball(1.5), algorithm(name, eta=0.05, K=3, batch=11)
    for stretches in ([25], [1, 4, 20]):
        states = []
        for run, parts in ((solver.run, [25]), (FUSED.run, stretches)):
            s = solver.start(f, ball, algo, x0.copy(), np.random.default_rng(0))
            for n in parts:
                run(f, ball, algo, s, n)
            states.append(s)
        np.testing.assert_allclose(states[1].x, states[0].x, rtol=0, atol=1e-10)
        assert np.array_equal(states[1].x != 0, states[0].x != 0)
        assert same_counts(*states)
