"""The live line of a conversion, on a clock and a stream of the test's own."""

import io
import os
import sys

import pytest

from adafw.io.meter import Meter


class Stream(io.StringIO):
    """Standard error that may be a terminal."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def shown(monkeypatch, clock, tmp_path):
    """Makes a meter on a terminal or in a log, and a function that tells what it says at a time."""
    monkeypatch.delenv("ADAFW_PROGRESS", raising=False)
    path = tmp_path / "file.svm"
    path.write_bytes(bytes(4000))
    began = clock.now

    def make(terminal, show):
        stream = Stream(terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        clock.now = began
        meter = Meter("converting", path, show)

        def at(seconds, done=1000, total=4000, what=""):
            clock.now = began + seconds
            meter.done(done, total, what)
            said = stream.getvalue()
            stream.seek(0)
            stream.truncate()
            return said

        return meter, at

    return make


def test_a_log_gets_lines_at_growing_intervals(shown):
    meter, at = shown(terminal=False, show=True)
    assert at(2.0) == "converting file.svm   25%  1 kB of 4 kB, 500 bytes/s\n"
    assert at(3.9) == ""
    assert at(4.0, 4000, 4000, "shuffling") == "shuffling file.svm  100%  4 kB of 4 kB, 1 kB/s\n"
    assert at(7.9) == ""
    assert at(8.0, 0) == "converting file.svm    0%  0 bytes of 4 kB, 0 bytes/s\n"
    meter.__exit__(None, None, None)
    assert at(15.9) == ""  # nor is anything wiped


def test_the_first_lines_of_a_log_are_a_second_apart(shown):
    _, at = shown(terminal=False, show=True)
    assert "1 kB of 4 kB, 1 MB/s" in at(0.0)  # no less than a thousandth of a second counts
    assert at(0.9) == ""
    assert at(1.0)
    assert at(1.9) == ""
    assert at(2.0)


def test_a_terminal_has_one_line_that_is_wiped(shown):
    meter, at = shown(terminal=True, show=None)
    assert at(0.9) == ""  # short work is not told
    assert at(1.0) == "\rconverting file.svm   25%  1 kB of 4 kB, 1 kB/s\x1b[K"
    assert at(1.05) == ""
    assert at(1.11).startswith("\rconverting")
    meter.__exit__(None, None, None)
    assert sys.stderr.getvalue() == "\r\x1b[K"
    quiet, _ = shown(terminal=True, show=None)
    quiet.__exit__(None, None, None)
    assert sys.stderr.getvalue() == ""  # there is no line


@pytest.mark.parametrize(
    ("terminal", "show", "silenced", "told"),
    [
        (True, None, "0", False),
        (True, None, "1", True),
        (True, True, "0", True),
        (True, False, "1", False),
        (False, None, "1", False),
        (False, True, "0", True),
        (False, False, "1", False),
    ],
)
def test_who_is_told(shown, monkeypatch, terminal, show, silenced, told):
    monkeypatch.setenv("ADAFW_PROGRESS", silenced)
    _, at = shown(terminal, show)
    assert bool(at(5.0)) is told


def test_a_file_that_is_read_is_where_it_is_and_a_pipe_is_nowhere(shown, tmp_path):
    meter, _ = shown(terminal=False, show=True)
    with open(tmp_path / "file.svm", "rb", buffering=0) as file:
        file.read(3000)
        meter.at(file)
        assert "75%  3 kB of 4 kB" in sys.stderr.getvalue()
        os.mkfifo(tmp_path / "pipe")
        piped = Meter("converting", tmp_path / "pipe", True)
        piped.at(file)
    assert piped.total is None
    assert sys.stderr.getvalue().count("\n") == 1
