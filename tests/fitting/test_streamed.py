"""What is chosen where data exceed memory, and that it fits what is fitted in memory."""

import numpy as np
import pytest

import adafw
from adafw.datasets import load_parts, save_parts, text_like
from adafw.fitting import Design, Settings
from adafw.fitting.linear import fit_linear

A, Y = text_like(1500, 600, nonzeros=10, seed=3)


def fits(tmp_path, dtype=np.float64, task="classification", **settings):
    """The same fit, in memory and on a disk."""
    save_parts(tmp_path / "parts", A.astype(dtype), Y)
    plan = Settings(**settings).plan(task)
    B, y = load_parts(tmp_path / "parts", stream=True)
    designs = Design(A.astype(dtype)), Design(B)
    assert designs[1].rows.streamed
    return [fit_linear(design, np.array(y), plan) for design in designs]


def is_of_blocks(fit):
    return isinstance(adafw.random.thaw(fit.resume.state.rng), adafw.Blocks)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("task", "loss"), [("classification", "logistic"), ("regression", "squared")]
)
def test_auto_takes_corrective_steps_where_the_set_has_them(tmp_path, dtype, task, loss):
    here, there = fits(tmp_path, dtype, task, loss=loss, radius=20.0, tol=1e-6)
    assert here.algorithm == there.algorithm == "Corrective"
    assert there.status == "converged"
    assert there.value == pytest.approx(here.value, rel=3e-6)
    assert there.intercept == pytest.approx(here.intercept, abs=1e-2)


def test_auto_draws_blocks_where_it_takes_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("adafw.fitting.choice.FULL_PASSES", 0)
    how = {"constraint": "lp", "constraint_params": {"p": 3}, "max_epochs": 3}
    here, there = fits(tmp_path, **how)
    assert here.algorithm == there.algorithm
    assert is_of_blocks(there)
    assert not is_of_blocks(here)
    assert there.value == pytest.approx(here.value, rel=0.1)


def test_presets_by_name_draw_blocks_too_and_find_their_rate(tmp_path):
    here, there = fits(tmp_path, algorithm="AdaCSFW", radius=20.0, tol=1e-2)
    assert is_of_blocks(there)
    assert here.status == there.status == "converged"
    assert there.learning_rate == here.learning_rate  # from the same sample of rows


def test_the_search_for_a_rate_reads_its_sample_once(tmp_path):
    """However few rows there are: each batch of a trial would be a read of its own."""
    save_parts(tmp_path / "parts", A, Y)
    B, y = load_parts(tmp_path / "parts", stream=True)
    for size in (10_000, 100):
        part, some = Design(B).sample(np.array(y), size, 0)
        here, same = Design(A).sample(Y, size, 0)
        assert not part.rows.streamed
        assert part.rows.shape == here.rows.shape == (min(size, A.shape[0]), A.shape[1])
        np.testing.assert_array_equal(some, same)
        x = np.linspace(-1, 1, A.shape[1])
        np.testing.assert_array_equal(part.rows.dot(x), here.rows.dot(x))
