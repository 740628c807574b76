"""Disks that are full or closed, and files that change under the reader."""

import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np

import adafw
from adafw.datasets import read_libsvm, save_parts, write_libsvm
from adafw.io.atomic import write_text
from adafw.io.damage import FileChanged
from adafw.io.tables import read_table
from torture.engine import Engine, Failure, crowd

CUT = """
import os, sys, threading, time, numpy as np, adafw
from adafw.io.damage import FileChanged
folder, name, delay, path = sys.argv[1:]
A, y = adafw.datasets.load_parts(folder)
def cut():
    time.sleep(float(delay))
    os.truncate(f"{folder}/{name}.npy", 300)
threading.Thread(target=cut).start()
try:
    f = adafw.LinearModel(A, y, adafw.losses.Logistic())
    adafw.minimize(f, adafw.L1Ball(5.0), adafw.AdaCSFW(learning_rate=1.0), path=path,
                   max_seconds=float(delay) + 3, max_epochs=1e9)
except (FileChanged, ValueError) as error:
    sys.exit(0 if len(str(error).splitlines()) == 1 else 9)
"""


class FullDisk(Engine):
    """Every writer on a disk that ends in the middle of the file."""

    name = "full-disk"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """The old file survives, nothing partial is left, and the error is the system's own."""
        A, y = rng.standard_normal((40, 5)), rng.choice([-1.0, 1.0], 40)
        f = adafw.LinearModel(A, y, adafw.losses.Logistic())
        state = adafw.minimize(f, adafw.L1Ball(1.0), adafw.CSFW(), max_iterations=3).state
        writers = {
            "state": lambda p: state.save(p),
            "libsvm": lambda p: write_libsvm(p, A, y),
            "parts": lambda p: save_parts(p, A, y),
            "text": lambda p: write_text(p, "x" * 5000),
        }
        name = list(writers)[int(rng.integers(len(writers)))]
        path = folder / "target"
        writers[name](path)
        before = _content(path)
        size = int(rng.integers(0, 900))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            writers[name](path)
        except OSError:
            pass
        else:
            raise Failure(f"{name}: no error on a full disk")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, old)
        if _content(path) != before or list(folder.iterdir()) != [path]:
            raise Failure(f"{name}: a full disk left {[p.name for p in folder.iterdir()]}")
        return name


def _content(path: Path) -> dict[str, bytes]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.read_bytes() for file in files}


class NoPlace(Engine):
    """Writing where nothing can be written, and where something else stands."""

    name = "no-place"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """OSError or ValueError of one sentence, and nothing left."""
        (folder / "file").write_text("x")
        (folder / "full").mkdir()
        (folder / "full" / "thing").write_text("x")
        targets = [
            folder / "file" / "below",
            folder / "full",
            folder / ("n" * 300),
            Path("/proc/x/y"),
        ]
        target = targets[int(rng.integers(len(targets)))]
        A, y = np.eye(3), np.ones(3)
        writers = [lambda p: write_libsvm(p, A, y), lambda p: save_parts(p, A, y),
                   lambda p: write_text(p, "x")]  # fmt: skip
        try:
            writers[int(rng.integers(3))](target)
        except (OSError, ValueError) as error:
            if len(str(error).splitlines()) != 1:
                raise Failure(f"no single sentence: {error}") from None
        else:
            raise Failure(f"{target} was written to")
        if sorted(p.name for p in folder.iterdir()) != ["file", "full"]:
            raise Failure(f"left {[p.name for p in folder.iterdir()]}")
        return "refused"


class Changing(Engine):
    """Files rewritten and cut by a thread while they are read."""

    name = "changing"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """One of the contents, or a sentence."""
        path = folder / ["d.svm", "d.csv", "d.npy"][int(rng.integers(3))]
        sizes = [int(rng.integers(1, 3000)), int(rng.integers(1, 3000))]
        for k, m in enumerate(sizes):
            one = folder / f"{k}{path.suffix}"
            X = np.full((m, 3), float(k + 1))
            if path.suffix == ".svm":
                write_libsvm(one, X, np.ones(m))
            elif path.suffix == ".csv":
                one.write_text("\n".join("1,1,1,1" if k == 0 else "2,2,2,1" for _ in range(m)))
            else:
                np.save(one, np.column_stack([X, np.ones(m)]))
        contents = [(folder / f"{k}{path.suffix}").read_bytes() for k in range(2)]
        path.write_bytes(contents[0])
        stop = threading.Event()

        def rewrite() -> None:
            k = 0
            while not stop.is_set():
                k += 1
                path.write_bytes(contents[k % 2])

        thread = threading.Thread(target=rewrite)
        thread.start()
        told = 0
        try:
            for _ in range(40):
                try:
                    if path.suffix == ".svm":
                        X = read_libsvm(path, threads=2)[0]
                    else:
                        X = read_table(path).X
                except FileChanged:
                    told += 1
                except ValueError as error:
                    if len(str(error).splitlines()) != 1:
                        raise Failure(f"no single sentence: {error}") from None
                else:
                    value = X.sum() / (X.shape[0] * 3)
                    if value not in (1.0, 2.0) or X.shape[0] not in sizes:
                        raise Failure(f"half of two files: {X.shape} of mean {value}")
        finally:
            stop.set()
            thread.join()
        return f"{path.suffix}: {told} of 40 told"


class Cut(Engine):
    """Mapped parts cut short while a run reads them, in a process of its own."""

    name = "cut-parts"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """The process ends by itself, not by a signal."""
        A = rng.standard_normal((4000, 30))
        save_parts(folder / "p", A, rng.choice([-1.0, 1.0], 4000))
        path = ["generic", "fused"][int(rng.integers(2))]
        command = [
            sys.executable,
            "-c",
            CUT,
            str(folder / "p"),
            "data",
            f"{rng.random() * 0.5:.3f}",
            path,
        ]
        done = subprocess.run(command, capture_output=True, timeout=110 * crowd())
        if done.returncode != 0:
            raise Failure(f"ended with {done.returncode}: {done.stderr.decode()[-400:]}")
        return path
