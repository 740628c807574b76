"""
A picture from the shredder
===========================

A picture went through a shredder: 60 strips, in no order. A noisy copy of the whole is at hand.
Which strip belongs where?

An assignment is a permutation, and there are 60! of them. We let each place take a *mixture* of
strips first: matrices of non-negative shares whose rows and columns sum to one, Birkhoff's
polytope. Projecting onto it is hard work; minimising a linear function over it is the classic
assignment problem, which takes a millisecond. That is where Frank-Wolfe methods are at home, and
their iterates are mixtures of few permutations.
"""

import numpy as np
from matplotlib import pyplot as plt
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_sample_image

import adafw

n = 60
picture = load_sample_image("china.jpg")[40:400:6, ::4].mean(axis=2) / 255  # 60 rows
rng = np.random.default_rng(0)
order = rng.permutation(n)
strips = picture[order]
noisy = picture + rng.normal(0, 0.35, picture.shape)

# %%
# f(X) = mean squared difference of X strips and the noisy copy. Any function with a gradient will
# do; it is a quadratic, so the steps find their length by a line search.

gram, mixed, size = strips @ strips.T, noisy @ strips.T, picture.size


def value(X):
    return float(np.sum((X @ strips - noisy) ** 2)) / size


def gradient(X, batch):
    return 2 * (X @ gram - mixed) / size


f = adafw.UserSum(1, value, gradient, convex=True)
r = adafw.minimize(
    f,
    adafw.Birkhoff(),
    adafw.BPCG(),
    x0=np.full((n, n), 1 / n),
    gap_tolerance=1e-4,
    max_iterations=500,
)
weights, atoms = r.active_set
_, found = linear_sum_assignment(-r.x)
print(f"{r.status} after {r.trace[-1].iteration} assignments solved; gap {r.gap:.1e}")
print(
    f"x is a mixture of {len(weights)} permutations; {np.mean(order[found] == range(n)):.0%} "
    "of the strips are where they were"
)

# %%
# The matrix in the middle is the answer: dark where a place takes a strip. It is nearly a
# permutation, but where neighbouring strips look alike it honestly says so.

figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
for ax, image, title in zip(
    axes,
    (strips, noisy, r.x[:, np.argsort(order)], strips[found]),
    ("from the shredder", "noisy copy", "shares (strips in true order)", "put together"),
    strict=True,
):
    ax.imshow(image, cmap="gray_r" if "shares" in title else "gray", aspect="auto")
    ax.set_title(title)
    ax.set_axis_off()
plt.show()
