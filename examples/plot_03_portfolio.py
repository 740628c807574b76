"""
A portfolio without debts
=========================

Shares of a portfolio are non-negative and sum to one: a point of the simplex. For a wanted mean
return we look for the shares whose daily returns move least: Markowitz' portfolio of 1952, here in
the form of a least-squares problem with one row for each day.

The constraint is the set itself, and the solutions that a simplex prefers are what an investor
likes: few positions, no short sales.
"""

import numpy as np
from matplotlib import pyplot as plt

import adafw

# %%
# Ten years of daily returns of twelve made-up sectors: a market factor, a rate factor, noise, and
# sectors that pay more for moving more.

rng = np.random.default_rng(3)
names = [
    "utilities",
    "staples",
    "health",
    "telecoms",
    "estate",
    "industry",
    "energy",
    "materials",
    "banks",
    "leisure",
    "software",
    "chips",
]
days, market_beta = 2520, np.linspace(0.35, 1.7, 12)
rate_beta = np.array([0.6, 0.3, 0.1, 0.3, 0.8, -0.1, -0.4, -0.3, -0.7, 0.0, -0.2, -0.3])
market, rates = rng.normal(0.0003, 0.008, days), rng.normal(0, 0.004, days)
noise = rng.normal(size=(days, 12)) * np.linspace(0.004, 0.012, 12)
returns = 100 * (np.outer(market, market_beta) + np.outer(rates, rate_beta) + noise)
returns += 100 * np.linspace(0.00008, 0.0004, 12) - returns.mean(axis=0) * 0.5  # in percent

# %%
# One fit for each wanted mean, each with its certificate. A day is a row that should be 0, once the
# means are taken off; the wanted mean is one more row, with a weight so large that it is met.
# ``Corrective`` is the exact method for linear models on simplices; it takes a few gradients.

means = returns.mean(axis=0)
rows = np.vstack([returns - means, means])
weight = np.r_[np.ones(days), 1e5 * days]
wanted = np.linspace(means.min(), means.max(), 40)
shares, gaps = [], []
for goal in wanted:
    target = np.r_[np.zeros(days), goal]
    f = adafw.LinearModel(rows, target, adafw.losses.Squared(), sample_weight=weight)
    r = adafw.minimize(f, adafw.Simplex(1.0), adafw.Corrective(), gap_tolerance=1e-11)
    shares.append(r.x)
    gaps.append(r.gap * weight.sum() / days)
shares = np.array(shares)
print(f"largest gap of {len(wanted)} portfolios: {max(gaps):.0e}, in units of the daily variance")
print(f"positions: {(shares > 1e-6).sum(axis=1).min()} to {(shares > 1e-6).sum(axis=1).max()}")

# %%
# The picture that every textbook has, here with what is inside: from left to right the wanted
# return grows, the portfolio moves from dull sectors to wild ones, and its risk follows.

order = np.argsort(shares @ returns.mean(axis=0))
yearly_risk = (returns @ shares.T).std(axis=0) * np.sqrt(252)
yearly_return = (returns @ shares.T).mean(axis=0) * 252
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
colours = plt.get_cmap("tab20")(np.linspace(0, 1, 12))
left.stackplot(yearly_return[order], shares[order].T, labels=names, colors=colours)
left.set(xlabel="mean return (% a year)", ylabel="share", ylim=(0, 1), title="What is held")
left.margins(x=0)
left.legend(fontsize=7, ncols=2, loc="lower left")
right.scatter(returns.std(axis=0) * np.sqrt(252), returns.mean(axis=0) * 252, c=colours, s=60)
for name, risk, gain in zip(
    names, returns.std(axis=0) * np.sqrt(252), returns.mean(axis=0) * 252, strict=True
):
    right.annotate(name, (risk, gain), xytext=(5, 3), textcoords="offset points", fontsize=7)
right.plot(yearly_risk, yearly_return, color="black", linewidth=2)
right.set(xlabel="risk (% a year)", ylabel="mean return (% a year)", title="Mixed beats single")
plt.show()
