import csv

import numpy as np
import pytest

import adafw
from adafw.recorder import Clock, Record, Recorder, Trace, next_geometric


def test_geometric_times_are_the_ceilings_of_powers():
    wanted = sorted({int(np.ceil(1.2**j)) for j in range(60)})
    got, t = [], 0
    while len(got) < len(wanted):
        t = next_geometric(t)
        got.append(t)
    assert got == wanted


def test_trace_columns_rows_and_files(logistic, tmp_path):
    trace = adafw.minimize(logistic, adafw.L1Ball(1.0), adafw.CSFW(), max_iterations=20).trace
    assert trace.columns == Record._fields
    assert trace[-1] == list(trace)[-1]
    assert trace["iteration"].dtype == np.int64
    frame = trace.to_pandas()
    assert list(frame.columns) == list(trace.columns)
    trace.to_csv(tmp_path / "trace.csv")
    with open(tmp_path / "trace.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["gap"]) for row in rows] == trace["gap"].tolist()
    assert [int(row["nonzeros"]) for row in rows] == trace["nonzeros"].tolist()
    with pytest.raises(KeyError, match="no column of a trace"):
        trace["speed"]


def test_plot_draws_the_columns():
    import matplotlib

    matplotlib.use("Agg")
    trace = Trace([(t, t, t, 0, 0, t, t, 1.0, 1.0 / (t + 1), 0.0, 1, 0.0) for t in range(4)])
    ax = trace.plot(x="epoch", label="one")
    assert np.array_equal(ax.lines[0].get_xydata()[:, 1], trace["gap"])
    assert ax.get_yscale() == "log"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("epoch", "gap")


def test_nonzeros_are_relative_to_the_radius():
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch: np.zeros_like(x))
    x0 = np.array([0.0, 1e-14, 1e-12, 1.0])
    r = adafw.minimize(f, adafw.L1Ball(100.0), adafw.FW(), x0=x0, max_iterations=0)
    assert r.trace[-1].nonzeros == 2


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_a_gradient_that_is_partly_finite_has_no_gap(bad):
    f = adafw.UserSum(1, lambda x: 1.0, lambda x, batch: np.array([bad, 1.0]), convex=True)
    r = adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(), x0=np.zeros(2), max_iterations=0)
    assert r.value == 1
    assert np.isnan(r.gap)


def test_a_pause_counts_nothing_twice(clock):
    running = Clock(5.0, 7.0)
    with running:
        clock.sleep(1.0)
    assert (running.cpu, running.wall) == (6.0, 8.0)
    clock.sleep(10.0)
    with running:
        clock.sleep(0.5)
        running.pause()
        running.pause()
    assert (running.cpu, running.wall) == (6.5, 8.5)


def test_how_far_a_point_is_outside_is_recorded():
    """In float32, a vertex of the scaled set is outside by its rounding."""
    f = adafw.UserSum(1, lambda x: 0.0, lambda x, batch: np.zeros_like(x))
    ball = adafw.L1Ball(2.0)
    recorder = Recorder(f, ball, None)
    s = adafw.minimize(f, ball, adafw.FW(), x0=np.zeros(2), max_iterations=0).state
    s.x = np.array([2.0, 0.5])
    assert recorder.measure(s).violation == ball.violation(s.x) == 0.25


@pytest.mark.parametrize(("rounded", "told"), [(-1e-20, 0.0), (0.0, 0.0), (1e-20, 1e-20)])
def test_no_gap_is_below_zero(rounded, told, monkeypatch):
    f = adafw.UserSum(1, lambda x: 3.0, lambda x, batch: np.ones(2), convex=True)
    monkeypatch.setattr(adafw.L1Ball, "gap", lambda self, x, g: rounded)
    r = adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(), x0=np.zeros(2), max_iterations=0)
    assert r.gap == told
    assert r.lower_bound == 3.0
