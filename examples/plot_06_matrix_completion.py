"""
Filling the holes of a matrix
=============================

People have rated a few films each; which others would they like? A sensor array has dead pixels;
what did they see? Both are a matrix with holes, and both are answered by the same assumption: few
causes explain many entries, so the matrix has low *rank*. Bounding the nuclear norm, the sum of
the singular values, is the convex way to say so.

A projection onto that ball takes a full singular value decomposition. A Frank-Wolfe step takes
only the leading pair of singular vectors. We take a picture, since one can see whether it worked.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image

import adafw

truth = load_sample_image("china.jpg")[20:400:3, 30:600:3].mean(axis=2) / 255
rng = np.random.default_rng(0)
seen = rng.random(truth.shape) < 0.35
rows, cols = np.nonzero(seen)
mean = truth[seen].mean()
values = truth[seen] - mean + rng.normal(0, 0.02, len(rows))
print(f"{truth.shape[0]} x {truth.shape[1]} entries, {seen.mean():.0%} of them seen, with noise")

# %%
# A tenth of the seen entries is kept aside to choose the radius. Each fit is certified.

aside = rng.random(len(rows)) < 0.1
fits = {}
for radius in (60, 90, 120, 150, 180):
    f = adafw.MatrixCompletion(rows[~aside], cols[~aside], values[~aside], truth.shape)
    r = adafw.minimize(
        f, adafw.NuclearBall(radius), adafw.Corrective(), max_iterations=30, gap_tolerance=1e-4
    )
    error = np.sqrt(np.mean((r.x[rows[aside], cols[aside]] - values[aside]) ** 2))
    fits[radius] = error, r
    rank = np.linalg.matrix_rank(r.x, tol=1e-3)
    print(
        f"radius {radius:3d}: rank {rank:3d}, error on entries kept aside {error:.4f}, "
        f"gap {r.gap:.0e}"
    )
radius, (error, best) = min(fits.items(), key=lambda item: item[1][0])

# %%
# Left what the method saw, in the middle what it made of it. The rank is not asked for anywhere:
# it comes out of the radius.

figure, axes = plt.subplots(1, 3, figsize=(12, 3.1), layout="constrained")
masked = np.ma.masked_where(~seen, truth)
cmap = plt.get_cmap("gray").with_extremes(bad="#c8463c")
axes[0].imshow(masked, cmap=cmap, vmin=0, vmax=1)
axes[0].set_title(f"seen: {seen.mean():.0%} (the rest in red)")
axes[1].imshow(best.x + mean, cmap="gray", vmin=0, vmax=1)
axes[1].set_title(f"completed, radius {radius}")
axes[2].semilogy(np.linalg.svd(truth - mean, compute_uv=False)[:60], label="truth")
axes[2].semilogy(np.linalg.svd(best.x, compute_uv=False)[:60], label="completed")
axes[2].set(ylim=(1e-2, 100), xlabel="singular value no.", title="Few causes")
axes[2].legend()
for ax in axes[:2]:
    ax.set_axis_off()
plt.show()
