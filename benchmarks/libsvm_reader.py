"""adafw's LIBSVM reader against scikit-learn's, interleaved: python benchmarks/libsvm_reader.py.

Ratios of CPU time (all threads) and of wall time, median and range over the repeats, on a file of
RCV1's shape with six decimals, and on one with all 16-17 digits. Both loaders must agree bit for
bit before anything is timed.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from adafw.datasets import read_libsvm, write_libsvm


def make(path, rows, digits):
    rng = np.random.default_rng(0)
    A = sparse.random_array((rows, 47_236), density=75 / 47_236, rng=rng, format="csr")
    A.data = np.round(A.data, digits)
    write_libsvm(path, A, rng.choice([-1, 1], rows))


def timed(load):
    cpu, wall = time.process_time(), time.perf_counter()
    loaded = load()
    return time.process_time() - cpu, time.perf_counter() - wall, loaded


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for label, digits in (("6 digits", 6), ("16-17 digits", 17)):
            path = Path(folder) / "data.svm"
            make(path, options.rows, digits)
            size = path.stat().st_size / 1e6
            readers = {
                "scikit-learn": lambda p=path: load_svmlight_file(str(p)),
                "adafw, 1 thread": lambda p=path: read_libsvm(p, threads=1),
                "adafw": lambda p=path: read_libsvm(p),
            }
            (A, y), (B, z) = readers["scikit-learn"](), readers["adafw"]()
            for a, b in ((A.data, B.data), (A.indices, B.indices), (A.indptr, B.indptr), (y, z)):
                np.testing.assert_array_equal(a, b)
            times = {name: [] for name in readers}
            for _ in range(options.repeats):
                for name, load in readers.items():
                    times[name].append(timed(load)[:2])
            print(f"{label}: {size:.1f} MB, {options.repeats} interleaved repeats")
            for name, pairs in times.items():
                line = f"  {name:<16}"
                for k, clock in enumerate(("CPU", "wall")):
                    ratios = [
                        s[k] / t[k] for s, t in zip(times["scikit-learn"], pairs, strict=True)
                    ]
                    rate = size / statistics.median(t[k] for t in pairs)
                    line += f"  {clock} {rate:6.0f} MB/s, {statistics.median(ratios):5.1f}x"
                    line += f" [{min(ratios):.1f}, {max(ratios):.1f}]"
                print(line)


if __name__ == "__main__":
    main()
