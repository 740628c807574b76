"""kill -9 at any moment: what was whole stays whole, and the work goes on to the same end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from adafw.datasets import load_parts, save_parts, write_libsvm
from adafw.solver import State
from torture.engine import Engine, Failure, crowd

SAVE = """
import sys, numpy as np, adafw
f = adafw.LinearModel(np.random.default_rng(0).normal(size=(400, 300)), np.ones(400),
                      adafw.losses.Logistic())
r = adafw.minimize(f, adafw.L1Ball(1.0), adafw.AdaCSFW(learning_rate=1.0), max_iterations=3)
print("ready", flush=True)
while True:
    r.state.save(sys.argv[1])
"""
CONVERT = """
import sys
from adafw.datasets import libsvm_to_parts
print("ready", flush=True)
while True:
    libsvm_to_parts(sys.argv[1], sys.argv[2], block_bytes=2000)
"""
REPRODUCE = """
import sys
from adafw.experiments import reproduce
if __name__ == "__main__":
    print("ready", flush=True)
    reproduce(sys.argv[1], sys.argv[2], workers=1)
    print("done", flush=True)
"""
TOML = """
title = "k"
loss = "SquaredHinge"
set = { name = "L1Ball", radius = 1.0 }
seeds = [1, 2]
budget = { max_iterations = 400 }
data = { name = "support_vector", m = 300, n = 20, seed = 4 }
[[algorithms]]
name = "AdaCSFW"
learning_rate = 1.0
"""


def start(script: str, *words: object) -> subprocess.Popen:
    """A process that has said that it is ready."""
    command = [sys.executable, "-c", script, *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               start_new_session=True)  # fmt: skip
    process.stdout.readline()
    return process


def kill_after(process: subprocess.Popen, seconds: float) -> None:
    """SIGKILL for it and its children."""
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def left_over(folder: Path) -> int:
    """Partial files in a folder."""
    return len(list(folder.glob(".*.part")))


class Saves(Engine):
    """`State.save`, killed while it writes again and again."""

    name = "kill-save"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """A chain of three kills on one file."""
        path = folder / "s.npz"
        for _ in range(3):
            kill_after(start(SAVE, path), float(rng.random() * 0.1))
            if path.exists():
                State.load(path)
            if left_over(folder) > 1:
                raise Failure(f"{left_over(folder)} partial files after a chain of kills")
        return "state"


class Parts(Engine):
    """`libsvm_to_parts`, killed while it replaces a directory."""

    name = "kill-parts"

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """The parts are the old or the new ones, never half of either."""
        A = sparse.random_array((200, 9), density=0.5, rng=rng, format="csr")
        y = np.arange(200.0)
        write_libsvm(folder / "d.svm", A, y)
        save_parts(folder / "p", A, y)
        for _ in range(3):
            kill_after(start(CONVERT, folder / "d.svm", folder / "p"), float(rng.random() * 0.2))
            B, z = load_parts(folder / "p")
            if (B != A).nnz or not np.array_equal(z, y):
                raise Failure("parts that are neither the old nor the new ones")
            if left_over(folder) > 1:
                raise Failure(f"{left_over(folder)} partial files after a chain of kills")
        return "parts"


class Fits(Engine):
    """`adafw fit --checkpoint --resume`, killed until it gets through."""

    name = "kill-fit"
    patience = 300.0

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """The model is the one of a fit that nobody killed, bit for bit."""
        X = rng.standard_normal((1500, 40))
        labels = rng.integers(0, 3, 1500)
        np.save(folder / "d.npy", np.column_stack([X, labels]))
        options = "--quiet --radius 5 --algorithm AdaCSFW --learning-rate 1 --max-epochs 12 --tol 0"
        base = [sys.executable, "-m", "adafw", "fit", str(folder / "d.npy"), *options.split()]
        whole = subprocess.run([*base, "-o", str(folder / "whole")], capture_output=True)
        if whole.returncode:
            raise Failure(f"fit ended with {whole.returncode}: {whole.stderr.decode()[-300:]}")
        words = [*base, "-o", str(folder / "m"), "--checkpoint", str(folder / "c"),
                 "--checkpoint-every", "0", "--resume"]  # fmt: skip
        for kills in range(40):
            process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                       start_new_session=True)  # fmt: skip
            try:
                # Longer from kill to kill: a chain on a slow machine must end, too.
                process.wait(1.0 + kills * 0.5 + float(rng.random()))
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode != 0:
            raise Failure(f"a killed fit did not go on: {process.stderr.read().decode()[-300:]}")
        process.stderr.close()
        from adafw.fitting.model import LinearModelFile

        one, other = LinearModelFile.load(folder / "whole"), LinearModelFile.load(folder / "m")
        if one.coef.tobytes() != other.coef.tobytes():
            raise Failure("a fit that was killed and resumed gave other coefficients")
        return f"{kills} kills"


class Reproductions(Engine):
    """`reproduce`, killed until it gets through."""

    name = "kill-reproduce"
    patience = 600.0

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """The records are those of a call that nobody killed, seconds aside."""
        (folder / "k.toml").write_text(TOML)
        (folder / "r.py").write_text(REPRODUCE)
        results = []
        for out, most in ((folder / "whole", 0), (folder / "killed", 3)):
            for kills in range(most + 1):
                command = [sys.executable, str(folder / "r.py"), str(folder / "k.toml"), str(out)]
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           start_new_session=True)  # fmt: skip
                if kills < most:
                    process.stdout.readline()
                    kill_after(process, 1.0 + 4 * float(rng.random()))
                    process.stderr.close()
                    continue
                _, said = process.communicate(timeout=300 * crowd())
                if process.returncode:
                    raise Failure(f"reproduce ended with {said.decode()[-300:]}")
            rows = (out / "k" / "trace.csv").read_text().splitlines()
            head = rows[0].split(",")
            dropped = {k for k, word in enumerate(head) if "seconds" in word}
            results.append(
                [[w for k, w in enumerate(r.split(",")) if k not in dropped] for r in rows]
            )
            json.loads((out / "k" / "summary.json").read_text())
        if results[0] != results[1]:
            raise Failure("a reproduction that was killed and resumed has another trace")
        return "reproduced"
