"""The live line of a fit, on a clock and a stream of the test's own."""

import io
import math
import sys
import time

import pytest

from adafw.fitting.live import Live
from adafw.recorder import Record


class Stream(io.StringIO):
    """Standard error that may be a terminal."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def shown(monkeypatch):
    """Makes a line on a terminal or in a log, and a function that calls it at a time."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def make(terminal, tol=1e-2, n_fits=1, show=True, status=lambda: ""):
        stream = Stream(terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        live = Live(tol, n_fits, show, status)

        def at(seconds, gap=0.5, k=0, value=0.25):
            now[0] = 100.0 + seconds
            live(k, Record(8, 4.0, 0, 0, 0, 0.0, 2.0, value, gap, 0.0, 0, 0.0))
            said = stream.getvalue()
            stream.seek(0)
            stream.truncate()
            return said

        return live, at, stream

    return make


def test_a_log_gets_lines_at_growing_intervals(shown):
    _, at, _ = shown(terminal=False)
    assert at(1.9) == ""
    assert at(2.0) == "gap 5.00e-01  objective 0.25  4.0 epochs, 2/s\n"
    assert at(3.9) == ""
    assert at(6.0)
    assert at(11.9) == ""
    assert at(12.0)


def test_a_terminal_has_one_line_that_is_wiped(shown):
    live, at, stream = shown(terminal=True, n_fits=3, status=lambda: "far")
    assert at(0.1) == ""
    long = at(0.2, k=1)
    assert long == "\rclass 2 of 3  gap 5.00e-01  objective 0.25  4.0 epochs, 2/s  far"
    assert at(0.3) == ""
    assert len(at(0.45)) == len(long)
    live.close()
    assert stream.getvalue() == "\r" + " " * (len(long) - 1) + "\r"
    live.close()
    assert stream.getvalue().count("\r") == 2, "what is wiped is not wiped again"


def test_a_shorter_line_covers_all_of_the_longer_one_before(shown):
    about = iter(["reading 7 of 9 parts", "", ""])
    _, at, _ = shown(terminal=True, status=lambda: next(about))
    long, short, last = at(0.2), at(0.5), at(0.8)
    assert len(long) == len(short) > len(short.rstrip())
    assert last == short.rstrip()


@pytest.mark.parametrize(("value", "wanted"), [(-0.25, 0.0025), (0.0, 1e-14)])
def test_the_tolerance_is_relative_to_the_size_of_the_objective(shown, value, wanted):
    _, at, _ = shown(terminal=True)
    for second in range(3):
        at(float(second), 51.2 / 2**second, value=value)
    left = f", about {math.log2(6.4 / wanted):.0f} s to tolerance"
    assert at(3.0, 6.4, value=value).endswith(left)


def test_what_is_within_its_tolerance_has_no_time_left(shown):
    _, at, _ = shown(terminal=True)
    for second in range(3):
        at(float(second), 0.004 / 2**second)
    assert "tolerance" not in at(3.0, 0.0005)


def test_the_time_to_the_tolerance_is_that_of_the_last_half(shown):
    """wanted = 0.0025; from 2 s on the gap is halved each second: log2(0.8 / 0.0025) = 8.3 s."""
    _, at, _ = shown(terminal=True)
    for second, gap in ((0.0, 51.2), (1.0, 51.2), (2.0, 3.2)):
        assert "tolerance" not in at(second, gap)
    assert at(4.0, 0.8).endswith(f", about {math.log2(0.8 / 0.0025):.0f} s to tolerance")
    assert "tolerance" not in at(5.0, 25.6), "it does not fall"


def test_nothing_is_shown_unless_asked_for(shown):
    _, at, _ = shown(terminal=True, show=False)
    assert at(50.0) == ""


def test_every_fit_falls_at_its_own_pace(shown):
    _, at, _ = shown(terminal=True, n_fits=2)
    for second in range(4):
        at(float(second), 51.2 / 2**second, k=0)
    assert "tolerance" not in at(4.0, 25.6, k=1)
    assert "tolerance" not in at(4.5, 1.6, k=1), "of this one too little is known"
    assert "tolerance" in at(5.0, 1.6, k=0)
