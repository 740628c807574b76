"""The few types that appear in signatures everywhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: A numpy array or a torch tensor of floats. Sets take both; objectives, gradient
#: estimators, metrics and steps of the core work on numpy arrays.
Array: TypeAlias = Any

#: Row numbers, repeats allowed; None means all terms.
Batch: TypeAlias = NDArray[np.integer[Any]] | None

#: t -> b_t, eta_t, gamma_t, rho_t; wherever one is taken, a plain number is too.
ScheduleLike: TypeAlias = float | Callable[[int], float]

#: Shape of the variable; an integer n means (n,).
Shape: TypeAlias = int | tuple[int, ...]

#: Numbers, strings, lists and dicts only: what `describe` returns and JSON can hold.
Plain: TypeAlias = "None | bool | int | float | str | Sequence[Plain] | Mapping[str, Plain]"

#: What json.loads and the like return: plain too, but of a shape that only its reader knows.
Json: TypeAlias = Any
