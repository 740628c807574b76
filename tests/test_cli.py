import subprocess
import sys

import pytest

import adafw
from adafw.cli import COMMANDS, main


def run(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    code = 0
    try:
        main(list(arguments))
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    return code, out, err


TOML = """
loss = "SquaredHinge"
set = { name = "LInfBall", radius = 1.0 }
budget = { max_iterations = 5 }
seeds = [1, 2]
data = { name = "support_vector", m = 60, n = 5 }
algorithms = [{ name = "CSFW" }, { name = "AdaCSFW", learning_rate = 1.0 }]
"""


@pytest.fixture
def toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(TOML)
    return str(path)


def test_help_loads_no_command_and_nothing_heavy():
    heavy = ["numba", "scipy", "matplotlib", "pandas", "rich", "pooch", "adafw.commands.reproduce"]
    code = (
        "import sys\nfrom adafw.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as stop:\n    assert not stop.code\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.splitlines()[-1] == "[]"
    assert "Exit codes: 0 done, 1 failed" in out.stdout


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_help(capsys, command):
    code, out, _ = run(capsys, command, "--help")
    assert code == 0
    assert out.startswith(f"Usage: adafw {command}")
    assert command in run(capsys, "--help")[1]


def test_version(capsys):
    assert run(capsys, "--version")[1] == f"adafw {adafw.__version__}\n"


def test_wrong_usage_ends_with_2(capsys):
    for arguments in (["fly"], ["reproduce"], ["reproduce", "svm", "--jobs", "0"], ["tune", "svm"]):
        code, _, err = run(capsys, *arguments)
        assert code == 2
        assert "Error" in err


def test_bad_input_ends_with_2_and_a_sentence(capsys, toml, tmp_path):
    code, _, err = run(capsys, "reproduce", "nothing", "--out", str(tmp_path))
    assert code == 2
    assert err.startswith("Error: experiment must be one of")
    code, _, err = run(capsys, "reproduce", toml, "--seeds", "1,x")
    assert code == 2
    assert "must be integers such as 1,2,3" in err
    code, _, err = run(capsys, "reproduce", toml, "--seeds", "1,1")
    assert code == 2
    assert "seeds must be different" in err
    code, _, err = run(capsys, "tune", toml, "CSFW")
    assert code == 2
    assert "algorithm must have a learning rate, got 'CSFW'" in err
    code, _, err = run(capsys, "tune", toml, "AdaXY")
    assert code == 2
    assert "algorithm must be one of CSFW, AdaCSFW, got 'AdaXY'" in err
    code, _, err = run(capsys, "tune", toml, "AdaCSFW", "--seed", "2")
    assert code == 2
    assert "seed must not be one that judges" in err


def test_missing_data_end_with_1(capsys, toml, tmp_path):
    path = tmp_path / "other.toml"
    path.write_text(TOML.replace('"support_vector", m = 60, n = 5', '"libsvm", path = "no.svm"'))
    code, _, err = run(capsys, "reproduce", str(path), "--out", str(tmp_path / "out"))
    assert code == 1
    assert "no.svm" in err


def test_reproduce_own_file(capsys, toml, tmp_path):
    code, out, err = run(
        capsys, "reproduce", toml, "--out", str(tmp_path / "out"), "--seeds", "5", "--jobs", "1"
    )
    assert code == 0
    assert "Data: support-vector data (60 x 5)" in out
    assert out.strip().endswith("report.html")
    assert "mine: 3 of 3 runs" in err  # one of them the reference
    table = (tmp_path / "out" / "mine" / "trace.csv").read_text()
    assert {line.split(",")[-13] for line in table.splitlines()[1:]} == {"5"}


def test_tune_prints_its_table(capsys, toml):
    code, out, _ = run(capsys, "tune", toml, "AdaCSFW", "--max-iterations", "5")
    assert code == 0
    assert "<- best by gap" in out
    assert out.splitlines()[-1].startswith("learning_rate = ")


def test_a_thing_of_the_wrong_kind_ends_with_2_and_a_sentence(capsys, toml, tmp_path):
    path = tmp_path / "other.toml"
    path.write_text('goals = ["low"]\n' + TOML)
    code, _, err = run(capsys, "reproduce", str(path), "--out", str(tmp_path / "out"))
    assert (code, err) == (2, "Error: goals must be a number, got str.\n")


def test_defaults_are_told(capsys):
    text = " ".join(run(capsys, "fit", "--help")[1].split())
    for words in ("[default: 100.0]", "[default: l1]", "[default: 5;", "[default: best]"):
        assert words in text
    assert "[default: None]" not in text
