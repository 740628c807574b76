"""What is kept and shown of a run."""

import pickle
import subprocess
import sys
import xml.etree.ElementTree as tree
from dataclasses import replace

import numpy as np

import adafw
from adafw.recorder import Record, as_record
from adafw.result import conclude
from adafw.stopping import Limits


def test_html_has_every_line_and_a_drawing():
    A, y = adafw.datasets.support_vector(100, 10, 0)
    f = adafw.LinearModel(A, y, adafw.losses.SquaredHinge())
    r = adafw.minimize(f, adafw.L1Ball(2.0), adafw.FW(), max_iterations=30)
    page = tree.fromstring(r._repr_html_())  # well-formed
    words = list(page.itertext())
    for line in str(r).splitlines()[1:]:
        name, text = line[2:14].strip(), line[15:]
        assert name in words
        assert text in words
    line = next(page.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(line.get("points").split()) == sum(r.trace["gap"] > 0)


def test_it_needs_no_matplotlib():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np, adafw\n"
        "f = adafw.LinearModel(np.eye(3), np.ones(3), adafw.losses.Squared())\n"
        "r = adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(), max_iterations=3)\n"
        "print('<svg' in r._repr_html_())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True"


def test_every_line_says_what_it_is_named_for():
    """Twelve numbers, no two alike."""
    f = adafw.LinearModel(np.ones((10, 4)), np.ones(10), adafw.losses.Squared())
    ball, fw = adafw.L1Ball(2.0), adafw.FW()
    s = adafw.minimize(f, ball, fw, max_iterations=0).state
    names = ("iteration", "epoch", "gradient_evaluations", "lmo_calls", "projections")
    rows = [
        (0, 0.0, 0, 0, 0, 0.0, 0.0, 9.5, 0.25, 9.25, 1, 0.0),
        (31, 5.5, 55, 33, 7, 1.25, 1.5, 8.5, 0.75, 9.375, 3, 2e-16),
    ]
    assert Record._fields[:5] == names
    s.records = [tuple(map(float, row)) for row in rows]
    s.t, s.lmo_calls = 31, 33
    limits = Limits(np.inf, np.inf, np.inf, np.inf, 32.0)
    r = conclude(s, f, ball, fw, "max_lmo_calls", limits, 0.0, "FW on f", "generic", 0.5)
    assert str(r) == "\n".join([
        "FW on f",
        "  status       max_lmo_calls: 33 of 32 used",
        "  value        8.5",
        "  gap          7.5000e-01",
        "  lower bound  9.375",
        "  best gap     2.5000e-01 at iteration 0",
        "  iterations   31",
        "  epochs       5.5 (55 gradient evaluations)",
        "  LMO calls    33",
        "  projections  7",
        "  seconds      1.25 CPU, 1.5 wall",
        "  non-zeros    3 of 4",
        "  violation    2.0e-16",
    ])  # fmt: skip
    assert repr(r) == str(r)
    assert (r.value, r.gap, r.lower_bound, r.best.gap) == (8.5, 0.75, 9.375, 0.25)
    assert (r.status, r.path, r.learning_rate) == ("max_lmo_calls", "generic", 0.5)
    assert r.state is s
    said = {
        "converged": "converged: gap 7.500e-01 <= 1",
        "diverged": "diverged: a value or gradient became infinite or NaN; x is the last iterate "
        "known to be finite",
        "callback": "callback: a callback asked to stop",
        "interrupted": "interrupted: from the keyboard",
    }
    for status, message in said.items():
        assert conclude(s, f, ball, fw, status, limits, 1.0, "", "", None).message == message


def test_a_title_is_escaped_and_the_gap_is_drawn_over_the_epochs():
    f = adafw.LinearModel(np.eye(3), np.ones(3), adafw.losses.Squared())
    s = adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(), max_iterations=2, record_every=1).state
    gaps = (1.0, 1e-2, 1e-4)
    s.records = [
        tuple(as_record(row)._replace(epoch=2.0 * t, gap=gap))
        for t, (row, gap) in enumerate(zip(s.records, gaps, strict=True))
    ]
    limits = Limits(2.0, np.inf, np.inf, np.inf, np.inf)
    r = conclude(
        s, f, adafw.L1Ball(1.0), adafw.FW(), "callback", limits, 0.0, "a < b", "generic", None
    )
    page = tree.fromstring(r._repr_html_())
    assert "a < b" in list(page.itertext())
    line = next(page.iter("{http://www.w3.org/2000/svg}polyline")).get("points")
    a, b, c = (np.array(pair.split(","), float) for pair in line.split())
    np.testing.assert_allclose(b, (a + c) / 2, atol=0.06)  # evenly apart in epochs and in log gap
    assert {"epochs", "gap", "0", "1", "2", "3", "4"} <= set(page.itertext())


def test_active_sets_are_found_when_asked_for_and_travel_with_a_pickle():
    """Not at the end of every run; and without the set and the algorithm, which may not pickle."""
    A, y = adafw.datasets.support_vector(m=60, n=8, seed=0)
    f = adafw.LinearModel(A, y, adafw.losses.Logistic())
    ball = adafw.UserSet(lambda g: -np.sign(g) * (np.abs(g) == np.abs(g).max()), np.zeros)
    r = adafw.minimize(f, ball, adafw.BPCG(), max_iterations=20)
    assert "active_set" not in vars(r)
    kept = pickle.loads(pickle.dumps(replace(r, title="kept")))
    for found in (r.active_set, kept.active_set):
        weights, atoms = found
        np.testing.assert_allclose(weights @ atoms, r.x, atol=1e-14)
    assert r.active_set is r.active_set
    plain = adafw.minimize(f, adafw.L1Ball(1.0), adafw.FW(), max_iterations=2)
    assert plain.active_set is None
    assert pickle.loads(pickle.dumps(plain)).active_set is None
