"""Text is UTF-8, whatever the machine's locale says: files go from one machine to another."""

import os
import subprocess
import sys

SCRIPT = """
import locale, sys
from pathlib import Path
from adafw.commands.predict import _sink
from adafw.experiments import load_spec
from adafw.io.atomic import write_text
from adafw.io.tables import read_table

assert locale.getpreferredencoding(False) != "UTF-8"
table = read_table("in.csv")
print(ascii((table.features, table.y.tolist())))
write_text("text.txt", "gr\\u00fcn\\n")
with _sink("out.txt") as file:
    file.write("gr\\u00fcn\\n")
print(ascii(load_spec("own.toml").title))
print(load_spec("svm").name)
"""
OWN = """
title = "Größe"
data = { name = "support_vector", m = 20, n = 4 }
loss = "squared"
set = { name = "l1", radius = 1.0 }
algorithms = [{ name = "FW" }]
budget = { max_epochs = 1 }
"""


def test_files_are_utf_8_in_any_locale(tmp_path):
    (tmp_path / "in.csv").write_text("Höhe,Farbe\n1,grün\n2,weiß\n", encoding="utf-8")
    (tmp_path / "own.toml").write_text(OWN, encoding="utf-8")
    plain = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env={**os.environ, **plain},
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.stderr == ""
    assert run.stdout.splitlines() == [
        ascii((("Höhe",), ["grün", "weiß"])), ascii("Größe"), "svm",
    ]  # fmt: skip
    for name in ("text.txt", "out.txt"):
        assert (tmp_path / name).read_bytes() == "grün\n".encode()
