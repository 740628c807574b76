"""A small experiment of our own, run once for the tests that look at its results."""

import pytest

from adafw.experiments import reproduce, work

TOML = """
title = "A small experiment <with> signs & marks"
loss = "SquaredHinge"
set = { name = "LInfBall", radius = 1.0 }
seeds = [1, 2, 3]
budget = { max_iterations = 60 }
notes = ["Ours: everything."]
claims = [
    "best projection-free by gap", "best projection-free by objective", "faster than projected",
    "faster than projected with the same estimator", "bounds not active", "no clipping needed",
    "K about 5 is good", "large K is slower", "better than the alternatives",
]
data = { name = "support_vector", m = 300, n = 12, seed = 4 }

[quick]
seeds = [1]
budget = { max_iterations = 10 }
data = { m = 100 }

[[algorithms]]
name = "CSFW"

[[algorithms]]
name = "AdaCSFW"
learning_rate = "10^-1/2"
inner_steps = 2
note = "ours"

[[algorithms]]
name = "AdaGrad"
label = "AdaGrad + CSFW"
learning_rate = 0.1
gradient = "CSFW"

[[algorithms]]
label = "direct"
gradient = "CSFW"
step = "PreconditionedStep"
"""


@pytest.fixture(scope="session")
def toml(tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "small.toml"
    path.write_text(TOML)
    return path


@pytest.fixture(scope="session")
def finished(toml, tmp_path_factory):
    """(outcome, folder of its files)."""
    out = tmp_path_factory.mktemp("out")
    return reproduce(toml, out, workers=1), out / "small"


class StopAt:
    """An event that is set from the n-th look on."""

    def __init__(self, n):
        self.left = n

    def is_set(self):
        self.left -= 1
        return self.left <= 0


@pytest.fixture
def listen_to():
    """Makes this process a worker, stopped by an event or at the n-th look, until the test ends."""
    yield lambda stop: work.listen_to(StopAt(stop) if isinstance(stop, int) else stop)
    work.listen_to(None)
