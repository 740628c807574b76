"""What a report of a problem begins with."""

import platform
from importlib import metadata

import adafw
from adafw import versions


def test_every_package_is_named_with_its_version(capsys, monkeypatch):
    monkeypatch.setattr(versions, "USED", (*versions.USED, "no-such-package"))
    found = versions.versions()
    assert list(found) == [
        "adafw", "python", "system", "numpy", "scipy", "numba", "scikit-learn", "click", "rich",
        "pooch", "torch", "matplotlib", "pandas", "pyarrow", "tensorboard", "no-such-package",
    ]  # fmt: skip
    assert found["adafw"] == adafw.__version__
    assert found["python"] == platform.python_version()
    assert found["system"] == f"{platform.system()} {platform.machine()}"
    assert found["numpy"] == metadata.version("numpy")
    assert found["no-such-package"] is None
    adafw.show_versions()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(found)
    assert lines[0] == f"adafw          {adafw.__version__}"
    assert lines[-1] == "no-such-package -"
