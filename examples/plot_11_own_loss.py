"""
A loss of your own: how late will it be at worst?
=================================================

A courier does not want to know when a parcel arrives on average. He wants a time that nine of ten
parcels beat. That is a *quantile*, and its loss is the tilted absolute value: being too early by a
minute costs nine times as much as being too late.

The library has no such loss, so we write one: its value, its slope, and a bound on its curvature.
The tip is rounded off, since Frank-Wolfe methods want smooth functions.
"""

from dataclasses import dataclass

import numpy as np
from matplotlib import pyplot as plt
from sklearn.preprocessing import SplineTransformer

import adafw


@dataclass(frozen=True)
class SmoothQuantile(adafw.losses.Loss):
    """The tilted absolute value of y - z, a parabola within `width` of its tip."""

    share: float
    width: float = 0.5

    @property
    def curvature(self):
        return 1 / (2 * self.width)

    def value(self, z, y):
        e = y - z
        tip = np.where(abs(e) < self.width, e**2 / (4 * self.width) + self.width / 4, abs(e) / 2)
        return tip + (self.share - 0.5) * e

    def slope(self, z, y):
        return -(np.clip((y - z) / self.width, -1, 1) / 2 + self.share - 0.5)


# %%
# A year of deliveries: slow in rush hours, and not only slower but less certain, with a long tail
# to the late side.

rng = np.random.default_rng(0)
hour = np.sort(rng.uniform(6, 22, 1500))
rush = np.exp(-((hour - 8.5) ** 2)) + np.exp(-((hour - 17.5) ** 2) / 2)
minutes = 25 + 10 * rush + rng.gamma(1.5, 2 + 5 * rush)

# %%
# A smooth curve in the hour, with coefficients in a box (no knot below 0 or above 120 minutes),
# fitted once for each share. The new loss goes wherever a loss goes; the set, the steps and the
# certificate know nothing of it.

X = SplineTransformer(n_knots=14, include_bias=True).fit_transform(hour[:, None])
box = adafw.Box(np.zeros(X.shape[1]), np.full(X.shape[1], 120.0))
curves = {}
for share in (0.1, 0.5, 0.9):
    f = adafw.LinearModel(X, minutes, SmoothQuantile(share))
    r = adafw.minimize(
        f,
        box,
        adafw.Algorithm(adafw.gradients.Full(), adafw.steps.SpectralStep()),
        gap_tolerance=1e-3,
        max_iterations=2000,
    )
    curves[share] = X @ r.x
    print(
        f"{share:.0%} curve: {np.mean(minutes < curves[share]):.1%} of the parcels are below, "
        f"{r.status}, gap {r.gap:.0e}"
    )

# %%
# The upper curve is the promise to make. At noon it is five minutes above the middle one, at rush
# hour a quarter of an hour: an average with a fixed allowance would be wrong at both.

figure, ax = plt.subplots(figsize=(9, 4.4), layout="constrained")
ax.scatter(hour, minutes, s=5, color="gray", alpha=0.5)
ax.fill_between(hour, curves[0.1], curves[0.9], color="C0", alpha=0.2, label="eight of ten parcels")
ax.plot(hour, curves[0.5], color="C0", label="half are earlier")
ax.plot(hour, curves[0.9], color="C3", linewidth=2, label="nine of ten are earlier")
ax.set(xlabel="hour of the day", ylabel="minutes", ylim=(20, 90), title="A promise for every hour")
ax.legend()
plt.show()
