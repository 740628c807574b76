import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

import adafw
from adafw.experiments import load_spec, reproduce, work, workers
from adafw.experiments.networks.batches import ReviewBatches
from adafw.experiments.networks.data import mapped
from adafw.experiments.networks.models import ImdbNet
from adafw.experiments.networks.run import Training, batches
from adafw.experiments.networks.trace import EpochTrace
from adafw.experiments.networks.tuning import guessing_error
from adafw.experiments.plan import parts_of, prepare, runs_of
from adafw.experiments.tuning import tune_method
from adafw.recorder import Clock

TIMES = ("cpu_seconds", "wall_seconds")
SAMPLES, BATCH = 60, 25


def items(toml, folder):
    spec = load_spec(toml)
    folder.mkdir(exist_ok=True)
    (case,) = spec.cases
    parts = parts_of(case, folder)
    prepare(spec, case, parts)
    found = runs_of(spec, {case.name: parts}, folder)
    return {(item.method.label, item.seed): item for item in found}


def numbers(item):
    """All records without what the clock says."""
    records = json.loads(item.file.read_text())["records"]
    keep = [i for i, name in enumerate(EpochTrace.columns) if name not in TIMES]
    return [[record[i] for i in keep] for record in records]


def test_counts_of_an_epoch(finished):
    outcome, _ = finished
    batches = math.ceil(SAMPLES / BATCH)
    once = {"SFW": 1, "AdaSFW": 1, "AdamSFW": 1, "AdaGrad": 1, "AMSGrad": 1, "SVRF": 3}
    for curve in outcome.curves:
        for trace in curve.traces.values():
            assert trace["epoch"].tolist() == [0, 1, 2]
            assert trace["iteration"].tolist() == [0, batches, 2 * batches]
            assert trace["violation"].max() <= 1e-6
            assert all(a <= b for a, b in pairwise(trace["cpu_seconds"]))
            if curve.label in once:
                per_epoch = once[curve.label] * SAMPLES
                assert trace["gradient_evaluations"].tolist() == [0, per_epoch, 2 * per_epoch]
            else:  # the recursions need no second gradient right after a snapshot or at the start
                first, second = np.diff(trace["gradient_evaluations"])
                assert SAMPLES < first <= second <= 3 * SAMPLES


def test_all_methods_start_at_the_same_weights_and_then_part(finished):
    outcome, _ = finished
    for seed in (1, 2):
        first = {tuple(curve.traces[seed][0])[5:] for curve in outcome.curves}
        assert len(first) == 1
        last = {curve.traces[seed][-1].train_loss for curve in outcome.curves}
        assert len(last) == len(outcome.curves)


def test_a_run_is_what_a_loop_by_hand_does(toml, tmp_path):
    item = items(toml, tmp_path)["AdaSFW", 2]
    workers.perform(item)
    data = {
        split: {name: np.array(array) for name, array in mapped(item.parts, split).items()}
        for split in ("train", "test")
    }
    torch.manual_seed(2)
    model = ImdbNet()
    groups = adafw.torch.constrain(model, adafw.LInfBall, diameter=6.0, show=False)
    optimizer = adafw.torch.AdaSFW(groups, lr=10**-2.5, inner_steps=2)
    loss_fn = torch.nn.functional.binary_cross_entropy_with_logits
    train = ReviewBatches(*data["train"].values(), batch_size=BATCH, seed=2)
    for _ in range(2):
        for ids, offsets, y in train:
            optimizer.zero_grad()
            loss_fn(model(ids, offsets), y).backward()
            optimizer.step()
    records = json.loads(item.file.read_text())["records"]
    last = dict(zip(EpochTrace.columns, records[-1], strict=True))
    for split, arrays in data.items():
        ((ids, offsets, y),) = ReviewBatches(*arrays.values(), batch_size=1000)
        with torch.no_grad():
            out = model(ids, offsets)
        assert last[f"{split}_loss"] == pytest.approx(loss_fn(out, y).item(), rel=1e-6)
        assert last[f"{split}_accuracy"] == ((out > 0) == (y == 1)).double().mean().item()


@pytest.mark.parametrize("label", ["SFW", "SPIDER-FW", "ORGFW", "AdamSFW", "AMSGrad"])
def test_a_stopped_run_goes_on_bit_for_bit(label, toml, tmp_path, listen_to):
    whole = items(toml, tmp_path / "whole")[label, 1]
    workers.perform(whole)
    item = items(toml, tmp_path / "stopped")[label, 1]
    looks = 3 if label != "SPIDER-FW" else 6  # the batches of an epoch, and of a snapshot
    listen_to(looks + 2)
    with pytest.raises(work.Stopped):
        workers.perform(item)
    assert item.state_file.is_file()
    assert not item.file.is_file()
    listen_to(None)
    torch.manual_seed(77)  # whatever the process did in between
    workers.perform(item)
    assert not item.state_file.exists()
    assert numbers(item) == numbers(whole)


def test_a_run_that_goes_on_has_spent_what_it_had_spent(toml, tmp_path):
    item = items(toml, tmp_path)["SVRF", 1]
    data = {split: batches(item.case, mapped(item.parts, split)) for split in ("train", "test")}
    first, again = (Training(item.case, item.method, item.seed, data) for _ in range(2))
    first.clock, first.iterations, first.evaluations = Clock(3.0, 50.0), 7, 400
    first.measure()
    first.save(tmp_path / "state")
    again.load(tmp_path / "state")
    assert (again.clock.cpu, again.clock.wall) == (3.0, 50.0)
    assert (again.iterations, again.evaluations) == (7, 400)
    assert again.records == first.records
    again.measure()
    (_, next_record) = again.records
    assert next_record == first.records[0]._replace(epoch=1)


def test_batch_size_and_set_are_part_of_a_run_s_name(toml, tmp_path):
    first = {item.file for item in items(toml, tmp_path).values()}
    for old, new in (("batch_size = 25", "batch_size = 20"), ("diameter = 6.0", "radius = 1.0")):
        other = tmp_path / "nets.toml"
        other.write_text(toml.read_text().replace(old, new))
        assert not first & {item.file for item in items(other, tmp_path).values()}


def test_images_are_trained_on_too(toml, tmp_path):
    other = tmp_path / "images.toml"
    text = toml.read_text().replace("ImdbNet", "CifarNet").replace('"imdb"', '"cifar10"')
    other.write_text(text.replace("diameter = 6.0", "diameter = 200.0"))
    item = items(other, tmp_path)["AdamSFW", 1]
    workers.perform(item)
    records = json.loads(item.file.read_text())["records"]
    loss = EpochTrace.columns.index("train_loss")
    assert records[-1][loss] < records[0][loss]


def test_the_search_holds_data_out_and_keeps_step_sizes_below_one(toml):
    spec = load_spec(toml)
    seen = []
    tuned = tune_method(spec, "SFW", None, {"max_epochs": 1}, report=seen.append)
    again = tune_method(spec, "SFW", None, {"max_epochs": 1.0})
    assert tuned.trials == again.trials == tuple(seen)
    assert {t.exponent for t in tuned.trials} >= {-2, 0, 2}
    assert all((t.learning_rate > 1) == (t.status == "no step size") for t in tuned.trials)
    assert tuned.best.value == min(t.value for t in tuned.trials)
    held_out = SAMPLES // 5
    assert all(
        t.value * held_out == pytest.approx(round(t.value * held_out))
        for t in tuned.trials
        if t.value < math.inf
    )
    with pytest.raises(ValueError, match="max_epochs alone"):
        tune_method(spec, "SFW", None, {"max_iterations": 3})


def test_rates_above_one_are_tried_where_they_are_no_step_sizes(toml, tmp_path):
    other = tmp_path / "nets.toml"
    text = toml.read_text().replace("momentum = 0.0 }", 'momentum = 0.0, rescale = "gradient" }')
    other.write_text(text)
    tuned = tune_method(load_spec(other), "SFW", None, {"max_epochs": 1})
    assert any(t.learning_rate > 1 for t in tuned.trials)
    assert all(t.status != "no step size" for t in tuned.trials)


def test_a_rate_that_learns_nothing_counts_as_worst(toml):
    """At chance level differences are noise, and the search must go on to smaller rates."""
    y = np.repeat(np.arange(10), 30)
    assert guessing_error(y) == pytest.approx(0.9 - 2 * math.sqrt(0.09 / 300))
    assert guessing_error(np.zeros(7)) == 0.0
    tuned = tune_method(load_spec(toml), "SFW", None, {"max_epochs": 1})
    assert any("no better than guessing" in t.status for t in tuned.trials)
    for t in tuned.trials:
        assert (t.value == math.inf) == (t.status != "max_epochs")
    assert "gap" not in str(tuned)


def test_a_file_may_leave_a_rate_to_the_search(toml, tmp_path):
    file = tmp_path / "searched.toml"
    head, _, rest = toml.read_text().partition("algorithms = [")
    assert rest
    method = '{ name = "SFW", learning_rate = "search", momentum = 0.0 }'
    file.write_text(f"search = {{ max_epochs = 1 }}\n{head}algorithms = [{method}]")
    outcome = reproduce(file, tmp_path, seeds=[1], workers=1)
    found = tune_method(load_spec(file), "SFW", None, {"max_epochs": 1})
    (curve,) = outcome.curves
    assert curve.method.arguments["lr"] == found.learning_rate
    summary = json.loads((tmp_path / "searched" / "summary.json").read_text())
    assert [t["value"] for t in summary["searches"][0]["trials"]] == [
        None if math.isinf(t.value) else t.value for t in found.trials
    ]
