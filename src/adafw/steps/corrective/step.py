"""Corrective steps for exact gradients."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import Box, GroupBall, L1Ball, L2Ball, LInfBall, NuclearBall
from adafw.constraints.base import Constraint
from adafw.gradients import Full, GradientEstimator
from adafw.objectives.base import FiniteSum
from adafw.objectives.kinds import Linear
from adafw.steps.base import Step
from adafw.steps.corrective.atoms import AtomCorrector
from adafw.steps.corrective.base import AnyCorrector, Memory
from adafw.steps.corrective.box import BoxCorrector
from adafw.steps.corrective.groups import GroupCorrector, holds_rows
from adafw.steps.corrective.hull import HullCorrector
from adafw.steps.corrective.joint import JointCorrector
from adafw.steps.corrective.l2_ball import L2Corrector
from adafw.steps.corrective.nuclear import NuclearCorrector
from adafw.steps.corrective.precise import DOUBLE, SINGLE, in_double, last_gap
from adafw.steps.corrective.rehearsal import rehearse
from adafw.steps.corrective.remembering import renew
from adafw.steps.corrective.sample import solved_on_sample
from adafw.steps.corrective.secants import STUCK
from adafw.steps.corrective.stretched import finite_start, stretch, unstretched
from adafw.typing import Array, MatrixLike

_LARGE = 1e308
_RENEWED = 16  # iterations after which predictions are a product again
#: One for each kind of set; the first that fits is taken.
CORRECTORS: tuple[AnyCorrector, ...] = (
    AtomCorrector(),
    HullCorrector(),
    BoxCorrector(),
    L2Corrector(),
    GroupCorrector(),
    NuclearCorrector(),
    JointCorrector(),
)


@dataclass(frozen=True)
class CorrectiveStep(Step[Memory]):
    """x_{t+1} ~ argmin of f over what is known of the set, by second-order steps.

    Fully corrective Frank-Wolfe (Holloway 1974, Jaggi 2013): the exact gradient names new atoms,
    as a linear minimisation does, and f is minimised over the hull of all atoms kept. Needs exact
    gradients, an objective with second derivatives and one of the sets L1Ball, Simplex, UnitSimplex
    (`atoms`), Hull (`hull`), LInfBall, Box (`box`), L2Ball (`l2_ball`), GroupBall, KSparse
    (`groups`), NuclearBall (`nuclear`), each by what fits it. One gradient an iteration; iterations
    are few (5 to 20). The first one of a long linear model often minimises over every eighth
    row.
    """

    dear = True
    numbers = MappingProxyType({
        "calm": (int, 0, 1), "bound": (int, 0, 1), "sample": (int, 0, 1),
        "related": (int, 0, 1), "stuck": (int, 0, STUCK - 1), "alone": (int, 0, 1),
        "word": (int, 0, 2**64),
        "level": (float, -_LARGE, _LARGE), "gap": (float, -_LARGE, _LARGE),
        "norm": (float, 0, _LARGE), "multiplier": (float, 0, _LARGE),
        "reach": (float, 0, _LARGE), "held": (float, 0, _LARGE),
        "stretch": (float, 0, _LARGE), "last": (float, -_LARGE, _LARGE),
    })  # fmt: skip

    def check(self, f: FiniteSum, constraint: Constraint, gradient: GradientEstimator) -> None:
        if not isinstance(gradient, Full):
            raise TypeError(
                f"CorrectiveStep needs exact gradients, got those of {type(gradient).__name__}."
            )
        if not f.has_hessian:
            raise TypeError(
                f"CorrectiveStep needs an objective with second derivatives, got {f!r}; use BPCG()."
            )
        corrector_for(f, constraint)

    def init(self, x: Array) -> Memory:
        return {}

    def prepare(self, f: FiniteSum, constraint: Constraint, x: Array, state: Memory) -> None:
        corrector = corrector_for(f, constraint)
        if corrector.rehearsed:
            rehearse(corrector, f, constraint, x)
        corrector.prepare(f, x, state)

    def begin(self, f: FiniteSum, constraint: Constraint, x: Array) -> Array:
        return finite_start(corrector_for(f, constraint), f, constraint, x)

    def update(
        self, f: FiniteSum, constraint: Constraint, x: Array, g: Array, t: int,
        state: Memory,
    ) -> tuple[Array, Memory]:  # fmt: skip
        if not g.any():
            return x, state
        state = state.copy()  # so that nothing has changed if f fails half way
        corrector = corrector_for(f, constraint)
        times = stretch(f, x) if t == 0 else state.pop("stretch", 0.0)
        if times and isinstance(f, Linear):
            memory = state or corrector.init(x)
            if (lower := unstretched(corrector, f, constraint, x, times, memory)) is not None:
                return lower
            state = corrector.init(x)
        if t == 0 and (first := solved_on_sample(corrector, f, constraint, x, g)) is not None:
            return first
        single = x.dtype == np.float32 and corrector.doubles and t >= SINGLE
        last = state.pop("last", np.inf)
        if single and (last := last_gap(constraint, x, g, last)) == DOUBLE:
            return in_double(corrector, f, constraint, x, t, state or corrector.init(x))
        new, kept = corrector.improve(f, constraint, x, g, t, state or corrector.init(x))
        if single:
            kept["last"] = last
        if t % _RENEWED == _RENEWED - 1:
            renew(f, new, kept)
        return new, kept

    def active_set(
        self, constraint: Constraint, x: Array, state: Memory
    ) -> tuple[NDArray[Any], MatrixLike] | None:
        for corrector in CORRECTORS:
            if x.ndim == 1 and isinstance(constraint.bare, corrector.sets):
                return corrector.active_set(constraint.bare, x, state)
        return None

    @property
    def most_lmo_calls(self) -> int:
        return 1


def corrects_on(constraint: Constraint) -> bool:
    """Whether a CorrectiveStep knows the set, for linear models whose rows it can restrict."""
    return any(isinstance(constraint.bare, known.sets) for known in CORRECTORS)


def corrects_atoms(constraint: Constraint) -> bool:
    """Whether it knows the set by few vertices with one coordinate each."""
    return isinstance(constraint.bare, AtomCorrector.sets)


def corrects_jointly(constraint: Constraint) -> bool:
    """The same for a `MatrixModel`."""
    kind = constraint.bare
    if isinstance(kind, GroupBall):
        return holds_rows(kind)
    return type(kind) in (L1Ball, L2Ball, LInfBall, Box, NuclearBall)


def corrector_for(f: FiniteSum, constraint: Constraint) -> AnyCorrector:
    """The one that fits, or an error."""
    for corrector in CORRECTORS:
        if corrector.fits(f, constraint):
            return corrector
    raise TypeError(
        f"CorrectiveStep knows no way to correct on {constraint!r} for {f!r}; use BPCG(), "
        "FW(LineSearch()) or an adaptive preset."
    )
