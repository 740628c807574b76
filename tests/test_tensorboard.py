import sys

import numpy as np
import pytest

import adafw
from adafw.tensorboard import TensorBoard


def test_records_of_minimize_are_logged(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    rng = np.random.default_rng(0)
    f = adafw.LinearModel(rng.normal(size=(30, 4)), rng.normal(size=30), adafw.losses.Squared())
    board = TensorBoard(tmp_path)
    result = adafw.minimize(
        f, adafw.L1Ball(1.0), adafw.AdaFW(1.0), max_iterations=9, callbacks=[board]
    )
    board.log(10, {"gap": float("inf"), "accuracy": 0.5})
    board.close()
    log = reader.EventAccumulator(str(tmp_path))
    log.Reload()
    events = log.Tensors("gap")
    assert [e.step for e in events] == result.trace["iteration"].tolist()
    found = [e.tensor_proto.float_val[0] for e in events]
    np.testing.assert_allclose(found, result.trace["gap"], rtol=1e-6)
    assert [e.step for e in log.Tensors("accuracy")] == [10]
    columns = set(result.trace.columns) - {"iteration"}  # that is the step
    assert set(log.Tags()["tensors"]) == columns | {"accuracy"}


def test_without_the_package_it_is_said_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.summary", None)
    with pytest.raises(ImportError, match=r"install adafw\[tensorboard\]"):
        TensorBoard(tmp_path)


def test_a_run_can_be_looked_at_while_it_goes_on(tmp_path):
    """Every record is on the disk when the next one is made."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    board = TensorBoard(tmp_path)
    for step in (3, 7):
        board.log(step, {"accuracy": step / 10, "loss": float("nan")})
        log = reader.EventAccumulator(str(tmp_path))
        log.Reload()
        assert log.Tensors("accuracy")[-1].step == step
        assert "loss" not in log.Tags()["tensors"]
    board.close()


def test_what_was_logged_is_in_the_file_when_the_call_returns(tmp_path):
    """Whoever is killed then has lost nothing: closing adds no byte."""
    pytest.importorskip("tensorboard.summary")
    board = TensorBoard(tmp_path)
    sizes = []
    for step in range(5):
        board.log(step, {f"layer {k}": k / 10 for k in range(60)})
        (file,) = tmp_path.iterdir()
        sizes.append(file.stat().st_size)
    board.close()
    assert file.stat().st_size == sizes[-1]
    assert len(set(np.diff(sizes))) == 1  # every call adds its own numbers
