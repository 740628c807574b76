"""Files that are there whole or not at all, whatever kills the process that writes them."""

import ctypes
import glob
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adafw.io.damage import FileName

try:
    import fcntl
except ImportError:  # Windows: nothing tells a live writer there, so nothing is swept
    fcntl = None  # type: ignore[assignment]

_RENAME_EXCHANGE, _AT_FDCWD = 2, -100  # of Linux


@contextmanager
def replacing(path: FileName, folder: bool = False) -> Iterator[Path]:
    """A name beside `path` to write a file to; it takes the place of `path` if all went well.

    What stood at `path` survives any failure, and nothing partial does: what a process that was
    killed has left is removed by the next one that writes to the same path, while the file of a
    writer that still lives, known by its lock, stays. With `folder`, the same for a directory,
    which is made. A link stays, and leads to what was written; a pipe or a device that takes bytes,
    as /dev/stdout, is given them when all are there.
    """
    if not folder and _takes_bytes(path):
        with _streamed(path) as partial:
            yield partial
        return
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    name = glob.escape(target.name)
    _sweep(target.parent, f".{name}.*")
    for old in target.parent.glob(f".{name}.*.old"):
        _remove(old) if target.exists() else os.replace(old, target)
    partial, lock = _claim(target, folder)
    try:
        yield partial
        # To the disk before the name: after a power cut, a name without its content would be left.
        for file in [p for p in partial.rglob("*") if p.is_file()] if folder else [partial]:
            _sync(file)
        _take_place(partial, target)
        with suppress(OSError):  # no file system has to sync a directory
            _sync(target.parent)
    finally:
        _remove(partial)  # what failed, or the old directory that was exchanged
        if lock is not None:
            os.close(lock)


def _takes_bytes(path: FileName) -> bool:
    """Whether there is something at `path` that no file can take the place of."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    if stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise ValueError(f"{path} must be a file, a pipe or a device for text, got another.")
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


@contextmanager
def _streamed(path: FileName) -> Iterator[Path]:
    from shutil import copyfileobj
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        partial = Path(folder) / "all"
        yield partial
        with open(partial, "rb") as whole, open(path, "wb") as stream:
            copyfileobj(whole, stream)


def discard_partial(folder: Path) -> None:
    """Removes what processes that were killed while `replacing` have left in a folder."""
    _sweep(folder, ".*")


def write_text(path: FileName, text: str) -> None:
    """Writes a text file, whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _claim(target: Path, folder: bool) -> tuple[Path, int | None]:
    """A new file or directory beside the target, and the lock on it that says it is in use."""
    while True:
        partial = target.with_name(f".{target.name}.{os.urandom(4).hex()}.part")
        if folder:
            partial.mkdir()
        else:
            partial.touch(exist_ok=False)
        if fcntl is None:
            return partial, None
        lock = os.open(partial, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another process is about to sweep it
            os.close(lock)
            continue
        except OSError:  # a file system without locks, on which nothing is swept either
            return partial, lock
        # Between its making and its locking another process may have swept it.
        if partial.exists():
            return partial, lock
        os.close(lock)


def _sweep(folder: Path, pattern: str) -> None:
    """Removes partial files that nobody holds a lock on."""
    if fcntl is None:
        return
    for partial in folder.glob(f"{pattern}.part"):
        try:
            lock = os.open(partial, os.O_RDONLY)
        except OSError:  # gone meanwhile, or another user's
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(partial)
        except OSError:  # a live writer's, or no locks here
            continue
        finally:
            os.close(lock)


def _take_place(partial: Path, target: Path) -> None:
    """Puts the new in the place of the old, in one step."""
    if partial.is_dir() and target.is_dir():
        if _exchanged(partial, target):
            return
        # Without that call there is a moment with no directory at all.
        aside = partial.with_suffix(".old")  # put back by the next writer if this one dies here
        os.replace(target, aside)
        os.replace(partial, target)
        _remove(aside)
        return
    with suppress(OSError):  # who may read what stood there may read this, and nobody else
        os.chmod(partial, stat.S_IMODE(os.stat(target).st_mode))
    os.replace(partial, target)


def _exchanged(a: Path, b: Path) -> bool:
    """Swaps two names by Linux's renameat2, which nothing can interrupt; False where unknown."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:  # an old C library
        return False
    names = os.fsencode(a), os.fsencode(b)
    return rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0


def _sync(path: Path) -> None:
    """Waits until a file, or the names in a directory, are on the disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        from shutil import rmtree  # dear to import, and seldom needed

        rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
