"""The runs of an experiment as TensorBoard logs; needs the extra `tensorboard`."""

from pathlib import Path

from adafw.experiments.results import Outcome
from adafw.tensorboard import TensorBoard


def log_runs(outcome: Outcome, folder: Path) -> None:
    """One log for each run, folder/<experiment>/<problem>/<label>/seed<n>, in place of older ones.

    Every record is logged whole; the step is its epoch for networks, else its iteration.
    """
    for line in outcome.lines:
        step = "iteration" if "gap" in line.problem.trace.columns else "epoch"
        home = folder / outcome.spec.name / line.problem.name / line.label
        for seed, trace in line.traces.items():
            run = home / f"seed{seed}"
            for old in run.glob("events.out.tfevents.*"):
                old.unlink()
            board = TensorBoard(run)
            for record in trace:
                board.log(int(getattr(record, step)), record._asdict())
            board.close()
