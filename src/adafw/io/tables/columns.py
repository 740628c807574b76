"""Which columns of a table are features and which is the target."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from adafw.io.damage import FileName
from adafw.io.libsvm import ZeroBased

if TYPE_CHECKING:
    from scipy import sparse

Targets: TypeAlias = NDArray[np.float64] | NDArray[np.str_]
Features: TypeAlias = "NDArray[np.floating] | sparse.csr_array"


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns are features, by name or number, and which is the target, if any.

    `all_features` says that there is no target column.
    """

    features: tuple[str, ...] | None = None
    target: str | None = None
    n_features: int | None = None
    zero_based: ZeroBased = "auto"
    all_features: bool = False


@dataclass(frozen=True)
class Piece:
    """Some rows: X (array or CSR), targets or None, and names of the features or None.

    `zero_based` tells of a LIBSVM file whether its ids count from 0.
    """

    X: Features
    y: Targets | None
    features: tuple[str, ...] | None = None
    zero_based: bool | None = None


@dataclass(frozen=True)
class Layout:
    """Where features and target stand in a row of a table."""

    width: int
    features: list[int]
    target: int | None
    names: tuple[str, ...] | None

    @classmethod
    def of(
        cls,
        width: int,
        names: list[str] | None,
        columns: ColumnChoice,
        path: FileName,
        with_target: bool,
    ) -> "Layout":
        """By names where there are any; else all columns but the target."""
        if names is not None and columns.features is not None:
            for name in columns.features:
                if name not in names:
                    raise ValueError(f"{path} must have a column {name!r}, as the model has.")
            features = [names.index(name) for name in columns.features]
            target = _position(columns.target, names, width, path, needed=with_target)
        else:
            n = columns.n_features
            has_target = with_target or n is None or width == n + 1
            target = None
            if has_target and not columns.all_features:
                target = _position(columns.target, names, width, path, needed=True)
            features = [j for j in range(width) if j != target]
            if n is not None and len(features) != n:
                raise ValueError(
                    f"{path} has {width} columns, the model needs {n} features"
                    f"{' and a target' if with_target else ' (and may have a target)'}."
                )
        if not features:
            raise ValueError(f"{path} must have at least one feature beside the target.")
        chosen = None if names is None else tuple(names[j] for j in features)
        return cls(width, features, target, chosen)


def _position(
    wanted: str | None, names: list[str] | None, width: int, path: FileName, needed: bool
) -> int | None:
    """The number of the target's column: by name, by number from 0, or the last."""
    if wanted is None:
        return width - 1 if needed else None
    if names is not None and wanted in names:
        return names.index(wanted)
    try:
        return range(width)[int(wanted)]
    except (ValueError, IndexError):
        if not needed:
            return None
        raise ValueError(f"{path} must have a target column {wanted!r}, it has none.") from None


def check_finite(values: NDArray[np.generic], what: str, path: FileName) -> None:
    """Refuses NaN and infinity; integers have none."""
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(f"{path} must have finite {what}, got NaN or infinity.")


def joined_targets(parts: list[Targets]) -> Targets:
    """Targets of all pieces: text if any of them is."""
    numbers = [cast("NDArray[np.float64]", part) for part in parts if part.dtype.kind in "biuf"]
    if len(numbers) == len(parts):
        return np.concatenate(numbers)
    return np.concatenate([_words(part) for part in parts])


def _words(values: Targets) -> NDArray[np.str_]:
    if values.dtype.kind not in "biuf":
        return values.astype(np.str_, copy=False)
    return np.array([_word(float(value)) for value in values])


def _word(value: float) -> str:
    """As people write it, with all digits that tell it from others."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value).removesuffix(".0")
