"""What it is worth that the C library keeps what runs free: fits in a loop, with and without.

    python benchmarks/freed_memory.py [--fits 40]

Each in a process of its own that reads its data from a file, so that nothing was freed before:
median milliseconds of a fit, and page faults, memory that came anew from the system.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import numpy as np
from certified_data import PROBLEMS
from scipy import sparse

from adafw.sklearn import FrankWolfeClassifier

CASES = {
    "unrelated 20 000 x 1 500, radius 200": (PROBLEMS["unrelated"], 200.0),
    "binary 49 749 x 300, radius 10": (PROBLEMS["binary"], 10.0),
    "one-hot 32 561 x 123, radius 20": (PROBLEMS["one-hot"], 20.0),
    "one-hot 8 124 x 112, radius 20": (PROBLEMS["mushrooms"], 20.0),
}


def measure(path, radius, fits):
    """(milliseconds, page faults) of a fit."""
    data = np.load(path)
    parts = (data["data"], data["indices"], data["indptr"])
    A, y = sparse.csr_array(parts, shape=data["shape"]), data["y"]
    model = FrankWolfeClassifier(radius=radius, fit_intercept=False)
    seconds, faults = [], []
    for _ in range(fits):
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        model.fit(A, y)
        seconds.append(time.perf_counter() - begun)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return 1e3 * float(np.median(seconds[3:])), int(np.median(faults[3:]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=40)
    parser.add_argument("--one", nargs=4, metavar=("NAME", "FILE", "RADIUS", "KEPT"))
    given = parser.parse_args()
    if given.one:
        name, path, radius, kept = given.one
        if kept == "given back":
            # The name is that of the function, too.
            import_module("adafw.minimize").keep_freed = lambda: None
        milliseconds, faults = measure(path, float(radius), given.fits)
        print(f"{name}, {kept}: {milliseconds:.1f} ms, {faults} page faults a fit", flush=True)
        sys.exit()
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, radius) in CASES.items():
            _, A, y = make()
            path = Path(folder) / "data.npz"
            np.savez(path, data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=y)
            for kept in ("given back", "kept"):
                one = ["--one", name, str(path), str(radius), kept]
                command = [sys.executable, __file__, "--fits", str(given.fits), *one]
                subprocess.run(command, check=True)
