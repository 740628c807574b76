"""
Did the law work? A synthetic control
=====================================

One region passes a law, the others do not. What would have happened without it? There is no twin
region, but a *mixture* of the others may look like one: non-negative weights that sum to one,
chosen so that before the law the mixture moves as the region did. After the law, the difference
between region and mixture is the estimated effect (Abadie and others, 2010).

The weights lie on the simplex. That matters: the mixture never leaves what was really observed,
and most weights are exactly zero, so that the report can name the regions it rests on.
"""

import numpy as np
from matplotlib import pyplot as plt

import adafw

# %%
# Forty quarters of a made-up sales figure in 38 regions that share three trends; the law comes in
# quarter 26, and takes 12 off the sales of region 0, slowly.

rng = np.random.default_rng(1)
quarters, regions, law = np.arange(40), 38, 26
trends = np.cumsum(rng.normal(0, 1, (40, 3)), axis=0) + np.outer(quarters, [-0.5, 0.1, -0.3])
loads = rng.dirichlet([1, 1, 1], regions) * 3
sales = 120 + trends @ loads.T + rng.normal(0, 0.6, (40, regions))
loads_treated = loads[1:6].mean(axis=0)
effect = -12 * (1 - np.exp(-np.maximum(quarters - law, 0) / 4))
treated = 120 + trends @ loads_treated + rng.normal(0, 0.6, 40) + effect
others = sales[:, 1:]

# %%
# Weights from the quarters before the law alone.


def weights(target, donors):
    f = adafw.LinearModel(donors[:law], target[:law], adafw.losses.Squared())
    return adafw.minimize(f, adafw.Simplex(1.0), adafw.Corrective(), gap_tolerance=1e-9)


r = weights(treated, others)
synthetic = others @ r.x
used = np.flatnonzero(r.x > 1e-3)
print(f"{len(used)} of {others.shape[1]} regions make the twin; gap {r.gap:.0e}")
print(f"effect at the end: {(treated - synthetic)[-4:].mean():.1f}, built in were {effect[-1]:.1f}")

# %%
# Is that more than chance? Pretend that each other region had passed the law, and look at its
# "effects": the grey lines are what no law at all looks like.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.plot(quarters, treated, color="C3", linewidth=2, label="region with the law")
left.plot(quarters, synthetic, "--", color="black", label="its synthetic twin")
left.fill_between(quarters[law:], treated[law:], synthetic[law:], color="C3", alpha=0.15)
left.axvline(law, color="gray", linestyle=":")
left.set(xlabel="quarter", ylabel="sales", title="The region and its twin")
left.legend(loc="lower left")
for j in range(others.shape[1]):
    rest = np.delete(others, j, axis=1)
    placebo = others[:, j] - rest @ weights(others[:, j], rest).x
    if np.abs(placebo[:law]).mean() < 2:  # a twin that does not fit before proves nothing after
        right.plot(quarters, placebo, color="gray", alpha=0.35, linewidth=0.8)
right.plot(quarters, treated - synthetic, color="C3", linewidth=2)
right.plot(quarters, effect, ":", color="black", label="what we had built in")
right.axvline(law, color="gray", linestyle=":")
right.set(xlabel="quarter", ylabel="region less twin", title="Against chance")
right.legend(loc="lower left")
plt.show()
