"""What is handed on does not change: dataclasses are frozen, but for those that keep a state."""

import ast
from pathlib import Path

import adafw

ROOT = Path(adafw.__file__).parent
#: Where a run, a search or a machine is.
CHANGING = {
    ("constraints/interior_point.py", "_Point"),
    ("distributed/crew.py", "Traffic"),
    ("distributed/parts.py", "HeldPart"),
    ("fitting/core.py", "_Crew"),
    ("fitting/radii.py", "_Walk"),
    ("minimize.py", "_Loop"),
    ("objectives/intercept.py", "_Known"),
    ("objectives/linear_model.py", "_Point"),
    ("solver.py", "State"),
    ("steps/corrective/descent.py", "Working"),
    ("steps/corrective/joint.py", "_Working"),
    ("steps/corrective/newton.py", "Weights"),
    ("torch/gram.py", "Job"),
    ("torch/owners.py", "Job"),
}


def dataclasses():
    """((file, name), whether it is frozen) of every dataclass of the package."""
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for decorator in getattr(node, "decorator_list", ()):
                words = ast.unparse(decorator)
                if words.startswith("dataclass"):
                    yield (path.relative_to(ROOT).as_posix(), node.name), "frozen=True" in words


def test_values_are_frozen():
    found = dict(dataclasses())
    assert len(found) > 100
    assert {place for place, frozen in found.items() if not frozen} == CHANGING
