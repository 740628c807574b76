"""A small experiment on generated reviews, run once for the tests that look at its results."""

import pytest

from adafw.experiments import reproduce

TOML = """
title = "Small networks"
network = "ImdbNet"
batch_size = 25
set = { name = "LInfBall", diameter = 6.0 }
seeds = [1, 2]
budget = { max_epochs = 2 }
data = { name = "imdb", source = "stand-in", rows = 60, test_rows = 30 }
claims = [
    "AdaSFW best on test", "AdaSFW slow on train", "SFW above variance reduction",
    "others peak early", "adaptive above projection-free", "AdaSFW like AdaGrad",
    "AdamSFW like AMSGrad", "large K is slower",
]
algorithms = [
    { name = "SFW", learning_rate = "10^-1", momentum = 0.0 },
    { name = "SVRF", learning_rate = "10^-1" },
    { name = "SPIDERFW", label = "SPIDER-FW", learning_rate = "10^-1" },
    { name = "ORGFW", learning_rate = "10^-1" },
    { name = "AdaSFW", learning_rate = "10^-5/2", inner_steps = 2 },
    { name = "AdamSFW", learning_rate = "10^-3", inner_steps = 5 },
    { name = "AdaGrad", learning_rate = "10^-2" },
    { name = "AMSGrad", learning_rate = "10^-7/2" },
]
"""


@pytest.fixture(scope="session")
def toml(tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "nets.toml"
    path.write_text(TOML)
    return path


@pytest.fixture(scope="session")
def finished(toml, tmp_path_factory):
    """(outcome, folder of its files)."""
    out = tmp_path_factory.mktemp("out")
    return reproduce(toml, out, workers=1), out / "nets"
