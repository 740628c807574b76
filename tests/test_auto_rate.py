"""learning_rate="auto": counted, limited, resumed anywhere, and as good as a search."""

import numpy as np
import pytest
from scipy import sparse

import adafw
from adafw import gradients, losses, paths, solver
from adafw.auto_rate import AutoRate, Control, _keep
from adafw.measured_rate import Care, Measured, Met

ALGORITHMS = {
    "AdaCSFW": adafw.AdaCSFW(),
    "AdaSVRF": adafw.AdaSVRF(),
    "AdaSFW": adafw.AdaSFW(),
    "AdamSFW": adafw.AdamSFW(),
    "AdaFW": adafw.AdaFW(),
    "AdaGrad": adafw.AdaGrad(),
    "AMSGrad": adafw.AMSGrad(),
    "AdaGrad on CSFW": adafw.AdaGrad(gradient=gradients.CSFW()),
    "AdaGrad on PAGE": adafw.AdaGrad(gradient=gradients.PAGE(30)),
    "AdaSPIDERFW": adafw.AdaSPIDERFW(),
    "AdaORGFW": adafw.AdaORGFW(),
    "PAGE, Template 3": adafw.Algorithm(gradients.PAGE(30), adafw.steps.AdaptiveStep("auto")),
    "AdaGrad on LSVRG": adafw.AdaGrad(gradient=gradients.LSVRG(30)),
    "SAGA, Template 3": adafw.Algorithm(gradients.SAGA(), adafw.steps.AdaptiveStep("auto")),
}


def problem(m=400, n=20, seed=0, loss=None, scale=1.0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)) * scale
    z = A @ (rng.normal(size=n) * (rng.random(n) < 0.5)) / scale
    y = np.where(z + rng.logistic(size=m) > 0, 1.0, -1.0)
    return adafw.LinearModel(A, y, loss or losses.Logistic())


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ball", [adafw.L1Ball(5.0), adafw.LInfBall(0.5), adafw.Simplex(3.0)],
                         ids=repr)  # fmt: skip
def test_no_rate_is_needed(name, ball):
    f = problem()
    r = adafw.minimize(f, ball, ALGORITHMS[name], max_epochs=40)
    best = adafw.minimize(f, ball, adafw.BPCG(), max_iterations=300)
    # Four terms a step, and no exact gradient.
    noisy = isinstance(
        ALGORITHMS[name].gradient, gradients.Minibatch | gradients.ORGFW | gradients.SAGA
    )
    assert r.value - best.value <= (0.12 if noisy else 0.03) * best.value
    assert r.learning_rate > 0
    assert (r.trace["violation"] <= 1e-12).all()
    assert (np.diff(r.trace["iteration"]) > 0).all()


def test_the_rate_that_was_used_is_told():
    f, ball = problem(), adafw.L1Ball(5.0)
    assert adafw.minimize(f, ball, adafw.AdaCSFW(0.25), max_iterations=3).learning_rate == 0.25
    schedule = adafw.minimize(f, ball, adafw.AdaCSFW(lambda t: 1 / (t + 1)), max_iterations=4)
    assert schedule.learning_rate == 0.25
    assert adafw.minimize(f, ball, adafw.CSFW(), max_iterations=3).learning_rate is None


@pytest.mark.parametrize("name", ["AdaFW", "AdaGrad", "AdaSFW", "AdaGrad on PAGE", "AdaSPIDERFW"])
def test_all_work_is_counted(name):
    """What the trace says is what was evaluated, a value as much as a gradient; measuring a record
    costs one of each and counts nothing."""
    counted = adafw.Counted(problem())
    r = adafw.minimize(counted, adafw.L1Ball(5.0), ALGORITHMS[name], max_epochs=60)
    assert r.learning_rate not in (1.0, 1 / 3, 0.3, 0.1)  # windows have been closed
    asked = counted.gradients + 400 * counted.values
    measured = asked - r.trace[-1].gradient_evaluations
    assert measured % 400 == 0
    assert measured >= 800 * len(r.trace)


@pytest.mark.parametrize("name", ["AdaCSFW", "AdaGrad on CSFW", "AdaGrad", "AdaSVRF"])
def test_limits_hold_for_the_search_too(name):
    f, ball, algorithm = problem(), adafw.L1Ball(5.0), ALGORITHMS[name]
    for epochs in (0.02, 0.3, 1.1, 2.7, 9.3):
        r = adafw.minimize(f, ball, algorithm, max_epochs=epochs)
        # Judging a window is one act: it may exceed the limit by what it looks at.
        assert epochs <= r.trace[-1].epoch <= 1.25 * epochs + (1.7 if name == "AdaSVRF" else 0.6)
    # Nothing but the limit ends a stretch of iterations, in which many windows are judged.
    r = adafw.minimize(f, ball, algorithm, max_epochs=9.3, record_every=10**9)
    assert 9.3 <= r.trace[-1].epoch <= 9.3 + (1.7 if name == "AdaSVRF" else 0.6)
    r = adafw.minimize(f, ball, algorithm, max_iterations=57)
    assert r.trace[-1].iteration == 57
    if name != "AdaGrad" and name != "AdaGrad on CSFW":
        r = adafw.minimize(f, ball, algorithm, max_lmo_calls=333)
        assert 333 <= r.trace[-1].lmo_calls <= 337


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_goes_on_bit_for_bit_from_anywhere_in_the_search(name, tmp_path):
    f, ball, algorithm = problem(), adafw.L1Ball(5.0), ALGORITHMS[name]
    total = 30 if name in ("AdaFW", "AdaSFW") else 5
    whole = adafw.minimize(f, ball, algorithm, max_epochs=total)
    windows = 0
    for k in range(1, 15):
        part = adafw.minimize(f, ball, algorithm, max_epochs=total * k / 15)
        windows += "end" in part.state.search
        part.state.save(tmp_path / "state.npz")
        rest = adafw.minimize(f, ball, algorithm, state=adafw.State.load(tmp_path / "state.npz"),
                              max_epochs=total)  # fmt: skip
        assert np.array_equal(rest.x, whole.x), k
        assert rest.learning_rate == whole.learning_rate
        assert rest.trace[-1].gradient_evaluations == whole.trace[-1].gradient_evaluations
    assert windows > 0


def test_paths_agree():
    rng = np.random.default_rng(1)
    X = sparse.csr_array(rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.2))
    f = adafw.LinearModel(X, np.sign(rng.normal(size=300)), losses.Logistic())
    xs = [
        adafw.minimize(f, adafw.L1Ball(3.0), adafw.AdaCSFW(), max_iterations=40, path=path)
        for path in ("generic", "fused", "lazy")
    ]
    assert [r.path for r in xs] == ["generic", "fused", "lazy"]
    for r in xs[1:]:
        assert np.abs(r.x - xs[0].x).max() <= 1e-9
        assert r.learning_rate == pytest.approx(xs[0].learning_rate, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize("ball", [adafw.LInfBall, adafw.L2Ball], ids=lambda b: b.__name__)
def test_within_a_small_factor_of_the_best_of_a_search(ball, scale):
    """Whatever the units of the data, search included; the bar is 2, noise comes on top."""
    f, ball = problem(1500, 30, scale=scale), ball(0.6 / scale)
    best = adafw.minimize(f, ball, adafw.AFW(), max_iterations=500, gap_tolerance=1e-9)
    assert best.gap <= 1e-6

    def epochs(algorithm, level):
        def reached(state, record):
            return record.value - best.lower_bound <= level * best.value

        r = adafw.minimize(f, ball, algorithm, max_epochs=60, callbacks=reached)
        return r.trace[-1].epoch

    for level in (1e-2, 1e-4):
        rates = [10.0 ** (i / 2) / scale for i in range(-6, 3)]
        fixed = min(epochs(adafw.AdaGrad(eta, gradient=gradients.CSFW()), level) for eta in rates)
        assert epochs(adafw.AdaGrad(gradient=gradients.CSFW()), level) <= 3 * fixed + 0.5


def test_a_rate_that_overflows_makes_way():
    """Poisson's exp at the first rate, the width of the set, is infinite."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(200, 5))
    f = adafw.LinearModel(A, rng.poisson(np.exp(0.3 * A[:, 0])).astype(float), losses.Poisson())
    r = adafw.minimize(f, adafw.LInfBall(2000.0), adafw.AdaGrad(gradient=gradients.Full()),
                       max_epochs=300)  # fmt: skip
    assert np.isfinite(r.value)
    assert r.value < r.trace[0].value
    assert r.status == "max_epochs"


def test_a_rate_moves_by_what_its_window_met():
    """q = bend / promised grows like eta, so that the rate follows target / q, within bounds."""
    path, most = AutoRate.__new__(AutoRate), Control().most
    path.control = Control()
    assert path._factor([1.0, 1.0], 5.0, 5.0) == 1.0
    assert path._factor([1.0, 1.0], 20.0, 5.0) == 0.5
    assert path._factor([1.0, 1.0], 1e-9, 5.0) == most
    assert path._factor([1.0, 1.0], 1e9, 5.0) == 1 / most
    assert path._factor([-1.0, -1.0], 1.0, 5.0) == 1 / most
    assert 1 / most < path._factor([1.0, -0.1], 1.0, 5.0) < 1  # noise
    assert path._factor([1.0, -0.1], 1.0, 0.6, waits=True) == 1.0  # a table will know soon
    assert path._factor([1.0, 1.0], -1e-30, 5.0) == 1.0  # rounding at a minimiser
    assert path._factor([1.0, 1.0], 0.0, 5.0) == most  # no curvature at all
    assert path._factor([1.0, 3.0], 8.0, 1.0) == 0.5  # the mean of what was promised
    assert path._factor([1.0, -0.1], 1.0, 5.0) == path._factor([0.0, 0.1], 1.0, 5.0) == most**-0.5
    assert path._factor([0.0, 0.0], 1.0, 5.0) == 1 / most
    assert path._factor([-1.0, -1.0], 1.0, 0.6, waits=True) == 1.0
    assert path._factor([1.0, -0.1], 1.0, 0.6, waits=True) == 1.0
    assert path._factor([1.0, 1.0], 2.4, 0.6, waits=True) == 0.5


def promise(algorithm, begun, ended, t=100, anew=0.0, starts=0):
    """Whether a table is used, and q*, of a window between these epochs, 50 terms each.

    `anew`: the epochs of beginnings before the last one; `starts`: how many there were.
    """
    path = AutoRate(problem(), adafw.L1Ball(5.0), algorithm, None, lambda a: paths.Generic(), (20,))
    states = [solver.State(x=np.zeros(20), t=t, gradient={"gradient": np.ones(20)},
                           search={"start.work": int(50 * anew), "starts": starts},
                           gradient_evaluations=round(50 * (e + anew)))
              for e in (ended, begun)]  # fmt: skip
    g, target, waits = path._promise(*states, 50)
    assert waits == (g is None and target in (Control().early, Control().early * Control().wary))
    return g is not None, pytest.approx(target)


def test_what_a_window_is_held_against():
    """By the table once it is full, for projected steps before, else by terms."""
    projected = adafw.AdaGrad(gradient=gradients.CSFW())
    for solved in (projected, adafw.AdaCSFW(inner="corrective")):
        assert promise(solved, 0.0, 0.02) == (True, 0.6 / 0.02)
        assert promise(solved, 0.1, 0.2) == (True, 0.6 / 0.2)
        assert promise(solved, 4.0, 4.4) == (True, 5 * 0.4)
        assert promise(solved, 40.0, 44.0) == (True, 5.0)
    for steps in (adafw.AdaCSFW(), adafw.AdaCSFW(inner="corrective", inner_steps=3)):
        assert promise(steps, 0.1, 0.2) == (False, 0.6)
        assert promise(steps, 1.0, 1.1) == (True, 20 * 0.1)
        assert promise(steps, 40.0, 44.0) == (True, 5.0)
        assert promise(steps, 0.1, 0.2, anew=3.0) == (False, 0.6), "the table is empty again"
    assert promise(projected, 0.1, 0.2, anew=3.0) == (True, 0.6 / 0.2)
    assert promise(projected, 4.0, 4.4, starts=1) == (True, 5 * 0.4 / 2), "half after fresh starts"
    assert promise(adafw.AdaCSFW(), 0.1, 0.2, starts=3) == (False, 0.6 / 2)


def test_a_window_is_judged_by_its_own_bend():
    """On squares, all terms looked at: q = <d, H d> / -<g, d> and the rate by hand."""
    rng = np.random.default_rng(0)
    f = adafw.LinearModel(rng.normal(size=(12, 4)), rng.normal(size=12), losses.Squared())
    ball, algorithm = adafw.L1Ball(0.5), adafw.AdaFW()
    begin, end = (
        adafw.minimize(f, ball, algorithm, max_iterations=n).state for n in (0, Care().least)
    )
    d = end.x - begin.x
    q = (f.gradient(end.x) - f.gradient(begin.x)) @ d / -(f.gradient(begin.x) @ d)
    first = ball.diameter(4, np.inf) * Care().first
    factor = np.clip((Care().target / q) ** 0.5, 1 / Care().most, Care().most)
    assert 1 / Care().most < factor < Care().most
    assert end.search["rate"] == pytest.approx(first * factor, rel=1e-12)


def in_order(m):
    """All terms, by steps of the golden section of m or the next number without common factors."""
    stride = next(k for k in range(round(0.6180339887498949 * m), 2 * m) if np.gcd(k, m) == 1)
    return [(m // 2 + i * stride) % m for i in range(m)]


def by_hand(f, algorithm, begin, end, solved, size):
    """The rate after a window, the work, and the terms of the next, by the two states alone."""
    worked = begin.gradient_evaluations, end.search["looked"], end.gradient_evaluations
    evaluated = algorithm.gradient.evaluations(0, f.n_terms) * (end.t - begin.t)
    following = max(size, int(0.05 * evaluated))
    terms = np.array(in_order(f.n_terms)[:size])
    halves = terms[::2], terms[1::2]
    d = end.x - begin.x
    bend = sum((f.gradient(end.x, k) - f.gradient(begin.x, k)) @ d * k.size for k in halves) / size
    window = evaluated / f.n_terms
    epochs = (worked[0] + evaluated) / f.n_terms
    if not solved and epochs < 1:
        promises, target = [-(f.gradient(begin.x, k) @ d) for k in halves], 0.6
    else:
        table = (begin if begin.t else end).gradient["gradient"]
        promises, target = [-(table @ d)] * 2, min(5.0, (5 if solved else 20) * window)
        target = max(target, 0.6 / epochs)
    promise = sum(promises) / 2
    if min(promises) <= 0:
        factor = 1.0 if not solved and epochs < 1 else 1 / 3 if max(promises) <= 0 else 3**-0.5
    else:
        factor = np.clip((target * promise / bend) ** 0.5, 1 / 3, 3)
    asked = following if begin.t else 12 + following
    return begin.search["rate"] * factor, worked[0] + evaluated + asked, following


@pytest.mark.parametrize("name", ["AdaGrad on CSFW", "AdaCSFW"])
def test_every_window_with_a_table_is_judged_as_told(name):
    """The rates of a run, window by window: by terms at first, by the table once it is full."""
    f, ball, solved = problem(900, 12), adafw.L1Ball(5.0), name == "AdaGrad on CSFW"
    gradient = gradients.CSFW(batch_size=20)
    step = adafw.steps.ProjectedStep if solved else adafw.steps.AdaptiveStep
    algorithm, moved = adafw.Algorithm(gradient, step("auto")), []

    def at(t):
        return adafw.minimize(f, ball, algorithm, max_iterations=t, path="generic").state

    begin = at(0)
    assert begin.search["rate"] == 10 * (0.03 if solved else 0.3)
    size = 12
    while begin.t < 200:  # not so far that windows are undone
        # 120 terms are 6 iterations, fewer than 2 or 4 none has; later a tenth of those before.
        end = at(begin.t + max(6, int(0.1 * begin.t)))
        assert "end" not in end.search
        assert "end" in at(end.t - 1).search
        rate, work, size = by_hand(f, algorithm, begin, end, solved, size)
        assert end.search["rate"] == pytest.approx(rate, rel=1e-9), begin.t
        looked = end.search["looked"] != begin.search["looked"]
        # A look asks 32 terms at x, and some at points before it until they bound the rise of f.
        assert (end.gradient_evaluations - work) in ((32, 64, 96) if looked else (0,)), begin.t
        moved.append(end.search["rate"] / begin.search["rate"])
        begin = end
    assert size > 15
    assert begin.gradient_evaluations > 3 * f.n_terms
    assert len({round(m, 6) for m in moved} - {1.0, 3.0, round(1 / 3, 6)}) > 5


def scattered(seed=12, m=3000, n=4500, kind="lognormal"):
    """Rows of a few entries of very different sizes: most terms have nothing to do with a way."""
    rng = np.random.default_rng(seed)
    draw = {"lognormal": lambda size: rng.lognormal(0, 1, size), "normal": rng.standard_normal}
    A = sparse.random_array((m, n), density=0.004, rng=rng, format="csr", data_sampler=draw[kind])
    z = A @ (rng.normal(size=n) * (rng.random(n) < 0.02))
    return adafw.LinearModel(A, z + 0.3 * z.std() * rng.normal(size=m), losses.Squared())


@pytest.mark.parametrize("solved", [False, True])
@pytest.mark.parametrize("kind", ["lognormal", "normal"])
def test_sparse_data_end_no_higher_than_they_began(solved, kind):
    """Rates rose tenfold a window where no term that was asked had met any curvature."""
    f, ball = scattered(kind=kind), adafw.L1Ball(60.0)
    algorithm = adafw.AdaGrad(gradient=gradients.CSFW()) if solved else adafw.AdaCSFW()
    for seed in range(3):
        r = adafw.minimize(f, ball, algorithm, seed=seed, max_epochs=30)
        assert r.value <= 1.5 * f.value(np.zeros(4500))


def judged(f, begun, epochs, starts=0):
    """The rate after a window from 0 to (0.1, 0) whose table promised a fall, at so many epochs."""
    ball, projected = adafw.LInfBall(1.0), adafw.AdaGrad(gradient=gradients.CSFW(batch_size=4))
    path = AutoRate(f, ball, projected, None, lambda a: paths.Generic(), (2,))
    s = adafw.minimize(f, ball, projected, x0=np.zeros(2), max_iterations=1).state
    s.search = {"rate": begun, "highest": begun, "starts": starts, "start.work": 0}
    s.x, s.t, s.gradient_evaluations = np.zeros(2), 1, int(epochs * f.n_terms)
    s.gradient["gradient"] = np.array([-1.0, 0.0])
    _keep(s, s)
    s.x = np.array([0.1, 0.0])
    path._judge(f, s)
    return s.search["rate"]


@pytest.mark.parametrize("touched", [(), (0,), (1,), (0, 1)])
def test_terms_that_have_nothing_to_do_with_a_way_raise_no_rate(touched):
    """Of twelve terms asked, those of one half, of both or of none feel the first coordinate."""
    A = np.zeros((400, 2))
    for half in touched:
        A[np.array(in_order(400)[:12])[half::2], 0] = 1e-3
    A[:, 1] = 1.0
    f = adafw.LinearModel(A, np.ones(400), losses.Squared())
    assert judged(f, 0.06, 4.0) == pytest.approx(0.06 * (3 if len(touched) == 2 else 1))


@pytest.mark.parametrize("epochs", [0.5, 9.0])
def test_rates_of_solved_steps_have_a_roof(epochs):
    """0.3 times the width, and the root of the epochs; one that is above it stays."""
    f = adafw.LinearModel(np.full((400, 2), 1e-3), np.ones(400), losses.Squared())
    roof = 0.3 * 2.0 * max(1.0, epochs**0.5)
    assert judged(f, 0.1, epochs) == pytest.approx(0.3)
    assert judged(f, 0.9 * roof, epochs) == pytest.approx(roof, rel=0.05)
    assert judged(f, 2 * roof, epochs) == pytest.approx(2 * roof)


def test_after_a_fresh_start_the_half_that_bends_more_counts_and_half_as_much_is_let_pass():
    """One half of every sample bends a thousand times as much as the other: twice the mean."""
    A = np.zeros((400, 2))
    A[in_order(400), 0] = np.where(np.arange(400) % 2, 2.8, 2.8e-3)
    f = adafw.LinearModel(A, np.zeros(400), losses.Squared())
    before = judged(f, 0.1, 1.0)
    assert 0.06 < before < 0.2, "within its bounds"
    assert judged(f, 0.1, 1.0, starts=1) == pytest.approx(before * (0.5 / 2) ** 0.5, rel=1e-5)


def test_a_table_is_asked_where_the_window_began():
    """Before the first iteration it is empty: that of the end has to do."""
    projected = adafw.AdaGrad(gradient=gradients.CSFW())
    path = AutoRate(problem(), adafw.L1Ball(5.0), projected, None, lambda a: paths.Generic(), (20,))
    for t, wanted in ((0, 2.0), (1, 1.0)):
        begun, ended = (
            solver.State(x=np.zeros(20), t=t, gradient={"gradient": np.full(20, value)},
                         search={"start.work": 0, "starts": 0}, gradient_evaluations=work)
                         for value, work in ((1.0, 40), (2.0, 50))
        )  # fmt: skip
        assert (path._promise(ended, begun, 50)[0] == wanted).all()


def test_a_point_that_has_settled_moves_no_rate():
    """f = mean of (x_i + 1)^2, d across the gradient at 0: what its halves promise is rounding."""
    f = adafw.LinearModel(np.eye(2), -np.ones(2), losses.Squared())
    algorithm = adafw.AdaFW()
    path = AutoRate(f, adafw.LInfBall(1.0), algorithm, None, lambda a: paths.Generic(), (2,))
    s = adafw.minimize(f, adafw.LInfBall(1.0), algorithm, x0=np.zeros(2), max_iterations=1).state
    _replaced(s, np.zeros(2))
    s.x = 1e-14 * np.array([1.0, -1.0 + 1e-13])
    path._judge(f, s)
    assert s.search["rate"] == 0.25


def _replaced(s, x):
    """A window that began at x, with a rate of 0.25."""
    s.x = x
    s.search = {"rate": 0.25, "highest": 0.25, "starts": 0}
    _keep(s, s)


@pytest.mark.parametrize(
    ("epochs", "bent", "undone"),
    [(6.0, 3.0, True), (2.0, 3.0, False), (6.0, 4.0, False), (6.0, 0.0, False)],
)
def test_a_late_window_that_bends_far_more_than_others_is_undone_once(epochs, bent, undone):
    """f = mean of (x_i - 1)^2: from 0 to 5 it bends by 50, and rises."""
    m = 40
    f, ball = adafw.LinearModel(np.eye(m), np.ones(m), losses.Squared()), adafw.LInfBall(9.0)
    projected = adafw.AdaGrad(gradient=gradients.CSFW())
    path = AutoRate(f, ball, projected, None, lambda a: paths.Generic(), (m,))
    s = adafw.minimize(f, ball, projected, x0=np.zeros(m), max_iterations=1).state
    s.search = {**s.search, "bent": bent, "start.work": 0}
    s.gradient_evaluations = int(epochs * m)

    def judged_at(x):
        s.search = {k: v for k, v in s.search.items() if not k.startswith("sample.")}
        s.x, s.search["rate"] = np.zeros(m), 0.25
        s.gradient["gradient"] = f.gradient(s.x)
        _keep(s, s)
        s.x = np.full(m, x)
        path._judge(f, s)

    judged_at(5.0)
    assert (s.search.get("undone") == s.t) == undone
    assert (s.x == (0.0 if undone else 5.0)).all()
    assert s.search["rate"] == pytest.approx(0.25 / 3)
    assert s.search["bent"] == pytest.approx(bent if undone else 50.0)
    judged_at(5.0)
    assert (s.x == 5.0).all(), "the same window is not undone again"
    assert s.search["bent"] == pytest.approx(50.0)
    judged_at(1.0)
    assert s.search["bent"] == pytest.approx(25.0), "what was met is forgotten by halves"


def window(algorithm, t, n_terms, starts=0):
    """How many iterations a window from t has, after so many fresh starts."""
    path = AutoRate.__new__(AutoRate)
    path.control, path.algorithm, path.measured = Control(), algorithm, None
    return path._window(solver.State(x=np.zeros(2), t=t, search={"starts": starts}), n_terms)


def test_windows_grow_with_the_run_up_to_some_epochs():
    batches = adafw.AdaCSFW(batch_size=16)
    assert [window(batches, t, 1600) for t in (0, 39, 80, 1000, 10**5)] == [8, 8, 8, 100, 500]
    assert window(adafw.AdaFW(), 10**5, 400) == 5


def test_windows_are_worth_judging():
    """12 terms are not to cost more than a tenth of what they judge, unless there are few."""
    batches = adafw.AdaCSFW(batch_size=3)
    assert [window(batches, t, 300) for t in (0, 100, 1000)] == [40, 40, 100]
    assert window(batches, 0, 50) == 17, "an epoch at most"
    assert window(adafw.AdaFW(), 0, 12) == 4
    found = [window(batches, 0, n, starts) for n, starts in ((6000, 1), (6000, 3), (300, 3))]
    assert found == [160, 1000, 50], "four times the terms, 5 % of all at most"


@pytest.mark.parametrize("name", ["AdaCSFW", "AdaGrad on CSFW", "AdamSFW"])
def test_what_is_undone_leaves_no_trace(name):
    """Back where the window began: point, table, accumulators, draws and records."""
    f, ball, algorithm = problem(), adafw.L1Ball(5.0), ALGORITHMS[name]
    begin, s = (
        adafw.minimize(f, ball, algorithm, max_iterations=n, record_every=1).state for n in (0, 1)
    )
    assert "end" in s.search
    path = AutoRate.__new__(AutoRate)
    path.first, path.width = 7.0, 10.0
    rate = s.search["rate"]
    path._go_back(s, rate / 10)
    assert s.search["rate"] == s.search["begun"] == pytest.approx(rate / 10)
    assert not any(key == "end" or key.startswith("base.") for key in s.search)
    assert [row[0] for row in s.records] == [0]
    assert s.gradient_evaluations > begin.gradient_evaluations, "what was done has been done"
    one, two = begin.to_arrays(), s.to_arrays()
    for key in one:
        if key.split(".")[0] in ("x", "t", "rng", "gradient", "step"):
            np.testing.assert_array_equal(two[key], one[key], err_msg=key)


def test_rates_stay_where_a_step_can_be_told_from_none():
    path = AutoRate.__new__(AutoRate)
    path.width = 10.0
    for wanted, kept in ((0.0, 1e-29), (1e-40, 1e-29), (0.3, 0.3), (1e200, 1e31)):
        s = solver.State(x=np.zeros(2), search={"rate": 1.0, "highest": 1.0, "end": 5})
        path._close(s, wanted)
        assert s.search == {"rate": pytest.approx(kept), "highest": pytest.approx(max(1.0, kept))}


def test_a_window_does_not_raise_the_rate_to_what_is_held():
    path = AutoRate.__new__(AutoRate)
    path.width = 10.0
    for t, kept in ((3, 2.0), (9, 2.0), (10, 9.0)):
        s = solver.State(x=np.zeros(2), t=t)
        s.search = {"rate": 1.0, "highest": 1.0, "held.rate": 2.0, "held.t": 10, "end": 9}
        path._close(s, 9.0)
        assert s.search == {"rate": kept, "highest": kept, "held.rate": 2.0, "held.t": 10}


def test_what_was_met_in_a_stage_that_is_undone_is_forgotten():
    """The gradient there says nothing about where the next window begins."""
    f, ball = problem(), adafw.L1Ball(5.0)
    s = adafw.minimize(f, ball, adafw.AdaSPIDERFW(), max_iterations=9).state
    assert {"end", "base.t", "stage.t"} <= set(s.search)
    off = s.x + 1
    s.search |= {"exact.x": off, "exact.gradient": f.gradient(off), "exact.t": s.t}
    path = AutoRate.__new__(AutoRate)
    path.first, path.width = 7.0, 10.0
    path._go_back(s, 0.01)
    for part in ("x", "gradient", "t"):
        np.testing.assert_array_equal(s.search[f"exact.{part}"], s.search[f"stage.{part}"])
    assert s.search["stage.t"] < 9


@pytest.mark.parametrize("first", [1e-4, 1e4])
def test_a_wrong_first_rate_is_soon_forgotten(first, monkeypatch):
    f, ball = problem(1500, 30), adafw.L1Ball(5.0)
    plain = adafw.minimize(f, ball, adafw.AdaCSFW(), max_epochs=15)
    init = AutoRate.__init__

    def started_elsewhere(self, *args):
        init(self, *args)
        self.first *= first

    monkeypatch.setattr(AutoRate, "__init__", started_elsewhere)
    moved = adafw.minimize(f, ball, adafw.AdaCSFW(), max_epochs=15)
    assert abs(moved.value - plain.value) <= 3e-3 * plain.value
    assert 0.05 < moved.learning_rate / plain.learning_rate < 20


RECURSIVE = {"SPIDER": gradients.SPIDER, "PAGE": gradients.PAGE, "ORGFW": gradients.ORGFW}
STEPS = {"Template 3": adafw.steps.AdaptiveStep, "projected": adafw.steps.ProjectedStep}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", RECURSIVE)
@pytest.mark.parametrize("ball", [adafw.LInfBall(0.5), adafw.L1Ball(5.0)], ids=repr)
def test_recursive_estimates_keep_up_with_the_best_half_decade(name, step, ball):
    """With twice its epochs, search included, and three seeds of the indices."""
    f = problem(1500, 20)
    best = adafw.minimize(f, ball, adafw.Corrective(), max_iterations=50, gap_tolerance=1e-9)

    def error(rate, epochs, seed):
        algorithm = adafw.Algorithm(RECURSIVE[name](), STEPS[step](rate))
        r = adafw.minimize(f, ball, algorithm, max_epochs=epochs, seed=seed)
        return (r.value - best.lower_bound) / best.value

    start = f.value(np.zeros(20)) / best.value - 1
    fixed = min(error(10.0 ** (i / 2), 10, 0) for i in range(-3, 2))
    autos = [error("auto", 20, seed) for seed in (0, 1, 2)]
    assert max(autos) < 0.5 * start
    assert np.median(autos) <= 1.5 * fixed + 3e-3


@pytest.mark.parametrize("name", ["SPIDER", "PAGE", "SVRF", "LSVRG", "ORGFW", "Minibatch"])
def test_exact_points_are_exact(name):
    f, ball = problem(), adafw.L1Ball(5.0)
    gradient = getattr(gradients, name)(30)
    algorithm, seen = adafw.Algorithm(gradient, adafw.steps.ProjectedStep(0.1)), []

    def look(state, record):
        point = gradient.exact_point(state.gradient, state.t)
        if point is not None:
            np.testing.assert_allclose(f.gradient(point[0]), point[1], atol=1e-12)
            seen.append(state.t)

    adafw.minimize(f, ball, algorithm, max_iterations=40, record_every=1, callbacks=look)
    if name == "SPIDER":
        assert seen == [1, 2, 4, 8, 16, 32]
    elif name == "PAGE":
        assert 1 < len(seen) < 20
    else:
        assert len(seen) == (40 if "SVR" in name else 0)


def test_a_stage_is_judged_by_the_exact_gradients_at_its_ends():
    """SPIDER's first two are at x_0 and x_1: q, the rate and no evaluation, by hand."""
    f, ball = problem(), adafw.L1Ball(5.0)
    algorithm = adafw.AdaGrad(gradient=gradients.SPIDER())
    xs = [adafw.minimize(f, ball, algorithm, max_iterations=n).state.x for n in (0, 1)]
    s = adafw.minimize(f, ball, algorithm, max_iterations=2).state
    d, g = xs[1] - xs[0], [f.gradient(x) for x in xs]
    q = (g[1] - g[0]) @ d / -(g[0] @ d)
    factor = min(3.0, (Care().stage_target / q) ** Care().stage_gain)
    assert s.search["rate"] == pytest.approx(10 * 0.01 * factor, rel=1e-9)
    assert s.gradient_evaluations == 2 * f.n_terms
    np.testing.assert_array_equal(s.search["stage.x"], xs[1])


def test_groups_that_disagree_move_nothing():
    rule = Measured(gradients.Minibatch(), Care())
    agreed = Met(np.full(4, 2.0), np.full(4, 1.0), 0.5)
    assert rule._factor(agreed, 1.0, 0.5) == (1.0, pytest.approx(2**0.5))
    noise = Met(np.array([9.0, -8.0, 7.0, -4.0]), np.full(4, 0.1), 0.5)
    assert rule._factor(noise, 1.0, 0.5)[0] == 0.0
    half = Met(np.array([2.0, 6.0, 2.0, 6.0]), np.full(4, 1.0), 0.5)
    assert 0 < rule._factor(half, 1.0, 0.5)[0] < 1
    wrong = Met(np.full(4, -2.0), np.full(4, 0.1))  # an estimate gone wrong: not by the rate
    assert rule._factor(wrong, 1.0, 0.5)[1] == 1.0
    assert rule._factor(wrong._replace(bends=np.full(4, 9.0)), 1.0, 0.5)[1] < 1
    assert rule._factor(Met(np.full(4, 1e-20), np.full(4, 1e-20), 0.0, 1e-18), 1.0, 0.5)[0] == 0


@pytest.mark.parametrize("gained", [0.0, 1.0])
def test_a_window_that_loses_what_was_gained_is_undone(gained):
    """Squares far over the edge; once something was gained, the rate has a ceiling."""
    f = adafw.LinearModel(np.eye(40) * 6.0, np.ones(40), losses.Squared())
    rule = Measured(gradients.Minibatch(), Care())
    base = solver.State(x=np.full(40, 0.2), t=4)
    s = solver.State(x=np.full(40, -3.0), t=8, search={"gained": gained} if gained else {})
    verdict = rule.judge(f, s, base, 6.0)
    assert verdict == (pytest.approx(2.0 if gained else 0.6), True)
    assert ("ceiling" in s.search) == bool(gained)
    if gained:
        better = solver.State(x=np.full(40, 0.19), t=16, search=s.search)
        base = solver.State(x=np.full(40, 0.2), t=9)
        assert rule.judge(f, better, base, 3.0) == (pytest.approx(2.0 * (16 / 4) ** 0.5), False)
    assert s.gradient_evaluations == 64


def test_bad_input():
    with pytest.raises(ValueError, match='learning_rate must be a number, a function of t or "aut'):
        adafw.AdaCSFW("fast")
    f = problem()
    own = adafw.UserSet(lmo=lambda g: -np.sign(g), start=lambda shape, dtype: np.zeros(shape))
    with pytest.raises(TypeError, match='learning_rate="auto" needs a set that knows its diameter'):
        adafw.minimize(f, own, adafw.AdaCSFW())


def test_a_damaged_search_is_refused():
    f, ball = problem(), adafw.L1Ball(5.0)
    r = adafw.minimize(f, ball, adafw.AdaCSFW(), max_iterations=1)
    assert "end" in r.state.search
    for key, value in (("end", 1.5), ("base.x", np.zeros(3)), ("base.gradient.alpha", np.ones(2)),
                       ("base.nonsense", 1), ("rate", -1.0), ("rate", 1), ("base.t", 2**63),
                       ("end", np.zeros(40))):  # fmt: skip
        state = r.state.copy()
        state.search[key] = value
        with pytest.raises(ValueError, match="state must come from a run of this problem"):
            adafw.minimize(f, ball, adafw.AdaCSFW(), state=state, max_epochs=1)


def test_a_window_is_open_with_its_beginning_or_not_at_all():
    f, ball = problem(), adafw.L1Ball(5.0)
    r = adafw.minimize(f, ball, adafw.AdaCSFW(), max_iterations=1)
    late, unbegun, endless = (r.state.copy() for _ in range(3))
    late.search["base.t"] = r.state.t + 1
    unbegun.search = {k: v for k, v in late.search.items() if not k.startswith("base.")}
    del endless.search["end"]
    for state in (late, unbegun, endless):
        with pytest.raises(ValueError, match=r"its search\.base.* must be"):
            adafw.minimize(f, ball, adafw.AdaCSFW(), state=state, max_epochs=1)


def test_a_damaged_measure_is_refused():
    f, ball, algorithm = problem(), adafw.L1Ball(5.0), adafw.AdaSPIDERFW()
    r = adafw.minimize(f, ball, algorithm, max_iterations=9)
    assert {"stage.x", "exact.t"} <= set(r.state.search)
    for key, value in (("stage.x", np.zeros(3)), ("exact.t", 1.5), ("stage.t", None),
                       ("exact.gradient", None), ("gained", -1.0), ("judged", 0.5)):  # fmt: skip
        state = r.state.copy()
        state.search[key] = value
        with pytest.raises(ValueError, match="state must come from a run of this problem"):
            adafw.minimize(f, ball, algorithm, state=state, max_epochs=20)


def test_a_stage_without_its_exact_gradient_is_refused():
    f, ball, algorithm = problem(), adafw.L1Ball(5.0), adafw.AdaSPIDERFW()
    state = adafw.minimize(f, ball, algorithm, max_iterations=9).state
    for part in ("x", "gradient", "t"):
        del state.search[f"exact.{part}"]
    with pytest.raises(ValueError, match="state must come from a run of this problem"):
        adafw.minimize(f, ball, algorithm, state=state, max_epochs=20)


def test_the_search_is_a_path_to_minimize():
    f, ball, algorithm = problem(), adafw.L1Ball(5.0), adafw.AdaCSFW()
    assert AutoRate.fits(None, f, ball, algorithm)
    assert not AutoRate.fits(None, f, ball, adafw.AdaCSFW(1.0))


@pytest.mark.parametrize("prefix", ["", "base."])
def test_a_damaged_workspace_is_refused_before_any_kernel_sees_it(prefix):
    """That of the run, and that of where its window began."""
    rng = np.random.default_rng(1)
    X = sparse.csr_array(rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.2))
    f = adafw.LinearModel(X, np.sign(rng.normal(size=300)), losses.Logistic())
    ball, algorithm = adafw.L1Ball(3.0), adafw.AdaCSFW()
    s = adafw.minimize(f, ball, algorithm, max_iterations=9, path="lazy").state
    assert "base.workspace.support" in s.search
    kept = s.search if prefix else s.workspace
    key = "base.workspace.capacity" if prefix else "capacity"
    assert adafw.minimize(f, ball, algorithm, state=s, max_iterations=12, path="lazy").state.t == 12
    kept[key] = -1
    with pytest.raises(ValueError, match=r"its workspace\.capacity must be"):
        adafw.minimize(f, ball, algorithm, state=s, max_iterations=12, path="lazy")


def test_saga_is_judged_by_its_steps_not_by_its_table():
    """By the table's sum its rates went up and down: f ended 15 to 25 % above the minimum."""
    f, ball = problem(), adafw.LInfBall(0.5)
    saga = ALGORITHMS["SAGA, Template 3"]
    best = adafw.minimize(f, ball, adafw.BPCG(), max_iterations=300).value
    for seed in (1, 2):
        r = adafw.minimize(f, ball, saga, max_epochs=40, seed=seed)
        assert r.value - best <= 5e-3 * best


@pytest.mark.parametrize("algorithm", [adafw.AdaCSFW(batch_size=3),
                                       adafw.AdaGrad(gradient=gradients.CSFW(batch_size=3)),
                                       adafw.AdaSFW()], ids=str)  # fmt: skip
def test_a_run_that_diverges_at_every_rate_ends(algorithm):
    """Squares of 1e149 overflow wherever x is: rates fall to the last one, which is the end."""
    A = np.random.default_rng(0).normal(size=(60, 5)) * 10**148.5
    f = adafw.LinearModel(A, np.ones(60), losses.Squared())
    x0 = np.array([40.0, 0, 0, 0, 0])
    r = adafw.minimize(f, adafw.L1Ball(50.0), algorithm, x0=x0, max_epochs=5)
    assert r.status in ("diverged", "max_epochs")
