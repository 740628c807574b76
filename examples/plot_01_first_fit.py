"""
A first fit, and what it can prove
==================================

A hospital wants a score for tumours that a doctor can work out on paper: few measurements, and
weights that are not extreme. We bound the sum of all weights: an l1 budget.

What is special about the fit is how it ends. It does not stop because nothing moves any more, but
because it can *prove* that no other weights within the budget do better by more than a given
amount.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from adafw.sklearn import FrankWolfeClassifier

data = load_breast_cancer()
model = make_pipeline(
    StandardScaler(), FrankWolfeClassifier(constraint="l1", radius=5.0, algorithm="FW", tol=1e-2)
).fit(data.data, data.target)
fit = model[-1]
print(f"{(abs(fit.coef_) > 0.02).sum()} of {fit.coef_.size} measurements are used")
print(f"mean loss {fit.value_:.4f}; no choice within the budget is below {fit.lower_bound_:.4f}")

# %%
# The certificate
# ---------------
# At any point, the gradient tells how low the loss could possibly be anywhere in the set: follow
# the tangent plane to the set's far end. That gives a lower bound, and a convex function never
# goes below it. While the run goes on, the best bound rises and the loss falls; the true minimum
# lies in between, in the shaded strip. When the strip is narrow enough, we are done.
#
# We chose the plainest method, Frank-Wolfe of 1956, so that the strip can be seen closing. Left
# to itself (``algorithm="auto"``) the fit takes a handful of iterations.

trace = fit.trace_
epochs = trace["epoch"] + 1
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
left.fill_between(
    epochs,
    trace["lower_bound"],
    trace["value"],
    color="C0",
    alpha=0.15,
    label="the minimum is in here",
)
left.plot(epochs, trace["value"], color="C0", label="loss of the fit so far")
left.plot(epochs, trace["lower_bound"], color="C3", label="proven lower bound")
left.set(
    xscale="log",
    xlabel="passes over the data",
    ylabel="mean loss",
    ylim=(0, 0.4),
    title="Loss and bound close in on the minimum",
)
left.legend()

order = abs(fit.coef_[0]).argsort()
order = order[abs(fit.coef_[0][order]) > 0.02]
right.barh(
    data.feature_names[order],
    fit.coef_[0][order],
    color=["C3" if c < 0 else "C0" for c in fit.coef_[0][order]],
)
right.axvline(0, color="black", linewidth=0.8)
right.set(xlabel="weight (negative: towards malignant)", title="What the budget was spent on")
plt.show()
