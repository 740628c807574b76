"""
The radius path: every budget at once
=====================================

The one number that a constrained model needs is the size of its set. It need not be guessed:
models for all sizes, from "nothing allowed" to "the bound no longer matters", cost little more
than one, since each starts where the last one ended.

And there is a proof to be had. Between two radii the gap of the smaller one's model can only grow
along a straight line, so it is known how long that model stays good enough (Giesen, Jaggi and
Laue, 2012). A few fits then cover *every* radius, with a guarantee.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from adafw.sklearn import radius_path

data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
X_train, X_test, y_train, y_test = train_test_split(X, data.target, test_size=0.4, random_state=1)
radii = np.geomspace(0.05, 200, 40)
path = radius_path(X_train, y_train, radii=radii, X_test=X_test, y_test=y_test)
coefficients = np.array([model.coef_[0] for model in path.models])
losses = [
    -np.mean(np.log(model.predict_proba(X_test)[np.arange(len(y_test)), y_test]))
    for model in path.models
]
best = int(np.argmin(losses))
print(
    f"smallest loss on unseen tumours at radius {radii[best]:.2f}, "
    f"with {path.nonzeros[best]} of 30 measurements"
)

# %%
# The same with a guarantee instead of a grid: these models are, between them, within 5 % (of the
# loss without any measurement) of the best at every radius.

proven = radius_path(X_train, y_train, eps=0.05)
print(
    f"{len(proven.radii)} models cover all radii from {proven.radii[0]:.2f} to "
    f"{proven.radii[-1]:.0f}, each proven to be within {proven.bound:.3f} there"
)

# %%
# Left, each line is the weight of one measurement as the budget grows. Right, the loss on tumours
# the model has not seen: it falls, and then rises again while the training loss still falls. The
# grey marks are the few radii that the guarantee needed.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
strong = np.argsort(-abs(coefficients[best]))[:6]
for j in range(30):
    named = j in strong
    colour = f"C{list(strong).index(j)}" if named else "lightgray"
    left.plot(
        radii,
        coefficients[:, j],
        color=colour,
        linewidth=1.8 if named else 0.8,
        zorder=2 if named else 1,
        label=data.feature_names[j] if named else None,
    )
left.axvline(radii[best], color="black", linestyle=":")
left.set(
    xscale="log", xlabel="radius", ylabel="weight", title="Weights along the path", ylim=(-8, 5)
)
left.legend(fontsize=8)
right.plot(radii, losses, color="C3", label="unseen")
right.plot(radii, [model.value_ for model in path.models], color="C0", label="training")
right.plot(
    proven.radii,
    np.full(len(proven.radii), 0.02),
    "|",
    color="gray",
    markersize=14,
    label="models of the proven path",
)
right.axvline(radii[best], color="black", linestyle=":")
right.set(xscale="log", xlabel="radius", ylabel="mean loss", ylim=(0, 0.7), title="Choosing")
right.legend()
plt.show()
