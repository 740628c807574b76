"""
Twelve algorithms on one problem
================================

Which method should one take? There is no answer for all problems, but there is one for yours, and
it costs a loop. Here twelve methods get the same problem, the same seed and the same number of
gradient evaluations, and every trace holds the *exact* gap: a bound on how far from the optimum
each still is, not an estimate of the method's own.

The problem is the paper's: support vector classification in a box, m = 20 000 samples there, fewer
here so that the page builds quickly.
"""

from matplotlib import pyplot as plt

import adafw

A, y = adafw.datasets.support_vector(m=4_000, n=200, seed=0)
f = adafw.LinearModel(A, y, adafw.losses.SquaredHinge())
ball = adafw.LInfBall(1.0)
families = {
    "plain Frank-Wolfe steps": {
        "FW": adafw.FW(),
        "SFW": adafw.SFW(),
        "SVRF": adafw.SVRF(),
        "SPIDER-FW": adafw.SPIDERFW(),
        "ORGFW": adafw.ORGFW(),
        "CSFW": adafw.CSFW(),
    },
    "adaptive steps, no projection": {
        "AdaSFW": adafw.AdaSFW(),
        "AdaSVRF": adafw.AdaSVRF(),
        "AdaCSFW": adafw.AdaCSFW(),
    },
    "projected": {
        "AdaGrad": adafw.AdaGrad(),
        "AdaGrad + CSFW": adafw.AdaGrad(gradient=adafw.gradients.CSFW()),
    },
    "exact": {"Corrective": adafw.Corrective()},
}

# %%
# One call each. Learning rates are left to ``"auto"``; the gradients that the search for them
# costs are counted.

runs = {
    family: {name: adafw.minimize(f, ball, a, max_epochs=60) for name, a in members.items()}
    for family, members in families.items()
}
results = [(family, name, r) for family, members in runs.items() for name, r in members.items()]
for family, name, r in sorted(results, key=lambda item: item[2].gap):
    print(f"{name:15} gap {r.gap:8.1e}   CPU {r.trace[-1].cpu_seconds:5.2f} s   {family}")

# %%
# Against passes over the data, the estimator decides more than the step: whatever reuses old
# gradients (CSFW) is ahead of whatever forgets them. Against CPU seconds the picture can differ,
# since a step that asks little of the data may still take long.

figure, axes = plt.subplots(1, 2, figsize=(12, 4.6), sharey=True, layout="constrained")
styles = dict(zip(runs, ("-", "--", ":", "-."), strict=True))
for ax, x, label in zip(
    axes, ("epoch", "cpu_seconds"), ("passes over the data", "CPU seconds"), strict=True
):
    for i, (family, name, r) in enumerate(results):
        t = r.trace
        ax.loglog(
            t[x][1:],
            t["gap"][1:].clip(1e-12),
            styles[family],
            color=plt.get_cmap("tab20")(i),
            label=name,
        )
    ax.set(xlabel=label, ylim=(1e-8, 10), xlim=(0.1 if x == "epoch" else 1e-3, None))
axes[0].set_ylabel("exact Frank-Wolfe gap")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center")
plt.show()
