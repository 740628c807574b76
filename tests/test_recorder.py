import csv

import numpy as np
import pytest

import adafw
from adafw.recorder import Clock, Record, Recorder, Trace, as_record, every, next_geometric


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
    assert ax.lines[0].get_label() == "one"
    again = trace.plot(ax, y="lower_bound", color="red")
    assert again is ax
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cpu seconds", "lower bound")
    assert np.array_equal(ax.lines[1].get_xydata()[:, 0], trace["cpu_seconds"])
    assert ax.lines[1].get_color() == "red"


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


def test_rows_have_as_many_numbers_as_there_are_columns():
    """Counts are integers, all else is not, and every column stands where it is told."""
    row = (3, 1.5, 90, 4, 5, 0.25, 0.5, 7.0, 0.125, 6.5, 2, 0.0)
    for record in (as_record(row), Trace([row])[0]):
        assert record == Record(*row)
        kinds = [int, float, int, int, int, *[float] * 5, int, float]
        assert [type(value) for value in record] == kinds
    trace = Trace([row, row])
    for name, value in zip(Record._fields, row, strict=True):
        assert trace[name].tolist() == [value, value]
        assert trace[name].dtype == (np.int64 if isinstance(value, int) else np.float64)
    assert len(trace) == 2
    assert repr(trace).startswith("Trace(2 records, columns iteration, epoch, ")
    for wrong in (row[:-1], (*row, 1.0)):
        with pytest.raises(ValueError, match="argument"):
            as_record(wrong)
        with pytest.raises(ValueError, match="argument"):
            Trace([wrong])


def test_a_file_reads_back_to_the_same_bits(tmp_path):
    values = (1 / 3, 1e-300, np.nextafter(1, 2), 0.1)
    trace = Trace([(t, v, t, 0, 0, v, v, v, v, v, 1, v) for t, v in enumerate(values)])
    trace.to_csv(tmp_path / "trace.csv")
    data = (tmp_path / "trace.csv").read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n") == 5
    with open(tmp_path / "trace.csv", newline="") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == Record._fields
    assert [as_record(tuple(map(float, row))) for row in rows] == list(trace)


def test_no_beat_is_that_fast():
    assert every(0.5).seconds == 0.5
    for seconds in (0, -1.0):
        with pytest.raises(ValueError, match="seconds must be a number that is finite and > 0"):
            every(seconds)


def test_one_bad_record_loses_no_bound():
    """A bound is the best of all before; one that is no number is passed over."""
    values = iter([3.0, np.inf, 1.0, 4.0])
    f = adafw.UserSum(1, lambda x: next(values), lambda x, batch: np.ones(2), convex=True)
    recorder = Recorder(f, adafw.L1Ball(1.0), None)
    s = adafw.State(x=np.zeros(2))
    assert [recorder.measure(s).lower_bound for _ in range(4)] == [2, 2, 2, 3]
    assert [row[9] for row in s.records] == [2, 2, 2, 3]
    assert np.isnan(s.records[1][8])


def test_when_the_next_record_is_due():
    def recorder(beat):
        return Recorder(None, None, beat)

    s = adafw.State(x=np.zeros(2), t=5, wall_seconds=7.0)
    s.records = [(4, *[0.0] * 5, 4.5, *[0.0] * 5)]
    assert recorder(3).iterations_left(s) == 1
    assert recorder(5).iterations_left(s) == 5
    assert recorder(None).iterations_left(s) == 1  # at 6 = ceil(1.2^9)
    assert recorder(every(4.0)).iterations_left(s) == np.inf
    assert recorder(every(4.0)).seconds_left(s) == 1.5
    assert recorder(3).seconds_left(s) == np.inf
    due = {beat: recorder(beat).due(s) for beat in (3, 5, None, every(2.5), every(2.6))}
    assert due == {3: False, 5: True, None: True, every(2.5): True, every(2.6): False}
    s.t = 10
    assert not recorder(None).due(s)
    s.t = 4
    assert not any(recorder(beat).due(s) for beat in (1, None, every(0.1))), "it is there already"
    s.records = []
    assert recorder(every(6.9)).seconds_left(s) == pytest.approx(-0.1)
    s.t = 0
    assert all(recorder(beat).due(s) for beat in (3, None, every(99.0)))
