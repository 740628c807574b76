"""What others see of a state does not tell which path ran, and what a path keeps is its own."""

import numpy as np
import pytest
from fused_problems import after, fresh, linear_model, same_bits, same_counts

import adafw
from adafw import fused, gradients, solver
from adafw.fitting import checkpoint, model
from adafw.fused.lazy import LazyL1
from adafw.fused.linear import LinearBalls
from adafw.io import parts

F = linear_model(60, 90, 1, density=0.08)
ALGORITHMS = {
    "CSFW": adafw.CSFW(batch_size=5),
    "AdaCSFW": adafw.AdaCSFW(1.0, 3, batch_size=5),
    "SVRF": adafw.SVRF(),
    "AdaSVRF": adafw.AdaSVRF(1.0, 3),
    "AdaGrad": adafw.AdaGrad(0.3, gradient=gradients.CSFW(5)),
}
CASES = [
    (path, name, ball)
    for path in ("fused", "lazy")
    for name in ALGORITHMS
    for ball in (adafw.L1Ball(4.0), adafw.LInfBall(0.3))
    if path == "fused" or (name in ("CSFW", "AdaCSFW") and type(ball) is adafw.L1Ball)
]


def seen(path, name, ball, f=F):
    """(x, gradient, step) as a callback sees them at every iteration."""
    found = []

    def look(state, record):
        s = state.copy()
        found.append({"x": {"x": s.x}, "gradient": s.gradient, "step": s.step})

    r = adafw.minimize(
        f, ball, ALGORITHMS[name], max_iterations=25, record_every=1, callbacks=look, path=path
    )
    s = r.state
    return [*found, {"x": {"x": s.x}, "gradient": s.gradient, "step": s.step}]


@pytest.mark.parametrize(("path", "name", "ball"), CASES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_callbacks_and_results_see_what_the_one_loop_would_show(path, name, ball, dtype):
    f = linear_model(60, 90, 1, density=0.08, dtype=dtype)
    exact = 1e-9 if dtype == np.float64 else 2e-3
    for got, expected in zip(
        seen(path, name, ball, f), seen("generic", name, ball, f), strict=True
    ):
        for part, values in expected.items():
            assert got[part].keys() == values.keys()
            for key, value in values.items():
                assert got[part][key].dtype == value.dtype, key
                assert got[part][key].flags.c_contiguous
                np.testing.assert_allclose(got[part][key], value, rtol=exact, atol=exact)


@pytest.mark.parametrize(("path", "name", "ball"), CASES, ids=str)
def test_a_saved_run_goes_on_bit_for_bit_whenever_records_were_made(path, name, ball, tmp_path):
    problem = F, ball, ALGORITHMS[name]
    whole = adafw.minimize(*problem, max_iterations=60, record_every=60, path=path)
    for first in (1, 17, 40):
        half = adafw.minimize(*problem, max_iterations=first, record_every=3, path=path)
        half.state.save(tmp_path / "state.npz")
        loaded = adafw.State.load(tmp_path / "state.npz")
        rest = adafw.minimize(*problem, state=loaded, max_iterations=60, path=path)
        assert same_bits(rest.state, whole.state)


@pytest.mark.parametrize(("path", "name", "ball"), CASES, ids=str)
def test_a_state_without_its_workspace_goes_on_to_rounding(path, name, ball):
    problem = F, ball, ALGORITHMS[name]
    whole = adafw.minimize(*problem, max_iterations=60, path=path)
    half = adafw.minimize(*problem, max_iterations=31, path=path)
    half.state.workspace = {}
    rest = adafw.minimize(*problem, state=half.state, max_iterations=60, path=path)
    assert np.abs(rest.x - whole.x).max() <= 1e-9 * ball.radius
    assert same_counts(rest.state, whole.state)


@pytest.mark.parametrize(("path", "name", "ball"), CASES, ids=str)
def test_a_workspace_that_is_out_of_date_is_not_used(path, name, ball):
    """The one loop leaves it alone: what it holds is then wrong, not only useless."""
    problem = F, ball, ALGORITHMS[name]
    run = {"fused": LinearBalls().run, "lazy": LazyL1().run}[path]
    s = fresh(*problem)
    for code, n in ((run, 17), (solver.run, 40), (run, 20)):
        code(*problem, s, n)
    expected = after(solver.run, *problem, [77])
    assert np.abs(s.x - expected.x).max() <= 1e-9 * ball.radius


@pytest.mark.parametrize(("path", "name", "ball"), CASES, ids=str)
def test_workspaces_are_plain_and_leave_with_their_path(path, name, ball):
    problem = F, ball, ALGORITHMS[name]
    r = adafw.minimize(*problem, max_iterations=20, path=path)
    assert all(type(v) in (np.ndarray, int, float, str) for v in r.state.workspace.values())
    rest = adafw.minimize(*problem, state=r.state, max_iterations=30, path="generic")
    assert rest.state.workspace == {}
    assert r.state.workspace != {}, "the state that was given must not change"


def test_formats_change_on_purpose_only():
    """What other versions wrote is told by these numbers."""
    f = linear_model(4, 3)
    s = fresh(f, adafw.L1Ball(1.0), adafw.FW())
    assert s.to_arrays()["format"] == 4
    assert (model.FORMAT, checkpoint.FORMAT, parts._FORMAT) == (1, 2, 1)


def test_states_of_the_first_format_are_refused():
    r = adafw.minimize(F, adafw.L1Ball(1.0), adafw.CSFW(), max_iterations=3)
    old = {k: v for k, v in r.state.to_arrays().items() if not k.startswith("workspace.")}
    with pytest.raises(ValueError, match=r"saved by an earlier version of adafw.* as x0"):
        adafw.State.from_arrays(old | {"format": np.array(1)})
    with pytest.raises(ValueError, match="not a saved state of adafw, or one of a newer version"):
        adafw.State.from_arrays(old | {"format": np.array(99)})


def test_a_path_runs_from_record_to_record_however_long_that_takes(monkeypatch, clock):
    """A run that came back whenever the clock is looked at would bring g up to date as often."""

    class Slow(LazyL1):
        calls = 0

        def run(self, f, constraint, algorithm, s, n, stop=lambda: False):
            if n:
                Slow.calls += 1
                clock.sleep(8.0)  # longer than between two looks at the clock
                assert not stop()
            return super().run(f, constraint, algorithm, s, n, stop)

    monkeypatch.setattr(fused, "PATHS", [Slow()])
    r = adafw.minimize(
        F, adafw.L1Ball(1.0), adafw.CSFW(), path="lazy", max_iterations=9, record_every=3,
        max_seconds=1000,
    )  # fmt: skip
    assert r.trace["iteration"].tolist() == [0, 3, 6, 9]
    assert Slow.calls == 3
