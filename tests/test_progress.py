import io
import os
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

import adafw
from adafw.progress import Progress

SCRIPT = """
import numpy as np, adafw
rng = np.random.default_rng(0)
f = adafw.LinearModel(rng.normal(size=(50, 5)), np.ones(50), adafw.losses.Squared())
adafw.minimize(f, adafw.L1Ball(1.0), adafw.CSFW(), max_seconds={seconds})
"""


def test_a_log_gets_lines_when_asked_for_and_nothing_otherwise(logistic, capfd):
    ball = adafw.L1Ball(2.0)
    adafw.minimize(logistic, ball, adafw.CSFW(), max_seconds=0.4, progress=True)
    assert "gap" in capfd.readouterr().err
    adafw.minimize(logistic, ball, adafw.CSFW(), max_seconds=0.4)
    assert capfd.readouterr() == ("", "")


def test_a_log_says_how_far_it_is_at_growing_intervals(monkeypatch):
    now = [50.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", stream := io.StringIO())
    bar = Progress("CSFW", True, lambda: "far")
    s = SimpleNamespace(gradient_evaluations=60, wall_seconds=2.0)

    def at(seconds, done):
        now[0] = 50.0 + seconds
        if bar.due():
            bar.update(s, 10, done)
        said = stream.getvalue()
        stream.seek(0)
        stream.truncate()
        return said

    assert at(0.05, 0.1) == ""
    assert at(0.5, 0.25) == "CSFW   25%  6.0 epochs, 3/s  far\n"
    assert at(1.4, 0.5) == ""
    assert at(1.5, 1.5).startswith("CSFW  100%")
    assert at(2.9, 0.5) == ""
    bar.record = SimpleNamespace(gap=0.125, value=2.5)
    assert at(3.0, None) == "CSFW  gap 1.25e-01  f 2.5  6.0 epochs, 3/s  far\n"
    s.wall_seconds = 0.0
    assert "6.0 epochs, 0/s" in at(9.0, None)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("seconds", "quiet", "shown"), [(1.5, "1", True), (1.5, "0", False), (0.2, "1", False)]
)
def test_a_terminal_gets_a_live_line_if_the_run_takes_a_while(seconds, quiet, shown):
    main, terminal = os.openpty()
    env = {**os.environ, "ADAFW_PROGRESS": quiet, "TERM": "xterm"}
    script = SCRIPT.format(seconds=seconds)
    run = subprocess.Popen([sys.executable, "-c", script], stderr=terminal, env=env)
    os.close(terminal)
    text = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:  # what Linux says when the other end is closed
            break
        if not piece:
            break
        text += piece
    assert run.wait() == 0
    assert (b"gap" in text and b"epochs" in text) == shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_live_line_in_numbers(monkeypatch):
    """How far, at most all of it; drawn ten times a second, and wiped at the end."""
    now = [50.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    bar = Progress("CSFW", True, lambda: "far")
    s = SimpleNamespace(gradient_evaluations=60, wall_seconds=2.0)
    assert not bar.due()
    now[0] = 50.1
    assert bar.due()
    for done, total, completed in ((None, None, 0.0), (0.25, 1.0, 0.25), (1.5, 1.0, 1.0)):
        bar.update(s, 10, done)
        (task,) = bar.bar.tasks
        assert (task.total, task.completed) == (total, completed)
        assert (task.description, task.fields["text"]) == ("CSFW", "6.0 epochs, 3/s  far")
        assert bar.next == pytest.approx(now[0] + 0.1)
    said = stream.getvalue()
    assert "CSFW" in said
    assert "6.0 epochs, 3/s  far" in said
    assert bar.bar.live.transient
    assert not bar.bar.live.auto_refresh, "it is drawn while the run's clock stands still"
    bar.close()
    assert not bar.bar.live.is_started
    assert stream.getvalue().rstrip().endswith("\x1b[2K"), "nothing is left of the line"


def test_who_sees_a_line(monkeypatch):
    """Asked for, or on a terminal after a second unless the environment says no."""
    monkeypatch.setattr(time, "perf_counter", lambda: 50.0)
    for terminal, show, quiet, shown, first in (
        (True, None, "1", True, 51.0), (True, None, "0", False, 51.0),
        (False, None, "1", False, 51.0), (False, True, "0", True, 50.1),
        (True, False, "1", False, 50.1),
    ):  # fmt: skip
        monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
        monkeypatch.setenv("ADAFW_PROGRESS", quiet)
        bar = Progress("CSFW", show)
        assert (bar.show, bar.next) == (shown, first)
        assert not bar.due()
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.delenv("ADAFW_PROGRESS")
    assert Progress("CSFW", None).show
