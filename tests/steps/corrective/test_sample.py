"""The first iteration on long data: near the minimum of all rows, or as if there were no sample."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import losses
from adafw.constraints.counted import CountedSet
from adafw.datasets import load_parts, save_parts
from adafw.objectives import WithIntercept
from adafw.rows import csr
from adafw.rows.csr import CSRRows
from adafw.steps.corrective import sample
from adafw.steps.corrective.l2_ball import L2Corrector
from adafw.steps.corrective.step import corrector_for

M = sample.LEAST_ROWS + 100


def data(n=15):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(M, n)) * (rng.random((M, n)) < 0.3)
    return sparse.csr_array(A), np.where(A @ rng.normal(size=n) + rng.logistic(size=M) > 0, 1.0, -1)


SETS = {
    "l1": adafw.L1Ball(2.0),
    "simplex": adafw.Simplex(1.0),
    "linf": adafw.LInfBall(0.4),
    "l2": adafw.L2Ball(1.0),
    "group": adafw.GroupBall(1.5, np.arange(15) // 3),
}


def solved(f, constraint, x, corrector=None):
    corrector = corrector or corrector_for(f, constraint)
    return sample.solved_on_sample(corrector, f, constraint, x, f.gradient(x))


def run(f, constraint, **limits):
    return adafw.minimize(f, constraint, adafw.Corrective(), progress=False, **limits)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", SETS)
def test_one_iteration_on_an_eighth_of_the_rows_is_most_of_the_way(kind, intercept):
    A, y = data()
    f = adafw.LinearModel(A, y, losses.Logistic())
    f = WithIntercept(f) if intercept else f
    best = run(f, SETS[kind], gap_tolerance=1e-10, max_iterations=30)
    first = run(f, SETS[kind], max_iterations=1)
    assert best.gap <= 1e-9
    start = first.trace[0].value
    assert 0 < first.value - best.value < 0.02 * (start - best.value)
    # It is the minimiser over these rows, which that over all rows is not (on wide enough sets).
    part = adafw.LinearModel(A[:: sample.EVERY], y[:: sample.EVERY], losses.Logistic())
    part = WithIntercept(part) if intercept else part
    mine, all_rows = (SETS[kind].gap(x, part.gradient(x)) for x in (first.x, best.x))
    assert mine <= sample.ENOUGH * part.value(first.x)
    assert all_rows > sample.ENOUGH * part.value(first.x) or kind in ("simplex", "l2")
    # Counted as every iteration is.
    assert first.trace[-1].gradient_evaluations <= 2 * M
    assert first.trace[-1].lmo_calls <= 2


def test_it_is_resumed_bit_for_bit(tmp_path):
    A, y = data()
    f, ball = adafw.LinearModel(A, y, losses.Logistic()), adafw.L1Ball(2.0)
    for stop in (1, 2):
        run(f, ball, max_iterations=stop).state.save(tmp_path / "s.npz")
        state = adafw.State.load(tmp_path / "s.npz")
        again = adafw.minimize(f, ball, adafw.Corrective(), state=state, max_iterations=4)
        np.testing.assert_array_equal(again.x, run(f, ball, max_iterations=4).x)


@pytest.mark.parametrize("case", ["no weight", "one label", "a warm start", "more columns"])
def test_where_a_sample_says_nothing_all_rows_are_asked(case):
    A, y = data()
    weight, x0, ball = None, None, adafw.L1Ball(2.0)
    if case == "no weight":
        weight = np.ones(M)
        weight[:: sample.EVERY] = 0.0
    elif case == "one label":
        y[:: sample.EVERY] = 1.0
    elif case == "a warm start":
        x0 = np.full(15, 0.01)
    else:
        rng = np.random.default_rng(1)
        A = sparse.random(M, 3000, 0.002, random_state=1, format="csr")
        y = np.where(A @ rng.normal(size=3000) + 0.1 * rng.logistic(size=M) > 0, 1.0, -1.0)
        ball = adafw.L1Ball(2000.0)  # needs more atoms than a sample could tell from noise
    f = WithIntercept(adafw.LinearModel(A, y, losses.Logistic(), weight))
    r = run(f, ball, gap_tolerance=1e-6, max_iterations=40, x0=x0)
    assert r.status == "converged"
    x, b = r.x, f.best_intercept(r.x)
    w = np.ones(M) if weight is None else weight
    slopes = -y * w / (1 + np.exp(y * (A @ x + b))) / w.sum()
    g = A.T @ slopes
    assert abs(slopes.sum()) < 1e-9
    assert g @ x + ball.radius * np.abs(g).max() <= 1.01e-6


def entries(m, n=15, **given):
    rng = np.random.default_rng(0)
    A = sparse.csr_array(rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.3))
    y = np.where(A @ rng.normal(size=n) + rng.logistic(size=m) > 0, 1.0, -1.0)
    return adafw.LinearModel(A, y, losses.Logistic(), given.get("weight")), A, y


@pytest.mark.parametrize("intercept", [False, True])
def test_a_sample_is_every_eighth_row_with_its_target_and_its_weight(intercept):
    weight = np.random.default_rng(1).random(M)
    f, A, y = entries(M, weight=weight)
    part = sample._sample(WithIntercept(f) if intercept else f, True, 15)
    assert isinstance(part, WithIntercept) is intercept
    rows = np.arange(0, M, 8)
    same = adafw.LinearModel(A[rows], y[rows], losses.Logistic(), weight[rows])
    same = WithIntercept(same) if intercept else same
    x = np.linspace(-1, 1, 15)
    assert part.n_terms == rows.size
    assert part.value(x) == pytest.approx(same.value(x), rel=1e-13)
    np.testing.assert_allclose(part.gradient(x), same.gradient(x), atol=1e-14)


def test_who_has_a_sample():
    least = sample.LEAST_ROWS
    long, short = entries(least)[0], entries(least - 1)[0]
    assert sample._sample(long, True, 15) is not None
    assert sample._sample(short, True, 15) is None
    # Ten rows of it for each coefficient, unless most of them are 0 in the end.
    assert sample._sample(long, False, least // 80) is not None
    assert sample._sample(long, False, least // 80 + 1) is None
    assert sample._sample(long, True, 10**6) is not None
    other = adafw.UserSum(least, lambda x: 0.0, lambda x, batch=None: x)
    assert sample._sample(other, True, 15) is None
    weight = np.ones(least)
    weight[::8] = 0.0
    assert sample._sample(entries(least, weight=weight)[0], True, 15) is None
    weight[8] = 1.0
    assert sample._sample(entries(least, weight=weight)[0], True, 15) is not None


@pytest.mark.parametrize("tall", [False, True])
def test_rows_of_a_sample_are_read_as_all_are(tall, monkeypatch):
    """Less their mean, too: steps on both are of one kind."""
    monkeypatch.setattr(csr, "_TALL", sample.LEAST_ROWS - tall)
    rng, m, n = np.random.default_rng(0), sample.LEAST_ROWS, 600
    places = np.repeat(np.arange(m), 3), rng.integers(0, n, 3 * m)
    A = sparse.csr_array((rng.standard_normal(3 * m), places), shape=(m, n))
    A.sum_duplicates()
    plain = adafw.LinearModel(A, rng.standard_normal(m), losses.Squared())
    centred = adafw.LinearModel(plain.rows.centred()[0], plain.y, losses.Squared())
    for f in (plain, centred):
        some = sample._sample(f, True, n).rows.plain[0]
        assert some.turned is f.rows.plain[0].turned is (not tall)


class Far(CSRRows):
    """Rows that are said to be somewhere else."""

    remote = True

    @property
    def stored(self):
        return self.count

    def __init__(self, A, count):
        super().__init__(A)
        self.count = count


def test_of_rows_far_away_no_more_than_some_bytes_travel():
    _, A, y = entries(M)
    most = sample.TRAVEL // sample.ENTRY
    for stored, every in ((1, 8), (8 * most, 8), (8 * most + 10, 9), (9 * most + 10, 10)):
        f = adafw.LinearModel(Far(A, stored), y, losses.Logistic())
        part = sample._sample(f, True, 15)
        rows = -(-M // every)
        if rows < sample.LEAST_ROWS // sample.EVERY:
            assert part is None
        else:
            assert part.n_terms == rows


@pytest.mark.parametrize("dense", [False, True])
def test_rows_on_a_disk_have_no_sample(tmp_path, dense):
    """One row in eight costs nearly a pass there, and it saved none."""
    _, A, y = entries(M)
    save_parts(tmp_path / "parts", A.toarray() if dense else A, y)
    for stream in (False, True):
        B, z = load_parts(tmp_path / "parts", stream=stream)
        f = adafw.LinearModel(B, z, losses.Logistic())
        assert f.rows.streamed is stream
        for model in (f, WithIntercept(f)):
            assert (sample._sample(model, True, 15) is None) is stream
    first = run(f, SETS["l1"], max_iterations=1)
    assert "gram" in first.state.step, "all rows were asked"


@pytest.mark.parametrize("kind", ["l1", "linf"])
def test_what_is_learned_from_a_sample_is_kept(kind):
    f, _, _ = entries(M)
    constraint, x = SETS[kind], np.zeros(15)
    y, memory = solved(f, constraint, x)
    assert constraint.violation(y) <= 1e-12
    assert f.value(y) < f.value(x)
    assert "sample" not in memory
    assert "gram" not in memory
    if kind == "l1":
        assert {"level", "norm", "bound"} <= set(memory)
    else:
        assert memory == {"word": 1}
    # A start with weight on one coordinate is plain, one on two is not.
    one, two = np.eye(15)[3] / 9, (np.eye(15)[3] + np.eye(15)[4]) / 9
    assert solved(f, constraint, one) is not None
    assert solved(f, constraint, two) is None
    # From the minimum there is no way down.
    still = adafw.LinearModel(sparse.csr_array((M, 15)), f.y, losses.Logistic())
    assert solved(still, constraint, x) is None


def test_a_sample_is_asked_for_before_the_first_step_alone():
    f, _, _ = entries(M)
    step, ball, x = adafw.steps.CorrectiveStep(), adafw.L1Ball(2.0), np.zeros(15)
    counted = CountedSet(ball)
    _, state = step.update(f, counted, x, f.gradient(x), 0, {})
    assert counted.lmo_calls == 0
    assert "gram" not in state
    _, state = step.update(f, counted, x, f.gradient(x), 1, {})
    assert counted.lmo_calls == 1
    assert "gram" in state


def test_a_sample_that_would_learn_its_own_noise_is_given_up():
    """Ten of its rows for each coefficient at least: what needs more is not gone on with."""
    rng = np.random.default_rng(5)
    A = sparse.random(M, 520, 0.004, random_state=5, format="csr", data_rvs=rng.standard_normal)
    y = np.where(A @ rng.normal(size=520) + 0.3 * rng.logistic(size=M) > 0, 1.0, -1.0)
    f, ball, x = adafw.LinearModel(A, y, losses.Logistic()), adafw.L1Ball(400.0), np.zeros(520)
    found = solved(f, ball, x)
    rows = -(-M // sample.EVERY)
    assert found is None or 10 * np.count_nonzero(found[0]) <= rows


def test_a_sample_that_misleads_is_not_followed():
    """Its rows say the opposite of all others."""
    f, A, y = entries(M)
    turned = np.where(np.arange(M) % sample.EVERY == 0, -y, y)
    f, ball, x = adafw.LinearModel(A, turned, losses.Logistic()), SETS["l1"], np.zeros(15)
    assert solved(f, ball, x) is None


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_iterations_on_a_sample_end_by_its_gap(sign):
    """As a share of the value, of whatever sign."""

    class Watched(L2Corrector):
        def improve(self, f, constraint, x, g, t, state):
            value = f.value(x)
            told.append((np.sign(value), constraint.gap(x, g) / abs(value), dict(state)))
            return super().improve(f, constraint, x, g, t, state)

    told, rng = [], np.random.default_rng(0)
    A = rng.normal(size=(M, 4))
    y = rng.poisson(np.exp(A @ np.array([0.2, -0.1, 0.3, 0.1]) + 2.0 - 2.0 * sign)).astype(float)
    A = np.column_stack([A, np.ones(M)])
    f, ball = adafw.LinearModel(A, y, losses.Poisson()), adafw.L2Ball(5.0)
    new, _ = solved(f, ball, np.zeros(5), Watched())
    assert {s for s, _, _ in told[1:]} == {sign}
    assert 1 < len(told) < sample.ITERATIONS
    assert all(share > sample.ENOUGH and state["sample"] == 1 for _, share, state in told)
    part = sample._sample(f, False, 5)
    value, g = part.value_and_gradient(new)
    assert ball.gap(new, g) <= sample.ENOUGH * abs(value)


def unrelated(m=M, n=700, radius=40.0, loss=losses.Squared()):
    """Rows of few entries, and a ball that many columns share."""
    rng = np.random.default_rng(0)
    A = sparse.random(m, n, 8 / n, format="csr", rng=rng, data_rvs=rng.standard_normal)
    y = A @ rng.normal(size=n) + rng.normal(size=m)
    return adafw.LinearModel(sparse.csr_array(A), y, loss), adafw.L1Ball(radius)


@pytest.mark.parametrize(
    ("radius", "loss", "near"),
    [(300.0, losses.Huber(1e9), True), (3.0, losses.Huber(1e9), False), (300.0, losses.Squared(),
     True), (3.0, losses.Squared(), True)],
)  # fmt: skip
def test_no_sample_is_made_where_one_iteration_leads_far(radius, loss, near, monkeypatch):
    """A brief descent that fills the set costs no more than a sample; several models in one call
    lead far from anywhere."""
    f, ball = unrelated(radius=radius, loss=loss)
    x, made, plain = np.zeros(700), [], sample._sample
    monkeypatch.setattr(sample, "_sample", lambda *given: made.append(1) or plain(*given))
    assert corrector_for(f, ball).near(f, ball, x, f.gradient(x)) is near
    found = solved(f, ball, x)
    assert (found is None) is (not made) is near
    if not near:
        assert ball.violation(found[0]) <= 1e-12


def test_a_sample_is_given_up_where_it_would_descend_briefly():
    """What it has led to until then is the first point; nothing, and there is no sample."""

    class Blind(type(corrector_for(*unrelated()))):
        def near(self, *_given):
            return False

        def improve(self, f, constraint, x, g, t, state):
            new, note = super().improve(f, constraint, x, g, t, state)
            told.append(new is x)
            return new, note

    for radius, stays in ((300.0, [True]), (3.0, [False])):
        told = []
        f, ball = unrelated(radius=radius)
        found = solved(f, ball, np.zeros(700), Blind())
        assert told[: len(stays)] == stays
        assert not any(told[:-1])
        assert (found is None) is stays[0]


def test_an_iteration_on_short_data_asks_for_no_curvature():
    """Whether one leads far is not asked where there is no sample anyway."""

    class Proud(type(corrector_for(*unrelated()))):
        def near(self, *_given):
            raise AssertionError

    f, ball = unrelated(m=sample.LEAST_ROWS - 1)
    assert solved(f, ball, np.zeros(700), Proud()) is None
