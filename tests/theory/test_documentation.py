"""The examples of docs/theory.md print what it says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "theory.md"


def test_examples_of_the_page_run():
    results = doctest.testfile(str(PAGE), module_relative=False)
    assert results.attempted >= 15
    assert results.failed == 0
