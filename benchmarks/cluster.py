"""Rows on local workers: what a round trip costs, what a pass gains, what a kill costs, bytes.

    python benchmarks/cluster.py [--quick] [--only passes overhead] [--firm]
        writes docs/benchmarks/distributed.json
    python benchmarks/cluster.py --figure
        draws docs/figures/scaling.svg from it

Times are the least of many: a shared machine makes all others longer. The speed-up of a pass is
told from wall times, one process's or one worker's over two workers', and from CPU seconds: those
of one process over those of the slower worker and of the coordinator. With --firm (Linux, root)
coordinator and workers have real-time priority while passes and trips are timed, so that others on
the machine wait. docs/scaling.md quotes these numbers.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"  # as Dask's workers have it

import argparse
import json
import logging
import signal
import time
from pathlib import Path

import numpy as np
from machine import describe

import adafw

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "benchmarks" / "distributed.json"
FIGURE = ROOT / "docs" / "figures" / "scaling.svg"
LOGISTIC = adafw.losses.Logistic()


def text_part(m, n, k, order=None):
    """A recipe of m rows of text-like data, seed k; sorted by label if `order`."""

    def make():
        import numpy as np

        import adafw

        A, y = adafw.datasets.text_like(m=m, n=n, seed=k)
        if order is not None:
            rows = np.flatnonzero(y == (1 if order == "up" else -1))
            A, y = A[rows], y[rows]
        return A, y

    return make


def random_part(m, n, each, k):
    """m rows of `each` entries in uniform columns: a pass costs what it stores."""

    def make():
        import numpy as np
        from scipy import sparse

        rng = np.random.default_rng(k)
        columns = np.sort(rng.integers(0, n, (m, each)), axis=1).ravel().astype(np.int32)
        values = rng.normal(size=m * each)
        A = sparse.csr_array((values, columns, np.arange(0, m * each + 1, each)), shape=(m, n))
        A.sum_duplicates()
        return A, np.where(rng.random(m) < 0.5, -1.0, 1.0)

    return make


def model(client, parts):
    from adafw.distributed import DistributedLinearModel

    return DistributedLinearModel.from_parts(parts, LOGISTIC, client=client)


def least(call, repeats):
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times), float(np.median(times))


def hold(client):
    """Real-time priority for all threads of this process and of the workers."""

    def firm():
        for thread in os.listdir("/proc/self/task"):
            os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))

    client.run(firm)
    firm()


class Spent:
    """CPU seconds of this process, less what scheduler and nannies in it take while all is idle."""

    def __init__(self):
        began, wall = time.process_time(), time.perf_counter()
        time.sleep(2)
        self.idle = (time.process_time() - began) / (time.perf_counter() - wall)

    def __enter__(self):
        self.cpu, self.wall = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *_):
        self.wall = time.perf_counter() - self.wall
        self.cpu = max(0.0, time.process_time() - self.cpu - self.idle * self.wall)


def overhead(client, quick, prepare):
    """Seconds of an empty round trip, and of an AdaCSFW iteration beyond one machine's."""
    m, n, workers = 20_000, 1_000, len(client.ncores())
    f = model(client, [random_part(m // workers, n, 20, k) for k in range(workers)])
    batch, x = np.arange(0, f.n_terms, 100), np.zeros(n)
    repeats = 100 if quick else 500
    for _ in range(10):
        f.gradient(x, batch)
    prepare(client)
    trip, median = least(lambda: f.gradient(x, batch), repeats)
    before = f.traffic.copy()
    with Spent() as clock:
        for _ in range(repeats):
            f.gradient(x, batch)
    spent, done = clock.cpu / repeats, f.traffic
    return {
        "least": trip, "median": median, "coordinator_cpu": spent,
        "worker_cpu": (done.seconds - before.seconds) / repeats,
        "sent": (done.sent - before.sent) / repeats,
        "received": (done.received - before.received) / repeats,
    }  # fmt: skip


def bandwidth(client, quick, _):
    """Seconds a byte over loopback, from vectors of 16 MB."""
    f = model(client, [random_part(50, 2_000_000, 1, k) for k in range(2)])
    rng, repeats = np.random.default_rng(0), 10 if quick else 40
    x = rng.normal(size=2_000_000)
    before = f.traffic.copy()
    seconds, _ = least(lambda: f.rows.dot(x + rng.random()), repeats)
    return seconds / ((f.traffic.sent - before.sent) / repeats)


def passes(client, quick, prepare):
    """A full gradient of one process on one thread, and of the workers."""
    m, n, each = 1_600_000, 50_000, 40
    f = model(client, [random_part(m // 2, n, each, k) for k in range(2)])
    halves = [random_part(m // 2, n, each, k)() for k in range(2)]
    from scipy import sparse

    here = adafw.LinearModel(
        sparse.vstack([A for A, _ in halves], format="csr"),
        np.concatenate([y for _, y in halves]), LOGISTIC,
    )  # fmt: skip
    del halves
    x = np.random.default_rng(0).normal(size=n)
    alone, wall, cpu, critical, spent = [], [], [], [], Spent()
    prepare(client)
    for _ in range(5 if quick else 40):
        x = x + 1e-3
        began = time.perf_counter(), time.thread_time()
        one = here.value_and_gradient(x)
        alone.append((time.perf_counter() - began[0], time.thread_time() - began[1]))
        before = f.traffic.seconds
        with spent:
            two = f.value_and_gradient(x)
        wall.append(spent.wall)
        cpu.append(spent.cpu)
        critical.append(f.traffic.seconds - before)
        assert np.allclose(one[1], two[1], atol=1e-12)
    here_wall, here_cpu = np.array(alone).T
    return {
        "rows": m, "stored": here.rows.stored, "one_process_cpu": here_cpu.min(),
        "one_process_wall": here_wall.min(), "one_process_wall_median": np.median(here_wall),
        "workers_wall": min(wall), "workers_wall_median": float(np.median(wall)),
        "workers_cpu": min(critical), "coordinator_cpu": float(np.median(cpu)),
        "load": os.getloadavg()[0],
    }  # fmt: skip


def speed_ups(one, two):
    """Of `passes` with one worker and with two."""
    return {
        "by_wall": two["one_process_wall"] / two["workers_wall"],
        "by_median_wall": two["one_process_wall_median"] / two["workers_wall_median"],
        "by_cpu": two["one_process_cpu"] / (two["workers_cpu"] + two["coordinator_cpu"]),
        "over_one_worker_by_wall": one["workers_wall"] / two["workers_wall"],
    }


def methods(client, quick, _):
    """Round trips, bytes and epochs to a relative gap of 1e-3, on text-like rows."""
    m, n = (4_000 if quick else 20_000), 20_000
    f = model(client, [text_part(m // 4, n, k) for k in range(4)])
    constraint = adafw.L1Ball(50.0)
    wanted = 1e-3 * f.value(np.zeros(n))
    found = {}
    for name, algorithm in {
        "Corrective": adafw.Corrective(), "BPCG": adafw.BPCG(), "FW": adafw.FW(),
        "CSFW": adafw.CSFW(), "AdaCSFW": adafw.AdaCSFW(learning_rate=10.0),
        "AdaSVRF": adafw.AdaSVRF(learning_rate=10.0),
    }.items():  # fmt: skip
        before = f.traffic.copy()
        r = adafw.minimize(
            f,
            constraint,
            algorithm,
            gap_tolerance=wanted,
            max_iterations=300 if quick else 3000,
            max_seconds=60,
            record_every=None,
        )
        done = f.traffic
        trips = done.trips - before.trips
        found[name] = {
            "status": r.status, "gap": r.gap, "epochs": r.trace[-1].epoch, "trips": trips,
            "iterations": r.trace[-1].iteration,
            "megabytes": (done.sent + done.received - before.sent - before.received) / 1e6,
            "worker_seconds": done.seconds - before.seconds,
        }  # fmt: skip
    return found


def local_steps(client, quick, _):
    """Gaps after so many round trips: local iterations between exchanges, or none."""
    from adafw.distributed import LocalCSFW

    m, n, found = (2_000 if quick else 8_000), 2_000, {}
    for kind in ("alike", "one label each"):
        orders = (None, None) if kind == "alike" else ("up", "down")
        f = model(client, [text_part(m // 2, n, k, order) for k, order in enumerate(orders)])
        constraint = adafw.L1Ball(20.0)
        scale = f.value(np.zeros(n))
        found[kind] = {}
        for name, algorithm, trips in (
            ("CSFW", adafw.CSFW(), 1), ("LocalCSFW, 10", LocalCSFW(10), 2),
            ("LocalCSFW, 100", LocalCSFW(100), 2), ("LocalCSFW, 1000", LocalCSFW(1000), 2),
        ):  # fmt: skip
            rounds = (40 if quick else 200) // trips
            r = adafw.minimize(f, constraint, algorithm, max_iterations=rounds, max_seconds=90)
            found[kind][name] = {
                "trips": trips * r.trace[-1].iteration, "relative_gap": r.best.gap / scale,
                "epochs": r.trace[-1].epoch,
            }  # fmt: skip
    return found


def recovery(client, quick, _):
    """Seconds that a run loses by a SIGKILL, of a worker that had half of the rows."""
    import dask

    f = model(client, [random_part(10_000, 1_000, 20, k) for k in range(4)])
    batch, x, lost = np.arange(0, f.n_terms, 100), np.zeros(1_000), []
    # A worker that is away for the second time when this has passed is never started again.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}):
        for _ in range(2 if quick else 8):
            client.wait_for_workers(2)
            while len(f.rows.engine.placement.workers) < 2:
                f.gradient(x, batch)
                time.sleep(0.05)
            usual, _ = least(lambda: f.gradient(x, batch), 20)
            os.kill(next(iter(client.cluster.workers.values())).pid, signal.SIGKILL)
            began = time.perf_counter()
            f.gradient(x, batch)
            lost.append(time.perf_counter() - began - usual)
    return {"least": min(lost), "median": float(np.median(lost)), "most": max(lost)}


#: What is measured, on how many workers.
PARTS = {
    overhead: (1, 2, 4), bandwidth: (2,), passes: (1, 2), methods: (2,), local_steps: (2,),
    recovery: (2,),
}  # fmt: skip


def measure(quick, only, firm):
    """All parts, or some, in which case the other numbers stay as they are."""
    from adafw.distributed import local_client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    found = json.loads(RESULTS.read_text()) if only else {}
    prepare = hold if firm else lambda _: None
    for workers in (1, 2, 4):
        for part in [p for p in PARTS if workers in PARTS[p] and p.__name__ in (only or NAMES)]:
            with local_client(workers) as client:
                told = found.setdefault(part.__name__, {})[str(workers)] = part(
                    client, quick, prepare
                )
            print(part.__name__, workers, told, flush=True)
    found["speed_up"] = speed_ups(found["passes"]["1"], found["passes"]["2"])
    found["machine"] = describe()
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")


NAMES = [part.__name__ for part in PARTS]

# -- the model of costs --------------------------------------------------------------------------


def costs(found):
    """(seconds a trip, a worker in it, a byte, an entry of a pass), from the measurements."""
    workers = np.array([int(count) for count in found["overhead"]])
    # What the coordinator does for each worker is CPU time, which a busy machine leaves alone.
    spent = np.array([told["coordinator_cpu"] for told in found["overhead"].values()])
    each, fixed = np.polyfit(workers, spent, 1)
    network = 1 / 1.1e9  # bytes of a 10 GbE card; loopback is faster
    latency = 2e-4
    entry = found["passes"]["2"]["one_process_cpu"] / found["passes"]["2"]["stored"]
    return fixed + latency, max(each, 1e-5), network, entry


def trip_seconds(cost, workers, entries, coordinator_bytes):
    """One round trip: the coordinator's messages, the slowest worker's entries, all bytes."""
    fixed, each, byte, entry = cost
    return fixed + each * workers + byte * coordinator_bytes + entry * entries / workers


def fit_seconds(cost, method, workers, rows, each, n, atoms=300):
    """Seconds to a certified gap: rounds as measured, on rows of so many entries."""
    stored = rows * each
    if method == "one machine":
        return 20 * cost[3] * stored
    if method == "Corrective":
        # A round: a gradient (slopes out, a vector a worker back), two Newton steps with slopes
        # and bends out, moves back, and a Gram matrix of `atoms` columns from every worker.
        gradient = trip_seconds(cost, workers, stored, 8 * rows + 8 * n * workers)
        newton = trip_seconds(
            cost, workers, 0.3 * stored, 3 * 8 * rows + 4 * atoms**2 * workers
        ) + 2 * trip_seconds(cost, workers, 0.2 * stored, 0)
        return 10 * (gradient + 2 * newton)
    if method == "full gradients":  # of n entries a worker, x sparse
        return 400 * trip_seconds(cost, workers, stored, 8 * n * workers)
    batch = rows / 100  # CSFW: 40 epochs
    sparse = min(8 * n, 12 * batch * each / workers) * workers
    return 4000 * trip_seconds(cost, workers, stored / 100, 36 * batch + sparse)


def draw(found):
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "adafw"})
    cost = costs(found)
    workers = np.unique(np.geomspace(1, 1000, 60).round())
    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.6), sharey=True)
    for ax, rows in zip(axes, (1e6, 1e8, 1e10), strict=True):
        for method, style in (
            ("Corrective", "-"), ("full gradients", "--"), ("CSFW", "-."), ("one machine", ":"),
        ):  # fmt: skip
            ax.plot(
                workers,
                [fit_seconds(cost, method, w, rows, 75, 1e6) for w in workers],
                style, label=method,
            )  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="workers", title=f"{rows:.0e} rows of 75 entries")
    axes[0].set_ylabel("seconds to a certified gap (model)")
    axes[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})
    names = ("a round trip", "a worker in it", "a byte", "an entry")
    for name, value in zip(names, cost, strict=True):
        print(f"{name:<16}{value:.3g} s")
    for rows in (1e6, 1e8, 1e10):
        for method in ("Corrective", "full gradients", "CSFW"):
            times = [fit_seconds(cost, method, w, rows, 75, 1e6) for w in workers]
            best = int(np.argmin(times))
            alone = fit_seconds(cost, "one machine", 1, rows, 75, 1e6)
            print(
                f"{rows:.0e} rows  {method:<15} best with {workers[best]:5.0f} workers: "
                f"{times[best]:10.3g} s, {times[0] / times[best]:6.1f} times one worker, one "
                f"machine {alone:.3g} s"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=NAMES)
    parser.add_argument("--firm", action="store_true")
    parser.add_argument("--figure", action="store_true")
    asked = parser.parse_args()
    if not asked.figure:
        measure(asked.quick, asked.only, asked.firm)
    draw(json.loads(RESULTS.read_text()))
