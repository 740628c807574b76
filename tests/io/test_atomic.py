import os
import subprocess
import sys

import pytest

from adafw.io.atomic import discard_partial, replacing, write_text


def fail_half_way(target, folder=False):
    with replacing(target, folder=folder) as partial:
        (partial / "c" if folder else partial).write_text("half")
        raise RuntimeError


def test_a_failure_keeps_the_old_file_and_leaves_nothing(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError):
        fail_half_way(path)
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["file.txt"]
    write_text(path, "new")
    assert path.read_text() == "new"


def test_directories(tmp_path):
    target = tmp_path / "folder"
    for content in ("a", "b"):
        with replacing(target, folder=True) as partial:
            (partial / content).write_text(content)
    assert [p.name for p in target.iterdir()] == ["b"]
    with pytest.raises(RuntimeError):
        fail_half_way(target, folder=True)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    assert [p.name for p in target.iterdir()] == ["b"]


KILLED = """
import os, sys, signal
from adafw.io.atomic import replacing
with replacing(sys.argv[1], folder=sys.argv[2] == "folder") as partial:
    (partial / "c" if partial.is_dir() else partial).write_text("half")
    print("ready", flush=True)
    sys.stdin.read()
"""


def writer(target, kind):
    command = [sys.executable, "-c", KILLED, str(target), kind]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_killed_writers_left_goes_and_a_live_writers_stays(tmp_path, kind):
    target, other = tmp_path / "a[1].txt", tmp_path / "b.txt"
    for path in (target, other):
        dead = writer(path, kind)
        dead.kill()
        dead.communicate()
    live = writer(target, kind)
    left = {p.name[:4] for p in tmp_path.iterdir()}
    assert left == {".a[1", ".b.t"}
    assert len(list(tmp_path.iterdir())) == 2  # the live one has swept the dead one's
    with replacing(target, folder=kind == "folder") as partial:
        (partial / "c" if kind == "folder" else partial).write_text("mine")
    assert len(list(tmp_path.iterdir())) == 3  # target, the live one's, the other target's
    live.communicate(b"")
    assert live.returncode == 0
    assert (target / "c" if kind == "folder" else target).read_text() == "half"
    discard_partial(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["a[1].txt"]


@pytest.mark.parametrize("folder", [False, True])
def test_content_is_on_the_disk_before_the_name(tmp_path, monkeypatch, folder):
    """fsync of every file written, then the rename, then fsync of the directory."""
    done = []
    real = {name: getattr(os, name) for name in ("fsync", "replace")}
    names = {}

    def fsync(fd):
        done.append(("sync", os.readlink(f"/proc/self/fd/{fd}").rsplit("/", 1)[-1]))
        return real["fsync"](fd)

    def replace(a, b):
        done.append(("rename", names.setdefault("target", str(b).rsplit("/", 1)[-1])))
        return real["replace"](a, b)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    with replacing(tmp_path / "d" / "t", folder=folder) as partial:
        if folder:
            (partial / "deep").mkdir()
            (partial / "deep" / "x").write_text("1")
        else:
            partial.write_text("1")
    assert [what for what, _ in done] == ["sync", "rename", "sync"]
    assert done[0][1] == ("x" if folder else partial.name)
    assert done[1:] == [("rename", "t"), ("sync", "d")]


@pytest.mark.parametrize("exchange", [True, False])
def test_a_directory_that_was_there_is_replaced_and_put_back_if_the_writer_dies(
    tmp_path, monkeypatch, exchange
):
    if not exchange:
        monkeypatch.setattr(sys, "platform", "darwin")  # which has no such call
    target = tmp_path / "t"
    for content in ("a", "b"):
        with replacing(target, folder=True) as partial:
            (partial / content).write_text(content)
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
    assert [p.name for p in target.iterdir()] == ["b"]
    # Killed between the two renames of a system without an exchange: only the old one is left.
    os.replace(target, tmp_path / ".t.12345678.old")
    with pytest.raises(RuntimeError):
        fail_half_way(target, folder=True)
    assert [p.name for p in target.iterdir()] == ["b"]
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
