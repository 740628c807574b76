"""The pages of docs/reproduction say what the kept results say, and nothing older."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("page", ROOT / "benchmarks/reproduction.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_pages_are_those_of_the_kept_results(script):
    pages = script.pages()
    for page, text in pages.items():
        assert page.is_file(), f"{page.name} is missing: run python benchmarks/reproduction.py"
        assert page.read_text() == text, "stale: run python benchmarks/reproduction.py"
    for kept in script.KEPT.glob("*.json"):
        assert kept.with_suffix(".md") in pages
        assert kept.with_suffix(".png").is_file()


def test_every_verdict_is_in_the_overview(script):
    """As many places are named for claims as there are verdicts."""
    text = script.PAGE.read_text()
    tables = [json.loads(kept.read_text()) for kept in script.KEPT.glob("*.json")]
    wanted = sum(len(script.judged(table)) for table in tables)
    by_experiment = text.split("## By experiment")[1].split("## By claim")[0]
    rows = [line.split("|")[2:5] for line in by_experiment.splitlines() if "](rep" in line]
    assert len(rows) == len(tables)
    assert sum(int(cell) for row in rows for cell in row) == wanted


def test_a_new_experiment_gets_its_page(script, tmp_path, monkeypatch):
    kept, page = tmp_path / "reproduction", tmp_path / "reproduction.md"
    kept.mkdir()
    (kept / "new.json").write_text((script.KEPT / "svm.json").read_text())
    page.write_text("<!-- overview: begin -->\n<!-- overview: end -->\n")
    monkeypatch.setattr(script, "KEPT", kept)
    monkeypatch.setattr(script, "PAGE", page)
    pages = script.pages()
    assert set(pages) == {page, kept / "new.md"}
    assert pages[kept / "new.md"].startswith("# Support vector classification")
    assert "[new](reproduction/new.md)" in pages[page]


def test_a_claim_one_problem_is_silent_on_is_told_for_the_others(script):
    def claim(problem, statement, evidence):
        return dict(problem=problem, statement=statement, evidence=evidence)

    first, silent, second = (
        claim("a", "Fast.", "1 s; 2 s"), claim("b", "Fast.", ""), claim("b", "Small.", ""),
    )  # fmt: skip
    assert script.judged({"claims": [first, silent, second]}) == [first, second]


def test_many_methods_are_ranked_within_their_families(script):
    def row(name, family, work):
        return dict(
            problem="p", algorithm=name, family=family, work={"epoch": {"0.01": work}},
            reached=1e-3, gap=None,
        )  # fmt: skip

    rows = [row("A", "x", 3.0), row("B", "x", 2.0), row("C", "y", 9.0), row("D", "y", None)]
    lines = script._ranking({"ranking": rows}).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[-4:]]
    assert [c[2] for c in cells] == ["3", "**2**", "**9**", "-"]
    assert {tuple(c[3:]) for c in cells} == {("1.0e-03", "-")}
