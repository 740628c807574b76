"""One design, many targets: every fit of the front ends runs here."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np

from adafw import checks
from adafw.fitting.checkpoint import Checkpoint
from adafw.fitting.design import Design
from adafw.fitting.linear import Fit, Resume, fit_linear
from adafw.fitting.notices import Notice, notices
from adafw.fitting.predictor import LinearPredictor
from adafw.fitting.settings import Plan
from adafw.fitting.targets import Targets
from adafw.objectives.base import Unavailable
from adafw.recorder import Record
from adafw.stopping import Interrupts
from adafw.typing import Array

#: What ends all fits, not only the one it ends.
_ENDS_ALL = ("interrupted", "max_seconds")


class Deadline:
    """Seconds of wall time from when it is made; None never ends."""

    def __init__(self, seconds: float | None = None) -> None:
        wait = math.inf if seconds is None else checks.real(seconds, "max_seconds", infinite=True)
        self._end = time.monotonic() + wait

    @property
    def left(self) -> float:
        """Seconds to go, at least 0."""
        return max(0.0, self._end - time.monotonic())

    def cut(self) -> None:
        """Ends it now."""
        self._end = -math.inf


@dataclass(frozen=True)
class Fitted:
    """All fits of a design, in the order of the targets: one model, and what to tell its user.

    `interrupted`: whether the keyboard ended it, were it before any fit had begun.
    """

    fits: tuple[Fit, ...]
    predictor: LinearPredictor
    notices: tuple[Notice, ...]
    interrupted: bool


def fit_targets(
    design: Design,
    targets: Targets,
    plan: Plan,
    *,
    starts: Sequence[Array | None] | None = None,
    deadline: Deadline | None = None,
    checkpoint: Checkpoint | None = None,
    watch: Callable[[int, Record], None] | None = None,
) -> Fitted:
    """Fits a linear model to every target, `n_jobs` at a time; the results do not depend on it.

    Targets that are fitted jointly are one fit.

    After Ctrl-C or the deadline, fits that run end where they are, and the rest stay at their start
    point, with the status "not started".

    Parameters
    ----------
    starts : coefficients to start from, one entry a fit, as of `Targets.points`.
    deadline : None gives `max_seconds` from now on.
    checkpoint : what is finished in it is taken over, the others go on from it.
    watch : called at every record with the number of the target.
    """
    crew = _Crew(
        design,
        targets,
        plan,
        starts or [None] * len(targets),
        deadline or Deadline(plan.settings.max_seconds),
        checkpoint or Checkpoint(),
        watch,
    )
    fits = tuple(crew.run(plan.settings.jobs))
    if targets.outputs:
        coef, intercept = np.ascontiguousarray(fits[0].coef.T), np.asarray(fits[0].intercept)
    else:
        coef = np.array([fit.coef for fit in fits])
        intercept = np.array([fit.intercept for fit in fits])
    predictor = LinearPredictor(coef, intercept, targets.classes, plan.loss)
    struck = crew.interrupts.seen or any(fit.status == "interrupted" for fit in fits)
    return Fitted(fits, predictor, notices(fits, plan), struck)


@dataclass
class _Crew:
    """The fits of one call, one after the other or several at a time."""

    design: Design
    targets: Targets
    plan: Plan
    starts: Sequence[Array | None]
    deadline: Deadline
    checkpoint: Checkpoint
    watch: Callable[[int, Record], None] | None
    over: threading.Event = field(default_factory=threading.Event)
    interrupts: Interrupts = field(default_factory=Interrupts)

    def run(self, jobs: int) -> list[Fit]:
        """All fits; any failure ends all."""
        numbers = range(len(self.targets))
        if min(jobs, len(numbers)) == 1:
            return [self.one(k) for k in numbers]
        # Signals reach the main thread alone, at any of its lines: Ctrl-C is noted, and the others
        # stop at their next record.
        with self.interrupts, ThreadPoolExecutor(jobs) as pool:
            futures: list[Future[Fit]] = []
            while True:
                try:
                    for k in numbers[len(futures) :]:
                        futures.append(pool.submit(self.one, k))
                    return [future.result() for future in futures]
                except KeyboardInterrupt:  # a second one, or by a handler of the user's own
                    self.interrupts.again()
                except BaseException:
                    self.over.set()
                    raise

    @property
    def ended(self) -> bool:
        """Whether no fit is to go on."""
        return self.over.is_set() or self.interrupts.seen

    def one(self, k: int) -> Fit:
        """Fit k, or what the checkpoint has of it."""
        if k in self.checkpoint.finished:
            return self.checkpoint.finished[k]
        resume = self.checkpoint.begin(k)
        if self.ended and resume is None:
            return self._untouched(k)
        try:
            fit = fit_linear(
                self.design, self.targets.vectors[k], self.plan, start=self.starts[k],
                resume=resume, watch=lambda r, now: self._watch(k, r, now),
                seconds=0.0 if self.ended else self.deadline.left,
            )  # fmt: skip
        except BaseException as error:
            self.over.set()
            if isinstance(error, Unavailable) and error.resume is not None:
                self.checkpoint.keep(k, error.resume, always=True)
            raise
        if fit.status == "callback":  # `_watch` ended it
            fit = replace(fit, status="interrupted" if self.interrupts.seen else "max_seconds")
        if fit.status in _ENDS_ALL:
            self.over.set()
            assert fit.resume is not None
            self.checkpoint.keep(k, fit.resume, always=True)
        else:
            self.checkpoint.finish(k, fit)
        return fit

    def _watch(self, k: int, record: Record, now: Resume) -> bool:
        if self.watch is not None:
            self.watch(k, record)
        self.checkpoint.keep(k, now)
        return self.ended or self.deadline.left == 0

    def _untouched(self, k: int) -> Fit:
        """The start point with its value and gap: what there is of a fit that never ran."""
        settings = replace(self.plan.settings, algorithm="FW", learning_rate="auto")
        plan = replace(self.plan, settings=settings)
        vector, start = self.targets.vectors[k], self.starts[k]
        fit = fit_linear(self.design, vector, plan, start=start, seconds=0.0)
        return replace(fit, status="not started")
