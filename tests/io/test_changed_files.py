"""Files that another process writes to, or cuts short, while they are read."""

import errno
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse

from adafw.datasets import load_parts, read_libsvm, save_parts
from adafw.io import libsvm, tables
from adafw.io.damage import FileChanged, is_damage, reason
from adafw.io.packed import opened, whole_lines
from adafw.io.tables import read_pieces
from adafw.kernels.libsvm import FULL, Filled, Stretch, count, parse

LINE = "1 1:0.5 2:0.25 3:-1\n"
CHANGES = {
    "cut": lambda path: os.truncate(path, os.path.getsize(path) // 2),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"1 9:1\n"),
    "other": lambda path: path.write_bytes(path.read_bytes().replace(b"1", b"2")),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["d.svm", "d.csv", "d.npy"])
def test_a_change_between_two_pieces_is_told(tmp_path, monkeypatch, name, change):
    path = tmp_path / name
    if name == "d.npy":
        np.save(path, np.ones((20_000, 9)))
    else:
        path.write_text({"d.svm": LINE, "d.csv": "1,2,3,1\n"}[name] * 40_000)
    monkeypatch.setattr(tables, "PIECE_ROWS", 10)
    monkeypatch.setattr(tables, "PIECE_BYTES", 200)
    os.utime(path, ns=(0, 0))  # clocks of file systems are coarse: it changes at another time
    pieces = read_pieces(path)
    next(pieces)
    CHANGES[change](path)
    with pytest.raises(FileChanged, match=rf"{name} changed while it was read"):
        list(pieces)


def test_a_whole_file_is_refused_if_it_changed_on_the_way(tmp_path, monkeypatch):
    path = tmp_path / "d.svm"
    path.write_text(LINE * 100)
    os.utime(path, ns=(0, 0))

    def cut_after_the_first_chunk(file, size):
        for k, chunk in enumerate(whole_lines(file, 60)):
            if k == 1:
                os.truncate(path, 100)
            yield chunk

    monkeypatch.setattr("adafw.io.libsvm_text.whole_lines", cut_after_the_first_chunk)
    with pytest.raises(FileChanged, match="changed while it was read"):
        read_libsvm(path)


def test_what_does_not_change_is_read_from_pipes_too(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(LINE * 3))
    writer.start()
    A, y = read_libsvm(pipe)
    writer.join()
    assert A.shape == (3, 3)
    assert y.tolist() == [1, 1, 1]


def test_read_or_refused_while_another_thread_rewrites_the_file(tmp_path, monkeypatch):
    """Whatever comes out is one of the two contents, whole."""
    monkeypatch.setattr(libsvm, "_CHUNK_BYTES", 1 << 12)
    path = tmp_path / "d.svm"
    contents = [LINE * 2000, "-1 1:7\n" * 500 + LINE * 10]
    path.write_text(contents[0])
    stop = threading.Event()

    def rewrite():
        k = 0
        while not stop.is_set():
            k += 1
            path.write_text(contents[k % 2])
            stop.wait(1e-3)  # else it would be empty most of the time

    thread = threading.Thread(target=rewrite)
    thread.start()
    seen = set()
    try:
        for _ in range(150):
            try:
                A, _ = read_libsvm(path, threads=2)
            except FileChanged:
                seen.add("changed")
            except ValueError as error:  # caught just when it was empty
                assert "at least one sample" in str(error)  # noqa: PT017
            else:
                seen.add((A.shape[0], A.nnz))
    finally:
        stop.set()
        thread.join()
    assert seen
    assert seen <= {"changed", (2000, 6000), (510, 530)}


def test_the_parser_writes_nothing_beyond_its_stretch():
    """More rows and entries than were counted, as if the text had changed since."""
    text = np.frombuffer(LINE.encode() * 10 + b"x 1:y\n" * 10, np.uint8)
    for rows, slots in ((3, 40), (30, 5), (0, 0)):
        arrays = Filled(
            np.full(30, -7.0), np.full(30, -7), np.full(31, -7), np.full(40, -7, np.int32),
            np.full(40, -7.0), np.full((2, 2), -7),
        )  # fmt: skip
        end = parse(text, Stretch(0, text.size, 0, 0, rows, slots), 0, arrays)
        assert end.code == FULL
        assert end.row <= rows
        assert end.slot <= slots
        for array, used in ((arrays.y, rows), (arrays.indices, slots), (arrays.data, slots)):
            assert (array[used:] == -7).all()
        assert (arrays.indptr[rows + 1 :] == -7).all()
    assert count(text, 0, text.size) == (20, 40)


SCRIPT = """
import os, sys, numpy as np, faulthandler
faulthandler.enable()
import adafw
from adafw.io.damage import FileChanged
folder, name, kind = sys.argv[1:]
A, y = adafw.datasets.load_parts(folder)
f = adafw.LinearModel(A, y, adafw.losses.Logistic())
cut = lambda s, record: os.truncate(f"{folder}/{name}.npy", 200) if s.t == 2 else None
try:
    if kind == "numpy":
        os.truncate(f"{folder}/{name}.npy", 200)
        print("got", (A @ np.ones(A.shape[1])).sum())
    else:
        adafw.minimize(f, adafw.L1Ball(5.0), adafw.AdaCSFW(learning_rate=1.0), callbacks=cut,
                       max_iterations=500, path=kind, record_every=2)
        print("went on")
except FileChanged as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="SIGBUS is answered on Linux")
@pytest.mark.parametrize("kind", ["numpy", "generic", "fused"])
@pytest.mark.parametrize("name", ["data", "indices"])
def test_a_mapped_part_that_is_cut_short_ends_in_a_sentence(tmp_path, name, kind):
    rng = np.random.default_rng(0)
    A = sparse.random_array((20_000, 50), density=0.5, rng=rng, format="csr")
    save_parts(tmp_path / "parts", A, rng.choice([-1.0, 1.0], 20_000))
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "parts"), name, kind]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(
        f"{name}.npy changed while it was read; read it again once it is complete.\n"
    )
    assert done.stderr == ""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="SIGBUS is answered on Linux")
def test_a_fault_of_another_map_still_ends_the_process(tmp_path):
    """The handler answers for its own maps alone."""
    script = (
        "import os, sys, mmap, numpy as np\nfrom adafw.datasets import load_parts\n"
        "load_parts(sys.argv[1])\npath = sys.argv[1] + '/other'\n"
        "open(path, 'wb').write(bytes(9000))\nfile = open(path, 'rb')\n"
        "view = mmap.mmap(file.fileno(), 9000, prot=mmap.PROT_READ)\n"
        "os.truncate(path, 0)\nprint(view[5000])\n"
    )
    save_parts(tmp_path / "parts", np.eye(3), np.ones(3))
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "parts")], capture_output=True
    )
    assert done.returncode == -7
    assert done.stdout == b""


def test_maps_that_are_gone_are_answered_for_no_more(tmp_path):
    from adafw.io.mapped import _GUARD

    save_parts(tmp_path / "parts", np.eye(30), np.ones(30))
    before = dict(_GUARD.stretches)
    A, y = load_parts(tmp_path / "parts")
    part = A[3:]
    assert len(_GUARD.stretches) == len(before) + 2
    del A, y
    assert len(_GUARD.stretches) == len(before) + 1  # a slice still looks at the matrix
    del part
    assert _GUARD.stretches == before


def test_parts_that_are_replaced_stay_what_they_were(tmp_path):
    """The old files live on as long as they are mapped."""
    A = np.arange(20_000.0).reshape(-1, 2)
    save_parts(tmp_path / "parts", A, np.ones(10_000))
    B, _ = load_parts(tmp_path / "parts")
    save_parts(tmp_path / "parts", -A[:3], np.ones(3))
    np.testing.assert_array_equal(A, B)


def test_opened_tells_a_change_even_where_it_broke_the_reading(tmp_path):
    path = tmp_path / "d"
    path.write_bytes(b"some bytes")
    os.utime(path, ns=(0, 0))

    def change_and_break():
        with opened(path) as file:
            file.read()
            path.write_bytes(b"others")
            raise EOFError

    with pytest.raises(FileChanged):
        change_and_break()
    with pytest.raises(ValueError, match="must be a whole file, got a damaged one"), opened(path):
        raise EOFError


def test_what_tells_of_bytes_and_what_of_the_disk():
    for error in (ValueError(), EOFError(), OSError(), OSError(errno.EINVAL, "seek")):
        assert is_damage(error)
    for error in (FileChanged("f"), OSError(errno.EIO, "disk"), FileNotFoundError(2, "no")):
        assert not is_damage(error)
    assert reason(ValueError("two\n lines.")) == ": two lines"
    assert reason(ValueError()) == ""


def test_the_whole_of_a_map_is_watched(tmp_path):
    from adafw.io.mapped import _GUARD, mapped

    np.save(tmp_path / "a.npy", np.arange(1000.0))
    before = dict(_GUARD.stretches)
    array = mapped(tmp_path / "a.npy")
    ((start, (end, path)),) = (item for item in _GUARD.stretches.items() if item[0] not in before)
    assert (start, end) == (array.ctypes.data, array.ctypes.data + 8000)
    assert path == str(tmp_path / "a.npy")
    assert _GUARD.sizes[path] == (tmp_path / "a.npy").stat().st_size
    del array
    assert start not in _GUARD.stretches


LOST = """
import os, sys, numpy as np
from adafw.io.damage import FileChanged
from adafw.io.mapped import mapped
os.chdir(sys.argv[1])
whole, cut, also, gone = (mapped(f"{name}.npy") for name in ("whole", "cut", "also", "gone"))
os.unlink("gone.npy")
os.truncate("cut.npy", 8192)
os.truncate("also.npy", 40_000)
try:
    print("got", cut.sum())
except FileChanged as error:
    print(error)
wanted = np.arange(10_000.0)
print(np.array_equal(whole, wanted), np.array_equal(gone, wanted))
print(np.array_equal(cut[:1000], wanted[:1000]), cut[1500:].any())
lost = np.flatnonzero(also != wanted)
print(4000 < lost[0] < 5500, len(lost) == 10_000 - lost[0], also[-1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="SIGBUS is answered on Linux")
def test_only_what_files_have_lost_is_zero_after_a_fault(tmp_path):
    """Maps of whole files, and of those whose name is gone, stay what they were."""
    for name in ("whole", "cut", "also", "gone"):
        np.save(tmp_path / f"{name}.npy", np.arange(10_000.0))
    command = [sys.executable, "-c", LOST, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "cut.npy changed while it was read; read it again once it is complete.",
        "True True", "True False", "True True 0.0",
    ]  # fmt: skip
