"""YearPredictionMSD: the year of a song from 90 numbers about its sound."""

import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from adafw.datasets import store
from adafw.datasets.dataset import Dataset
from adafw.datasets.synthetic import correlated_regression

_YEAR = store.Place(
    what="YearPredictionMSD",
    files=("YearPredictionMSD.txt.zip", "YearPredictionMSD.txt"),
    sample="yearprediction_msd_partial.npz",
    url="https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip",
    checksum="06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11",
)
_ALL, _TRAIN, _FEATURES = 515_345, 463_715, 90


def year_prediction(source: store.Source = "auto", standardise: bool = True) -> Dataset:
    """YearPredictionMSD's training part, 463 715 songs x 90 (Bertin-Mahieux et al. 2011).

    The data directory is searched for UCI's YearPredictionMSD.txt(.zip), then for
    yearprediction_msd_partial.npz (6 724 songs: 12 timbre means and their 78 products); then UCI's
    file is downloaded, with a checksum. With `standardise`, columns have mean 0 and variance 1 and
    years mean 0, so that no intercept is missed; the paper does not say what it did.
    """
    kind, path = _YEAR.locate(source)
    if kind == "stand-in":
        X, years = correlated_regression(_TRAIN, _FEATURES, seed=0)
        description = "generated data of its shape"
    elif kind == "sample":
        X, years = _read_sample(path)
        description = f"{len(years)} songs, 12 timbre means and their 78 products"
    else:
        table = _read_table(path)
        X, years = table[:_TRAIN, 1:], table[:_TRAIN, 0]
        description = "UCI's file, the first 463 715 songs"
    if standardise:
        X, years = standardised(X), years - years.mean()
        description += ", standardised"
    return Dataset(X, years, "YearPredictionMSD", description, is_stand_in=kind != "original")


def _read_sample(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    means, years = (part.astype(np.float64) for part in store.arrays(path, "X12", "year12"))
    i, j = np.triu_indices(means.shape[1])
    return np.hstack([means, means[:, i] * means[:, j]]), years


def _read_table(path: Path) -> NDArray[np.float64]:
    """Year and 90 features a line, separated by commas."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            text = archive.read("YearPredictionMSD.txt")
    else:
        text = path.read_bytes()
    values = np.fromstring(text.replace(b"\r", b"").strip().replace(b"\n", b","), sep=",")
    if values.size != _ALL * (_FEATURES + 1):
        raise ValueError(
            f"{path} must be UCI's YearPredictionMSD, {_ALL} lines of {_FEATURES + 1} numbers, "
            f"got {values.size} numbers; remove it to fetch it again."
        )
    return values.reshape(_ALL, _FEATURES + 1)


def standardised(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns with mean 0 and variance 1; a constant column becomes 0."""
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    return centred / np.where(spread > 0, spread, 1)
