"""The drawings of the explanations: `python docs/pictures/ideas.py` writes docs/figures/*.svg."""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

import adafw

FIGURES = Path(__file__).resolve().parents[1] / "figures"
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "adafw", "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}  # fmt: skip
SET, LINE, GOOD, BAD = "#3b6fb6", "#1c1e21", "#2b8a3e", "#c0392b"

# One problem for all pictures: f(x) = <x - c, Q (x - c)> / 2 over the l1 ball of radius 1.
Q, CENTRE = np.array([[1.0, 0.2], [0.2, 1.3]]), np.array([0.78, 0.62])
BALL = adafw.L1Ball(1.0)
CORNERS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 0]], float)


def value(x):
    return 0.5 * float((x - CENTRE) @ Q @ (x - CENTRE))


def gradient(x, batch=None):
    return Q @ (x - CENTRE)


F = adafw.UserSum(1, value, gradient, convex=True)


def save(figure, name):
    """Writes a figure, the same bytes for the same drawing."""
    figure.savefig(FIGURES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def plane(ax, contours=True):
    """The set and the level lines of f."""
    ax.fill(*CORNERS.T, color=SET, alpha=0.12, linewidth=0)
    ax.plot(*CORNERS.T, color=SET, linewidth=1.6)
    if contours:
        u, w = np.meshgrid(np.linspace(-1.25, 1.6, 160), np.linspace(-1.25, 1.35, 160))
        z = np.stack([u - CENTRE[0], w - CENTRE[1]], -1)
        heights = 0.5 * np.einsum("...i,ij,...j", z, Q, z)
        ax.contour(u, w, heights, levels=np.geomspace(0.01, 4, 12), colors="gray", linewidths=0.5)
    ax.set(xlim=(-1.25, 1.6), ylim=(-1.25, 1.35), aspect="equal")
    ax.set_axis_off()


def arrow(ax, start, end, colour, text="", offset=(6, 0)):
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.6})
    if text:
        ax.annotate(text, end, xytext=offset, textcoords="offset points", color=colour)


def dot(ax, x, text="", colour=LINE, offset=(6, 6)):
    ax.plot(*x, "o", color=colour, markersize=6, zorder=5)
    ax.annotate(text, x, xytext=offset, textcoords="offset points", color=colour)


def minimum():
    """The minimiser over the set, to rounding."""
    algorithm = adafw.BPCG(step_size=adafw.steps.LineSearch())
    return adafw.minimize(F, BALL, algorithm, x0=np.zeros(2), gap_tolerance=1e-12).x


def problem():
    """Picture 1: a valley and a fence."""
    figure, ax = plt.subplots(figsize=(4.6, 4.2))
    plane(ax)
    dot(ax, CENTRE, "where f alone\nwould go", "gray", (8, 4))
    dot(ax, minimum(), "the best point\nof the set", GOOD, (-86, -10))
    ax.text(-0.45, -0.3, "the set C", color=SET)
    save(figure, "five_1_problem")


X0 = np.array([-0.45, 0.15])


def model():
    """Picture 2: the tangent plane, and its lowest corner."""
    figure, ax = plt.subplots(figsize=(4.6, 4.2))
    plane(ax, contours=False)
    g = gradient(X0)
    unit = g / np.linalg.norm(g)
    side = np.array([-unit[1], unit[0]])
    for level in np.linspace(-1.6, 1.1, 10):
        middle = X0 + level * unit
        ax.plot(*np.array([middle - 3 * side, middle + 3 * side]).T, color="gray", lw=0.5, zorder=0)
    v = BALL.lmo(g)
    arrow(ax, X0, X0 - 0.55 * unit, BAD, "downhill: -gradient", (-20, 8))
    dot(ax, X0, "x", offset=(-14, -2))
    dot(ax, v, "v: the corner lowest\non the tangent plane", SET, (8, -14))
    save(figure, "five_2_model")


def step():
    """Picture 3: a step towards the corner, and the next ones."""
    figure, ax = plt.subplots(figsize=(4.6, 4.2))
    plane(ax)
    r = path(adafw.FW(step_size=adafw.steps.LineSearch()), 12)
    v = BALL.lmo(gradient(X0))
    ax.plot(*np.array([X0, v]).T, ":", color=SET)
    ax.plot(*r.T, "-o", color=LINE, markersize=3.5, linewidth=1)
    dot(ax, r[0], "x₀", offset=(-16, -2))
    dot(ax, r[1], "x₁", offset=(-4, -16))
    dot(ax, minimum(), "", GOOD)
    save(figure, "five_3_step")


def path(algorithm, steps):
    """The iterates of a run from X0."""
    seen = [X0]

    def keep(state, record):
        seen.append(state.x.copy())

    adafw.minimize(F, BALL, algorithm, x0=X0, max_iterations=steps, record_every=1,
                   callbacks=[keep], max_epochs=1e9)  # fmt: skip
    return np.array(seen[1:])


def certificate():
    """Picture 4: the tangent along the way to the corner bounds f from below."""
    figure, ax = plt.subplots(figsize=(5.4, 3.8))
    v = BALL.lmo(gradient(X0))
    way = np.linspace(-0.1, 1, 100)
    f = [value(X0 + s * (v - X0)) for s in way]
    slope = float(gradient(X0) @ (v - X0))
    ax.plot(way, f, color=LINE, label="f")
    ax.plot(way, value(X0) + slope * way, color=SET, label="tangent at x")
    best = value(minimum())
    ax.axhline(best, color=GOOD, linestyle=":", label="minimum of f over C")
    low = value(X0) + slope
    ax.annotate("", (1.03, low), (1.03, value(X0)),
                arrowprops={"arrowstyle": "<->", "color": BAD}, annotation_clip=False)  # fmt: skip
    ax.text(1.05, (low + value(X0)) / 2, "gap", color=BAD, va="center")
    ax.plot([0, 1.03], [value(X0)] * 2, ":", color="gray", linewidth=0.8)
    ax.plot(0, value(X0), "o", color=LINE)
    ax.plot(1, low, "o", color=SET)
    ax.set(xticks=[0, 1], xticklabels=["x", "v"], yticks=[], xlim=(-0.12, 1.2))
    ax.legend(frameon=False, loc="lower left")
    save(figure, "five_4_certificate")


def mixture():
    """Picture 5: what x is made of, and three ways to go on."""
    figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.6))
    for ax, (title, algorithm) in zip(axes, {
        "plain: it zigzags": adafw.FW(step_size=adafw.steps.LineSearch()),
        "pairwise: weight moves between corners": adafw.PFW(step_size=adafw.steps.LineSearch()),
        "blended: corrects what it has first": adafw.BPCG(step_size=adafw.steps.LineSearch()),
    }.items(), strict=True):  # fmt: skip
        plane(ax)
        start = np.array([-1.0, 0.0])
        seen: list = [start]
        adafw.minimize(F, BALL, algorithm, x0=start, max_iterations=25, record_every=1,
                       callbacks=[lambda s, r, seen=seen: seen.append(s.x.copy())],
                       gap_tolerance=1e-6)  # fmt: skip
        way = np.array(seen[1:])
        ax.plot(*way.T, "-o", color=LINE, markersize=3, linewidth=1)
        dot(ax, minimum(), "", GOOD)
        ax.set_title(f"{title}\n({len(way) - 1} steps)", fontsize=9)
    save(figure, "five_5_mixture")


def inner_steps():
    """A step of adaptive gradients: out of the set, projected, or by K Frank-Wolfe steps."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), width_ratios=[1.35, 1])
    ax = axes[0]
    plane(ax, contours=False)
    x, g, eta = np.array([-0.25, 0.35]), np.array([-0.9, -0.5]), 1.0
    h = np.array([0.75, 1.9])
    free = x - eta * g / h
    u, w = np.meshgrid(np.linspace(-1.25, 1.6, 160), np.linspace(-1.25, 1.35, 160))
    q = (g[0] * u + g[1] * w) + (h[0] * (u - x[0]) ** 2 + h[1] * (w - x[1]) ** 2) / (2 * eta)
    ax.contour(u, w, q, levels=12, colors="gray", linewidths=0.5)
    projected = BALL.project(free, h)
    ax.set(xlim=(-0.7, 1.25), ylim=(-0.2, 1.05))
    y, ways = x, [x]
    for _ in range(5):
        grad_q = g + h * (y - x) / eta
        d = BALL.lmo(grad_q) - y
        gamma = min(1.0, -eta * float(grad_q @ d) / float(d @ (h * d)))
        y = y + max(gamma, 0.0) * d
        ways.append(y)
    ways = np.array(ways)
    ax.plot(*np.array([free, projected]).T, ":", color=BAD)
    arrow(ax, x, free, "gray")
    ax.plot(*ways.T, "-o", color=LINE, markersize=4, linewidth=1)
    dot(ax, x, "x", offset=(-14, 2))
    dot(ax, free, "x - η g / H: outside", "gray", (-20, 10))
    dot(ax, projected, "projection in the metric", BAD, (14, -10))
    for k in (1, 2, 5):
        shift = {1: (-12, -16), 2: (-34, -10), 5: (8, -12)}[k]
        ax.annotate(f"K = {k}", ways[k], xytext=shift, textcoords="offset points")
    n, rng = 60, np.random.default_rng(0)
    most = excess_by_steps(n, rng, 20)
    ks = np.arange(21)
    axes[1].semilogy(ks, most[0], "-o", color=LINE, markersize=3, label=f"l1 ball, n = {n}")
    axes[1].semilogy(ks, most[1], "-s", color=SET, markersize=3, label=f"linf ball, n = {n}")
    axes[1].set(xlabel="inner steps K", ylabel="what is left of Q above its minimum (share)")
    axes[1].legend(frameon=False)
    save(figure, "inner_steps")


def excess_by_steps(n, rng, most):
    """Mean share of Q_t(x) - min Q_t that is left after K steps, on random subproblems."""
    out = []
    for ball in (adafw.L1Ball(5.0), adafw.LInfBall(1.0)):
        shares = []
        for _ in range(20):
            x, g = 0.3 * ball.project(rng.normal(size=n)), rng.normal(size=n)
            h = rng.uniform(0.5, 2, n)
            q = lambda y, g=g, h=h, x=x: float(g @ y + h @ (y - x) ** 2 / 2)  # noqa: E731
            best = q(ball.project(x - g / h, h))
            y, left = x, [1.0]
            for _ in range(most):
                grad_q = g + h * (y - x)
                d = ball.lmo(grad_q) - y
                y = y + np.clip(-(grad_q @ d) / (d @ (h * d)), 0, 1) * d
                left.append((q(y) - best) / (q(x) - best))
            shares.append(left)
        out.append(np.mean(shares, axis=0))
    return out


def gap_over_time():
    """A run: value, lower bound, error and gap."""
    A, y = adafw.datasets.support_vector(m=2_000, n=60, seed=0)
    f, ball = adafw.LinearModel(A, y, adafw.losses.SquaredHinge()), adafw.LInfBall(0.5)
    best = adafw.minimize(f, ball, adafw.Corrective(), gap_tolerance=1e-13).value
    t = adafw.minimize(f, ball, adafw.CSFW(), max_epochs=100).trace
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
    epoch = np.maximum(t["epoch"], 0.01)
    left.fill_between(epoch, t["lower_bound"], t["value"], color=SET, alpha=0.15)
    left.plot(epoch, t["value"], color=LINE, label="value")
    left.plot(epoch, t["lower_bound"], color=SET, label="best lower bound so far")
    left.axhline(best, color=GOOD, linestyle=":", label="minimum")
    left.set(xscale="log", xlabel="epochs", ylim=(best - 0.25, best + 0.25))
    left.legend(frameon=False)
    right.loglog(epoch, t["gap"], color=BAD, label="gap: what the run can prove")
    right.loglog(epoch, np.maximum(t["value"] - best, 1e-12), color=LINE, label="error: the truth")
    right.set(xlabel="epochs")
    right.legend(frameon=False)
    save(figure, "gap_over_time")


def main():
    """All of them."""
    FIGURES.mkdir(exist_ok=True)
    with plt.rc_context(STYLE):
        for draw in (problem, model, step, certificate, mixture, inner_steps, gap_over_time):
            draw()


if __name__ == "__main__":
    main()
