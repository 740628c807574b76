"""A finite sum given by functions of the user's."""

from collections.abc import Callable

import numpy as np

from adafw import checks
from adafw.objectives.base import FiniteSum
from adafw.typing import Array, Batch, Plain


class UserSum(FiniteSum):
    """f = mean of n_terms functions, known through `value` and `gradient`.

    Parameters
    ----------
    n_terms : m.
    value : function of x, returns f(x).
    gradient : function of (x, batch), returns the mean of grad f_i(x) over the index array
        `batch`, an index that stands twice counting twice; batch None means all terms.
    convex : whether f is convex; a lower bound on the minimum is given only then.
    """

    def __init__(
        self,
        n_terms: int,
        value: Callable[[Array], float],
        gradient: Callable[[Array, Batch], Array],
        convex: bool = False,
    ) -> None:
        self.n_terms = checks.integer(n_terms, "n_terms", 1)
        for name, function in (("value", value), ("gradient", gradient)):
            if not callable(function):
                raise TypeError(f"{name} must be a function, got {type(function).__name__}.")
        self._value, self._gradient = value, gradient
        self.convex = bool(convex)

    def value(self, x: Array) -> float:
        return float(self._value(x.copy()))

    def gradient(self, x: Array, batch: Batch = None) -> Array:
        # Copies both ways: estimators keep x and g, which a user's function may change later.
        g = np.array(self._gradient(x.copy(), batch), dtype=x.dtype)
        if g.shape != x.shape:
            raise ValueError(
                f"gradient must return an array of the shape of x, {x.shape}, got {g.shape}."
            )
        return g

    def describe(self) -> Plain:
        return {"name": "UserSum", "n_terms": self.n_terms, "convex": self.convex}

    def __repr__(self) -> str:
        return f"UserSum(n_terms={self.n_terms}, convex={self.convex})"
