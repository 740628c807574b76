"""docs/reproduction.md says what the kept results say, and nothing older."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_tables_are_those_of_the_kept_results():
    spec = importlib.util.spec_from_file_location("page", ROOT / "benchmarks/reproduction.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    text = page.PAGE.read_text()
    assert page.render(text) == text
    for kept in page.KEPT.glob("*.json"):
        assert f"<!-- {kept.stem}: begin -->" in text
        assert kept.with_suffix(".png").is_file()
