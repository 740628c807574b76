"""What a linear minimisation and a projection cost on every set, at three sizes, on one core.

    python benchmarks/set_costs.py

writes docs/benchmarks/set_costs.csv, docs/figures/set_costs.svg and the measured table in
docs/sets.md. For each set, g and x are standard normal; the radius is such that x, at a third of
its norm, lies outside; the metric spreads over two orders of magnitude. Times are the least of
several rounds, in which the three operations take turns, since other programs may be running.
"""

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import adafw

DOCS = Path(__file__).parent.parent / "docs"
ROUNDS, BUDGET = 7, 12.0  # of one operation at one size: rounds at most, seconds at most
COLUMNS = ("set", "shape", "lmo", "euclidean", "metric", "euclidean / lmo", "metric / lmo")


def third(norm: Callable[[np.ndarray], float], make: Callable[[float], Any]) -> Callable[..., Any]:
    """A ball whose radius is a third of the norm of x."""
    return lambda x: make(float(norm(x)) / 3)


def group_norm(x: np.ndarray) -> float:
    return float(np.linalg.norm(x.reshape(-1, 10), axis=1).sum())


def hull(x: np.ndarray) -> Any:
    return adafw.Hull(np.random.default_rng(1).standard_normal((200, x.size)))


def polytope(x: np.ndarray) -> Any:
    n = x.size
    A = np.random.default_rng(1).standard_normal((n // 4, n))
    return adafw.Polytope(A, np.full(n // 4, 0.1 * np.sqrt(n)), bounds=(-1, 1))


def product(x: np.ndarray) -> Any:
    parts = [adafw.L2Ball(1.0), adafw.Simplex(1.0), adafw.KSparse(0.1, 50), adafw.LInfBall(0.1)]
    return adafw.Product([(part, x.size // 4) for part in parts])


VECTORS = [(1_000,), (30_000,), (1_000_000,)]
MATRICES = [(30, 30), (150, 150), (1000, 1000)]
SETS: list[tuple[str, Callable[[np.ndarray], Any], list[tuple[int, ...]]]] = [
    ("L1Ball", third(lambda x: np.abs(x).sum(), adafw.L1Ball), VECTORS),
    ("L2Ball", third(np.linalg.norm, adafw.L2Ball), VECTORS),
    ("LInfBall", third(lambda x: np.abs(x).max(), adafw.LInfBall), VECTORS),
    ("Box", lambda x: adafw.Box(-0.5, 0.5), VECTORS),
    ("Simplex", third(lambda x: np.abs(x).sum(), adafw.Simplex), VECTORS),
    ("UnitSimplex", third(lambda x: np.abs(x).sum(), adafw.UnitSimplex), VECTORS),
    ("LpBall, p = 1.5", third(lambda x: np.linalg.norm(x, 1.5), lambda r: adafw.LpBall(r, 1.5)),
     VECTORS),
    ("LpBall, p = 3", third(lambda x: np.linalg.norm(x, 3), lambda r: adafw.LpBall(r, 3)), VECTORS),
    ("KSparse, k = n / 100", lambda x: adafw.KSparse(1.0, x.size // 100), VECTORS),
    ("GroupBall, groups of 10",
     lambda x: adafw.GroupBall(group_norm(x) / 3, np.arange(x.size) // 10), VECTORS),
    ("Product of 4", product, VECTORS),
    ("Hull of 200", hull, [(30,), (300,), (3_000,)]),
    ("Polytope, n / 4 rows", polytope, [(20,), (100,), (500,)]),
    ("Birkhoff", lambda x: adafw.Birkhoff(), [(10, 10), (50, 50), (250, 250)]),
    ("NuclearBall", third(lambda x: np.linalg.norm(x, "nuc"), adafw.NuclearBall), MATRICES),
    ("SpectralBall", third(lambda x: np.linalg.norm(x, 2), adafw.SpectralBall), MATRICES),
]  # fmt: skip
TOO_LONG = {("NuclearBall", (1000, 1000)), ("SpectralBall", (1000, 1000))}  # in a metric: minutes


def seconds(operations: list[Callable[[], Any]]) -> list[float]:
    """The least time of each operation over rounds in which they take turns."""
    least, spent = [np.inf] * len(operations), [0.0] * len(operations)
    for _ in range(ROUNDS):
        for i, operation in enumerate(operations):
            if spent[i] > BUDGET:
                continue
            repeats = max(1, int(1e-3 / least[i])) if np.isfinite(least[i]) else 1
            begin = time.perf_counter()
            for _ in range(repeats):
                operation()
            took = time.perf_counter() - begin
            least[i], spent[i] = min(least[i], took / repeats), spent[i] + took
    return least


def measure() -> list[dict[str, Any]]:
    rows = []
    for name, make, shapes in SETS:
        for shape in shapes:
            rng = np.random.default_rng(0)
            g, x = rng.standard_normal(shape), rng.standard_normal(shape)
            h = 10 ** rng.uniform(-1, 1, shape)
            constraint = make(x)
            operations: list[Callable[[], Any]] = [
                lambda c=constraint, g=g: c.lmo(g),
                lambda c=constraint, x=x: c.project(x),
            ]
            if (name, shape) not in TOO_LONG:
                operations.append(lambda c=constraint, x=x, h=h: c.project(x, h))
            times = [*seconds(operations), np.nan][:3]
            ratios = [t / times[0] for t in times[1:]]
            rows.append(dict(zip(COLUMNS, [name, shape, *times, *ratios], strict=True)))
            print(name, shape, *(f"{t:.2e}" for t in times), flush=True)
    return rows


def write_csv(rows: list[dict[str, Any]]) -> None:
    with open(DOCS / "benchmarks" / "set_costs.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in rows:
            numbers = ["" if np.isnan(row[c]) else f"{row[c]:.3g}" for c in COLUMNS[2:]]
            writer.writerow([row["set"], label(row["shape"]), *numbers])


def label(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{n:_}".replace("_", " ") for n in shape)


def in_words(t: float) -> str:
    if np.isnan(t):
        return "-"
    unit, factor = ("s", 1) if t >= 1 else ("ms", 1e3) if t >= 1e-3 else ("us", 1e6)
    return f"{t * factor:.3g} {unit}"


def write_table(rows: list[dict[str, Any]]) -> None:
    lines = ["| set | size | LMO | Euclidean projection | in a metric | metric / LMO |",
             "| --- | ---: | ---: | ---: | ---: | ---: |"]  # fmt: skip
    for row in rows:
        times = " | ".join(in_words(row[c]) for c in COLUMNS[2:5])
        ratio = "-" if np.isnan(row["metric / lmo"]) else f"{row['metric / lmo']:.2g}"
        first = row["set"] if row["shape"] == shapes_of(row["set"])[0] else ""
        lines.append(f"| {first} | {label(row['shape'])} | {times} | {ratio} |")
    page = DOCS / "sets.md"
    before, _, rest = page.read_text().partition("<!-- measured: begin -->")
    _, _, after = rest.partition("<!-- measured: end -->")
    marks = "<!-- measured: begin -->\n" + "\n".join(lines) + "\n<!-- measured: end -->"
    page.write_text(before + marks + after)


def shapes_of(name: str) -> list[tuple[int, ...]]:
    return next(shapes for known, _, shapes in SETS if known == name)


def draw(rows: list[dict[str, Any]]) -> None:
    """How many LMOs a projection costs, per set, growing dots for growing sizes."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "set_costs", "font.size": 9})
    from matplotlib import pyplot

    names = [name for name, _, _ in SETS][::-1]
    figure, ax = pyplot.subplots(figsize=(6.4, 4.6), layout="constrained")
    for key, colour, shift, text in (
        ("euclidean / lmo", "tab:blue", 0.17, "Euclidean projection"),
        ("metric / lmo", "tab:red", -0.17, "projection in a metric"),
    ):
        for size in range(3):
            picked = [row for row in rows if shapes_of(row["set"])[size] == row["shape"]]
            ax.plot(
                [row[key] for row in picked],
                [names.index(row["set"]) + shift for row in picked],
                "o", color=colour, markersize=3 + 1.7 * size, alpha=0.75, markeredgewidth=0,
                label=text if size == 2 else None,
            )  # fmt: skip
    ax.axvline(1, color="0.6", linewidth=0.8)
    ax.set(xscale="log", yticks=range(len(names)), yticklabels=names)
    ax.set_xlabel("time of a projection / time of a linear minimisation; larger dot, larger size")
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    # Above the axes: inside them it would hide the dearest projections.
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.savefig(DOCS / "figures" / "set_costs.svg", metadata={"Date": None})


def main() -> None:
    rows = measure()
    write_csv(rows)
    write_table(rows)
    draw(rows)


if __name__ == "__main__":
    main()
