"""From scores to labels and probabilities, and which kind of target some numbers are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Whole numbers of at most so many kinds are taken for labels.
MOST_CLASSES = 20


def winners(scores: NDArray[Any]) -> NDArray[Any]:
    """Indices of the predicted classes: the sign of one score, or the largest of several."""
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


def probabilities(scores: NDArray[Any]) -> NDArray[Any]:
    """The logistic function of scores, as two columns, or normalised over the classes."""
    from scipy.special import expit

    if scores.ndim == 1:
        return np.column_stack([expit(-scores), expit(scores)])
    each = expit(scores)
    total = each.sum(axis=1, keepdims=True)
    return np.divide(each, total, out=np.full_like(each, 1 / each.shape[1]), where=total > 0)


def looks_like_classes(y: Any) -> bool:
    """Whether targets are text, of two kinds, or whole numbers of at most 20 kinds."""
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return True
    kinds = np.unique(values)
    whole = bool((kinds == np.round(kinds)).all())
    return kinds.size <= 2 or (whole and kinds.size <= MOST_CLASSES)
