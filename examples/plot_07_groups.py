"""
Which measurements matter? Groups of columns
============================================

Ten measurements of diabetes patients may each act along a curve, not a line. Splines turn every
measurement into several columns, and then a plain sparse fit would pick odd single pieces of
curves. What we want to choose are *measurements*: all columns of one, or none.

That is the group norm: the sum over measurements of the l2 norm of its columns. As its bound
grows, measurements come in one after another, whole.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import SplineTransformer, StandardScaler

from adafw.sklearn import FrankWolfeRegressor

data = load_diabetes()
names = [
    "age",
    "sex",
    "weight index",
    "blood pressure",
    "cholesterol",
    "LDL",
    "HDL",
    "ratio",
    "triglycerides",
    "glucose",
]
splines = SplineTransformer(n_knots=4, degree=3, include_bias=False)
columns, groups = [], []
for j in range(10):
    block = data.data[:, [j]] if j == 1 else splines.fit_transform(data.data[:, [j]])
    columns.append(StandardScaler().fit_transform(block))
    groups += [j] * block.shape[1]
X, groups = np.hstack(columns), np.array(groups)
y = (data.target - data.target.mean()) / data.target.std()

# %%
# A fit for each radius; ``constraint_params`` says which column belongs to which group.

radii = np.geomspace(0.02, 3, 25)
norms, gaps = [], []
for radius in radii:
    fit = FrankWolfeRegressor(
        constraint="group", radius=radius, constraint_params={"groups": groups}
    ).fit(X, y)
    norms.append([np.linalg.norm(fit.coef_[groups == j]) for j in range(10)])
    gaps.append(fit.gap_ / fit.value_)
norms = np.array(norms)
first = [np.argmax(norms[:, j] > 1e-6) if norms[:, j].any() else 99 for j in range(10)]
print("in the order of coming in:", ", ".join(names[j] for j in np.argsort(first, kind="stable")))
print(f"every fit within {max(gaps):.0e} of its optimum, relatively")

# %%
# Weight and triglycerides come first, then blood pressure: what doctors would have said. On the
# right is what the fit with a middling radius has learnt of each.

middle = FrankWolfeRegressor(
    constraint="group", radius=0.5, constraint_params={"groups": groups}
).fit(X, y)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
colours = plt.get_cmap("tab10").colors
for j in np.argsort(-norms[-1]):
    left.plot(radii, norms[:, j], color=colours[j], label=names[j])
left.set(xscale="log", xlabel="radius", ylabel="norm of the group", title="Whole groups come in")
left.legend(fontsize=8)
for j in range(10):
    part = X[:, groups == j] @ middle.coef_[groups == j]
    if np.ptp(part) > 0.1:
        order = np.argsort(data.data[:, j])
        right.plot(data.data[order, j], part[order], color=colours[j], label=names[j])
right.set(
    xlabel="measurement (standardised)",
    ylabel="contribution to the disease score",
    title="The curves at radius 0.5",
)
right.legend(fontsize=8)
plt.show()
