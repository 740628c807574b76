"""Texts: RCV1 as rows of term weights, IMDB as numbers of subwords, a play as characters."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from adafw.datasets import store
from adafw.datasets.dataset import Dataset
from adafw.datasets.synthetic import text_like
from adafw.io.libsvm import read_libsvm

_RCV1 = store.Place(
    what="RCV1",
    files=("rcv1_train.binary.bz2", "rcv1_train.binary"),
    sample="rcv1_v2_binary.npz",
    url="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/rcv1_train.binary.bz2",
)
_RCV1_SHAPE = (20_242, 47_236)
_RCV1_ENTRIES = 1_498_952  # no checksum is published; rows, columns and entries are checked


def rcv1(source: store.Source = "auto") -> Dataset:
    """RCV1, two topics against two: 20 242 documents, 47 236 term weights, unit rows, y = +-1.

    The data directory is searched for LIBSVM's rcv1_train.binary (the paper's file), then for
    rcv1_v2_binary.npz (as many other documents of RCV1-v2); then LIBSVM's file is downloaded.
    Lewis et al. 2004.
    """
    kind, path = _RCV1.locate(source)
    if kind == "stand-in":
        A, y = text_like(*_RCV1_SHAPE, nonzeros=75, seed=0)
        return Dataset(A, y, "RCV1", "generated data of its shape", is_stand_in=True)
    if kind == "sample":
        return _rcv1_sample(path)
    A, y = read_libsvm(path, n_features=_RCV1_SHAPE[1], zero_based=False)
    if A.shape != _RCV1_SHAPE or A.nnz != _RCV1_ENTRIES:
        raise ValueError(
            f"{path} must be LIBSVM's rcv1_train.binary, {_RCV1_SHAPE[0]} rows with "
            f"{_RCV1_ENTRIES} entries, got {A.shape[0]} with {A.nnz}; remove it to fetch it again."
        )
    return Dataset(A, y, "RCV1", "LIBSVM's rcv1_train.binary")


def _rcv1_sample(path: Path) -> Dataset:
    micro, ids, starts, shape, y = store.arrays(
        path, "data_micro", "indices", "indptr", "shape", "y"
    )
    A = sparse.csr_array((micro * 1e-6, ids.astype(np.int32), starts), shape=tuple(shape))
    y = y.astype(np.float64)
    m = _RCV1_SHAPE[0]
    description = "20 242 other documents of RCV1-v2 than LIBSVM's file has"
    return Dataset(A[:m], y[:m], "RCV1", description, is_stand_in=True)


@dataclass(frozen=True, eq=False)
class TokenisedText:
    """Texts as numbers of subwords: text i is ids[offsets[i]:offsets[i + 1]]; y: 0 or 1."""

    ids_train: NDArray[np.uint16] = field(repr=False)
    offsets_train: NDArray[np.int64] = field(repr=False)
    y_train: NDArray[np.uint8] = field(repr=False)
    ids_test: NDArray[np.uint16] = field(repr=False)
    offsets_test: NDArray[np.int64] = field(repr=False)
    y_test: NDArray[np.uint8] = field(repr=False)
    vocabulary: int
    name: str


def imdb() -> TokenisedText:
    """IMDB reviews (25 000 to train, 25 000 to test) in 8 185 subwords; id 0 is padding, unused.

    From imdb_subwords8k_ids.npz in the data directory. Reviews stand negative ones first: shuffle
    before use. Maas et al. 2011.
    """
    name = "imdb_subwords8k_ids.npz"
    path = store.find(name)
    if path is None:
        raise store.missing("IMDB", (name,))
    ids, offsets, y, ids_test, offsets_test, y_test = store.arrays(
        path, "ids_train", "offsets_train", "y_train", "ids_test", "offsets_test", "y_test"
    )
    return TokenisedText(
        ids, offsets, y, ids_test, offsets_test, y_test, vocabulary=8185, name="IMDB"
    )


_SHAKESPEARE = store.Place(
    what="Tiny Shakespeare",
    files=("tinyshakespeare.txt",),
    sample="",
    url="https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    checksum="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
)
_SHAKESPEARE_LENGTH = 1_115_394


@dataclass(frozen=True, eq=False)
class Characters:
    """A text as numbers of its characters: the i-th one is alphabet[ids[i]]."""

    ids: NDArray[np.uint8] = field(repr=False)
    alphabet: str
    name: str


def tiny_shakespeare() -> Characters:
    """Tiny Shakespeare: 1 115 394 characters of his plays, 65 different ones (Karpathy 2015).

    From tinyshakespeare.txt in the data directory; else it is downloaded, with a checksum.
    """
    path = _SHAKESPEARE.file()
    text = path.read_bytes()
    if len(text) != _SHAKESPEARE_LENGTH:
        raise ValueError(
            f"{path} must be Tiny Shakespeare, {_SHAKESPEARE_LENGTH} characters, got {len(text)}; "
            "remove it to fetch it again."
        )
    letters, ids = np.unique(np.frombuffer(text, np.uint8), return_inverse=True)
    return Characters(ids.astype(np.uint8), bytes(letters).decode("ascii"), "Tiny Shakespeare")
