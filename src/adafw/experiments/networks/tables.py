"""Losses and accuracies after the last epoch, as tables of a report."""

from html import escape

from adafw.experiments.html import case_heading, comparison_rule, count_cell
from adafw.experiments.networks.lmo_claims import mean_probes
from adafw.experiments.outcome import Curve, Outcome
from adafw.experiments.spec import Case, Method
from adafw.experiments.spread import mean_and_deviation, mean_curve
from adafw.page import html_table

RULE = comparison_rule("means over seeds and the bands of one standard deviation are apart")

_HEAD = ["Algorithm", "Train loss", "Train accuracy", "Test loss", "Test accuracy",
         "Peak test accuracy", "CPU s", "Gradients", "Violation"]  # fmt: skip


def final_numbers(outcome: Outcome) -> list[str]:
    """A table for each case."""
    return [
        "<h2>Final numbers</h2>",
        "<p>After the last epoch: mean over seeds, and one standard deviation. Peak: the epoch "
        "whose mean test accuracy is best. Highlighted: best mean test accuracy after the last "
        "epoch.</p>",
        *[_table(outcome, case) for case in outcome.spec.cases],
    ]


def _table(outcome: Outcome, case: Case[Method]) -> str:
    curves = outcome.of(case)
    best = max(curves, key=lambda curve: curve.final("test_accuracy").mean())
    rows = []
    for curve in curves:
        accuracy = mean_curve(curve.traces.values(), "test_accuracy")
        peak = int(accuracy.argmax())
        rows.append([
            escape(curve.label),
            *(_mean(curve, name) for name in ("train_loss", "train_accuracy", "test_loss",
                                              "test_accuracy")),
            f"{accuracy[peak]:.4f}<br><small>epoch {peak}</small>",
            *(count_cell(curve, name)
              for name in ("cpu_seconds", "gradient_evaluations", "violation")),
        ])  # fmt: skip
    table = html_table(_HEAD, rows, numbers=range(1, 9), best=curves.index(best))
    return case_heading(outcome, case) + table


def _mean(curve: Curve, column: str) -> str:
    q = mean_and_deviation(curve.final(column))
    return f"{q['mean']:.4f}<br><small>± {q['deviation']:.4f}</small>"


def probed(outcome: Outcome) -> list[str]:
    """Tables of the accuracy with small weights left out, and under noise, where it was measured.

    After the last epoch, means over seeds.
    """
    blocks = []
    for kind, words in (
        ("kept", "Test accuracy with only the largest entries of each matrix kept, by their share"),
        ("noise", "Test accuracy under noise, by its deviation in root mean squares of a matrix"),
    ):
        for case in outcome.spec.cases:
            curves = [curve for curve in outcome.of(case) if curve.probes]
            if curves:
                found = [mean_probes(curve)[kind] for curve in curves]
                rows = [[escape(c.label), *(f"{v:.4f}" for v in f.values())]
                        for c, f in zip(curves, found, strict=True)]  # fmt: skip
                table = html_table(["Algorithm", *found[0]], rows, numbers=range(1, 20))
                blocks += [case_heading(outcome, case), f"<p>{words}.</p>", table]
    return ["<h2>What the trained networks can do without</h2>", *blocks] if blocks else []
