"""The few types that appear in signatures everywhere."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # type checkers know the package; nothing of it is needed to run
    from typing_extensions import TypeVar

    S = TypeVar("S", bound=Mapping[str, object], default=Any)
else:
    from typing import TypeVar

    S = TypeVar("S")

#: A numpy array of floats: what objectives, gradient estimators, metrics and steps work on.
Array: TypeAlias = NDArray[Any]

#: A numpy array or a torch tensor of floats: what sets take, and `adafw.arrays` tells apart. Torch
#: need not be there, so that no name of it can stand here.
AnyArray: TypeAlias = Any

#: A number of either library: of numpy or Python, or a tensor without dimensions.
AnyNumber: TypeAlias = Any

#: A dtype of either library.
AnyDType: TypeAlias = Any

#: A data matrix as users have it: a numpy array, a matrix of scipy.sparse, a data frame, or rows of
#: this package. Scipy and pandas have no types, so that nothing narrower can be said.
MatrixLike: TypeAlias = Any

#: Row numbers, repeats allowed; None means all terms.
Batch: TypeAlias = NDArray[np.integer[Any]] | None

#: t -> b_t, eta_t, gamma_t, rho_t; wherever one is taken, a plain number is too.
ScheduleLike: TypeAlias = float | Callable[[int], float]

#: A state of a gradient estimator, metric or step in the hands of those who pass it on: arrays and
#: numbers. What is in it, its maker alone knows, who declares a TypedDict (`S`; Any where a class
#: of a user declares none). A union here would prove nothing and make every reader cast.
StateDict: TypeAlias = dict[str, Any]

#: Shape of the variable; an integer n means (n,).
Shape: TypeAlias = int | tuple[int, ...]

#: Numbers, strings, lists and dicts only: what `describe` returns and JSON can hold.
Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"

#: What json.loads and the like return: plain too, but of a shape that only its reader knows.
Json: TypeAlias = Any

#: A table of TOML or an object of JSON.
JsonTable: TypeAlias = dict[str, Json]
