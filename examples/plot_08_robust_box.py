"""
Bounds one knows, and sensors one cannot trust
==============================================

A plant mixes eight streams; the flow of each is known, and so is the total heat that leaves. The
heat content of each stream is what we want, and physics gives bounds: none is negative, none can
exceed 5. But one reading in ten is nonsense, since a sensor sticks.

Two mends, one line each: a **box** for the bounds, and **Huber's loss** against the nonsense, which
grows like a square for small errors and like a line for large ones.
"""

import numpy as np
from matplotlib import pyplot as plt

import adafw
from adafw.sklearn import FrankWolfeRegressor

rng = np.random.default_rng(4)
truth = np.array([0.0, 0.2, 1.1, 4.9, 2.5, 0.0, 3.2, 0.7])
flows = rng.gamma(2.0, 1.0, (400, 8))
heat = flows @ truth + rng.normal(0, 1.0, 400)
stuck = rng.random(400) < 0.1
heat[stuck] = 140 + rng.normal(0, 2, stuck.sum())  # the sensor's upper end

# %%
# Four fits: with and without the bounds, with squares and with Huber's loss. "Without" is a box so
# wide that it does not matter.

wide, known = (
    adafw.Box(np.full(8, -100.0), np.full(8, 100.0)),
    adafw.Box(np.zeros(8), np.full(8, 5.0)),
)
fits = {}
for name, loss, box in (
    ("squares, no bounds", "squared", wide),
    ("squares, in the box", "squared", known),
    ("Huber, no bounds", "huber", wide),
    ("Huber, in the box", "huber", known),
):
    model = FrankWolfeRegressor(loss, delta=2.0, constraint=box, fit_intercept=False)
    fits[name] = model.fit(flows, heat).coef_
    print(f"{name:20} largest error {abs(fits[name] - truth).max():.2f}, gap {model.gap_:.0e}")

# %%
# Squares follow the stuck sensor out of the bounds. The box alone cuts off what is impossible,
# and errs elsewhere; Huber alone is near, and slightly impossible; both together are right.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.axhspan(0, 5, color="C2", alpha=0.08, label="what physics allows")
places = np.arange(8)
for i, (name, coef) in enumerate(fits.items()):
    left.scatter(places + 0.16 * (i - 1.5), coef, s=34, label=name, zorder=3)
left.hlines(truth, places - 0.4, places + 0.4, color="black", label="truth")
left.set(xlabel="stream", ylabel="heat content", title="Estimates")
left.legend(fontsize=7, ncols=2)
best = fits["Huber, in the box"]
right.scatter((flows @ best)[~stuck], heat[~stuck], s=10, alpha=0.6, label="good readings")
right.scatter((flows @ best)[stuck], heat[stuck], s=14, color="C3", label="stuck sensor")
right.plot([0, 90], [0, 90], color="black", linewidth=0.8)
right.set(xlabel="predicted heat", ylabel="reading", title="The fit sees who is lying")
right.legend()
plt.show()
