import csv
import json
import re

import numpy as np
import pytest

from adafw.experiments.networks import NetworksKind, tables
from adafw.experiments.networks.case import NetworkCase, NetworkMethod
from adafw.experiments.networks.trace import EpochTrace
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Spec
from adafw.experiments.spread import deviation_band


def rows(folder):
    with open(folder / "trace.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_files_and_columns(finished):
    _, folder = finished
    names = {"trace.csv", "summary.json", "figure.svg", "figure.png", "report.html"}
    assert names <= {path.name for path in folder.iterdir()}
    table = rows(folder)
    assert list(table[0]) == ["algorithm", "setting", "seed", *EpochTrace.columns]
    assert len(table) == 8 * 2 * 3
    assert not list(folder.glob("work/*.state.*"))


def test_summary_holds_means_and_deviations_of_the_trace(finished):
    _, folder = finished
    summary = json.loads((folder / "summary.json").read_text())
    assert "lower_bound" not in summary
    assert summary["environment"]["packages"]["torch"] != "not installed"
    for line in summary["algorithms"]:
        last = [
            float(row["test_loss"])
            for row in rows(folder)
            if row["algorithm"] == line["algorithm"] and row["epoch"] == "2"
        ]
        assert line["final"]["test_loss"]["mean"] == pytest.approx(sum(last) / 2, rel=1e-12)
        deviation = abs(last[0] - last[1]) / 2**0.5  # of two numbers, n - 1 below
        assert line["final"]["test_loss"]["deviation"] == pytest.approx(deviation, rel=1e-9)


def test_the_band_is_a_deviation_about_the_mean(finished):
    outcome, _ = finished
    traces = outcome.curves[0].traces.values()
    x, middle, lower, upper = deviation_band(
        outcome.curves[0].traces.values(), "epoch", "test_accuracy"
    )
    assert x.tolist() == [1, 2]
    values = np.array([trace["test_accuracy"][1:] for trace in traces])
    np.testing.assert_allclose(upper - middle, np.abs(np.diff(values, axis=0)[0]) / 2**0.5)
    np.testing.assert_allclose(middle - lower, upper - middle)


def test_the_report_says_what_was_done(finished):
    _, folder = finished
    page = (folder / "report.html").read_text()
    text = re.sub(r"<[^>]*>", " ", page.split("</figure>")[1])
    for words in ("Peak test accuracy", "Stand-in data", "standard deviation", "lr=0.003162",
                  "6 Glorot norms unless the method has its own; batch 25"):  # fmt: skip
        assert words in page
    assert "quartile" not in text


def curve(case, label, runs, probes=None):
    """A curve of runs, one a seed, of (test accuracy, train accuracy, loss) after each epoch."""
    traces = {}
    for seed, run in enumerate(runs):
        rows = []
        for epoch, (test, train, loss) in enumerate(run):
            row = {**dict.fromkeys(EpochTrace.columns, 0.0), "epoch": epoch, "test_loss": loss}
            row |= {"test_accuracy": test, "train_accuracy": train, "train_loss": loss}
            row |= {"iteration": 50 * epoch, "cpu_seconds": 1000.0 * epoch}
            rows.append(tuple(row.values()))
        traces[seed] = EpochTrace(rows)
    method = NetworkMethod(label, {"name": "SFW", "learning_rate": 1.0})
    return Curve(case, method, traces, dict.fromkeys(traces, "max_epochs"), probes=probes or {})


def outcome(probes=None, **data):
    case = NetworkCase(name="p", data=data, methods=(), network="ImdbNet",
                       set={"name": "LInfBall", "diameter": 6.0})  # fmt: skip
    peaks = [[(0.5, 0.5, 1.0), (0.9, 0.6, 0.5), (0.6, 0.9, 0.25)],
             [(0.5, 0.5, 1.0), (0.7, 0.6, 0.5), (0.8, 0.9, 0.75)]]  # fmt: skip
    rising = [[(0.5, 0.5, 1.0), (0.6, 0.6, 0.5), (0.75, 0.8, 0.25)]] * 2
    curves = curve(case, "peaks <1>", peaks), curve(case, "rises", rising, probes)
    spec = Spec("e", "e", "networks", (case,), {"max_epochs": 2})
    about = {"label": "data", "is_stand_in": False, "description": "", "shape": [3, 3]}
    return Outcome(spec, {"p": about}, curves)


def test_the_table_tells_ends_and_peaks_and_the_best_on_test():
    table = tables.final_numbers(outcome())[2]
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in table.split("<tr")[2:]]
    assert rows[0][0] == "peaks &lt;1&gt;"
    assert rows[0][1] == "0.5000<br><small>± 0.3536</small>"
    assert rows[0][4] == "0.7000<br><small>± 0.1414</small>"
    assert rows[0][5] == "0.8000<br><small>epoch 1</small>"
    assert rows[0][6] == "2\u202f000"
    assert rows[1][5] == "0.7500<br><small>epoch 2</small>"
    (best,) = re.findall(r"<tr class=best>.*?</tr>", table)
    assert "<td>rises</td>" in best


def test_what_was_probed_is_told_of_those_that_were():
    probes = {
        seed: {"kept": {"1": 0.5 + seed / 10, "0.1": 0.25}, "noise": {"0.5": 0.125}}
        for seed in (0, 1)
    }
    assert tables.probed(outcome()) == []
    page = "".join(tables.probed(outcome(probes)))
    assert "peaks" not in page
    assert [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in page.split("<tr")[2::2]] == [
        ["rises", "0.5500", "0.2500"], ["rises", "0.1250"],
    ]  # fmt: skip
    found = NetworksKind().summary(outcome(probes))
    assert found == {"probes": [{
        "problem": "p", "algorithm": "rises", "kept": {"1": 0.55, "0.1": 0.25},
        "noise": {"0.5": 0.125},
    }]}  # fmt: skip
    assert NetworksKind().summary(outcome()) == {}


def test_epochs_of_some_rows_are_drawn_by_steps_and_losses_on_logarithmic_axes():
    for data, label, last in (({}, "epochs", 2), ({"epoch_rows": 9}, "steps", 100)):
        axes = NetworksKind().draw(outcome(**data)).subfigs[0].axes
        assert [axis.get_xlabel() for axis in axes] == [label] * 4 + ["CPU time (s)"] * 4
        assert [axis.get_yscale() for axis in axes] == ["log", "linear"] * 4
        assert axes[3].lines[0].get_xdata().tolist() == [last / 2, last]
        assert axes[3].lines[0].get_ydata().tolist() == pytest.approx([0.8, 0.7])
        assert axes[7].lines[1].get_xdata().tolist() == [1000, 2000]
        assert axes[7].lines[1].get_ydata().tolist() == pytest.approx([0.6, 0.75])
