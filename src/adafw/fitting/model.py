"""A fitted linear model as a file: arrays and a JSON header, no pickle, versioned."""

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.fitting.names import LOSSES, loss_named
from adafw.fitting.predictions import winners
from adafw.io.atomic import replacing
from adafw.io.damage import DAMAGE, is_damage
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

    @property
    def loss(self) -> str:
        """Name of the loss."""
        return str(self.header["settings"]["loss"])

    def decision(self, X: Any) -> NDArray[Any]:
        """<a, x> + b: one number a row, or one column a class for more than two."""
        scores = np.asarray(X @ self.coef.T.astype(np.float64)) + self.intercept
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels, or values (for the Poisson loss, means)."""
        scores = self.decision(X)
        if self.classes is not None:
            return self.classes[winners(scores)]
        return loss_named(self.loss, LOSSES).mean(scores)

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """One column a class; for the logistic loss."""
        loss = loss_named(self.loss, LOSSES)
        if self.classes is None or not loss.has_probabilities:
            raise ValueError("probabilities are known for models with loss logistic only.")
        return loss.probabilities(self.decision(X))

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


def write_arrays(
    path: str | os.PathLike[str],
    kind: str,
    version: int,
    header: dict[str, Plain],
    arrays: dict[str, NDArray[Any]],
) -> None:
    """An .npz file with a JSON header, whole or not at all."""
    text = json.dumps({"kind": kind, "format": version, **header}).encode()
    with replacing(path) as partial, open(partial, "wb") as file:
        np.savez(file, header=np.frombuffer(text, np.uint8), **arrays)  # type: ignore[arg-type]


def read_arrays(
    path: str | os.PathLike[str], kind: str, version: int
) -> tuple[dict[str, Plain], dict[str, NDArray[Any]]]:
    """(header, arrays) of a file of this kind; one that is not, or is newer, is refused."""
    if os.path.isdir(path):
        raise ValueError(f"{path} must be a file, got a directory.")
    with open(path, "rb") as stream:  # a file that is missing or unreadable says so itself
        try:
            with np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop("header").tobytes())
            found, of_version = header.pop("kind"), int(header.pop("format"))
        except DAMAGE as error:
            if not is_damage(error):
                raise
            raise ValueError(
                f"{path} must be an {kind} file, got something else or only a part of one."
            ) from None
    if found != kind:
        raise ValueError(f"{path} must be an {kind} file, got an {found} file.")
    if of_version > version:
        raise ValueError(
            f"{path} has format {of_version}, this version of adafw reads up to {version}; "
            "upgrade adafw."
        )
    return header, arrays


def _plain_dtype(classes: NDArray[Any]) -> Any:
    """Labels of Python objects become text; all others are plain already."""
    return np.str_ if classes.dtype.kind == "O" else classes.dtype
