"""What is paid around the iterations: reading, importing, starting, and the use of all cores."""

import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
from libsvm_reader import make
from rows.problems import text_model
from timing import interleaved, ratio

import adafw


def reader():
    """scikit-learn's LIBSVM loader over ours, one thread, CPU time, RCV1's shape."""
    from sklearn.datasets import load_svmlight_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.svm"
        make(path, 10_000, 6)

        def theirs():
            load_svmlight_file(str(path))
            return 1

        def ours():
            adafw.datasets.read_libsvm(path, threads=1)
            return 1

        # All threads of the process: the parser's own one is not this one.
        sides = {"scikit-learn": theirs, "adafw": ours}
        return ratio("scikit-learn", "adafw", sides, 7, time.process_time)


def cores():
    """Full gradient on RCV1, one core over all cores, wall time."""
    f, _ = text_model()
    x = np.zeros(f.shape)
    x[::1000] = 1.0
    points = [x, -x]  # in turn, as f remembers the gradient at the last one

    def on(threads):
        def work():
            before = os.environ["OMP_NUM_THREADS"]
            os.environ["OMP_NUM_THREADS"] = str(threads)
            for k in range(20):
                f.gradient(points[k % 2])
            os.environ["OMP_NUM_THREADS"] = before
            return 20

        return work

    sides = {"one core": on(1), "all cores": on(os.cpu_count() or 1)}
    return ratio("one core", "all cores", sides, 15, time.perf_counter)


def small():
    """minimize on 100 x 10 data, 100 iterations, milliseconds of CPU once warm (worst path)."""
    rng = np.random.default_rng(0)
    A, y = rng.random((100, 10)), rng.random(100)
    f = adafw.LinearModel(A, y, adafw.losses.Squared())

    def solve(path):
        adafw.minimize(
            f, adafw.L1Ball(1.0), adafw.AdaCSFW(1.0), max_iterations=100, path=path, progress=False
        )
        return 1

    paths = ("auto", "generic")
    times = interleaved({path: lambda path=path: solve(path) for path in paths}, 15)
    return {"ratio": max(times.values()) / 1e3, "microseconds": times}


def importing():
    """import adafw, seconds of CPU."""
    code = "import time, sys; t = time.process_time(); import adafw; print(time.process_time() - t)"
    command = [sys.executable, "-c", code]
    times = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    ]
    return {"ratio": statistics.median(times[1:]), "seconds": times}


def wheel():
    """Size of the wheel, MB."""
    packed, source = io.BytesIO(), Path(adafw.__file__).parent
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(source.rglob("*")):
            if path.suffix in (".py", ".toml", ".typed"):
                archive.write(path, path.relative_to(source.parent))
    return {"ratio": packed.tell() / 1e6}
