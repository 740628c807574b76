"""The pages under docs/reproduction and their overview, from the results of `adafw reproduce`.

    adafw reproduce all --out results
    python benchmarks/reproduction.py results     # takes over what is there
    python benchmarks/reproduction.py             # writes the pages anew from what was taken over

Of each experiment docs/reproduction/ keeps summary.json and the figure. Its page, NAME.md, is made
if there is none; what stands in it between <!-- NAME: begin --> and <!-- NAME: end --> is written
from them, and so is the overview in docs/reproduction.md, so that pages and numbers agree. What is
written around these marks stays.
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


def pages() -> dict[Path, str]:
    """Every page and what should stand in it."""
    tables = {kept.stem: json.loads(kept.read_text()) for kept in sorted(KEPT.glob("*.json"))}
    out = {PAGE: _marked(PAGE.read_text(), "overview", overview(tables))}
    for name, table in tables.items():
        page = KEPT / f"{name}.md"
        empty = f"# {table['title']}\n\n<!-- {name}: begin -->\n<!-- {name}: end -->\n"
        text = page.read_text() if page.is_file() else empty
        out[page] = _marked(text, name, section(name, table))
    return out


def _marked(page: str, name: str, text: str) -> str:
    """The page with the part between the marks of `name` replaced."""
    marks = re.compile(f"<!-- {name}: begin -->.*?<!-- {name}: end -->", re.DOTALL)
    if not marks.search(page):
        raise SystemExit(f"the page of {name} must hold <!-- {name}: begin --> and its end.")
    return marks.sub(lambda _: f"<!-- {name}: begin -->\n{text}\n<!-- {name}: end -->", page)


#: Verdicts that speak for a claim, and against it; all others leave it open.
FOR, AGAINST = ("holds", "grows"), ("fails", "reversed", "no advantage", "does not grow")


def overview(tables: dict[str, Any]) -> str:
    """How many claims hold in which experiment, then where each claim holds and fails."""
    rows, claims = [], {}
    for name, table in tables.items():
        told = judged(table)
        sides = [_side(claim["verdict"]) for claim in told]
        form = "reduced" if table.get("reduced") else "full"
        cells = (str(sides.count(i)) for i in range(3))
        rows.append([f"[{name}](reproduction/{name}.md)", *cells, form, table["title"]])
        for claim in told:
            places = claims.setdefault((claim["statement"], claim["source"]), ([], [], []))
            where = f"[{name}](reproduction/{name}.md)"
            places[_side(claim["verdict"])].append(where)
    blocks = [
        "## By experiment",
        _markdown(["experiment", "holds", "fails", "open", "form", "what"], rows),
        "## By claim",
        "A number says how many problems of an experiment are meant, where there are several.",
        _markdown(
            ["claim", "source", "holds on", "fails on", "open on"],
            [[*key, *map(_counted, places)] for key, places in claims.items()],
        ),
    ]
    return "\n\n".join(blocks)


def judged(table: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims that were tried. One that a problem has nothing to say on is told for the others
    only; one that no problem tried stays, as not tested."""
    tried = {claim["statement"] for claim in table["claims"] if claim["evidence"]}
    return [c for c in table["claims"] if c["evidence"] or c["statement"] not in tried]


def _side(verdict: str) -> int:
    return 0 if verdict in FOR else 1 if verdict in AGAINST else 2


def _counted(places: list[str]) -> str:
    found = dict.fromkeys(places)
    return ", ".join(p if places.count(p) == 1 else f"{places.count(p)} of {p}" for p in found)


def section(name: str, table: dict[str, Any]) -> str:
    """Figure, what was run, claims with verdicts, final numbers."""
    data = "; ".join(
        dict.fromkeys(
            about["label"] + (" (**stand-in**)" if about["is_stand_in"] else "")
            for about in table["data"].values()
        )
    )
    series = "series" in table
    numbers = _series if series else _ranking if "ranking" in table else _finals
    budget = ", ".join(f"{key} = {value}" for key, value in table["budget"].items())
    environment = table["environment"]
    workers = environment["processes"]
    blocks = [
        f"[![{table['title']}]({name}.png)]({name}.png)",
        f"{'Generated data' if series else data}.\nEach run {budget}; {len(table['seeds'])} seeds; "
        f"{environment['processor']}, {workers} process{'es' * (workers > 1)} of one thread.\n"
        f"{_known(table)}All numbers: [{name}.json]({name}.json).",
        "\n".join(f"* {_folded(note)}" for note in table["notes"]),
        "## Claims and verdicts",
        _claims(table),
        "## Final numbers",
        numbers(table),
        *_probes(table),
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
    return f"The lower bound is within {listed} of the minimum.\n"


def _folded(text: str) -> str:
    """Long text of a list's item on several lines, broken after its semicolons."""
    return text if len(text) < 150 else text.replace("; ", ";\n  ")


def _claims(table: dict[str, Any]) -> str:
    """Problem by problem: a claim, its verdict, and below it the evidence, piece by piece."""
    blocks = []
    for problem, claims in _by_problem(judged(table)).items():
        lines = []
        for claim in claims:
            lines.append(f"* **{claim['verdict']}**: {claim['statement']} ({claim['source']})")
            lines += [f"  * {piece}" for piece in claim["evidence"].split("; ") if piece]
        blocks += [f"On {problem}:"] * (len(table["data"]) > 1) + ["\n".join(lines)]
    return "\n\n".join(blocks)


def _by_problem(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["problem"], []).append(row)
    return found


def _tables(found: dict[str, tuple[list[str], list[list[str]]]]) -> str:
    """A table for each problem (head and rows), under its name where there are several."""
    blocks = []
    for problem, (head, rows) in found.items():
        blocks += [f"### {problem}"] * (len(found) > 1) + [_markdown(head, rows)]
    return "\n\n".join(blocks)


def _finals(table: dict[str, Any]) -> str:
    networks = "test_accuracy" in table["algorithms"][0]["final"]
    columns = _EPOCH if networks else _ITERATE
    found = {}
    for problem, lines in _by_problem(table["algorithms"]).items():
        shift = 0.0 if networks else table["lower_bound"][problem]
        rows = [
            [line["algorithm"]]
            + [_cell(key, line["final"][key], shift * (key == "value")) for key in columns]
            for line in lines
        ]
        found[problem] = (["algorithm", *columns.values()], rows)
    return _tables(found)


def _ranking(table: dict[str, Any]) -> str:
    """Of many methods: the work of each to every level, the best of its family in bold."""
    found = {}
    for problem, lines in _by_problem(table["ranking"]).items():
        works = [(key, level) for key, levels in lines[0]["work"].items() for level in levels]
        least: dict[tuple[str, str, str], float] = {}
        for line in lines:
            for key, level in works:
                if (work := line["work"][key][level]) is not None:
                    place = (line["family"], key, level)
                    least[place] = min(work, least.get(place, work))
        rows = [
            [line["algorithm"], line["family"]]
            + [_work(line["work"][k][w], least.get((line["family"], k, w))) for k, w in works]
            + ["-" if line[key] is None else f"{line[key]:.1e}" for key in ("reached", "gap")]
            for line in lines
        ]
        head = [f"{_WORK[key]} to {level}" for key, level in works]
        found[problem] = (["algorithm", "family", *head, "reached", "final gap"], rows)
    return (
        "Work to a share of the first suboptimality, medians over seeds; the least of each family "
        f"is bold, - is never.\n\n{_tables(found)}"
    )


_WORK = {"cpu_seconds": "CPU s", "epoch": "epochs", "lmo_calls": "LMO calls"}


def _work(work: float | None, least: float | None) -> str:
    if work is None:
        return "-"
    return f"**{work:.3g}**" if work == least else f"{work:.3g}"


def _probes(table: dict[str, Any]) -> list[str]:
    """Accuracies of trained networks with weights left out, and under noise."""
    if not table.get("probes"):
        return []
    blocks = ["## What the trained networks can do without"]
    for kind, words in (
        ("kept", "Test accuracy with this share of each matrix kept, its largest entries:"),
        ("noise", "Test accuracy under noise of this deviation, in root mean squares of a matrix:"),
    ):
        for problem, lines in _by_problem(table["probes"]).items():
            several = f"On {problem}. " * (len(table["data"]) > 1)
            rows = [
                [line["algorithm"], *(f"{accuracy:.3f}" for accuracy in line[kind].values())]
                for line in lines
            ]
            blocks += [several + words, _markdown(["algorithm", *lines[0][kind]], rows)]
    return blocks


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
    for page, text in pages().items():
        page.write_text(text)
