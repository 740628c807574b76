"""The site's sources: every page is reachable, every example has its picture, tables are fresh."""

import ast
import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def load(path, *folders):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    sys.path[:0] = map(str, folders)
    try:
        spec.loader.exec_module(found)
    finally:
        del sys.path[: len(folders)]
    return found


def entries(page):
    """What the tables of contents of a page name, globs resolved."""
    for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.strip() and not line.startswith(":"):
                found = page.parent.glob(f"{line.strip()}.md")
                yield from (p.resolve() for p in found)


def test_every_page_is_in_exactly_one_table_of_contents():
    """A new page of docs/ goes into start.md, how_to.md, explanation.md or reference.md."""
    pages = [p for p in DOCS.rglob("*.md") if not {"_build", "gallery", "api"} & set(p.parts)]
    listed = [entry for page in pages for entry in entries(page)]
    assert sorted(listed) == sorted(set(listed))
    assert {p.resolve() for p in pages} - set(listed) == {DOCS / "index.md"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_tells_a_story_and_ends_with_a_picture(example):
    """The quick look; tests/examples/test_gallery.py runs them all, slowly."""
    text = example.read_text()
    module = ast.parse(text)
    title, rule, *story = ast.get_docstring(module).splitlines()
    assert rule == "=" * len(rule)
    assert len(rule) >= len(title)
    assert len(" ".join(story)) > 200
    assert text.count("# %%\n") >= 1
    assert text.count("plt.show()") == 1
    assert len(text.splitlines()) < 150
    for block in re.findall(r"# %%\n((?:#[^\n]*\n)+)", text):
        assert "`" not in block.replace("``", "")  # reStructuredText has two
    numbers = re.findall(r"(?<!_)default_rng\(\)|np\.random\.(?!default_rng)", text)
    assert not numbers, "every random draw is seeded"


def test_there_are_enough_examples():
    assert len(EXAMPLES) >= 14
    named = (DOCS / "start.md").read_text() + (DOCS / "index.md").read_text()
    for name in re.findall(r"gallery/(plot_\w+)\.rst", named):
        assert (ROOT / "examples" / f"{name}.py").is_file()


def test_front_pages_show_the_measured_table():
    """Stale: run `python benchmarks/report.py`."""
    report = load(ROOT / "benchmarks" / "report.py")
    found = json.loads((DOCS / "benchmarks" / "certified.json").read_text())
    for page in report.FRONT:
        assert report.with_peers(page.read_text(), found) == page.read_text()
        assert "| skglm |" in page.read_text()


def test_markdown_is_one_sentence_a_line():
    """`make format` mends it."""
    tool = load(ROOT / "tools" / "sentences.py")
    wrong = [p.name for p in tool.files() if tool.reflow(p.read_text()) != p.read_text()]
    assert wrong == [], "run `make format`"
    long = [p.name for p in tool.files() if max(map(len, p.read_text().splitlines())) >= 450]
    assert long == []


def test_sentences_are_told_apart():
    tool = load(ROOT / "tools" / "sentences.py")
    text = (
        "# A. Title\n\nOne by M. Frank, e.g. `a. B` here. Two\ngoes on! (Three.) Four?\n\n"
        "* item one. Item\n  two.\n* next\n\n| a. B | c. D |\n\n```python\nx = 1.  # A. B\n```\n"
        "<!-- t: begin -->\nA. B. C d. E f.\n<!-- t: end -->\n"
    )
    wanted = (
        "# A. Title\n\nOne by M. Frank, e.g. `a. B` here.\nTwo goes on!\n(Three.)\nFour?\n\n"
        "* item one.\n  Item two.\n* next\n\n| a. B | c. D |\n\n```python\nx = 1.  # A. B\n```\n"
        "<!-- t: begin -->\nA. B. C d. E f.\n<!-- t: end -->\n"
    )
    assert tool.reflow(text) == wanted == tool.reflow(wanted)


def test_formulas_of_docstrings_become_signs():
    formulas = load(DOCS / "_ext" / "docstrings.py", ROOT / "tools", DOCS / "_ext").formulas
    assert formulas("||x||_2 <= radius") == "‖x‖\\ :sub:`2`\\  ≤ radius"
    assert formulas("<m_t, y> + eta_t g^2") == (
        "⟨m\\ :sub:`t`\\ , y⟩ + η\\ :sub:`t`\\  g\\ :sup:`2`\\ "
    )
    assert formulas("n_terms and coef_") == "n\\_terms and coef\\_"


def test_types_of_signatures_have_the_names_of_the_sources():
    shortened = load(DOCS / "_ext" / "docstrings.py", ROOT / "tools", DOCS / "_ext").shortened
    long = "~numpy.ndarray[tuple[~typing.Any, ...], ~numpy.dtype[~numpy.floating[~typing.Any]]]"
    assert shortened(f"(x0: {long} | None = None)") == "(x0: Array | None = None)"
    assert shortened("ndarray[tuple[Any, ...], dtype[Any]]") == "Array"


def test_broken_links_are_found(tmp_path):
    tool = load(ROOT / "tools" / "links.py")
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a><a href="https://x.org">y</a>')
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert tool.check(tmp_path) == []
    (tmp_path / "b.html").write_text('<p id="there"></p><a href="c.html"></a>')
    assert tool.check(tmp_path) == [
        "a.html links to b.html#here, whose anchor is not there",
        "b.html links to c.html, which is not there",
    ]
    (tmp_path / "b.html").write_text('<p id="here"></p><script src="https://x.org/a.js"></script>')
    assert tool.check(tmp_path) == ["b.html fetches https://x.org/a.js"]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def bounds(lines):
    return dict(re.findall(r"^([\w-]+)(?:\[.*?\])?>=([\d.]+)", "\n".join(lines), re.MULTILINE))


def test_oldest_versions_are_the_lower_bounds():
    """What `make test-oldest` installs is what pyproject.toml promises."""
    extras = PROJECT["optional-dependencies"]
    wanted = bounds(PROJECT["dependencies"])
    for name in ("dask", "io", "plot", "tensorboard", "test"):
        wanted |= bounds(extras[name])
    pinned = dict(
        re.findall(r"^([\w-]+)==(\S+)", (ROOT / "constraints-oldest.txt").read_text(), re.M)
    )

    def numbers(version):
        parts = [int(part) for part in version.split(".")]
        return parts + [0] * (3 - len(parts))

    assert set(pinned) - set(wanted) == {"pyparsing", "torch"}  # the file says why
    for name, version in wanted.items():
        assert numbers(pinned[name]) == numbers(version), name


def test_licences_of_all_dependencies_are_listed():
    """`make licences` writes them."""
    tool = load(ROOT / "tools" / "licences.py")
    text = tool.PAGE.read_text()
    for names in tool.direct().values():
        for name in names:
            assert re.search(rf"^\| {name} \| (?!unknown)", text, re.MULTILINE), name


def test_shell_steps_of_workflows_are_make_targets():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    steps = []
    for flow in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = re.sub(r"\$\{\{.*?\}\}", "", flow.read_text())
        steps += re.findall(r"- run: (.*)", text)
    assert len(steps) >= 6
    for step in steps:
        word, *rest = step.split()
        assert word == "make", step
        assert {w for w in rest if "=" not in w} <= targets, step


def test_one_version_everywhere():
    tool = load(ROOT / "tools" / "release.py")
    assert len(set(tool.named().values())) == 1, tool.named()
