"""
Data larger than memory
=======================

The table does not fit into the memory of this machine. (The one here would, so that the page can be
built; what matters is that the program never holds it.) It is written once in a form that the
operating system can *map*: pages are read when they are touched, and dropped when memory is short.

A stochastic method touches a hundredth of the rows in an iteration. So we can watch how far it
gets for how little reading, and stop when the certificate is good enough.
"""

import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt

import adafw

folder = tempfile.TemporaryDirectory()
parts = Path(folder.name) / "table"
rng = np.random.default_rng(0)
truth = np.where(np.arange(60) < 8, np.linspace(1, -1, 60), 0)
X = rng.normal(size=(200_000, 60)).astype(np.float32)
y = np.sign(X @ truth + rng.logistic(size=len(X))).astype(np.float32)
adafw.datasets.save_parts(parts, X, y)  # libsvm_to_parts does the same for a text file, in pieces
size = sum(p.stat().st_size for p in parts.rglob("*") if p.is_file())
del X, y
print(f"on disk: {size / 1e6:.0f} MB")

# %%
# From here on the table is on disk alone. ``load_parts`` maps it; what the run itself takes in
# memory is measured.

tracemalloc.start()
A, b = adafw.datasets.load_parts(parts)
f = adafw.LinearModel(A, b, adafw.losses.Logistic())
r = adafw.minimize(
    f,
    adafw.L1Ball(6.0),
    adafw.CSFW(step_size=adafw.schedules.OpenLoop(1, 1)),
    max_epochs=5,
    record_every=50,
)
peak = tracemalloc.get_traced_memory()[1]
tracemalloc.stop()
print(f"taken by the run: {peak / 1e6:.0f} MB at most")
print(f"value {r.value:.5f}, within {r.gap:.1e} of the best")

# %%
# A third of the way through the first pass the model is already good; after a few passes the
# certificate says so. ``adafw fit`` does the same from the shell, and ``adafw predict`` reads its
# input in pieces.

epoch, gap = r.trace["epoch"][1:], r.trace["gap"][1:]
above = np.maximum(r.trace["value"][1:] - r.lower_bound, 1e-12)
figure, (left, right) = plt.subplots(
    1, 2, figsize=(11, 4), layout="constrained", width_ratios=[2, 1]
)
left.loglog(epoch, gap, label="exact gap (the certificate)")
left.loglog(epoch, above, label="loss above the lower bound")
left.axvline(1, color="gray", linestyle=":")
left.annotate(
    "every row seen once, on average",
    (1, gap.max()),
    xytext=(4, 0),
    textcoords="offset points",
    fontsize=8,
)
left.set(xlabel="passes over the table", title="How much reading buys how much certainty")
left.legend()
right.bar(["on disk", "in memory"], [size / 1e6, peak / 1e6], color=["C0", "C1"])
right.set(ylabel="MB", title="What the run held")
plt.show()
folder.cleanup()
