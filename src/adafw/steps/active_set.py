"""x as a convex combination of atoms, which away and pairwise steps take weight from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adafw.typing import Array, StateDict

if TYPE_CHECKING:
    from scipy.sparse import csr_array  # dear to import, and needed once a run with atoms begins

#: One atom a row, dense or CSR.
Atoms: TypeAlias = "NDArray[Any] | csr_array"
#: An atom with more non-zeros than this share of its entries is dense.
_SPARSE = 0.25
#: A weight below this moves x by less than rounding does.
_LEAST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ActiveSet:
    """x = sum_k w_k v_k, w > 0 of sum 1. Atoms are kept sparsely as long as they are sparse.

    `weights` (w, float64) and `atoms` (v_1 .. v_k, one a row). A state holds them as plain arrays:
    `weights`, and `atoms` if dense, else `data`, `indices` and `indptr`.
    """

    weights: NDArray[np.float64]
    atoms: Atoms

    #: What belongs to an active set in the state of a step.
    KEYS = ("weights", "atoms", "data", "indices", "indptr")

    @classmethod
    def of(cls, x: Array, state: StateDict) -> "ActiveSet":
        """The active set in a state; x itself is the only atom before the first step."""
        if "weights" not in state:
            return cls(np.ones(1), _row(x))
        if "atoms" in state:
            return cls(state["weights"], state["atoms"])
        from scipy.sparse import csr_array

        shape = (len(state["weights"]), x.size)
        rows = csr_array((state["data"], state["indices"], state["indptr"]), shape=shape)
        rows.check_format(full_check=True)  # a state may come from a damaged file
        return cls(state["weights"], rows)

    def state(self) -> StateDict:
        """The inverse of `of`."""
        atoms = self.atoms
        if isinstance(atoms, np.ndarray):
            return {"weights": self.weights, "atoms": atoms}
        parts = {"data": atoms.data, "indices": atoms.indices, "indptr": atoms.indptr}
        return {"weights": self.weights, **parts}

    def scores(self, g: Array) -> NDArray[Any]:
        """<g, v_k> of every atom."""
        return np.asarray(self.atoms @ g.reshape(-1))

    def atom(self, k: int, like: Array) -> Array:
        """v_k, shaped as x."""
        row = self.atoms[k] if isinstance(self.atoms, np.ndarray) else self.atoms[[k]].toarray()
        return row.reshape(like.shape)

    def point(self, like: Array) -> Array:
        """x itself."""
        return np.asarray(self.weights @ self.atoms).astype(like.dtype).reshape(like.shape)

    def find(self, v: Array, scores: NDArray[Any], score: float) -> int | None:
        """The number of the atom that equals v, if there is one; `score` is <g, v>."""
        # Equal atoms have equal scores but for the order of sums: only those are compared entry by
        # entry.
        near = np.abs(scores - score) <= 1e-6 * (abs(score) + np.abs(scores))
        for k in np.flatnonzero(near):
            if np.array_equal(self.atom(int(k), v), v):
                return int(k)
        return None

    def moved(self, shift: NDArray[np.float64], v: Array | None = None) -> "ActiveSet":
        """Weights w + shift; v, if there is one, is a new atom with the last entry of shift.

        Atoms whose weight is used up leave, and the others' sum stays 1.
        """
        weights, atoms = self.weights, self.atoms
        if v is not None:
            weights, atoms = np.append(weights, 0.0), _stacked(atoms, v)
        weights = weights + shift
        kept = weights > _LEAST
        if not kept.all():
            weights, atoms = weights[kept], atoms[np.flatnonzero(kept)]
        return ActiveSet(weights / weights.sum(), atoms)


def _row(v: Array) -> Atoms:
    from scipy.sparse import csr_array

    flat = v.reshape(1, -1)
    return csr_array(flat) if np.count_nonzero(flat) <= _SPARSE * flat.size else flat.copy()


def _stacked(atoms: Atoms, v: Array) -> Atoms:
    from scipy.sparse import csr_array, vstack

    row = _row(v)
    if isinstance(atoms, csr_array) and isinstance(row, csr_array):
        return csr_array(vstack([atoms, row], format="csr"))
    # One dense atom makes all of them dense: they come from one set, and are alike.
    both = [a if isinstance(a, np.ndarray) else a.toarray() for a in (atoms, row)]
    return np.vstack(both)
