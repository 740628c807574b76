"""What notebooks show of a run."""

import subprocess
import sys
import xml.etree.ElementTree as tree

import adafw


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
