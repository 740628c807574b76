"""One run of an experiment on networks: train, measure after each epoch, go on after a kill.

Imported only where networks are trained, since it needs torch.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import adafw.torch
from adafw.experiments.networks.data import SPLITS, Arrays, mapped
from adafw.experiments.networks.problem import NetworkProblem
from adafw.experiments.networks.trace import EpochRecord
from adafw.experiments.runner import Job, Stopped, asked_to_stop, finish
from adafw.experiments.spec import AlgorithmSpec
from adafw.io.atomic import replacing
from adafw.recorder import Clock
from adafw.torch import matrices, networks
from adafw.torch.batches import ImageBatches, ReviewBatches, TensorBatches
from adafw.torch.measures import evaluate
from adafw.torch.training import train

_MEASURED_AT_ONCE = 1000  # samples in a batch where only outputs are computed


class Run:
    """A network, its optimizer and its batches, from a seed; what has been measured so far.

    Every optimizer of a seed starts at the same weights and sees the same batches.
    """

    def __init__(
        self,
        problem: NetworkProblem,
        line: AlgorithmSpec,
        seed: int,
        data: dict[str, TensorBatches],
    ) -> None:
        import torch

        torch.manual_seed(seed)
        self.model, self.optimizer = make(problem, line)
        self.loss_fn, self.correct = _loss(problem.network)
        self.data = data
        self.loader = data["train"].reordered(problem.batch_size, seed)
        self.clock = Clock()
        self.evaluations = self.iterations = 0
        self.records: list[EpochRecord] = []

    def epoch(self, batches: Iterable[Any]) -> None:
        """Trains on the batches, once, and measures."""
        steps = _Counted(batches)
        with self.clock:
            train(self.model, self.optimizer, self._counting_loss, steps, 1)
        # A snapshot is a pass of its own over the same batches.
        self.iterations += steps.count // steps.passes
        self.measure()

    def _counting_loss(self, output: Any, target: Any) -> Any:
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
                self.violation(),
            )
        )  # fmt: skip

    def violation(self) -> float:
        """How far outside its set the worst parameter is, relative to the set's size."""
        return max(
            float(group["constraint"].violation(matrices.as_points(group["constraint"], point)))
            for group in self.optimizer.param_groups
            for point in (p.detach().double() for p in group["params"])
        )

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

    def __init__(self, batches: Iterable[Any]) -> None:
        self.batches, self.count, self.passes = batches, 0, 0

    def __iter__(self) -> Iterator[Any]:
        self.passes += 1
        for batch in self.batches:
            self.count += 1
            yield batch


def make(problem: NetworkProblem, line: AlgorithmSpec) -> tuple[Any, Any]:
    """The network with fresh weights and the optimizer of a line."""
    model = getattr(networks, problem.network)()
    size = {k: v for k, v in problem.set.items() if k != "name"}
    groups = adafw.torch.constrain(model, problem.set_family(), show=False, **size)
    optimizer = getattr(adafw.torch, line.table["name"])
    try:
        return model, optimizer(groups, **problem.options(line))
    except TypeError as error:
        raise ValueError(f"algorithm {line.label!r} cannot be made: {error}") from None


def check(problem: NetworkProblem) -> None:
    """Makes every optimizer once."""
    import torch

    with torch.random.fork_rng(devices=[]):
        for line in problem.algorithms:
            make(problem, line)


def _loss(network: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The loss, and which outputs are right."""
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

    if network == "ImdbNet":
        return binary_cross_entropy_with_logits, lambda out, y: (out > 0) == (y > 0.5)
    return cross_entropy, lambda out, y: out.argmax(1) == y


def batches(arrays: Arrays) -> TensorBatches:
    """All samples of a split in their order."""
    import torch

    y = torch.tensor(arrays["y"])
    if "ids" in arrays:
        return ReviewBatches(arrays["ids"], arrays["offsets"], y, batch_size=_MEASURED_AT_ONCE)
    return ImageBatches(torch.tensor(arrays["x"]), y.long(), batch_size=_MEASURED_AT_ONCE)


#: The data of the last job, which the next one mostly shares, and where they lie.
_held: tuple[Path | None, dict[str, TensorBatches]] = (None, {})


def _data(parts: Path) -> dict[str, TensorBatches]:
    global _held
    if _held[0] != parts:
        _held = (parts, {split: batches(mapped(parts, split)) for split in SPLITS})
    return _held[1]


def run(job: Job, problem: NetworkProblem) -> None:
    """Runs a job from the last finished epoch, if there is one, and writes its outcome."""
    import torch

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    data = _data(job.parts)
    _warm_up(problem, job.algorithm, data)
    run = Run(problem, job.algorithm, job.seed, data)
    if job.state_file.is_file():
        run.load(job.state_file)
    else:
        run.measure()
    for _ in range(len(run.records), job.budget["max_epochs"] + 1):
        run.epoch(_UntilStopped(run.loader))
        run.save(job.state_file)
    outcome = {"status": "max_epochs", "records": [list(r) for r in run.records], "step": {}}
    finish(job, outcome)


class _UntilStopped:
    """Batches, until asked to stop: the unfinished epoch is then given up."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches:
            if asked_to_stop():
                raise Stopped
            yield batch


_warm: set[str] = set()


def _warm_up(problem: NetworkProblem, line: AlgorithmSpec, data: dict[str, TensorBatches]) -> None:
    """Two steps off the record, so that code is compiled before the clock runs."""
    name = line.table["name"]
    if name not in _warm:
        spare = Run(problem, line, 0, data)
        batch = next(iter(spare.loader))
        train(spare.model, spare.optimizer, spare.loss_fn, [batch, batch], 1)
        _warm.add(name)
