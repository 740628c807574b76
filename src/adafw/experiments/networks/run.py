"""One run of an experiment on networks: train, measure after each epoch, go on after a kill.

Imported only where networks are trained, since it needs torch.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from adafw.experiments.networks import probes
from adafw.experiments.networks.batches import TensorBatches
from adafw.experiments.networks.case import NetworkCase, NetworkMethod
from adafw.experiments.networks.data import SPLITS, Arrays, mapped
from adafw.experiments.networks.lessons import LESSONS
from adafw.experiments.networks.loop import train
from adafw.experiments.networks.optimizers import Trained, make_optimizer, violation
from adafw.experiments.networks.trace import EpochRecord
from adafw.experiments.work import Stopped, WorkItem, asked_to_stop, set_aside
from adafw.io.atomic import replacing
from adafw.recorder import Clock
from adafw.torch.measures import evaluate
from adafw.torch.typing import Batch
from adafw.typing import JsonTable

if TYPE_CHECKING:
    from torch import Tensor, nn

_MEASURED_AT_ONCE = 1000  # samples in a batch where only outputs are computed


class Training:
    """A network, its optimizer and its batches, from a seed; what has been measured so far.

    Every optimizer of a seed starts at the same weights and sees the same batches.
    """

    def __init__(
        self,
        case: NetworkCase,
        method: NetworkMethod,
        seed: int,
        data: dict[str, TensorBatches],
    ) -> None:
        import torch

        torch.manual_seed(seed)
        self.model, self.optimizer = make(case, method)
        lesson = LESSONS[case.network]
        self.loss_fn, self.correct = lesson.loss_fn, lesson.correct
        # The loss in training may be measured on some of the samples only: always on the same.
        some = data["train"].reordered(_MEASURED_AT_ONCE, None, lesson.measured)
        self.data = {**data, "train": some}
        self.loader = data["train"].reordered(case.batch_size, seed, case.data.get("epoch_rows"))
        self.clock = Clock()
        self.evaluations = self.iterations = 0
        self.records: list[EpochRecord] = []

    def epoch(self, batches: Iterable[Batch]) -> None:
        """Trains on the batches, once, and measures."""
        steps = _Counted(batches)
        with self.clock:
            train(self.model, self.optimizer, self._counting_loss, steps, 1)
        # A snapshot is a pass of its own over the same batches.
        self.iterations += steps.count // steps.passes
        self.measure()

    def _counting_loss(self, output: "Tensor", target: "Tensor") -> "Tensor":
        self.evaluations += len(target)
        return self.loss_fn(output, target)

    def measure(self) -> None:
        """Adds a record."""
        (train_loss, train_accuracy), (test_loss, test_accuracy) = (
            evaluate(self.model, self.loss_fn, self.data[split], self.correct) for split in SPLITS
        )
        self.records.append(
            EpochRecord(
                len(self.records), self.iterations, self.evaluations, self.clock.cpu,
                self.clock.wall, train_loss, train_accuracy, test_loss, test_accuracy,
                violation(self.optimizer),
            )
        )  # fmt: skip

    def save(self, path: Path) -> None:
        """Writes everything that the rest of the run depends on."""
        import torch

        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "order": self.loader.rng.get_state() if self.loader.rng is not None else None,
            "random": torch.get_rng_state(),
            "records": [list(record) for record in self.records],
        }
        with replacing(path) as partial:
            torch.save(state, partial)

    def load(self, path: Path) -> None:
        """Goes back to where `save` was called."""
        import torch

        state = torch.load(path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.loader.rng is not None:
            self.loader.rng.set_state(state["order"])
        torch.set_rng_state(state["random"])
        self.records = [EpochRecord(*record) for record in state["records"]]
        last = self.records[-1]
        self.iterations, self.evaluations = last.iteration, last.gradient_evaluations
        self.clock = Clock(last.cpu_seconds, last.wall_seconds)


class _Counted:
    """Batches, and how many were handed out in how many passes."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self.batches, self.count, self.passes = batches, 0, 0

    def __iter__(self) -> Iterator[Batch]:
        self.passes += 1
        for batch in self.batches:
            self.count += 1
            yield batch


def make(case: NetworkCase, method: NetworkMethod) -> "tuple[nn.Module, Trained]":
    """The network with fresh weights and the optimizer of a method."""
    width = () if case.width is None else (case.width,)
    model = LESSONS[case.network].model(*width)
    try:
        return model, make_optimizer(model, method, case.set)
    except TypeError as error:
        raise ValueError(f"algorithm {method.label!r} cannot be made: {error}") from None


def check(case: NetworkCase) -> None:
    """Makes every optimizer once."""
    import torch

    with torch.random.fork_rng(devices=[]):
        for method in case.methods:
            make(case, method)


def batches(case: NetworkCase, arrays: Arrays) -> TensorBatches:
    """All samples of a split in their order."""
    return LESSONS[case.network].batches(arrays, _MEASURED_AT_ONCE)


#: The data of the last item, which the next one mostly shares, and where they lie.
_held: tuple[Path | None, dict[str, TensorBatches]] = (None, {})


def _data(case: NetworkCase, parts: Path) -> dict[str, TensorBatches]:
    global _held
    if _held[0] != parts:
        _held = (parts, {split: batches(case, mapped(parts, split)) for split in SPLITS})
    return _held[1]


def run(item: WorkItem[NetworkCase, NetworkMethod]) -> JsonTable:
    """Runs an item from the last finished epoch, if there is one."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    data = _data(item.case, item.parts)
    _warm_up(item.case, item.method, data)
    training = Training(item.case, item.method, item.seed, data)
    if item.state_file.is_file():
        try:
            training.load(item.state_file)
        except Exception:  # whatever torch and pickle raise at damaged bytes: they promise nothing
            set_aside(item.state_file)
            return run(item)
    else:
        training.measure()
    for _ in range(len(training.records), item.budget["max_epochs"] + 1):
        training.epoch(UntilStopped(training.loader))
        training.save(item.state_file)
    records = [list(record) for record in training.records]
    found = {"status": "max_epochs", "records": records, "step": {}}
    if item.case.probes:
        test = (training.loss_fn, data["test"], training.correct)
        found["probes"] = probes.probe(training.model, test, item.seed)
    return found


class UntilStopped:
    """Batches, until asked to stop: the unfinished epoch is then given up."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        for batch in self.batches:
            if asked_to_stop():
                raise Stopped
            yield batch


_warm: set[str] = set()


def _warm_up(case: NetworkCase, method: NetworkMethod, data: dict[str, TensorBatches]) -> None:
    """Two steps off the record, so that code is compiled before the clock runs."""
    if method.optimizer not in _warm:
        spare = Training(case, method, 0, data)
        batch = next(iter(spare.loader))
        train(spare.model, spare.optimizer, spare.loss_fn, [batch, batch], 1)
        _warm.add(method.optimizer)
