"""Where to start: a size and learning rates for each class of sets, searched on images.

By benchmarks/starting_values.py: 100 steps of a perceptron on Fashion-MNIST, six rates and three
sizes. A good step size of SFW goes like 1 / diameter; adaptive steps mind the size little.
"""

from collections.abc import Callable
from typing import NamedTuple

from adafw.constraints import (
    ColumnBall,
    Constraint,
    L1Ball,
    L2Ball,
    LInfBall,
    NuclearBall,
    RMSBall,
    RowBall,
    SpectralBall,
)
from adafw.torch.matrices import NewtonSchulzBall, PowerNuclearBall


class Start(NamedTuple):
    """The l2 diameter in Glorot norms, lr of SFW at that size, lr of AdamSFW."""

    diameter: float
    step_size: float
    learning_rate: float


_SPECTRAL = _NUCLEAR = _LINES = Start(20.0, 1e-3, 3e-3)
_LENGTH = Start(6.0, 1e-3, 3e-3)  # at equal diameters both are the same ball
_STARTS: dict[object, Start] = {
    LInfBall: Start(20.0, 1e-3, 3e-3),
    L2Ball: _LENGTH,
    RMSBall: _LENGTH,
    L1Ball: Start(60.0, 1e-3, 1e-1),
    SpectralBall: _SPECTRAL,
    NewtonSchulzBall: _SPECTRAL,
    NuclearBall: _NUCLEAR,
    PowerNuclearBall: _NUCLEAR,
    RowBall: _LINES,
    ColumnBall: _LINES,
}


def diameter_of(family: Callable[[float], Constraint] | None) -> float | None:
    """The starting size of a class of sets, None where nobody has looked for one."""
    found = _STARTS.get(family)
    return None if found is None else found.diameter


def words(family: Callable[[float], Constraint] | None, diameter: float | None) -> str:
    """First tries for a table of sets, empty where nobody has looked for one."""
    found = _STARTS.get(family)
    if found is None:
        return ""
    tries = [f"AdamSFW(lr={found.learning_rate:.2g})", 'SFW(lr=0.3, rescale="gradient")']
    if diameter is not None:
        step_size = min(1.0, found.step_size * found.diameter / diameter)
        tries.insert(0, f"SFW(lr={step_size:.2g})")
    return f"first tries: {', '.join(tries)}"
