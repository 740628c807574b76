"""Refusals of scikit-learn's checks, which may be pages long, in one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

#: What a long refusal begins with, and what is said instead of the rest.
_WAYS_OUT = {
    "contains NaN": "fill them in (sklearn.impute) or drop such rows.",
    "Expected 2D array": "Reshape your data to one row a sample, one column a feature.",
    "Complex data not supported": "give real numbers.",
}


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Keeps what a refusal says first; the rest repeats the data, or advertises."""
    try:
        yield
    except ValueError as error:
        first, *rest = str(error).split("\n")
        way = next((way for begun, way in _WAYS_OUT.items() if begun in first), None)
        if not rest or way is None:
            raise
        raise ValueError(f"{first.rstrip('.:').removesuffix(' instead')}; {way}") from None
