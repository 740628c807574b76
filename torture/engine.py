"""What an attack is, and how a failure is made small."""

import abc
import base64
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np


class Failure(Exception):
    """adafw did what it must not do; `content` is the file that made it, if it was one."""

    def __init__(self, what: str, content: bytes | None = None, name: str = "") -> None:
        super().__init__(what)
        self.what, self.content, self.name = what, content, name


class Engine(abc.ABC):
    """One kind of attack."""

    #: As the command line and the tables call it.
    name: str
    #: Seconds that a case may take before it counts as hanging.
    patience: float = 120.0

    @abc.abstractmethod
    def case(self, rng: np.random.Generator, folder: Path) -> str:
        """Does one case in an empty folder; raises `Failure`, or says which kind of case it was."""

    def source(self, number: int, seed: int, failure: Failure) -> str:
        """A test that fails as long as the failure is there."""
        title = f"{self.name.replace('-', '_')}_{number}"
        return (
            f'"""{failure.what.splitlines()[0][:90]}"""\n\n'
            "from torture.attack import once\n\n\n"
            f"def test_{title}(tmp_path):\n"
            f"    once({self.name!r}, {number}, {seed}, tmp_path)\n"
        )


def crowd() -> float:
    """How many processes want each core: on a busy machine, slow is not yet hanging.

    One that lets all others go first (nice) may wait for all of them.
    """
    share = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    return 8 * share if os.nice(0) > 9 else share


def rng_of(engine: str, number: int, seed: int) -> np.random.Generator:
    """The generator of a case: the same on every machine."""
    words = hashlib.sha256(f"{engine} {seed} {number}".encode()).digest()
    return np.random.default_rng(list(words))


def smallest(content: bytes, fails: Callable[[bytes], bool], tries: int = 2000) -> bytes:
    """Bytes that still fail, with ever smaller pieces cut out (delta debugging, Zeller 1999)."""
    piece = max(1, len(content) // 2)
    while piece and tries > 0:
        at = 0
        while at < len(content) and tries > 0:
            shorter = content[:at] + content[at + piece :]
            tries -= 1
            if fails(shorter):
                content = shorter
            else:
                at += piece
        piece //= 2
    return content


def file_test(reader: str, name: str, content: bytes, what: str) -> str:
    """A test around a small file."""
    mark = hashlib.sha256(content).hexdigest()[:8]
    text = base64.b64encode(content).decode()
    lines = "\n".join(f'    "{text[k : k + 80]}"' for k in range(0, len(text), 80)) or '    ""'
    return (
        f'"""{what.splitlines()[0][:90]}"""\n\n'
        "import base64\n\nfrom torture.readers import READERS, judge\n\n"
        f"CONTENT = base64.b64decode(\n{lines}\n)\n\n\n"
        f"def test_{reader}_{mark}(tmp_path):\n"
        f"    path = tmp_path / {name!r}\n    path.write_bytes(CONTENT)\n"
        f"    judge(READERS[{reader!r}], path)\n"
    )
