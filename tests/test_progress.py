import os
import subprocess
import sys

import pytest

import adafw

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
