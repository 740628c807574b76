"""A fitted linear model as a file: arrays and a JSON header, no pickle, versioned."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.fitting.predictor import LinearPredictor
from adafw.fitting.storage import read_arrays, write_arrays
from adafw.names import LOSSES
from adafw.typing import Plain

#: Of the file; raise it when a field changes its meaning.
FORMAT = 1
_KIND = "adafw linear model"


@dataclass(frozen=True, eq=False)
class LinearModelFile:
    """What a file holds: coefficients (one row a score), intercepts, classes, and a header.

    `header` has "settings", "certificate" (one entry a score: value, gap, lower bound, violation,
    status ...), "data" (a fingerprint of what it was fitted to) and "features" (names or None).
    """

    coef: NDArray[Any]
    intercept: NDArray[Any]
    classes: NDArray[Any] | None
    header: dict[str, Plain]

    @property
    def n_features(self) -> int:
        """Columns that data must have."""
        return int(self.coef.shape[1])

    @cached_property
    def predictor(self) -> LinearPredictor:
        """What predicts with it, in float64."""
        settings = self.header["settings"]
        entry = LOSSES.find(settings["loss"])
        given = {key: settings[key] for key in entry.parameters if key in settings}
        coef = self.coef.astype(np.float64, copy=False)
        return LinearPredictor(coef, self.intercept, self.classes, entry.make(**given))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file whole or not at all; an old one survives any failure."""
        arrays = {"coef": self.coef, "intercept": self.intercept}
        if self.classes is not None:
            arrays["classes"] = np.asarray(self.classes, dtype=_plain_dtype(self.classes))
        write_arrays(path, _KIND, FORMAT, self.header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LinearModelFile":
        """Reads what `save` wrote."""
        header, arrays = read_arrays(path, _KIND, FORMAT)
        try:
            coef, intercept = arrays["coef"], arrays["intercept"]
            fits = coef.ndim == 2 and intercept.shape == coef.shape[:1]
            known = {"settings", "certificate", "data", "features"} <= set(header)
        except KeyError:
            fits = known = False
        if not (fits and known):
            raise ValueError(f"{path} must be a whole model file of adafw, got a damaged one.")
        return cls(coef, intercept, arrays.get("classes"), header)


def _plain_dtype(classes: NDArray[Any]) -> Any:
    """Labels of Python objects become text; all others are plain already."""
    return np.str_ if classes.dtype.kind == "O" else classes.dtype
