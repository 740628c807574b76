"""The example does what it says, here in a shorter training."""

import runpy
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
EXAMPLE = Path(__file__).parents[2] / "examples" / "plot_12_constrained_network.py"


def test_norms_stay_inside_few_weights_are_left_and_accuracy_is_close(monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), "6"])
    found = runpy.run_path(str(EXAMPLE), run_name="__main__")["results"]
    adamw, linf, by_layer = (
        found[name] for name in ("AdamW", "AdamSFW, linf", "AdamSFW, by layer")
    )
    assert adamw[0] > 0.9
    assert linf[0] > adamw[0] - 0.03
    assert by_layer[0] > adamw[0] - 0.03
    assert max(by_layer[1]) <= 1.5 * (1 + 1e-5) < max(adamw[1])
    assert by_layer[2] < 0.25 < adamw[2]
    printed = capsys.readouterr().out
    assert "moved into their sets: ['6.weight']" in printed
    assert printed.count("test accuracy") == 3
