"""Random algorithms on random problems: certificates recomputed, runs stopped and resumed."""

from pathlib import Path

import numpy as np
from scipy import sparse

import adafw
from adafw import losses, metrics
from adafw.solver import State
from torture.engine import Engine, Failure

PRESETS = (
    "FW", "SFW", "SVRF", "SPIDERFW", "ORGFW", "CSFW", "AdaFW", "AdaSFW", "AdaSVRF", "AdaSPIDERFW",
    "AdaORGFW", "AdaCSFW", "AdamSFW", "AdaGrad", "AMSGrad",
)  # fmt: skip


class Runs(Engine):
    """preset x set x loss x path x dtype, with limits and resume points at random."""

    name = "runs"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """One run, whole and in two or three pieces, on one path."""
        f, ball, algorithm, path = _problem(rng)
        n = int(rng.integers(2, 120))
        every = int(rng.integers(1, 9))
        seed = int(rng.integers(1000))
        options = {"record_every": every, "path": path, "progress": False}
        whole = adafw.minimize(f, ball, algorithm, seed=seed, max_iterations=n, **options)
        _check(f, ball, whole)
        where = f"{algorithm} on {f!r} over {ball!r}, path {path}"
        if whole.status == "diverged":
            return "diverged"
        cuts = sorted({int(c) for c in rng.integers(1, n + 1, int(rng.integers(1, 4)))})
        result = adafw.minimize(f, ball, algorithm, seed=seed, max_iterations=cuts[0], **options)
        for cut in [*cuts[1:], n]:
            result.state.save(folder / "s.npz")
            state = State.load(folder / "s.npz")
            # Records at other places change nothing either.
            result = adafw.minimize(
                f, ball, algorithm, state=state, max_iterations=cut,
                **{**options, "record_every": int(rng.integers(1, 9))},
            )  # fmt: skip
        if result.x.tobytes() != whole.x.tobytes():
            raise Failure(f"a run resumed at {cuts} of {n} is another one: {where}")
        return path


def _check(f: object, ball: object, r: object) -> None:
    """x in the set, value and gap what an independent computation says, the bound below both."""
    x = np.asarray(r.x, np.float64)
    if not np.isfinite(x).all() or r.trace[-1].violation > (
        1e-5 if r.x.dtype == np.float32 else 1e-9
    ):
        raise Failure(f"a run left the set: violation {r.trace[-1].violation:g}")
    A = f.rows.matrix.toarray() if hasattr(f.rows, "matrix") else np.asarray(f.rows.array)
    z = A.astype(np.float64) @ x
    value = float(np.mean(f.loss.value(z, f.y)))
    slopes = f.loss.slope(z, np.asarray(f.y, np.float64))
    g = A.astype(np.float64).T @ slopes / len(z)
    gap = max(0.0, float(g @ (x - np.asarray(ball.lmo(g)))))
    # What rounding errors are relative to: numbers that cancel in predictions, slopes and sums.
    size = 1 + np.abs(z).max() + np.abs(f.y).max()
    scale = abs(value) + size * np.abs(A).max() * ball.diameter(x.shape) + 1e-12
    if abs(value - r.value) > 1e-9 * scale:
        raise Failure(f"value {r.value!r}, recomputed {value!r}")
    if abs(gap - r.gap) > 1e-11 * scale:
        raise Failure(f"gap {r.gap!r}, recomputed {gap!r}")
    if f.convex and not r.lower_bound <= (least := _reached(f, ball, A, x)) + 1e-9 * scale:
        raise Failure(f"a lower bound {r.lower_bound!r} above {least!r}, which the set holds")
    if not r.best.gap <= r.gap:
        raise Failure("the best record is not the best")


def _reached(f: object, ball: object, A: np.ndarray, x: np.ndarray) -> float:
    """The value at a point that lies in the set to float64 accuracy.

    A bound from the gradient at any x, inside or not, holds for the set. The values of a trace may
    be below it: a float32 x may lie outside by its rounding.
    """
    x = np.asarray(ball.project(x))
    return float(np.mean(f.loss.value(A.astype(np.float64) @ x, f.y)))


def _problem(rng: np.random.Generator) -> tuple:
    m, n = int(rng.integers(3, 60)), int(rng.integers(1, 25))
    A = rng.standard_normal((m, n)) * 10.0 ** rng.integers(-3, 3)
    A[rng.random((m, n)) < rng.random()] = 0.0
    if rng.random() < 0.3:
        A = np.sign(A)  # many ties
    dtype = [np.float64, np.float64, np.float32][int(rng.integers(3))]
    matrix = sparse.csr_array(A.astype(dtype)) if rng.random() < 0.6 else A.astype(dtype)
    loss = [losses.Logistic(), losses.SquaredHinge(), losses.Squared(), losses.Huber(0.5)][
        int(rng.integers(4))
    ]
    classes = isinstance(loss, losses.Logistic | losses.SquaredHinge)
    y = rng.choice([-1.0, 1.0], m) if classes else rng.standard_normal(m)
    f = adafw.LinearModel(matrix, y.astype(dtype), loss)
    radius = float(10.0 ** rng.integers(-2, 3))
    sets = [
        adafw.L1Ball(radius), adafw.L1Ball(radius), adafw.LInfBall(radius), adafw.L2Ball(radius),
        adafw.Simplex(radius), adafw.UnitSimplex(radius), adafw.Box(-radius, radius),
        adafw.KSparse(radius, 1 + n // 3), adafw.LpBall(radius, 1.5),
        adafw.GroupBall(radius, np.arange(n) // 2),
    ]  # fmt: skip
    ball = sets[int(rng.integers(len(sets)))]
    algorithm = _algorithm(rng)
    if rng.random() < 0.5 and not isinstance(loss, losses.Huber):  # what compiled paths know
        ball = [adafw.L1Ball(radius), adafw.L1Ball(radius), adafw.LInfBall(radius)][
            int(rng.integers(3))
        ]
        eta, b = float(10.0 ** rng.integers(-2, 2)), int(rng.integers(1, 9))
        algorithm = [
            adafw.CSFW(batch_size=b), adafw.AdaCSFW(eta, batch_size=b, inner_steps=1 + b % 4),
            adafw.SVRF(batch_size=b), adafw.AdaSVRF(eta, batch_size=b),
            adafw.AdaGrad(eta, gradient=adafw.gradients.CSFW(b)),
        ][int(rng.integers(5))]  # fmt: skip
    paths = ["auto", "generic"]
    for path in ("fused", "lazy"):
        try:
            adafw.paths.find(f, ball, algorithm, path)
            paths += [path] * 3
        except ValueError:
            pass
    return f, ball, algorithm, paths[int(rng.integers(len(paths)))]


def _algorithm(rng: np.random.Generator) -> adafw.Algorithm:
    name = PRESETS[int(rng.integers(len(PRESETS)))]
    options = {}
    if name.startswith("Ada") or name == "AMSGrad":
        options["learning_rate"] = float(10.0 ** rng.integers(-2, 2))
    if name.startswith("Ada") and name != "AdaGrad":
        options["inner_steps"] = int(rng.integers(1, 7))
    if rng.random() < 0.5 and name not in ("FW", "AdaFW", "AdaGrad", "AMSGrad"):
        options["batch_size"] = int(rng.integers(1, 9))
    if name == "AdaGrad" and rng.random() < 0.7:
        options["gradient"] = adafw.gradients.CSFW()
    if rng.random() < 0.15:
        kinds = [metrics.RMSProp(), metrics.Adam(), metrics.AdaDelta(), metrics.AMSGrad()]
        step = adafw.steps.AdaptiveStep(0.1, metric=kinds[int(rng.integers(4))], inner_steps=2)
        return adafw.Algorithm(adafw.gradients.SVRF(), step)
    return getattr(adafw, name)(**options)
