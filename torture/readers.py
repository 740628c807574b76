"""All readers of files, against damaged files: a result that others agree with, or one sentence."""

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

import adafw
from adafw.datasets import load_parts, read_libsvm, save_parts
from adafw.experiments.load import load_spec
from adafw.fitting.checkpoint import Checkpoint
from adafw.fitting.model import LinearModelFile
from adafw.io.tables import read_table
from adafw.solver import State
from torture.engine import Engine, Failure, file_test, smallest
from torture.mutate import damaged, damaged_inside


@dataclass(frozen=True)
class Reader:
    """A kind of file: how a good one is made, how it is read, and what the result must satisfy."""

    name: str
    file: str
    make: Callable[[np.random.Generator, Path], None]
    read: Callable[[Path], object]
    agrees: Callable[[Path, object], None] = lambda path, result: None


def judge(reader: Reader, path: Path) -> str:
    """Reads the file; "read" or "refused" are fine, anything else is a `Failure`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = reader.read(path)
    except (ValueError, OSError) as error:
        said = str(error)
        if len(said.splitlines()) != 1 or not said.strip():
            raise Failure(f"{reader.name}: no single sentence but {said!r}") from None
        return "refused"
    except Exception as error:
        raise Failure(f"{reader.name}: {type(error).__name__}: {error}") from error
    reader.agrees(path, result)
    return "read"


class Readers(Engine):
    """Good files, damaged at random."""

    def __init__(self, reader: Reader) -> None:
        self.reader, self.name = reader, reader.name

    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """Makes a good file, which must be read, then some damaged ones of it."""
        path = folder / self.reader.file
        self.reader.make(rng, path)
        if judge(self.reader, path) != "read":
            raise Failure(f"{self.name}: a good file was refused", path.read_bytes(), path.name)
        content = path.read_bytes()
        seen = []
        for _ in range(12):
            inside = content[:2] == b"PK" and rng.random() < 0.7
            bad = damaged_inside(content, rng) if inside else damaged(content, rng)
            try:
                seen.append(self._judged(path, bad))
            except Failure as failure:
                small = smallest(bad, lambda b, f=failure: self._same(path, b, f))
                raise Failure(failure.what, small, path.name) from failure
        return f"{seen.count('read')} of 12 read"

    def _judged(self, path: Path, content: bytes) -> str:
        path.write_bytes(content)
        return judge(self.reader, path)

    def _same(self, path: Path, content: bytes, failure: Failure) -> bool:
        try:
            self._judged(path, content)
        except Failure as other:
            return other.what.split(":")[:2] == failure.what.split(":")[:2]
        return False

    def source(self, number: int, seed: int, failure: Failure) -> str:
        """The small file itself."""
        if failure.content is None:
            return super().source(number, seed, failure)
        return file_test(self.name, failure.name, failure.content, failure.what)


# ------------------------------------------------------------------------------------- LIBSVM
def _number(rng: np.random.Generator) -> str:
    kind = int(rng.integers(7))
    x = float(rng.standard_normal() * 10.0 ** rng.integers(-30, 30))
    if kind == 0:
        return repr(x)
    if kind == 1:
        return f"{x:.{rng.integers(1, 20)}e}"
    if kind == 2:
        return str(int(rng.integers(-(10**18), 10**18)))
    if kind == 3:  # next to the middle of two doubles
        from decimal import Decimal

        return f"{(Decimal(x) + Decimal(math.nextafter(x, math.inf))) / 2:.{rng.integers(16, 25)}e}"
    return ["0", "-0", "+1", "1.", ".5", "1E3"][int(rng.integers(6))] if kind == 4 else f"{x:.6g}"


def make_libsvm(rng: np.random.Generator, path: Path) -> None:
    """Everything that the format allows."""
    lines, first, with_query = [], int(rng.integers(2)), rng.random() < 0.3
    for _ in range(int(rng.integers(1, 30))):
        ids = np.sort(rng.choice(60, int(rng.integers(0, 8)), replace=False)) + first
        words = [_number(rng)] + ([f"qid:{rng.integers(10**9)}"] if with_query else [])
        words += [f"{i}:{_number(rng)}" for i in ids]
        line = [" ", "\t", "  "][int(rng.integers(3))].join(words)
        lines.append(line + ["", " ", " # 1:2", "\r"][int(rng.integers(4))])
        lines += [[], [""], ["# note 3:4"]][int(rng.integers(3))]
    path.write_text("\n".join(lines) + ["", "\n"][int(rng.integers(2))])


def read_both(path: Path) -> object:
    """On one thread and on several: the same bits."""
    one, many = read_libsvm(path, threads=1), read_libsvm(path, threads=3)
    for a, b in zip(_arrays(one), _arrays(many), strict=True):
        if a.tobytes() != b.tobytes():
            raise Failure("libsvm: threads change the result")
    return one


def _arrays(result: object) -> list[np.ndarray]:
    A, y = result
    return [A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64), y]


def agrees_with_others(path: Path, result: object) -> None:
    """scikit-learn reads the same bits, and every number is what float() makes of it."""
    from sklearn.datasets import load_svmlight_file

    A, y = result
    if A.shape[1] < 1 << 31:
        with np.errstate(over="ignore"):
            try:
                B, z = load_svmlight_file(str(path))
            except Exception as error:
                raise Failure(f"libsvm: scikit-learn refuses what was read: {error}") from None
        theirs = [B.data, B.indices.astype(np.int64), B.indptr.astype(np.int64), z]
        for ours, other in zip(_arrays(result), theirs, strict=True):
            if ours.tobytes() != other.tobytes():
                raise Failure("libsvm: scikit-learn reads other numbers")
    text = re.sub(rb"#[^\n]*", b"", path.read_bytes())
    words = [line.split() for line in text.split(b"\n") if line.split()]
    labels = [float(row[0]) for row in words]
    if np.array(labels).tobytes() != y.tobytes():
        raise Failure("libsvm: labels are not what float() reads")


# ------------------------------------------------------------------------------------- tables
def make_csv(rng: np.random.Generator, path: Path) -> None:
    """With or without a header, quotes and text targets."""
    m, n = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    rows = [[f"{v:.5g}" for v in row] for row in rng.standard_normal((m, n))]
    target = ["cat", "dog"] if rng.random() < 0.5 else ["1", "-1"]
    rows = [[*row, target[int(rng.integers(2))]] for row in rows]
    if rng.random() < 0.6:
        rows.insert(0, [f"c{j}" for j in range(n)] + ["y"])
    quote = '"{}"' if rng.random() < 0.2 else "{}"
    path.write_text("\n".join(",".join(quote.format(cell) for cell in row) for row in rows))


def agrees_with_csv(path: Path, table: object) -> None:
    """The csv module and float() see the same numbers."""
    rows = [row for row in csv.reader(io.StringIO(path.read_text())) if row and any(row)]
    last = rows[-table.X.shape[0] :]
    found = np.array([[float(cell) for cell in row[:-1]] for row in last])
    if found.shape != table.X.shape or not np.array_equal(found, table.X):
        raise Failure("csv: other numbers than float() reads")


def make_npy(rng: np.random.Generator, path: Path) -> None:
    """Any order and number type."""
    matrix = rng.standard_normal((int(rng.integers(1, 30)), int(rng.integers(2, 6))))
    kind = ["<f8", ">f4", "<f2"][int(rng.integers(3))]
    np.save(path, np.asarray(matrix, kind, order="CF"[int(rng.integers(2))]))


def agrees_with_numpy(path: Path, table: object) -> None:
    """numpy loads the same."""
    try:
        array = np.load(path, allow_pickle=False)
    except Exception:
        return  # numpy may refuse more, such as bytes after the end
    if not np.array_equal(array[:, :-1].astype(float), table.X):
        raise Failure("npy: numpy reads other numbers")


def make_npz(rng: np.random.Generator, path: Path) -> None:
    """Dense or sparse, packed or not."""
    m, n = int(rng.integers(1, 20)), int(rng.integers(1, 6))
    save = np.savez_compressed if rng.random() < 0.5 else np.savez
    y = rng.choice([-1, 1], m)
    if rng.random() < 0.5:
        A = sparse.random_array((m, n), density=0.5, rng=rng, format="csr")
        save(path, data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=y)
    else:
        save(path, X=rng.standard_normal((m, n)), y=y)


def make_parquet(rng: np.random.Generator, path: Path) -> None:
    """Numbers and a text target."""
    import pyarrow as pa
    from pyarrow import parquet

    m = int(rng.integers(1, 30))
    table = {f"c{j}": rng.standard_normal(m) for j in range(int(rng.integers(1, 4)))}
    parquet.write_table(pa.table({**table, "y": rng.choice(["a", "b"], m)}), path)


def table_is_sound(path: Path, table: object) -> None:
    """As many targets as rows, all finite."""
    values = table.X.data if sparse.issparse(table.X) else table.X
    if len(table.y) != table.X.shape[0] or not np.isfinite(values).all():
        raise Failure("a table with NaN, or with too few targets")


# ---------------------------------------------------------------------- models, states, and so on
def _problem(rng: np.random.Generator) -> tuple:
    A = sparse.random_array((20, 6), density=0.5, rng=rng, format="csr")
    f = adafw.LinearModel(A, rng.choice([-1.0, 1.0], 20), adafw.losses.Logistic())
    return f, adafw.L1Ball(2.0), adafw.AdaCSFW(learning_rate=1.0)


def make_state(rng: np.random.Generator, path: Path) -> None:
    """Of a path chosen at random."""
    where = ["generic", "fused", "lazy"][int(rng.integers(3))]
    fixed = np.random.default_rng(0)  # so that the damaged one belongs to the same problem
    r = adafw.minimize(*_problem(fixed), max_iterations=int(rng.integers(1, 40)), path=where)
    r.state.save(path)


def use_state(path: Path) -> object:
    """Loads the state and goes on from it."""
    state = State.load(path)
    where = ["generic", "fused", "lazy"][path.stat().st_size % 3]
    problem = _problem(np.random.default_rng(0))
    return adafw.minimize(*problem, state=state, max_iterations=60, path=where, progress=False)


def run_is_sound(path: Path, result: object) -> None:
    """The certificate holds, and x is in the set."""
    f, ball, _ = _problem(np.random.default_rng(0))
    if not ball.contains(result.x) or abs(f.value(result.x) - result.value) > 1e-9:
        raise Failure("state: a damaged state led out of the set")


def make_model(rng: np.random.Generator, path: Path) -> None:
    """By the command line."""
    from adafw.commands.fitting import Files, fit_file
    from adafw.fitting import Settings

    data = path.with_suffix(".npy")
    X = rng.standard_normal((30, 3))
    np.save(data, np.column_stack([X, rng.choice([-1, 1], 30)]))
    unused = ("format_", "target", "labels", "n_features", "checkpoint", "plot", "radius_path",
              "test", "report")  # fmt: skip
    options = dict.fromkeys(unused)
    files = Files(data=str(data), output=path, dtype="float64", task="auto", checkpoint_every=10.0,
                  resume=False, quiet=True, choose=False, folds=5, rule="best",
                  **options)  # fmt: skip
    fit_file(Settings(radius=0.01, max_epochs=5.0), files)


def use_model(path: Path) -> object:
    """Loads, describes and predicts."""
    from adafw.commands.fitting import describe_model

    model = LinearModelFile.load(path)
    describe_model(model, "m")
    return model.predictor.predict(np.ones((2, model.n_features)))


def make_checkpoint(rng: np.random.Generator, path: Path) -> None:
    """Of a fit that is under way and one that is done."""
    from adafw.fitting import Design, Settings, Targets, fit_targets

    X = rng.standard_normal((30, 3))
    checkpoint = Checkpoint(path, {"a": 1}, 0.0)
    targets = Targets.of_classes(rng.integers(0, 3, 30))
    plan = Settings(radius=1.0, max_epochs=3.0).plan("classification")
    fit_targets(Design(X), targets, plan, checkpoint=checkpoint)


def use_checkpoint(path: Path) -> object:
    """Loads it."""
    checkpoint = Checkpoint(path, {"a": 1})
    checkpoint.load()
    return checkpoint


def make_parts(rng: np.random.Generator, path: Path) -> None:
    """A directory of arrays, packed here into one file so that it can be damaged as one."""
    A = sparse.random_array((20, 5), density=0.5, rng=rng, format="csr")
    folder = path.with_suffix(".d")
    save_parts(folder, A, np.ones(20))
    names = sorted(p.name for p in folder.iterdir())
    pieces = [(folder / name).read_bytes() for name in names]
    head = json.dumps([[name, len(piece)] for name, piece in zip(names, pieces, strict=True)])
    path.write_bytes(b"".join(pieces))
    path.with_suffix(".names").write_text(head)


def use_parts(path: Path) -> object:
    """Unpacks the directory, maps it and computes with it."""
    folder, content, at = path.with_suffix(".d"), path.read_bytes(), 0
    for name, size in json.loads(path.with_suffix(".names").read_text()):
        (folder / name).write_bytes(content[at : at + size])
        at += size
    A, y = load_parts(folder)
    f = adafw.LinearModel(A, y, adafw.losses.Squared())
    return f.gradient(np.ones(f.shape, f.dtype))


TOML = """
title = "t"
loss = "SquaredHinge"
set = { name = "L1Ball", radius = 1.0 }
seeds = [1, 2]
budget = { max_iterations = 10 }
data = { name = "support_vector", m = 30, n = 4, seed = 4 }
[quick]
seeds = [1]
[[algorithms]]
name = "CSFW"
[[algorithms]]
name = "AdaCSFW"
learning_rate = "10^-1/2"
inner_steps = 2
"""


READERS = {
    reader.name: reader
    for reader in [
        Reader("libsvm", "d.svm", make_libsvm, read_both, agrees_with_others),
        Reader("csv", "d.csv", make_csv, read_table, agrees_with_csv),
        Reader("npy", "d.npy", make_npy, read_table, agrees_with_numpy),
        Reader("npz", "d.npz", make_npz, read_table, table_is_sound),
        Reader("parquet", "d.parquet", make_parquet, read_table, table_is_sound),
        Reader("state", "s.npz", make_state, use_state, run_is_sound),
        Reader("model", "m.model", make_model, use_model),
        Reader("checkpoint", "c.npz", make_checkpoint, use_checkpoint),
        Reader("parts", "p.bin", make_parts, use_parts),
        Reader("toml", "e.toml", lambda rng, path: path.write_text(TOML) and None, load_spec),
    ]
}
