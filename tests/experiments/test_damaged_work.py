"""Damaged files in an experiment's work folder, and labels that look like formulas."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from adafw.experiments import figures
from adafw.experiments.load import load_spec
from adafw.experiments.plan import parts_of, prepare, runs_of
from adafw.experiments.results import collect
from adafw.experiments.work import is_done
from adafw.experiments.workers import perform
from adafw.io.arrays import read_npz, write_npz

SPEC = """
title = "Prices of $5 and $6"
loss = "SquaredHinge"
set = { name = "L1Ball", radius = 2.0 }
seeds = [1]
budget = { max_iterations = 30 }
data = { name = "support_vector", m = 60, n = 5, seed = 4 }
notes = ["From $1 to $2."]

[[algorithms]]
name = "CSFW"
label = "half $ \\\\notamacro $ price"

[[algorithms]]
name = "AdaCSFW"
label = "$x^{$"
learning_rate = 1.0
"""


@pytest.fixture
def work(tmp_path):
    """(experiment, its runs, where its data lie), the data being there."""
    path = tmp_path / "prices.toml"
    path.write_text(SPEC)
    spec = load_spec(path)
    parts = {case.name: parts_of(case, tmp_path) for case in spec.cases}
    for case in spec.cases:
        prepare(spec, case, parts[case.name])
    return spec, runs_of(spec, parts, tmp_path), parts


def outcome_of(item):
    found = json.loads(item.file.read_text())
    columns = [k for k in range(12) if k not in (5, 6)]  # all but the seconds
    return [[row[k] for k in columns] for row in found["records"]]


def test_a_damaged_state_is_set_aside_and_the_run_done_again(work):
    _, items, _ = work
    item = items[1]
    perform(item)
    whole = outcome_of(item)
    from adafw.experiments.convex.run import objective

    f = objective(item)
    import adafw

    half = adafw.minimize(
        f, item.case.constraint, item.method.algorithm, seed=item.seed, max_iterations=10
    )
    half.state.save(item.state_file)
    good = item.state_file.read_bytes()
    arrays = read_npz(item.state_file, lambda _: True, packed=False)

    def other_length(path):
        write_npz(path, {**arrays, "gradient.alpha": np.zeros(7)})

    damages = [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(good[: len(good) // 2]),
        lambda path: path.write_bytes(good.replace(b"alpha", b"alphx")),
        other_length,
    ]
    for damage in damages:
        item.file.unlink()
        damage(item.state_file)
        perform(item)
        assert outcome_of(item) == whole
        aside = item.state_file.with_name(f"{item.state_file.name}.damaged")
        assert aside.is_file()
        aside.unlink()
        assert not item.state_file.exists()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"status": 1}', "nan" * 9, "[" * 99_999, "7", "null"]
)
def test_a_damaged_outcome_is_set_aside(work, content):
    _, items, _ = work
    perform(items[0])
    assert is_done(items[0])
    items[0].file.write_text(content)
    assert not is_done(items[0])
    assert not items[0].file.exists()
    assert items[0].file.with_name(f"{items[0].file.name}.damaged").is_file()


def test_dollars_begin_no_formula(work, tmp_path):
    """What matplotlib would refuse after all runs were done is shown as it stands."""
    spec, items, parts = work
    for item in items:
        perform(item)
    about = {name: json.loads(p.with_suffix(".json").read_text()) for name, p in parts.items()}
    outcome = collect(spec, about, items, 1)
    svg = figures.save(outcome, tmp_path)
    assert svg.startswith("<?xml")


def test_the_objective_that_is_held_is_that_of_the_item(work, tmp_path):
    """Items of one case share it; other data, another loss or another shape make it anew."""
    from adafw.experiments.convex.run import objective

    _, items, _ = work
    f = objective(items[0])
    assert objective(items[1]) is f
    copied = tmp_path / "copied"
    shutil.copytree(items[0].parts, copied)
    other = replace(items[0], parts=copied)
    assert objective(other) is not f
    assert objective(other) is objective(other)
    cases = [replace(items[0].case, loss="Logistic")]
    for shape in ((5, 1), (1, 5)):
        whole = {"name": "SpectralBall", "radius": 1.0}
        cases.append(replace(items[0].case, set=whole, shape=shape))
    for case in cases:
        made = objective(replace(items[0], case=case))
        assert made.shape == (case.shape or (5,))
        assert type(made.loss) is type(case.loss_function)
