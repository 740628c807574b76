import json
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

import adafw
from adafw.experiments import load_spec, reproduce, work, workers
from adafw.experiments.networks.batches import ImageBatches, ReviewBatches
from adafw.experiments.networks.case import NetworkCase, NetworkMethod
from adafw.experiments.networks.data import load, mapped
from adafw.experiments.networks.models import ImdbNet
from adafw.experiments.networks.run import Training, _data, batches, check
from adafw.experiments.networks.trace import EpochTrace
from adafw.experiments.networks.tuning import guessing_error, tune_network
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


def small_case(network="FashionNet", methods=(), **table):
    ball = {"name": "LInfBall", "diameter": 20.0}
    return NetworkCase(name="p", methods=methods, network=network, set=ball, **table)


def image_batches(m, seed):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (m, 28, 28), generator=rng, dtype=torch.uint8)
    return ImageBatches(x, torch.randint(0, 10, (m,), generator=rng), batch_size=1000)


ADAM = NetworkMethod("AdamSFW", {"name": "AdamSFW", "learning_rate": 1e-3})


def test_the_loss_in_training_is_that_of_the_first_samples():
    """Of images on 2000 of them, always the same, whatever the order of training."""
    data = {"train": image_batches(2100, 0), "test": image_batches(30, 1)}
    case = small_case(width=8, data={"name": "fashion", "epoch_rows": 300}, batch_size=100)
    training = Training(case, ADAM, 4, data)
    assert training.model[1].weight.shape == (8, 784)
    training.measure()
    x, y = data["train"].tensors
    with torch.no_grad():
        out = training.model(x[:2000].float() / 255)
    record = training.records[0]
    assert record.train_loss == pytest.approx(
        torch.nn.functional.cross_entropy(out, y[:2000]).item()
    )
    assert record.train_accuracy == pytest.approx(
        (out.argmax(1) == y[:2000]).double().mean().item()
    )
    training.epoch(training.loader)
    assert training.records[1]._replace(cpu_seconds=0, wall_seconds=0)[:5] == (1, 3, 300, 0, 0)
    first = Training(case, ADAM, 4, data).loader, Training(case, ADAM, 5, data).loader
    orders = [torch.cat([y for _, y in loader]).tolist() for loader in first]
    assert orders[0] != orders[1]
    assert [len(order) for order in orders] == [300, 300]


def test_random_numbers_of_the_caller_stay_his_own(tmp_path):
    case = small_case(width=8, data={}, methods=(ADAM,))
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    check(case)
    assert torch.equal(torch.rand(1), wanted)
    data = {"train": image_batches(20, 0), "test": image_batches(20, 1)}
    training = Training(case, ADAM, 4, data)
    training.measure()
    training.save(tmp_path / "state")
    wanted = torch.rand(1)
    torch.manual_seed(77)
    training.load(tmp_path / "state")
    assert torch.equal(torch.rand(1), wanted)  # a run that goes on draws what it would have drawn


def test_data_of_another_place_are_read_anew(toml, tmp_path):
    one, other = (items(toml, tmp_path / name)["SFW", 1] for name in ("one", "other"))
    first = _data(one.case, one.parts)
    assert _data(one.case, one.parts) is first
    assert _data(other.case, other.parts) is not first


def by_hand(case, method, epochs, seed, rate):
    """The error on, or the loss of, a fifth of the training data drawn by the seed."""
    data = load(case.data, case.network)
    order = np.random.default_rng(seed).permutation(len(data.train["y"]))
    cut = max(1, len(order) // 5)
    split = {"train": order[cut:], "test": order[:cut]}
    arrays = {name: batches(case, data.pick(data.train, rows)) for name, rows in split.items()}
    training = Training(case, method.with_rate(rate), seed, arrays)
    for _ in range(epochs):
        training.epoch(training.loader)
    return training.records[-1]


def test_a_search_trains_on_four_fifths_and_judges_by_the_rest():
    table = {"name": "imdb", "source": "stand-in", "rows": 40}
    method = NetworkMethod("it", {"name": "AdaSFW", "learning_rate": 1.0, "inner_steps": 2})
    case = NetworkCase(name="p", data=table, methods=(method,), network="ImdbNet",
                       set={"name": "LInfBall", "diameter": 6.0}, batch_size=8)  # fmt: skip
    torch.manual_seed(3)
    wanted = torch.rand(1)
    torch.manual_seed(3)
    tuned = tune_network(case, method, 2, 5, trials=3)
    assert torch.equal(torch.rand(1), wanted)
    assert [t.exponent for t in tuned.trials] == [-5, -4, -3]
    for trial in tuned.trials:
        error = 1 - by_hand(case, method, 2, 5, trial.learning_rate).test_accuracy
        assert trial.value == pytest.approx(error) or "guessing" in trial.status
        assert ("guessing" in trial.status) == (trial.value == math.inf)
    large = tune_network(case, method, 1, 5)
    assert "no step size" not in {t.status for t in large.trials}
    assert max(t.learning_rate for t in large.trials) >= 10


def test_a_search_on_texts_is_judged_by_the_loss():
    table = {"name": "shakespeare", "source": "stand-in", "rows": 4}
    method = NetworkMethod("it", {"name": "AdamW", "learning_rate": 1.0})
    case = small_case("CharNet", data=table, width=8, batch_size=2, methods=(method,))
    tuned = tune_network(case, method, 1, 5, trials=3)
    assert [t.exponent for t in tuned.trials] == [-6, -5, -4]
    for trial in tuned.trials:  # of four windows one is held out
        assert trial.value == by_hand(case, method, 1, 5, trial.learning_rate).test_loss
    assert all(t.status == "max_epochs" for t in tuned.trials)


def test_guessing_names_the_commonest_class():
    labels = np.array([3] * 60 + [1] * 30 + [2] * 10)
    assert guessing_error(labels) == pytest.approx(0.4 - 2 * math.sqrt(0.24 / 100))
