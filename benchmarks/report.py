"""docs/benchmarks/*.json as a table (tables.md) and a figure (versus.svg)."""

import json
import math
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks"


def targets(more: dict) -> list[str]:
    found = json.loads((DOCS / "targets.json").read_text())
    lines = ["| what | must | stretch | measured | result |", "| --- | --- | --- | --- | --- |"]
    for row in (*found["rows"].values(), *more.values()):
        numbers = (number(row[key]) for key in ("must", "stretch", "ratio"))
        lines.append(f"| {row['what']} | {' | '.join(numbers)} | {row['result']} |")
    return [f"Text data: {found['text data']}. Machine: {found['machine']}.", "", *lines]


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
        f"{found['certified']:.0e}). CPU ms of one thread to a relative suboptimality, medians; "
        "every number is a run from scratch. Ours by the clock of the trace:",
        "",
        *times(found["milliseconds to relative suboptimality"]),
        "",
        "Ours by the whole call of `minimize`, the exact gaps at its start and end included:",
        "",
        *times(found["milliseconds of whole calls"]),
        "",
        "One iteration, b = m/100: " + ", ".join(f"{k} {v:.0f} us" for k, v in each.items()) + ".",
    ]


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
        lines += ["", "## Against the peers", "", *versus(found), "", "![versus](versus.svg)"]
        figure(found)
    (DOCS / "tables.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
