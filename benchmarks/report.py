"""docs/benchmarks/*.json as a table (tables.md) and a figure (versus.svg)."""

import json
import math
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs" / "benchmarks"


def targets() -> list[str]:
    found = json.loads((DOCS / "targets.json").read_text())
    lines = ["| what | must | stretch | measured | result |", "| --- | --- | --- | --- | --- |"]
    for row in found["rows"].values():
        numbers = (f"{row[key]:.3g}" for key in ("must", "stretch", "ratio"))
        lines.append(f"| {row['what']} | {' | '.join(numbers)} | {row['result']} |")
    return [f"Text data: {found['text data']}. Machine: {found['machine']}.", "", *lines]


def versus(found: dict) -> list[str]:
    table = found["milliseconds to relative suboptimality"]
    levels = list(next(iter(table.values())))
    lines = [
        f"{found['problem']}, radius {found['radius']:g}, f* = {found['optimum']:.9f} "
        f"(gap {found['certified']:.0e}); CPU ms of one thread, medians.",
        "",
        f"| solver | {' | '.join(levels)} |",
        f"| --- {'| --- ' * len(levels)}|",
    ]
    for name, row in table.items():
        times = (f"{ms:.1f}" if math.isfinite(ms) else "-" for ms in row.values())
        lines.append(f"| {name} | {' | '.join(times)} |")
    each = found["microseconds an iteration"]
    ratio = each["copt CSFW"] / each["adafw AdaCSFW"]
    lines += ["", f"One iteration, b = m/100: {each['adafw AdaCSFW']:.0f} us (AdaCSFW, K = 5) "]
    lines[-1] += f"against {each['copt CSFW']:.0f} us (copt's CSFW): {ratio:.0f} times faster."
    return lines


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
    lines = ["# Measured", "", "Written by `benchmarks/report.py`.", "", *targets()]
    if (DOCS / "versus.json").is_file():
        found = json.loads((DOCS / "versus.json").read_text())
        lines += ["", "## Against the peers", "", *versus(found), "", "![versus](versus.svg)"]
        figure(found)
    (DOCS / "tables.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
