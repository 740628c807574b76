"""
A set of your own: traffic on a road map
========================================

Four hundred cars want from one corner of a town to the other, and roads get slower as they fill up.
How should they spread so that the total delay is least?

The set of all ways to spread them has more corners than there are atoms: every route is one. But
to minimise a *linear* function over it is easy: give every road a price, and send all cars along
the cheapest route. That is a shortest path, and it is all that a Frank-Wolfe method asks of a set.
So a set of your own is a function of three lines. (Traffic engineers have used just this since
1975: LeBlanc, Morlok and Pierskalla.)
"""

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import adafw

side = 9


def at(i, j):
    return i * side + j


roads = [
    (at(i, j), at(i + di, j + dj))
    for i in range(side)
    for j in range(side)
    for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0))
    if 0 <= i + di < side and 0 <= j + dj < side
]
tail, head = np.array(roads).T
number = {road: k for k, road in enumerate(roads)}
rng = np.random.default_rng(2)
free = rng.uniform(1.0, 2.0, len(roads))  # minutes on an empty road
capacity = rng.uniform(60, 240, len(roads))
cars, home, work = 400.0, at(0, 0), at(side - 1, side - 1)

# %%
# The set: ``lmo`` gets a price for each road and returns the best corner, all cars on the cheapest
# route. ``start`` is any point of the set.


def cheapest_route(prices):
    graph = csr_array((np.maximum(prices, 1e-9), (tail, head)), shape=(side**2, side**2))
    _, before = dijkstra(graph, indices=home, return_predecessors=True)
    flow, here = np.zeros(len(roads)), work
    while here != home:
        flow[number[before[here], here]] = cars
        here = before[here]
    return flow


town = adafw.UserSet(lmo=cheapest_route, start=lambda shape, dtype: cheapest_route(free))

# %%
# The objective: the total delay, with the usual law of the fourth power for crowded roads.


def delay(flow):
    return float(np.sum(flow * free * (1 + 0.15 * (flow / capacity) ** 4))) / cars


def marginal(flow, batch):
    return free * (1 + 0.75 * (flow / capacity) ** 4) / cars


f = adafw.UserSum(1, delay, marginal, convex=True)
r = adafw.minimize(
    f, town, adafw.BPCG(), x0=cheapest_route(free), gap_tolerance=0.01, max_iterations=3000
)
weights, routes = r.active_set
busiest = np.asarray(routes[[int(np.argmax(weights))]].todense()).ravel()
print(f"{r.status}: {r.value:.2f} minutes a car, at best {r.lower_bound:.2f}")
print(f"all on one route: {delay(cheapest_route(free)):.0f} minutes; now {len(weights)} routes")

# %%
# The cars spread over the town, wide roads take more, and the solver knows each of the routes it
# has mixed, since every corner it was given is one.

figure, axes = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
where = np.array([(j, -i) for i in range(side) for j in range(side)])
for ax, flow, title in (
    (axes[0], r.x, f"Least delay: {len(weights)} routes"),
    (axes[1], weights.max() * busiest, "The busiest of them"),
):
    lines = [(where[a], where[b]) for a, b in roads]
    ax.add_collection(LineCollection(lines, color="lightgray", linewidth=capacity / 60))
    kept = flow > 1
    drawn = LineCollection(
        [line for line, k in zip(lines, kept, strict=True) if k],
        array=(flow / capacity)[kept],
        cmap="plasma_r",
        linewidth=1 + flow[kept] / 60,
    )
    ax.add_collection(drawn)
    ax.scatter(*where[[home, work]].T, s=120, color="black", zorder=3)
    ax.set_title(title)
    ax.set_axis_off()
    ax.autoscale_view()
    ax.set_aspect("equal")
figure.colorbar(drawn, ax=axes, label="cars over capacity", shrink=0.8)
plt.show()
