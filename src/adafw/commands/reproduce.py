"""adafw reproduce: experiments from their files."""

import time
from pathlib import Path
from typing import Any

import click


@click.command(name="reproduce", short_help="Redo an experiment.")
@click.argument("experiment")
@click.option("--quick", is_flag=True, help="The short form: fits in 2 minutes on 2 cores.")
@click.option("--full", is_flag=True, help="The paper's size where that takes days (cifar10).")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), default=Path("out"),
    show_default=True, help="Results go to OUT/<experiment>/.",
)  # fmt: skip
@click.option("--seeds", help="Instead of the file's, for example 1,2,3.")
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes of one thread each. [default: cores]"
)
@click.option(
    "--tensorboard", type=click.Path(file_okay=False, path_type=Path),
    help="Also log every run to this folder, for tensorboard --logdir.",
)  # fmt: skip
@click.option("--fresh", is_flag=True, help="Do not go on from what an earlier call has left.")
def command(
    experiment: str, quick: bool, full: bool, out: Path, seeds: str | None, jobs: int | None,
    tensorboard: Path | None, fresh: bool,
) -> None:  # fmt: skip
    """Runs EXPERIMENT and writes trace.csv, summary.json, figure.svg, figure.png, report.html.

    EXPERIMENT is a name (svm, year, rcv1, sensitivity, dear-sets, zoo; networks: imdb, cifar10,
    imdb-K, cifar10-K, chars, fashion), "all" for those that do not take hours, or your own TOML
    file. A call that was killed or interrupted goes on where it stopped when it is given again.
    """
    from adafw.experiments import reproduce

    for name in _all() if experiment == "all" else [experiment]:
        try:
            with Display() as bar:
                outcome = reproduce(
                    name,
                    out,
                    quick=quick,
                    full=full,
                    seeds=_seeds(seeds),
                    workers=jobs,
                    fresh=fresh,
                    bar=bar,
                    tensorboard=tensorboard,
                )
        except KeyboardInterrupt:
            click.echo("Stopped; the same command goes on from here.", err=True)
            raise
        folder = out / outcome.spec.name
        for label, is_stand_in in dict.fromkeys(
            (about["label"], about["is_stand_in"]) for about in outcome.data.values()
        ):
            click.echo(f"{'Stand-in data' if is_stand_in else 'Data'}: {label}")
        click.echo(_verdicts(outcome))
        click.echo(f"Report: {folder / 'report.html'}")


def _seeds(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"must be integers such as 1,2,3, got {text!r}.") from None


def _all() -> list[str]:
    """What "all" stands for: everything but the kinds that take hours, which are told."""
    from adafw.experiments import load_spec, names
    from adafw.experiments.kinds import kind_of

    long = [name for name in names() if kind_of(load_spec(name)).is_long]
    click.echo(f"Not in all, to be named: {', '.join(long)} (networks, torch).", err=True)
    return [name for name in names() if name not in long]


def _verdicts(outcome: Any) -> str:
    from adafw.experiments.kinds import kind_of

    claims = kind_of(outcome.spec).judge(outcome)
    return "\n".join(f"  {c.verdict:<13} {c.problem}: {c.statement}" for c in claims)


class Display:
    """A bar on a terminal, a line for every tenth of the way elsewhere; on standard error."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.bar: Any = None
        self.done = 0

    def __enter__(self) -> "Display":
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def start(self, name: str, total: int) -> None:
        """An experiment of so many runs begins."""
        self.name, self.total, self.began = name, total, time.monotonic()
        if not self.console.is_terminal:
            return
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"),
            TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=self.console,
        )  # fmt: skip
        self.task = self.bar.add_task(name, total=total)
        self.bar.start()

    def advance(self) -> None:
        """A run is done."""
        self.done += 1
        if self.bar is not None:
            self.bar.advance(self.task)
        elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            seconds = time.monotonic() - self.began
            self.console.print(f"{self.name}: {self.done} of {self.total} runs, {seconds:.0f} s")
