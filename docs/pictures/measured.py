"""Drawings from committed numbers and small fits: `python docs/pictures/measured.py`.

Written are docs/figures/projection_free.svg (from docs/reproduction/dear-sets.json), penalty.svg,
and front.svg, the figure of README, whose halves are those of the landing page.
"""

import json

import numpy as np
from ideas import BAD, BALL, FIGURES, GOOD, LINE, SET, STYLE, F, dot, minimum, plane, save
from matplotlib import pyplot as plt

import adafw

DOCS = FIGURES.parent


def projection_free():
    """Speed of Frank-Wolfe steps over projections, set by set, against the dimension."""
    table = json.loads((DOCS / "reproduction" / "dear-sets.json").read_text())
    goals = [goal["relative_gap"] for goal in next(iter(table["series"].values()))[0]["goals"]]
    shown = [i for i, goal in enumerate(goals) if goal in (0.1, 0.01)]
    figure, axes = plt.subplots(1, len(shown), figsize=(10.5, 4), sharey=True)
    for ax, i in zip(axes, shown, strict=True):
        shown_sets = {k: v for k, v in table["series"].items() if "corrective" not in k}
        for k, (name, sizes) in enumerate(shown_sets.items()):
            known = [(s["dimension"], s["goals"][i]["ratio"]["median"]) for s in sizes]
            known = [(n, q) for n, q in known if q is not None]
            style = "s--" if "control" in name else "o-"
            if known:
                ax.loglog(*zip(*known, strict=True), style, color=f"C{k}", markersize=4, label=name)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set(xlabel="dimension n", title=f"to a relative gap of {goals[i]:g}")
    axes[0].set_ylabel("CPU time, projections over Frank-Wolfe")
    axes[0].text(0.02, 0.97, "above the line: Frank-Wolfe is faster", fontsize=8,
                 transform=axes[0].transAxes, va="top")  # fmt: skip
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    save(figure, "projection_free")


def penalty():
    """The best loss within a budget: its slope is the price that a penalty asks."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    X, y = load_breast_cancer(return_X_y=True)
    f = adafw.LinearModel(StandardScaler().fit_transform(X), 2.0 * y - 1, adafw.losses.Logistic())
    radii = np.linspace(0.2, 14, 45)
    runs = [adafw.minimize(f, adafw.L1Ball(r), adafw.Corrective(), gap_tolerance=1e-9)
            for r in radii]  # fmt: skip
    values = np.array([r.value for r in runs])
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8))
    left.plot(radii, values, color=LINE)
    for at in (6, 22):
        price = np.abs(f.gradient(runs[at].x)).max()
        way = radii[at] + np.array([-2.2, 3.2])
        left.plot(way, values[at] - price * (way - radii[at]), color=BAD)
        left.plot(radii[at], values[at], "o", color=BAD)
        text = f"slope -{price:.3f}: the price of\na unit of norm at {radii[at]:.1f}"
        left.annotate(text, (radii[at], values[at]), xytext=(14, 12), fontsize=9, color=BAD,
                      textcoords="offset points")  # fmt: skip
    left.set(xlabel="budget: radius of the l1 ball", ylabel="best mean loss within it",
             ylim=(0, 0.5))  # fmt: skip
    prices = np.array([np.abs(f.gradient(r.x)).max() for r in runs])
    right.loglog(prices, radii, color=LINE)
    right.set(xlabel="penalty: price of a unit of norm", ylabel="radius that it amounts to")
    save(figure, "penalty")


def corners(ax):
    """Steps to corners of a set."""
    plane(ax)
    seen = []
    plain = adafw.FW(step_size=adafw.steps.LineSearch())
    adafw.minimize(F, BALL, plain, x0=np.array([-0.45, 0.15]), max_iterations=9, record_every=1,
                   callbacks=[lambda s, r: seen.append(s.x.copy())], max_epochs=1e9)  # fmt: skip
    ax.plot(*np.array(seen).T, "-o", color=LINE, markersize=4, linewidth=1.2)
    dot(ax, minimum(), "", GOOD)
    ax.annotate("best point\nof the set", minimum(), xytext=(0.72, -0.95), color=GOOD,
                arrowprops={"arrowstyle": "-", "color": GOOD, "lw": 0.8, "shrinkB": 4})  # fmt: skip
    ax.set_title("Steps to corners: never outside,\nno projection", fontsize=10)


def certified(ax):
    """A loss and its proven bound, which close in on the minimum."""
    A, y = adafw.datasets.text_like(m=3_000, n=8_000, seed=0)
    f = adafw.LinearModel(A, y, adafw.losses.Logistic())
    t = adafw.minimize(f, adafw.L1Ball(60.0), adafw.CSFW(), max_epochs=60).trace
    epoch = np.maximum(t["epoch"], 0.05)
    ax.fill_between(epoch, t["lower_bound"], t["value"], color=SET, alpha=0.15)
    ax.plot(epoch, t["value"], color=LINE, label="loss of the fit")
    ax.plot(epoch, t["lower_bound"], color=SET, label="proven: nothing in the set is lower")
    ax.set(xscale="log", xlabel="passes over the data (3 000 x 8 000, sparse)",
           ylim=(t["lower_bound"][2] - 0.06, t["value"][0] + 0.01))  # fmt: skip
    ax.set_title("Every run knows how good it is", fontsize=10)
    ax.legend(frameon=False, loc="lower right")


def front():
    """What it is, in one look; and each half by itself, for pages that put them one below the
    other on a phone."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.7), width_ratios=[1, 1.25])
    corners(left)
    certified(right)
    save(figure, "front")
    for draw, name, size in (
        (corners, "front_corners", (4.2, 3.7)),
        (certified, "front_certified", (5.4, 3.7)),
    ):
        figure, ax = plt.subplots(figsize=size)
        draw(ax)
        save(figure, name)


def main():
    """All of them."""
    with plt.rc_context({**STYLE, "figure.constrained_layout.use": True}):
        for draw in (projection_free, penalty, front):
            draw()


if __name__ == "__main__":
    main()
