"""The paper's support-vector experiment (section 4.1): all algorithms, a table and a figure.

python examples/support_vector.py [--seconds 3] [--out out/demo]
"""

import argparse
import math
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.table import Table

import adafw

# Settings of the paper: K and learning rates as printed, gamma_t = 1, b_t as section 4.1 says.
ALGORITHMS = {
    "SFW": adafw.SFW(),
    "SVRF": adafw.SVRF(),
    "SPIDER-FW": adafw.SPIDERFW(),
    "ORGFW": adafw.ORGFW(),
    "CSFW": adafw.CSFW(),
    "AdaCSFW": adafw.AdaCSFW(learning_rate=10**-1.5, inner_steps=2),
    "AdaGrad": adafw.AdaGrad(learning_rate=0.1),
    "AMSGrad": adafw.AMSGrad(learning_rate=0.01),
    # Not in the paper: the projected method with the gradient estimator that AdaCSFW enjoys.
    "AdaGrad on CSFW": adafw.AdaGrad(learning_rate=0.1, gradient=adafw.gradients.CSFW()),
}


def main() -> None:
    """Runs every algorithm for the same CPU time under a live table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0, help="CPU seconds per algorithm")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder of the figure")
    options = parser.parse_args()

    console = Console()
    with console.status("generating the data: m = 20 000, n = 1 000"):
        A, y = adafw.datasets.support_vector(m=20_000, n=1_000, seed=0)
    f = adafw.LinearModel(A, y, adafw.losses.SquaredHinge())
    ball = adafw.LInfBall(1.0)

    rows: dict[str, adafw.Record] = {}
    traces = {}
    with Live(table(rows), console=console, refresh_per_second=8) as live:
        for name, algorithm in ALGORITHMS.items():

            def show(state: adafw.State, record: adafw.Record, name: str = name) -> None:
                rows[name] = record
                live.update(table(rows))

            result = adafw.minimize(
                f, ball, algorithm, max_cpu_seconds=options.seconds,
                record_every=adafw.every(seconds=options.seconds / 30), callbacks=[show],
                progress=False,
            )  # fmt: skip
            traces[name] = result.trace

    if not console.is_terminal:
        console.print()  # a live table leaves the cursor at its last line
    best = min(traces, key=lambda name: traces[name]["gap"].min())
    bound = max(trace["lower_bound"][-1] for trace in traces.values())
    console.print(f"The minimum is certified to be at least {bound:.9f}; smallest gap: {best}.")
    figure = draw(traces, bound, options.out)
    console.print(f"Figure: {figure}")


def table(rows: dict[str, adafw.Record]) -> Table:
    """The state of all runs so far."""
    title = "Support-vector classification, squared hinge, |x|_inf <= 1"
    columns = Table("algorithm", "gap", "objective", "epochs", "LMO calls", "CPU s", title=title)
    for column in columns.columns[1:]:
        column.justify = "right"
    for name, r in rows.items():
        columns.add_row(
            name, f"{r.gap:.2e}", f"{r.value:.8f}", f"{r.epoch:.1f}", f"{r.lmo_calls}",
            f"{r.cpu_seconds:.1f}",
        )  # fmt: skip
    return columns


def draw(traces: dict[str, adafw.Trace], bound: float, out: Path) -> Path:
    """Gap and distance to the certified lower bound against CPU time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4), layout="constrained")
    for name, trace in traces.items():
        style = {"linewidth": 2.4 if name == "AdaCSFW" else 1.2, "label": name}
        left.semilogy(trace["cpu_seconds"], trace["gap"], **style)
        above = [max(v - bound, math.ulp(bound)) for v in trace["value"]]
        right.semilogy(trace["cpu_seconds"], above, **style)
    left.set(xlabel="CPU seconds", ylabel="Frank-Wolfe gap")
    right.set(xlabel="CPU seconds", ylabel="objective minus certified lower bound")
    figure.legend(*right.get_legend_handles_labels(), loc="outside right center", fontsize=8)
    out.mkdir(parents=True, exist_ok=True)
    for suffix in ("svg", "png"):
        figure.savefig(out / f"figure.{suffix}", dpi=130)
    return out / "figure.png"


if __name__ == "__main__":
    main()
