"""From scores to labels, and which kind of target some numbers are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Whole numbers of at most so many kinds are taken for labels.
MOST_CLASSES = 20


def winners(scores: NDArray[Any]) -> NDArray[Any]:
    """Indices of the predicted classes: the sign of one score, or the largest of several."""
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


def looks_like_classes(y: Any) -> bool:
    """Whether targets are text, of two kinds, or whole numbers of at most 20 kinds."""
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return True
    kinds = np.unique(values)
    whole = bool((kinds == np.round(kinds)).all())
    return kinds.size <= 2 or (whole and kinds.size <= MOST_CLASSES)
