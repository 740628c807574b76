"""docs/benchmarks/*.json as tables (tables.md, README.md, docs/index.md) and a figure (versus.svg).

In README.md and docs/index.md the short table stands between <!-- peers: begin --> and its end.
"""

import json
import math
import re
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks"
LEVELS = ("0.1", "0.01", "0.001", "0.0001", "1e-06", "1e-08")
#: Parts of certified.json and what they are.
CERTIFIED = {
    "l1": "l1 ball, logistic loss: CPU ms to a relative suboptimality",
    "l2": "l2 ball",
    "box": "Box",
    "fits": "`FrankWolfeClassifier` at its default tolerance, and liblinear at equal accuracy",
    "large": "Large text",
}
FRONT = (DOCS.parents[1] / "README.md", DOCS.parent / "index.md")


def targets(more: dict) -> list[str]:
    found = json.loads((DOCS / "targets.json").read_text())
    lines = ["| what | must | stretch | measured | result |", "| --- | --- | --- | --- | --- |"]
    for row in (*found["rows"].values(), *more.values()):
        numbers = (number(row[key]) for key in ("must", "stretch", "ratio"))
        lines.append(f"| {row['what']} | {' | '.join(numbers)} | {row['result']} |")
    about = [f"Text data: {found['text data']}.", f"Machine: {found['machine']}."]
    return [*about, "", *lines]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def times(table: dict) -> list[str]:
    levels = list(next(iter(table.values())))
    lines = [f"| solver | {' | '.join(levels)} |", f"| --- {'| --- ' * len(levels)}|"]
    for name, row in table.items():
        cells = (f"{ms:.1f}" if math.isfinite(ms) else "-" for ms in row.values())
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def versus(found: dict) -> list[str]:
    each = found["microseconds an iteration"]
    return [
        f"{found['problem']}, radius {found['radius']:g}, f* = {found['optimum']:.9f} (gap "
        f"{found['certified']:.0e}).",
        "CPU ms of one thread to a relative suboptimality, medians; every number is a run from "
        "scratch.",
        "Ours by the clock of the trace:",
        "",
        *times(found["milliseconds to relative suboptimality"]),
        "",
        "Ours by the whole call of `minimize`, the exact gaps at its start and end included:",
        "",
        *times(found["milliseconds of whole calls"]),
        "",
        "One iteration, b = m/100: " + ", ".join(f"{k} {v:.0f} us" for k, v in each.items()) + ".",
    ]


def ladders(rows: list[dict]) -> list[str]:
    """One table a problem: solvers by accuracy."""
    lines = []
    for row in rows:
        sure = row["certified"]
        lines += [
            f"**{row['problem']}, radius {row['radius']:g}** ({row['non-zeros']} non-zeros); "
            f"certified to {sure['relative gap']:.0e}: {sure['ms']:.0f} ms, "
            f"{sure['gradients']} gradients.",
            "",
            *times({name: filled(cells) for name, cells in row["ms"].items()}),
            "",
        ]
    return lines


def filled(cells: dict) -> dict:
    return {level: cells.get(level, math.inf) for level in LEVELS}


def certified(found: dict) -> list[str]:
    """What `benchmarks/certified.py` kept."""
    lines = []
    for part, title in CERTIFIED.items():
        if part in found:
            rows = found[part]["rows"]
            lines += ["", f"### {title}", "", f"Machine: {found[part]['machine']}.", ""]
            lines += ladders(rows) if "ms" in rows[0] else plain(rows)
    return lines


def plain(rows: list[dict]) -> list[str]:
    """Rows as they are."""
    head = list(rows[0])
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for row in rows:
        cells = (f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values())
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def peers(found: dict) -> str:
    """The short table: whole calls on the first two problems of the l1 ball."""
    head = (
        "CPU milliseconds of one thread, whole calls, to a relative suboptimality; {problem}, "
        "logistic loss, l1 ball of radius {radius:g} or the penalty that matches it:"
    )
    lines = []
    for row in found["l1"]["rows"][:2]:
        lines += [head.format(**row), ""]
        lines += [*times({name: filled(cells) for name, cells in row["ms"].items()}), ""]
    return "\n".join(lines[:-1])


def with_peers(page: str, found: dict) -> str:
    """A front page with its table written anew."""
    text = f"<!-- peers: begin -->\n{peers(found)}\n<!-- peers: end -->"
    marks = re.compile("<!-- peers: begin -->.*?<!-- peers: end -->", re.DOTALL)
    return marks.sub(lambda _: text, page)


def figure(found: dict) -> None:
    from matplotlib import pyplot

    _, ax = pyplot.subplots(figsize=(7, 4.5))
    for name, row in found["milliseconds to relative suboptimality"].items():
        style = "o-" if name.startswith("adafw") else "s--"
        ax.plot(list(row.values()), [float(level) for level in row], style, label=name)
    ax.set(xscale="log", yscale="log", xlabel="CPU ms", ylabel="relative suboptimality")
    ax.legend(fontsize=7)
    ax.figure.savefig(DOCS / "versus.svg", bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    file = DOCS / "versus.json"
    found = json.loads(file.read_text()) if file.is_file() else {}
    lines = ["# Measured", "", "Written by `make bench`.", "", *targets(found.get("rows", {}))]
    if found:
        lines += ["", "## Stochastic methods", "", *versus(found), "", "![versus](versus.svg)"]
        figure(found)
    file = DOCS / "certified.json"
    if file.is_file():
        sure = json.loads(file.read_text())
        lines += ["", "## Certified fits", "", *certified(sure)]
        for page in FRONT:
            page.write_text(with_peers(page.read_text(), sure))
    (DOCS / "tables.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
