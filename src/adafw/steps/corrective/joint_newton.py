"""Newton steps on few coefficients of several outputs: the second derivative is a matrix."""

import numpy as np
from numpy.typing import NDArray

from adafw.kernels.parts import AtomModel, Part
from adafw.objectives import MatrixModel
from adafw.steps.corrective.gram import Faces
from adafw.steps.corrective.point import Standpoint, Vector
from adafw.typing import Array

#: Coefficients up to which the second derivative may be a matrix, and multiplications for it.
MOST, WORK = 2000, 4e9
#: Share of the rows that may be stale for the others to be left alone.
FEW_STALE = 0.5


class JointPoint(Standpoint):
    """f as a function of the predictions of all outputs, their intercepts included."""

    free = False  # intercepts are taken out of the matrix, and follow the predictions

    def __init__(self, f: MatrixModel, x: Array) -> None:
        self.f = f
        z, b = f.predictions(x)
        self.start(z.astype(np.float64) + b)

    def curves_at(self, z: Vector) -> tuple[float, Vector, Vector]:
        f = self.f
        return f.value_at(z), f.slopes_at(z) / f.n_terms, f.seconds_at(z)

    def raised_bends(self, dz: Vector) -> Vector:
        """The second derivative is concave in s: at a mean of two it is no less than theirs."""
        return np.asarray((self.bends + self.f.seconds_at(self.z + dz)) / 2)

    def over(self, raised: Vector) -> Vector:
        return raised


class JointRows:
    """The chosen coefficients' part of the rows, and how predictions follow them."""

    def __init__(self, f: MatrixModel, chosen: NDArray[np.int64]) -> None:
        from adafw.kernels import joint_gram

        self.kernels, self.f, self.chosen = joint_gram, f, chosen
        k = f.n_outputs
        self.outputs = (chosen % k).astype(np.int64)
        features, first = np.unique(chosen // k, return_index=True)
        first = np.append(first, chosen.size).astype(np.int64)
        part: Part = f.rows.plain[0].working(features).part  # type: ignore[attr-defined]
        room = int(np.diff(first)[part.positions].sum())
        self.part = Part(
            np.empty(room), np.empty(room, np.uint32), np.empty(f.n_terms + 1, np.uint64)
        )
        joint_gram.expand(part, first, self.part)
        each = np.diff(self.part.starts.view(np.int64)).astype(np.float64)
        self.work = float(each @ each) / 2
        self.gram_work = self.work / max(1, room)
        self.size = f.n_terms
        self.weights = f.term_weights.astype(np.float64) / f.n_terms
        self._bends = np.zeros((0, 0))

    def combine(self, slopes: Vector) -> Vector:
        out = np.empty(self.chosen.size)
        self.kernels.combine(self.part, self.outputs, slopes, out)
        return out

    def plain_dot(self, w: Vector) -> Vector:
        """A W."""
        out = np.empty((self.size, self.f.n_outputs))
        self.kernels.dot(self.part, self.outputs, w, out)
        return out

    def dot(self, d: Vector) -> Vector:
        """A D, and how the intercepts follow it to second order."""
        dz = self.plain_dot(d)
        if self.f.has_intercept:
            image = self.weights[:, None] * self.f.loss.curve(self._bends, dz)
            dz -= self.f.follow(self._bends) @ image.sum(axis=0)
        return dz

    def follow(self, bends: Vector) -> None:
        """Takes these second derivatives for those that intercepts follow."""
        self._bends = bends


class JointGram:
    """The second derivative on these coefficients, intercepts taken out."""

    def __init__(self, working: JointRows) -> None:
        self.working, self.faces = working, Faces()
        size, f = working.chosen.size, working.f
        self.sums = np.zeros((size, size))
        self.mixed = np.zeros((size, f.n_outputs if f.has_intercept else 0))
        self.known: Vector | None = None
        self.matrix = self.sums

    def follow(self, bends: Vector, stale_from: float, sampled: bool = False) -> None:
        """Brings it to these second derivatives, but for rows that moved by less than this."""
        rows, weights = self.working, self.working.weights
        rows.follow(bends)
        if self.known is not None:
            stale = np.abs(bends - self.known).max(axis=1) > stale_from / 2
            if not stale.any():
                return
            if stale.mean() <= FEW_STALE:
                self._add(self.known, np.where(stale, -weights, 0.0))
                self._add(bends, np.where(stale, weights, 0.0))
                self._finish(np.where(stale[:, None], bends, self.known))
                return
        self.sums[:], self.mixed[:] = 0.0, 0.0
        self._add(bends, weights)
        self._finish(bends)

    def _add(self, bends: Vector, weights: Vector) -> None:
        w = self.working
        w.kernels.add(w.part, w.outputs, bends, weights, w.f.loss.coupled, self.sums, self.mixed)

    def _finish(self, known: Vector) -> None:
        from adafw.kernels.working_set import mirror

        self.known = known
        mirror(self.sums)
        self.matrix = self.sums
        if self.mixed.size:
            # Symmetric to the last bit, as a triangle of it is used.
            half = self.mixed @ self.working.f.follow(known)
            self.matrix = self.sums - half @ self.mixed.T
            self.matrix = (self.matrix + self.matrix.T) / 2
        self.faces.forget()

    def model(self, signs: Vector, free: bool) -> AtomModel:
        full, own = np.diagonal(self.sums), np.diagonal(self.matrix)
        # A ridge of 1e-10 of its own size keeps equal columns apart.
        diagonal = np.maximum(own, 1e-14 * full) * (1 + 1e-10) + 1e-300
        return AtomModel(self.matrix, diagonal, signs, np.zeros(signs.size), 0.0)

    def factor(
        self, face: NDArray[np.int64], model: AtomModel, tight: bool = False
    ) -> Vector | None:
        return self.faces.factor(face, model, tight)
