"""States: copies that share nothing, files that hold everything."""

import dataclasses

import numpy as np
import pytest

import adafw
from adafw.solver import Diverged, State, described, run, start


def made():
    parts = ("gradient", "step", "workspace", "search")
    return State(
        x=np.arange(3.0), t=4, rng=np.arange(5, dtype=np.uint64), gradient_evaluations=11,
        lmo_calls=12, projections=13, cpu_seconds=1.5, wall_seconds=2.5, records=[(0.0, 1.0)],
        problem="{}", torn=True, **{name: {"a": np.ones(2), "n": 7} for name in parts},
    )  # fmt: skip


def test_a_copy_shares_nothing():
    s, before = made(), made()
    other = s.copy()
    assert [f.name for f in dataclasses.fields(State)] == [
        "x", "t", "gradient", "step", "workspace", "search", "rng", "gradient_evaluations",
        "lmo_calls", "projections", "cpu_seconds", "wall_seconds", "records", "problem", "torn",
    ]  # fmt: skip
    for f in dataclasses.fields(State):
        np.testing.assert_equal(getattr(other, f.name), getattr(before, f.name))
    other.x += 1
    other.rng += np.uint64(1)
    other.records.append((1.0, 2.0))
    for name in ("gradient", "step", "workspace", "search"):
        getattr(other, name)["a"] += 1
        getattr(other, name)["new"] = 1
    for f in dataclasses.fields(State):
        np.testing.assert_equal(getattr(s, f.name), getattr(before, f.name))
    source = object()
    s.rng = source
    assert s.copy().rng is source


def test_a_file_holds_everything(tmp_path):
    s = made()
    s.save(tmp_path / "s.npz")
    loaded = State.load(tmp_path / "s.npz")
    for f in dataclasses.fields(State):
        found, kept = getattr(loaded, f.name), getattr(s, f.name)
        assert type(found) is type(kept), f.name
        np.testing.assert_equal(found, kept)
    assert type(loaded.step["n"]) is int
    s.rng = np.random.RandomState(0)
    with pytest.raises(TypeError, match="indices come from a RandomState cannot be saved"):
        s.save(tmp_path / "t.npz")
    with pytest.raises(ValueError, match="state must say which problem it belongs to"):
        described(s)


@pytest.mark.parametrize("probability", [0.0, 1.0])
def test_the_one_loop_counts_what_was_done(logistic, probability):
    """Where a coin decides, what it decided; the state is whole in between, torn at an error."""
    ball, algorithm = adafw.L1Ball(2.0), adafw.LSVRFW(batch_size=4, probability=probability)
    s = start(logistic, ball, algorithm, np.zeros(12), np.random.default_rng(0))
    run(logistic, ball, algorithm, s, 5)
    each = 60 if probability else 8
    assert (s.t, s.gradient_evaluations, s.lmo_calls) == (5, 60 + 4 * each, 5)
    assert not s.torn
    asked = []
    run(logistic, ball, algorithm, s, 50, lambda: bool(asked.append(s.t)) or len(asked) == 3)
    assert asked == [6, 7, 8]
    run(logistic, ball, adafw.AdaGrad(0.1), fresh := start(
        logistic, ball, adafw.AdaGrad(0.1), np.zeros(12), np.random.default_rng(0)), 4)  # fmt: skip
    assert (fresh.lmo_calls, fresh.projections) == (0, 4)


def test_what_is_not_finite_is_told_with_the_point_before():
    f = adafw.UserSum(
        3, lambda x: 0.0, lambda x, batch: np.where(x > 0.3, np.inf, -1.0) * np.ones(1)
    )
    ball, algorithm = adafw.L1Ball(1.0), adafw.FW(0.25)
    s = start(f, ball, algorithm, np.zeros(1), np.random.default_rng(0))
    with pytest.raises(Diverged) as told:
        run(f, ball, algorithm, s, 9)
    assert (s.t, s.torn, s.lmo_calls) == (2, True, 2)
    assert s.x[0] == 0.4375
    assert told.value.last_x[0] == 0.25
