"""A fitted linear model as a file: arrays and a JSON header, no pickle, versioned."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from adafw.fitting.predictor import LinearPredictor
from adafw.fitting.storage import read_arrays, write_arrays
from adafw.losses import AnyLoss, Softmax
from adafw.names import LOSSES
from adafw.typing import Json

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
    header: dict[str, Json]

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
        loss: AnyLoss = entry.make(**given)
        if settings.get("multi_class") == "multinomial" and len(self.coef) > 1:
            loss = Softmax()
        coef = self.coef.astype(np.float64, copy=False)
        return LinearPredictor(coef, self.intercept, self.classes, loss)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file whole or not at all; an old one survives any failure."""
        arrays = {"coef": self.coef, "intercept": self.intercept}
        if self.classes is not None:
            arrays["classes"] = np.asarray(self.classes, dtype=_plain_dtype(self.classes))
        write_arrays(path, _KIND, FORMAT, self.header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "LinearModelFile":
        """Reads what `save` wrote."""
        header, arrays = read_arrays(path, _KIND, FORMAT, known="coef|intercept|classes")
        model = cls(
            arrays.get("coef", np.empty(0)), arrays.get("intercept", np.empty(0)),
            arrays.get("classes"), header,
        )  # fmt: skip
        wrong = next(_wrongs(model), None)
        if wrong is not None:
            raise ValueError(
                f"{path} must be a whole model file of adafw, got a damaged one: {wrong}."
            )
        return model


#: What every header holds, and the certificate of every score; None stands for NaN.
_HEADER = {"settings": dict, "certificate": list, "data": dict}
_SETTINGS = {"task": str, "loss": str, "constraint": str}
_DATA = {"file": str, "X": dict}
_CERTIFICATE = {
    "value": float, "gap": float, "status": str, "algorithm": str, "iterations": int,
    "nonzeros": int, "seconds": float,
}  # fmt: skip


def _wrongs(model: LinearModelFile) -> Iterator[str]:
    """Everything in which a model is not one that `save` writes, the first first."""
    coef, intercept, classes, header = model.coef, model.intercept, model.classes, model.header
    for name, array, shape in (("coef", coef, None), ("intercept", intercept, coef.shape[:1])):
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            yield f"{name} is not an array of finite numbers"
        if shape is not None and array.shape != shape:
            yield f"{name} has shape {array.shape}"
    if coef.ndim != 2 or min(coef.shape) < 1:
        yield f"coef has shape {coef.shape}"
        return
    if classes is not None:
        # Two classes share one score.
        count = 2 if len(coef) == 1 else len(coef)
        if classes.shape != (count,) or classes.dtype.kind not in "biufU":
            yield f"classes are not {count} labels"
        elif (classes.dtype.kind == "f" and not np.isfinite(classes).all()) or (
            len(np.unique(classes)) < count
        ):
            yield "classes are not different labels"
    yield from _lacking(header, _HEADER, "the header")
    yield from _lacking(header["settings"], _SETTINGS, "settings")
    yield from _lacking(header["data"], _DATA, "data")
    for entry in header["certificate"]:
        yield from _lacking(entry, _CERTIFICATE, "a certificate")
    features = header.get("features", 0)
    names = isinstance(features, list) and all(isinstance(name, str) for name in features)
    if features is not None and not (names and len(features) == coef.shape[1]):
        yield "features are not one name a column"
    shape = header["data"]["X"].get("shape")
    if not isinstance(shape, list) or not isinstance(header["data"]["X"].get("name"), str):
        yield "data are not described"
    if not {"target", "zero_based"} <= set(header):
        yield "target and zero_based are missing"
    if header["settings"]["loss"] not in [entry.name for entry in LOSSES]:
        yield "its loss is unknown"
    if not isinstance(header["settings"].get("radius", 1.0), int | float):
        yield "its radius is no number"


def _lacking(table: Json, wanted: Mapping[str, type], where: str) -> Iterator[str]:
    if not isinstance(table, dict):
        yield f"{where} is no table"
        return
    for key, kind in wanted.items():
        allowed = (int, float, type(None)) if kind in (int, float) else (kind,)
        if not isinstance(table.get(key, ...), allowed):
            yield f"{where} has no {key}"


def _plain_dtype(classes: NDArray[Any]) -> DTypeLike:
    """Labels of Python objects become text; all others are plain already."""
    return np.str_ if classes.dtype.kind == "O" else classes.dtype
