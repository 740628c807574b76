"""Runs cases in processes of their own, so that a crash or a hang is seen, and keeps count."""

import faulthandler
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from torture.engine import Engine, Failure, crowd, rng_of

#: Seconds that one worker is kept, so that what leaks shows and what is lost is little.
_SHIFT = 300.0


def engines() -> dict[str, Engine]:
    """All attacks by their names."""
    from torture.disks import Changing, Cut, FullDisk, NoPlace
    from torture.kills import Fits, Parts, Reproductions, Saves
    from torture.readers import READERS, Readers
    from torture.runs import Runs
    from torture.torch_states import TorchStates

    found: list[Engine] = [Readers(reader) for reader in READERS.values()]
    found += [Runs(), TorchStates(), FullDisk(), NoPlace(), Changing(), Cut()]
    found += [Saves(), Parts(), Fits(), Reproductions()]
    return {engine.name: engine for engine in found}


#: How often an attack has its turn in a round: dear ones seldom, the most fruitful often.
SHARES = {"libsvm": 6, "csv": 2, "state": 4, "runs": 12, "npz": 2, "model": 2}
DEAR = {"kill-fit", "kill-reproduce", "kill-save", "kill-parts", "cut-parts"}
#: Of the time, what these may take together.
_DEAR_SHARE = 0.3


def once(engine: str, number: int, seed: int, folder: Path) -> str:
    """Does one case; a failure is raised."""
    return engines()[engine].case(rng_of(engine, number, seed), folder)


@dataclass
class Score:
    """What became of the cases of one engine."""

    cases: int = 0
    failures: int = 0
    seconds: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)


@dataclass
class Attack:
    """An attack under way; `out` holds its progress, its failures and its tables."""

    out: Path
    seed: int
    only: tuple[str, ...] = ()
    scores: dict[str, Score] = field(default_factory=dict)
    seconds: float = 0.0
    cheap: bool = False

    @classmethod
    def taken_up(cls, out: Path, seed: int, only: tuple[str, ...], cheap: bool) -> "Attack":
        """Goes on from what an earlier call with this seed has left."""
        attack = cls(out, seed, only, cheap=cheap)
        file = out / "progress.json"
        if file.is_file():
            kept = json.loads(file.read_text())
            if kept["seed"] == seed:
                attack.seconds = kept["seconds"]
                attack.scores = {name: Score(**score) for name, score in kept["scores"].items()}
        return attack

    def run(self, minutes: float) -> int:
        """Attacks for so long; returns how many failures there are in all."""
        self.out.mkdir(parents=True, exist_ok=True)
        began, told = time.monotonic(), time.monotonic()
        before = self.seconds
        while (left := 60 * minutes - (time.monotonic() - began)) > 0:
            for event in self._shift(min(_SHIFT, left)):
                self._note(event)
                self.seconds = before + time.monotonic() - began
                if time.monotonic() - told >= 60:
                    told = time.monotonic()
                    print(self._line(), flush=True)
                    self.save()
        self.save()
        print(self._line(), flush=True)
        return sum(score.failures for score in self.scores.values())

    def _shift(self, seconds: float) -> Iterator[dict]:
        """What a worker tells until it is done, dies or hangs."""
        plan = {name: score.cases for name, score in self.scores.items()}
        command = [sys.executable, "-m", "torture.worker", json.dumps({
            "seed": self.seed, "done": plan, "seconds": seconds, "only": self.only,
            "cheap": self.cheap,
            "spent": {name: score.seconds for name, score in self.scores.items()},
        })]  # fmt: skip
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        last, hung = {}, threading.Event()
        deadline = [time.monotonic() + 120.0 * crowd()]

        def watch() -> None:
            while process.poll() is None:
                if time.monotonic() > deadline[0]:
                    hung.set()
                    process.kill()
                time.sleep(0.5)

        threading.Thread(target=watch, daemon=True).start()
        for line in process.stdout:
            event = json.loads(line)
            if "begins" in event:
                last = event
                deadline[0] = time.monotonic() + event["patience"] * crowd()
                continue
            last = {}
            yield event
        said = process.stderr.read()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        if process.returncode and last:
            how = "hung" if hung.is_set() else f"died with {process.returncode}"
            yield {**last, "engine": last["begins"], "failed": f"the process {how}: {said[-1500:]}"}
        elif process.returncode:
            raise RuntimeError(f"the attack itself failed: {said[-3000:]}")

    def _note(self, event: dict) -> None:
        score = self.scores.setdefault(event["engine"], Score())
        score.cases = event["number"] + 1
        score.seconds += event.get("took", 0.0)
        if "failed" not in event:
            score.kinds = dict(Counter(score.kinds) + Counter([_short(event["kind"])]))
            return
        score.failures += 1
        folder = self.out / "failures"
        folder.mkdir(exist_ok=True)
        name = f"test_{event['engine'].replace('-', '_')}_{event['number']}.py"
        source = event.get("source") or engines()[event["engine"]].source(
            event["number"], self.seed, Failure(event["failed"])
        )
        (folder / name).write_text(source)
        print(f"FAILED {event['engine']} {event['number']}: {event['failed'][:300]}", flush=True)

    def _line(self) -> str:
        cases = sum(score.cases for score in self.scores.values())
        failures = sum(score.failures for score in self.scores.values())
        return f"{self.seconds / 60:7.1f} min  {cases:7d} cases  {failures} failures"

    def save(self) -> None:
        """Progress, and the tables."""
        kept = {
            "seed": self.seed, "seconds": self.seconds,
            "scores": {name: asdict(score) for name, score in sorted(self.scores.items())},
        }  # fmt: skip
        partial = self.out / ".progress.json"
        partial.write_text(json.dumps(kept, indent=1))
        os.replace(partial, self.out / "progress.json")
        (self.out / "summary.json").write_text(json.dumps(kept, indent=1))
        (self.out / "summary.md").write_text(self.table())

    def table(self) -> str:
        """The scores in Markdown."""
        rows = [
            "| attack | cases | failures | seconds | kinds |",
            "| --- | --- | --- | --- | --- |",
        ]
        for name, score in sorted(self.scores.items()):
            kinds = ", ".join(f"{kind}: {n}" for kind, n in sorted(score.kinds.items())[:6])
            rows.append(
                f"| {name} | {score.cases} | {score.failures} | {score.seconds:.0f} | {kinds} |"
            )
        cases = sum(score.cases for score in self.scores.values())
        failures = sum(score.failures for score in self.scores.values())
        rows.append(
            f"| all | {cases} | {failures} | {self.seconds:.0f} (wall) | seed {self.seed} |"
        )
        return "\n".join(rows) + "\n"


def _short(kind: str) -> str:
    return "damaged files" if kind.endswith("read") and kind[0].isdigit() else kind.split(":")[0]


def work(plan: dict) -> None:
    """In a worker: one case after the other, each told before and after."""
    faulthandler.enable()
    found = engines()
    names = [name for name in found if not plan["only"] or name in plan["only"]]
    if plan["cheap"]:
        names = [name for name in names if name not in DEAR]
    turns = [name for name in names for _ in range(SHARES.get(name, 1))]
    done = {name: plan["done"].get(name, 0) for name in names}
    end = time.monotonic() + plan["seconds"]
    # Each shift begins where the last one ended in the round.
    place = sum(done.values())
    spent = sum(plan["spent"].values())
    dear = sum(seconds for name, seconds in plan["spent"].items() if name in DEAR)
    while time.monotonic() < end:
        name = turns[place % len(turns)]
        place += 1
        if name in DEAR and len(names) > 1 and dear > _DEAR_SHARE * spent:
            continue
        number = done[name]
        done[name] += 1
        engine = found[name]
        _tell(begins=name, number=number, patience=engine.patience)
        folder = Path(tempfile.mkdtemp(prefix="torture-"))
        began = time.monotonic()
        event: dict = {"engine": name, "number": number}
        try:
            event["kind"] = engine.case(rng_of(name, number, plan["seed"]), folder)
        except Failure as failure:
            event["failed"] = failure.what
            event["source"] = engine.source(number, plan["seed"], failure)
        except Exception as error:
            event["failed"] = f"{type(error).__name__}: {error}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        took = time.monotonic() - began
        spent += took
        dear += took if name in DEAR else 0.0
        _tell(**event, took=took)


def _tell(**event: object) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()
