"""Every example of the gallery runs, says something and draws its picture."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs_and_draws(example, monkeypatch, capsys, tmp_path):
    if "torch" in example.read_text():
        pytest.importorskip("torch")
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    plt.close("all")
    monkeypatch.setattr(sys, "argv", [str(example)])
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
    (figure,) = map(plt.figure, plt.get_fignums())
    axes = [ax for part in [figure, *figure.subfigs] for ax in part.axes]
    assert any(ax.has_data() for ax in axes)
    plt.close("all")
