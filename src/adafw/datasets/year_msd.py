"""YearPredictionMSD: the year of a song from 90 numbers about its sound."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.datasets import store
from adafw.datasets.dataset import Dataset
from adafw.datasets.synthetic import correlated_regression

_URL = "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip"
_SHA256 = "06f801af323bb7798e800583acce4ea1ed2697ac12c23f4424aea0a7a3d09e11"
_FILES = ("YearPredictionMSD.txt.zip", "YearPredictionMSD.txt")
_SAMPLE = "yearprediction_msd_partial.npz"
_ALL, _TRAIN, _FEATURES = 515_345, 463_715, 90


def year_prediction(source: store.Source = "auto", standardise: bool = True) -> Dataset:
    """YearPredictionMSD's training part, 463 715 songs x 90 (Bertin-Mahieux et al. 2011).

    The data directory is searched for UCI's YearPredictionMSD.txt(.zip), then for
    yearprediction_msd_partial.npz (6 724 songs: 12 timbre means and their 78 products); then UCI's
    file is downloaded, with a checksum. With `standardise`, columns have mean 0 and variance 1 and
    years mean 0, so that no intercept is missed; the paper does not say what it did.
    """
    store.check_source(source)
    X, years, description = _load(source)
    if standardise:
        X, years = standardised(X), years - years.mean()
        description += ", standardised"
    stand_in = len(years) != _TRAIN or source == "stand-in" or "generated" in description
    return Dataset(X, years, "YearPredictionMSD", description, is_stand_in=stand_in)


def _load(source: store.Source) -> tuple[NDArray[Any], NDArray[Any], str]:
    if source == "stand-in":
        return _stand_in()
    path, sample = store.find(*_FILES), store.find(_SAMPLE)
    if path is None and sample is not None and source != "original":
        return _sample(sample)
    if path is None:
        try:
            if source == "sample":
                raise store.missing("the YearPredictionMSD sample", (_SAMPLE,))
            path = store.fetch("YearPredictionMSD", _URL, _FILES, _SHA256)
        except store.DataMissing:
            if source == "any":
                return _stand_in()
            raise
    table = _read_table(path)
    return table[:_TRAIN, 1:], table[:_TRAIN, 0], "UCI's file, the first 463 715 songs"


def _stand_in() -> tuple[NDArray[Any], NDArray[Any], str]:
    return *correlated_regression(_TRAIN, _FEATURES, seed=0), "generated data of its shape"


def _sample(path: Path) -> tuple[NDArray[Any], NDArray[Any], str]:
    with np.load(path) as file:
        means, years = file["X12"].astype(np.float64), file["year12"].astype(np.float64)
    i, j = np.triu_indices(means.shape[1])
    X = np.hstack([means, means[:, i] * means[:, j]])
    return X, years, f"{len(years)} songs, 12 timbre means and their 78 products"


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


def standardised(X: NDArray[Any]) -> NDArray[Any]:
    """Columns with mean 0 and variance 1; a constant column becomes 0."""
    centred = X - X.mean(axis=0)
    spread = centred.std(axis=0)
    return centred / np.where(spread > 0, spread, 1)
