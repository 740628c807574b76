"""What operations are told and tell, and Dask's objects."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from adafw.constraints import Constraint
from adafw.losses import Loss
from adafw.rows.base import Pull
from adafw.steps import Step
from adafw.typing import Array

#: A client, worker, future, scheduler, security or array of Dask's, whose types differ from release
#: to release, so that type checkers skip them.
DaskObject: TypeAlias = Any
#: What a part says of itself, arrays and numbers; what exactly, who asks knows.
Told: TypeAlias = Any
#: What is summed over the parts.
Summed: TypeAlias = tuple[Any, ...]


class Common(TypedDict, total=False):
    """What an operation is told of all parts alike, each the few that it needs."""

    dtype: str
    columns: NDArray[np.int64] | None
    outputs: int
    loss: Loss
    total: float
    p: float
    axis: int
    chosen: NDArray[np.int64]
    w: Array
    first: int
    #: Of local iterations: see `local_steps`.
    gradient: Array
    t: int
    step: Step
    seed: int
    constraint: Constraint
    iterations: int
    share: float


class Own(TypedDict, total=False):
    """What it is told of one part."""

    batch: NDArray[np.unsignedinteger[Any]]
    p: Array
    how: Pull
    start: int
    number: int
    weight: float


#: The number of a part -> what it is told.
Each: TypeAlias = Callable[[int], Own]
