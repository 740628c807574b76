"""The tables and figures of docs/reproduction.md, from the results of `adafw reproduce`.

    adafw reproduce all --out results
    python benchmarks/reproduction.py results     # takes over what is there
    python benchmarks/reproduction.py             # writes the tables anew from what was taken over

Of each experiment docs/reproduction/ keeps summary.json and the figure; the page's tables between
<!-- NAME: begin --> and <!-- NAME: end --> are written from them, so that page and numbers agree.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, KEPT = DOCS / "reproduction.md", DOCS / "reproduction"


def take(results: Path) -> None:
    """Copies summary and figure of every finished experiment below `results`."""
    KEPT.mkdir(exist_ok=True)
    for summary in sorted(results.glob("*/summary.json")):
        table = json.loads(summary.read_text())
        if table["quick"]:
            raise SystemExit(f"{summary} is of a --quick run; the page shows full ones only.")
        (KEPT / f"{summary.parent.name}.json").write_text(summary.read_text())
        keep_figure(summary.parent / "figure.png", KEPT / f"{summary.parent.name}.png")


def keep_figure(figure: Path, kept: Path) -> None:
    """The figure in 256 colours, a third of the size: the repository holds it for good."""
    from PIL import Image

    with Image.open(figure) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(kept, optimize=True)


def render(page: str) -> str:
    """The page with every marked part written anew."""

    def part(match: re.Match[str]) -> str:
        name = match[1]
        table = json.loads((KEPT / f"{name}.json").read_text())
        return f"<!-- {name}: begin -->\n{section(name, table)}\n<!-- {name}: end -->"

    return re.sub(r"<!-- ([\w-]+): begin -->.*?<!-- \1: end -->", part, page, flags=re.DOTALL)


def section(name: str, table: dict[str, Any]) -> str:
    """Figure, what was run, claims with verdicts, final numbers."""
    data = "; ".join(
        dict.fromkeys(
            about["label"] + (" (**stand-in**)" if about["is_stand_in"] else "")
            for about in table["data"].values()
        )
    )
    series = "series" in table
    budget = ", ".join(f"{key} = {value}" for key, value in table["budget"].items())
    environment = table["environment"]
    blocks = [
        f"![{table['title']}](reproduction/{name}.png)",
        f"{'Generated data' if series else data}. Each run {budget}; {len(table['seeds'])} seeds; "
        f"{environment['processor']}, {environment['processes']} processes of one thread. "
        f"{_known(table)}All numbers: [{name}.json](reproduction/{name}.json).",
        "\n".join(f"* {note}" for note in table["notes"]),
        _claims(table),
        _series(table) if series else _finals(table),
    ]
    return "\n\n".join(blocks)


def _known(table: dict[str, Any]) -> str:
    """How well the lower bounds are known."""
    doubts = table.get("minimum_above_it_by_at_most", {})
    if not doubts or "series" in table:
        return ""
    listed = ", ".join(
        f"{doubt:.0e}" + (f" ({problem})" if len(doubts) > 1 else "")
        for problem, doubt in doubts.items()
    )
    return f"The lower bound is within {listed} of the minimum. "


def _claims(table: dict[str, Any]) -> str:
    several = len(table["data"]) > 1
    rows = [
        [claim["problem"]] * several
        + [claim["statement"], claim["source"], claim["evidence"], f"**{claim['verdict']}**"]
        for claim in table["claims"]
    ]
    return _markdown(["problem"] * several + ["claim", "paper", "here", "verdict"], rows)


def _finals(table: dict[str, Any]) -> str:
    several = len(table["data"]) > 1
    networks = "test_accuracy" in table["algorithms"][0]["final"]
    columns = _EPOCH if networks else _ITERATE
    rows = []
    for line in table["algorithms"]:
        final = line["final"]
        shift = 0.0 if networks else table["lower_bound"][line["problem"]]
        cells = [_cell(name, final[name], shift if name == "value" else 0.0) for name in columns]
        rows.append([line["problem"]] * several + [line["algorithm"], *cells])
    return _markdown(["problem"] * several + ["algorithm", *columns.values()], rows)


def _series(table: dict[str, Any]) -> str:
    """Times of both sides and their ratio at every goal, and the cost of a step alone."""
    goals = [goal["relative_gap"] for goal in next(iter(table["series"].values()))[0]["goals"]]
    rows = []
    for name, sizes in table["series"].items():
        for size in sizes:
            steps = [
                size[side]["seconds_per_step_alone"]["median"]
                for side in ("frank_wolfe", "projected")
            ]
            rows.append(
                [name, str(size["dimension"]), *map(_milliseconds, steps)]
                + [_ratio(goal) for goal in size["goals"]]
            )
    head = ["set", "n", "step, FW (ms)", "step, projected (ms)", *(f"to {g:g}" for g in goals)]
    return _markdown(head, rows)


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:.3g}"


def _ratio(goal: dict[str, Any]) -> str:
    q = goal["ratio"]
    if q["median"] is None:
        return "not reached"
    sign = {"": "", ">=": "≥ ", "<=": "≤ "}[goal["bound"]]
    return f"{sign}{q['median']:.2g} [{q['lower']:.2g}, {q['upper']:.2g}]"


_ITERATE = {
    "gap": "gap",
    "value": "objective - bound",
    "cpu_seconds": "CPU s",
    "epoch": "epochs",
    "lmo_calls": "LMO calls",
    "projections": "projections",
    "nonzeros": "non-zeros",
}
_EPOCH = {
    "train_loss": "train loss",
    "train_accuracy": "train accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "cpu_seconds": "CPU s",
}


def _cell(name: str, q: dict[str, Any], shift: float) -> str:
    if "mean" in q and name == "cpu_seconds":
        return f"{q['mean']:.3g}"
    if "mean" in q:
        return f"{q['mean']:.4f} ± {q['deviation']:.4f}"
    if q["median"] is None:
        return "diverged"
    value = q["median"] - shift
    return f"{value:.2e}" if 0 < value < 1 else f"{value:.4g}" if value < 1e4 else f"{value:.0f}"


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]))
    PAGE.write_text(render(PAGE.read_text()))
