"""Reading past the system's cache, on systems and file systems that can and that cannot."""

import errno
import fcntl
import os

import numpy as np
import pytest

from adafw.io import direct
from adafw.io.damage import FileChanged
from adafw.io.direct import DirectFile
from adafw.rows.disk import Room

VALUES = np.random.default_rng(0).normal(size=10_000)
B = direct._BLOCK
STRETCHES = ((0, 10_000), (0, 1), (9_999, 10_000), (500, 1012), (511, 513), (7, 7))


@pytest.fixture
def path(tmp_path):
    np.save(tmp_path / "a.npy", VALUES)
    return str(tmp_path / "a.npy")


def is_direct(fd):
    return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT)


def assert_read(source):
    room = Room()
    for first, last in STRETCHES:
        np.testing.assert_array_equal(source.read(first, last, room), VALUES[first:last])


def refused(path):
    """Whether the file system of the tests has no such thing."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return True
    return False


def test_files_are_opened_past_the_cache(path):
    if refused(path):
        pytest.skip("the file system knows only its cache")
    source = DirectFile(path, 128, VALUES.dtype)
    assert source.direct
    assert is_direct(source._file)
    assert_read(source)


def test_what_can_be_opened_so_and_not_read_is_opened_again(path, monkeypatch):
    """Some file systems are so; the file is then told to be forgotten after each read."""
    if refused(path):
        pytest.skip("the file system knows only its cache")
    told = []

    def read(fd, memory, at):
        if is_direct(fd):
            raise OSError(errno.EINVAL, "not so")
        return os.preadv(fd, memory, at)

    monkeypatch.setattr(direct, "_READ_AT", read)
    monkeypatch.setattr(direct, "_ADVISE", lambda *words: told.append(words))
    before = len(os.listdir("/proc/self/fd"))
    source = DirectFile(path, 128, VALUES.dtype)
    file = source._file
    assert_read(source)
    assert not source.direct
    assert source._file == file
    assert len(os.listdir("/proc/self/fd")) == before + 1
    assert told[0] == (file, 0, os.path.getsize(path), os.POSIX_FADV_DONTNEED)
    last = 128 + 9_999 * 8
    assert told[2][1:3] == (last - last % B, 8 + last % B)
    del source
    assert len(os.listdir("/proc/self/fd")) == before


def test_other_errors_of_a_disk_are_raised(path, monkeypatch):
    def broken(fd, memory, at):
        raise OSError(errno.EIO, "broken")

    source = DirectFile(path, 128, VALUES.dtype)
    was = source.direct
    monkeypatch.setattr(direct, "_READ_AT", broken)
    with pytest.raises(OSError, match="broken"):
        source.read(0, 5, Room())
    assert source.direct == was
    with pytest.raises(FileNotFoundError):
        DirectFile(path + "x", 128, VALUES.dtype)


def test_without_reads_at_a_place(path, monkeypatch):
    """As on Windows: one place for all threads, which is set before each read."""
    monkeypatch.setattr(direct, "_READ_AT", None)
    monkeypatch.setattr(direct, "_DIRECT", 0)
    source = DirectFile(path, 128, VALUES.dtype)
    assert not source.direct
    assert_read(source)
    with pytest.raises(FileChanged):
        source.read(9_000, 20_000, Room())


@pytest.mark.parametrize("most", [1, B, B + 904, 2 * B, 3 * B])
def test_reads_that_end_anywhere_are_gone_on_with(path, monkeypatch, most):
    """A next read begins at a block, as the disk wants it; less than a block is the file's end."""
    begun = []

    def short(fd, memory, at):
        begun.append(at)
        return os.preadv(fd, [memory[0][:most]], at)

    monkeypatch.setattr(direct, "_DIRECT", 0)
    monkeypatch.setattr(direct, "_READ_AT", short)
    source = DirectFile(path, 128, VALUES.dtype)
    if most < B:
        with pytest.raises(FileChanged):
            source.read(0, 10_000, Room())
        return
    assert_read(source)
    assert all(at % B == 0 for at in begun)


def test_a_file_that_was_written_anew_is_told(path):
    source = DirectFile(path, 128, VALUES.dtype)
    now = os.stat(path)
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns + 1))
    with pytest.raises(FileChanged, match="changed while it was read"):
        source.read(0, 5, Room())


def test_where_the_cache_is_all_there_is_it_is_told_to_forget(path, monkeypatch):
    opened, told = os.open, []

    def refusing(path, flags, *rest):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "a file system that knows only its cache")
        return opened(path, flags, *rest)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr(direct, "_ADVISE", lambda *words: told.append(words))
    source = DirectFile(path, 128, VALUES.dtype)
    assert not source.direct
    assert_read(source)
    assert told[0] == (source._file, 0, os.path.getsize(path), os.POSIX_FADV_DONTNEED)
