"""docs/experiments.md, "To add something": the function there is a claim, and a file is enough."""

import re
from pathlib import Path

from adafw.experiments import load, load_spec, names
from adafw.experiments.convex import ConvexKind
from adafw.experiments.convex.claims import CLAIMS
from adafw.experiments.kinds import KINDS
from adafw.experiments.verdicts import FAILS, HOLDS

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


def test_the_claim_of_the_docs_is_judged(toml, finished):
    code = re.search(r"```python no-run\n(@CLAIMS.*?)```", PAGE.read_text(), re.DOTALL)[1]
    before = dict(CLAIMS)
    try:
        exec(code, {"CLAIMS": CLAIMS, "HOLDS": HOLDS, "FAILS": FAILS})
        (name,) = CLAIMS.keys() - before.keys()
        outcome, _ = finished
        claim = CLAIMS[name](outcome, outcome.spec.cases[0])
        assert (claim.verdict, claim.evidence) == (HOLDS, "0 runs diverged")
        assert name in ConvexKind.claims  # a file may name it
    finally:
        CLAIMS.clear()
        CLAIMS.update(before)


def test_a_file_beside_the_others_is_an_experiment(toml, tmp_path, monkeypatch):
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "mine.toml").write_text(toml.read_text())
    monkeypatch.setattr(load.resources, "files", lambda package: tmp_path)
    assert names() == ["mine"]
    assert load_spec("mine").name == "mine"


def test_the_docs_name_every_kind():
    text = PAGE.read_text()
    assert all(f"`{name}/`" in text for name in KINDS)
