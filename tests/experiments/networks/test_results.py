import csv
import json
import re

import numpy as np
import pytest

from adafw.experiments.networks.trace import EpochTrace
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
