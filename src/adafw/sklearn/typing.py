"""What estimators take, in the words of scikit-learn, which has no types of its own."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from adafw.algorithm import Algorithm
from adafw.constraints import Constraint
from adafw.losses import Loss

#: One entry a row: targets, weights. Whatever numpy makes an array of, or a dask array.
PerRow: TypeAlias = ArrayLike
#: A loss, a set or an algorithm, or the name of one.
LossLike: TypeAlias = str | Loss
SetLike: TypeAlias = str | Constraint
AlgorithmLike: TypeAlias = str | Algorithm | Callable[..., Algorithm]
#: Weights of classes: None, "balanced" or a table.
ClassWeight: TypeAlias = str | Mapping[Hashable, float] | None
#: As scikit-learn's check_random_state takes it.
RandomState: TypeAlias = int | np.random.RandomState | None
#: An estimator of whatever class, of this package or not; tags; splitters and scorers.
SklearnObject: TypeAlias = Any
