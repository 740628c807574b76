import sys

import pytest

from adafw.experiments import reproduce


def scalars(folder, name):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    log = reader.EventAccumulator(str(folder), {reader.TENSORS: 0})  # 0: keep all
    log.Reload()
    return [(e.step, e.tensor_proto.float_val[0]) for e in log.Tensors(name)]


def test_every_run_is_logged_once_and_whole(toml, tmp_path):
    pytest.importorskip("tensorboard")
    for _ in range(2):  # the second call finds all runs done, and logs anew
        outcome = reproduce(
            toml, tmp_path / "out", quick=True, workers=1, tensorboard=tmp_path / "logs"
        )
    for curve in outcome.curves:
        for seed, trace in curve.traces.items():
            run = tmp_path / "logs" / outcome.spec.name / curve.case.name / curve.label
            found = scalars(run / f"seed{seed}", "value")
            assert [step for step, _ in found] == trace["iteration"].tolist()
            assert [number for _, number in found] == pytest.approx(trace["value"], rel=1e-6)


def test_the_missing_package_is_told_before_anything_runs(toml, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(ImportError, match=r"install adafw\[tensorboard\]"):
        reproduce(toml, tmp_path / "out", workers=1, tensorboard=tmp_path / "logs")
    assert not (tmp_path / "out").exists()
