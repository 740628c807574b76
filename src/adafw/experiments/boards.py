"""The runs of an experiment as TensorBoard logs; needs the extra `tensorboard`."""

from pathlib import Path

from adafw.experiments.kinds import kind_of
from adafw.experiments.outcome import Outcome
from adafw.tensorboard import TensorBoard


def log_runs(outcome: Outcome, folder: Path) -> None:
    """One log for each run, folder/<experiment>/<problem>/<label>/seed<n>, in place of older ones.

    Every record is logged whole; the step is what numbers the records of the kind.
    """
    step = kind_of(outcome.spec).step
    for curve in outcome.curves:
        home = folder / outcome.spec.name / curve.case.name / curve.label
        for seed, trace in curve.traces.items():
            run = home / f"seed{seed}"
            for old in run.glob("events.out.tfevents.*"):
                old.unlink()
            board = TensorBoard(run)
            for record in trace:
                board.log(int(getattr(record, step)), record._asdict())
            board.close()
