"""Runs whose batches are blocks of neighbouring rows."""

import numpy as np
import pytest

import adafw
from adafw import gradients
from adafw.datasets import text_like

A, Y = text_like(400, 300, nonzeros=8, seed=1)
F = adafw.LinearModel(A, Y, adafw.losses.Logistic())
BALL = adafw.L1Ball(5.0)
ALGORITHMS = {
    "CSFW": adafw.CSFW(batch_size=25),
    "AdaCSFW": adafw.AdaCSFW(1.0, 3, batch_size=25),
    "SVRF": adafw.SVRF(),
    "SFW": adafw.SFW(),
    "PAGE": adafw.Algorithm(gradients.PAGE(batch_size=25), adafw.steps.FrankWolfeStep(0.05)),
}


@pytest.mark.parametrize("path", ["fused", "lazy"])
def test_fast_paths_draw_the_blocks_of_the_one_loop(path):
    for name in ("AdaCSFW", "CSFW"):
        x = [
            adafw.minimize(
                F, BALL, ALGORITHMS[name], seed=adafw.Blocks(2, 10), max_iterations=40, path=p
            ).x
            for p in (path, "generic")
        ]
        np.testing.assert_allclose(x[0], x[1], atol=1e-9)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_saved_state_goes_on_bit_for_bit(name, tmp_path):
    def run(**how):
        return adafw.minimize(F, BALL, ALGORITHMS[name], record_every=10, **how)

    whole = run(seed=adafw.Blocks(4, 10), max_iterations=30)
    run(seed=adafw.Blocks(4, 10), max_iterations=13).state.save(tmp_path / "state.npz")
    rest = run(state=adafw.State.load(tmp_path / "state.npz"), max_iterations=30)
    np.testing.assert_array_equal(rest.x, whole.x)
    np.testing.assert_array_equal(rest.state.rng, whole.state.rng)


def test_blocks_that_were_given_go_on_where_the_run_left_them():
    source = adafw.Blocks(4, 10)
    first = adafw.minimize(F, BALL, adafw.CSFW(), seed=source, max_iterations=5)
    assert np.array_equal(adafw.random.freeze(source), first.state.rng)
    other = adafw.minimize(F, BALL, adafw.CSFW(), seed=source, max_iterations=5)
    assert not np.array_equal(first.x, other.x)


def test_damaged_words_are_refused():
    state = adafw.minimize(F, BALL, adafw.CSFW(), seed=adafw.Blocks(0, 7), max_iterations=3).state
    for change in (lambda w: w[:5], lambda w: np.where(np.arange(w.size) == 1, 0, w).astype("u8")):
        broken = state.copy()
        broken.rng = change(state.rng)
        with pytest.raises(ValueError, match="rng must be the words of a numpy generator"):
            adafw.minimize(F, BALL, adafw.CSFW(), state=broken, max_iterations=5)


def test_blocks_of_shuffled_rows_find_the_minimum():
    r = adafw.minimize(F, BALL, ALGORITHMS["AdaCSFW"], seed=adafw.Blocks(0, 10), max_epochs=300)
    best = adafw.minimize(F, BALL, adafw.Corrective(), gap_tolerance=1e-9)
    assert r.value - best.value < 1e-3
