"""
Data that keep coming, runs that are cut off
============================================

Two worries of long-running work. Rows arrive in pieces, and yesterday's are gone: can the model
learn as it goes, and stay within its bounds? And a run of hours is killed: is it lost?

Streams are ``partial_fit``. Resuming is a state that can be saved, and the promise is strict: the
run that was cut ends with the same numbers as the one that was not, to the last bit.
"""

import tempfile
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import adafw
from adafw.sklearn import FrankWolfeClassifier

# %%
# A stream whose rule changes
# ---------------------------
# Clicks on advertisements, 100 at a time. Half-way the fashion changes: the signs of half the
# weights flip. The model sees each row once, and its weights never leave the l1 ball.

rng = np.random.default_rng(0)
truth = np.where(rng.random(40) < 0.3, rng.normal(0, 1.5, 40), 0)
model = FrankWolfeClassifier(radius=15.0, learning_rate=0.3)
right, norm = [], []
for piece in range(160):
    rule = truth if piece < 80 else truth * np.where(np.arange(40) % 2, -1, 1)
    X = rng.normal(size=(100, 40))
    y = (X @ rule + rng.logistic(size=100) > 0).astype(int)
    if piece:
        right.append(model.score(X, y))  # before it has learnt from them
    model.partial_fit(X, y, classes=[0, 1])
    norm.append(abs(model.coef_).sum())
print(f"largest l1 norm on the way: {max(norm):.3f}, allowed are 15")

# %%
# A run that is cut
# -----------------
# Thirty epochs in one go; and thirty in three pieces, each in a state of mind that only a file
# carries over.

A, y = adafw.datasets.support_vector(m=5_000, n=100, seed=1)
f = adafw.LinearModel(A, y, adafw.losses.Logistic())
ball, algorithm = adafw.L1Ball(20.0), adafw.AdaCSFW(learning_rate=1.0)
whole = adafw.minimize(f, ball, algorithm, max_epochs=30)
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "run.npz"
    adafw.minimize(f, ball, algorithm, max_epochs=7).state.save(file)
    for epochs in (16, 30):
        piece = adafw.minimize(f, ball, algorithm, state=adafw.State.load(file), max_epochs=epochs)
        piece.state.save(file)
print("same bits:", np.array_equal(whole.x, piece.x) and whole.gap == piece.gap)

# %%
# The dip on the left is the change of fashion; the model unlearns the old one in some twenty
# pieces. On the right the crosses, of the run in pieces, sit on the line of the other.

figure, (left, middle) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
left.plot(right, color="lightgray")
left.plot(np.convolve(right, np.ones(9) / 9, "valid"), color="C0", label="mean of nine pieces")
left.axvline(79, color="C3", linestyle=":", label="the rule changes")
left.set(
    xlabel="pieces of 100 rows",
    ylabel="right, before learning from them",
    title="A stream",
    ylim=(0.4, 1),
)
left.legend(loc="lower right")
middle.loglog(whole.trace["epoch"][1:], whole.trace["gap"][1:], label="in one go")
middle.loglog(
    piece.trace["epoch"][1:], piece.trace["gap"][1:], "x", color="C3", label="in three pieces"
)
for cut in (7, 16):
    middle.axvline(cut, color="gray", linestyle=":")
middle.set(xlabel="passes over the data", ylabel="exact gap", title="Cut twice, and resumed")
middle.legend()
plt.show()
