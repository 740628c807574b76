import errno
import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adafw.io import atomic
from adafw.io.atomic import discard_partial, replacing, write_text

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are files on POSIX alone")


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
from adafw.io import atomic
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


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("folder", [False, True])
def test_directories_above_are_made_and_no_file_stays_open(tmp_path, folder):
    before = open_files()
    for k in range(3):
        with replacing(tmp_path / "a" / "b" / "c", folder=folder) as partial:
            assert partial.parent == tmp_path / "a" / "b"
            (partial / "x" if folder else partial).write_text(str(k))
    with pytest.raises(RuntimeError):
        fail_half_way(tmp_path / "a" / "b" / "c", folder)
    discard_partial(tmp_path / "a" / "b")
    assert open_files() == before
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["c"]


def test_a_claim_that_another_process_takes_away_is_made_again(tmp_path, monkeypatch):
    """First the other holds the lock already, then it has removed the file before ours came."""
    claimed, before = [], open_files()

    def flock(fd, how):
        assert how == atomic.fcntl.LOCK_EX | atomic.fcntl.LOCK_NB
        claimed.append(os.readlink(f"/proc/self/fd/{fd}"))
        if len(claimed) == 1:
            os.unlink(claimed[0])
            raise BlockingIOError
        if len(claimed) == 2:
            os.unlink(claimed[1])

    monkeypatch.setattr(atomic.fcntl, "flock", flock)
    with replacing(tmp_path / "t") as partial:
        partial.write_text("done")
        assert claimed[2:] == [str(partial)]
    assert len(set(claimed)) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
    assert open_files() == before


@pytest.mark.parametrize("locks", ["unknown", "refused"])
def test_where_there_are_no_locks_nothing_is_swept(tmp_path, monkeypatch, locks):
    """Windows has none, nor have some file systems: nobody knows there whose a file is."""
    left = tmp_path / ".t.12345678.part"
    left.write_text("of another, alive or dead")

    def refused(fd, how):
        raise OSError(errno.ENOLCK, "no locks")

    if locks == "unknown":
        monkeypatch.setattr(atomic, "fcntl", None)
    else:
        monkeypatch.setattr(atomic.fcntl, "flock", refused)
    before = open_files()
    write_text(tmp_path / "t", "new")
    assert (tmp_path / "t").read_text() == "new"
    assert left.exists()
    assert open_files() == before


def test_what_cannot_be_opened_is_not_swept(tmp_path):
    (tmp_path / ".t.12345678.part").symlink_to(tmp_path / "nowhere")
    write_text(tmp_path / "t", "new")
    assert (tmp_path / "t").read_text() == "new"


def test_a_link_is_replaced_not_what_it_leads_to(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "x").write_text("1")
    (tmp_path / ".t.12345678.part").symlink_to(tmp_path / "kept")
    with replacing(tmp_path / "t", folder=True) as partial:
        (partial / "y").write_text("2")
    assert (tmp_path / "kept" / "x").read_text() == "1"
    assert not (tmp_path / ".t.12345678.part").is_symlink()


@pytest.mark.parametrize("folder", [False, True])
def test_an_old_one_that_was_put_aside_goes_if_there_is_a_new_one(tmp_path, folder):
    write_text(tmp_path / "t", "now")
    (tmp_path / ".t.12345678.old").mkdir()
    if folder:
        os.unlink(tmp_path / "t")
        (tmp_path / "t").mkdir()
        (tmp_path / "t" / "now").write_text("")
    with pytest.raises(RuntimeError):
        fail_half_way(tmp_path / "t", folder)
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
    assert [p.name for p in (tmp_path / "t").iterdir()] == ["now"] if folder else True


def test_a_file_never_takes_the_place_of_a_directory(tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x").write_text("1")
    with pytest.raises(IsADirectoryError):
        write_text(tmp_path / "t", "new")
    assert (tmp_path / "t" / "x").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_a_writer_that_dies_between_two_renames_leaves_the_old_one_for_the_next(
    tmp_path, monkeypatch
):
    """Where two directories cannot be exchanged, the old one is put aside first."""
    target = tmp_path / "t"
    with replacing(target, folder=True) as partial:
        (partial / "a").write_text("")
    monkeypatch.setattr(sys, "platform", "darwin")
    replace = os.replace

    def dies(a, b):
        if os.path.basename(b) == "t":
            raise InterruptedError
        replace(a, b)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", dies)
        with (
            pytest.raises(InterruptedError),
            replacing(target, folder=True) as partial,
        ):
            (partial / "b").write_text("")
    assert not target.exists()
    with pytest.raises(RuntimeError):
        fail_half_way(target, folder=True)
    assert [p.name for p in target.iterdir()] == ["a"]
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


def test_a_link_stays_and_leads_to_what_was_written(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_text("old")
    (tmp_path / "link").symlink_to(Path("deep") / "file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "deep" / "file").read_text() == "new"
    (tmp_path / "ahead").symlink_to(tmp_path / "deep" / "later")
    write_text(tmp_path / "ahead", "first")
    assert (tmp_path / "deep" / "later").read_text() == "first"
    assert {path.name for path in (tmp_path / "deep").iterdir()} == {"file", "later"}


@posix
def test_a_pipe_is_given_all_at_once_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe").read_text)
        write_text(tmp_path / "pipe", "all of it")
        assert read.result(timeout=60) == "all of it"
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@posix
def test_devices_stay_what_they_are():
    write_text("/dev/null", "nothing")
    assert Path("/dev/null").is_char_device()
    if Path("/dev/full").is_char_device():
        with pytest.raises(OSError, match="No space left"):
            write_text("/dev/full", "x" * 100_000)
        assert Path("/dev/full").is_char_device()


@posix
def test_a_socket_is_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # their names are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        with pytest.raises(ValueError, match="s must be a file, a pipe or a device for text, got"):
            write_text("s", "new")


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_who_may_read_a_file_stays_the_same(tmp_path, mode):
    target = tmp_path / "t"
    write_text(target, "old")
    assert target.stat().st_mode & 0o777 == 0o666 & ~_umask()
    target.chmod(mode)
    write_text(target, "new")
    assert (target.stat().st_mode & 0o777, target.read_text()) == (mode, "new")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
