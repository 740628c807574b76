"""adafw tune: the learning rate of one algorithm of an experiment."""

import math
from typing import Any

import click


def _show(trial: Any) -> None:
    reached = f"value {trial.value:.4g}" if math.isnan(trial.gap) else f"gap {trial.gap:.3e}"
    click.echo(f"i = {trial.exponent}: {reached}", err=True)


@click.command(name="tune", short_help="Search a learning rate.")
@click.argument("experiment")
@click.argument("algorithm")
@click.option("--problem", help="Which problem, where the experiment has several.")
@click.option("--quick", is_flag=True, help="On the data of the experiment's short form.")
@click.option("--max-epochs", type=float, help="Budget of each run. [default: 20 if none is given]")
@click.option("--max-iterations", type=int, help="Budget of each run.")
@click.option("--max-cpu-seconds", type=float, help="Budget of each run; not reproducible.")
@click.option("--measure", type=click.Choice(["gap", "value"]), default="gap", show_default=True)
@click.option("--seed", type=int, help="Of the index stream; the default judges no experiment.")
def command(
    experiment: str, algorithm: str, problem: str | None, quick: bool, measure: Any,
    seed: int | None, **limits: Any,
) -> None:  # fmt: skip
    """Searches the learning rate of ALGORITHM, as labelled in EXPERIMENT (a name or a TOML file).

    10^(i/2), from i in {-2, 0, 2} to the neighbours of the best, and on while the best is at an end
    (section 3.6 of the paper). Prints the table and the learning rate found. Networks are judged by
    the error rate on a fifth of their training data, which is held out.
    """
    from adafw.experiments import load_spec
    from adafw.experiments.tuning import tune_method

    budget = {name: limit for name, limit in limits.items() if limit is not None}
    spec = load_spec(experiment, quick)
    tuned = tune_method(
        spec, algorithm, problem, budget or {"max_epochs": 20}, measure, seed,
        report=_show,
    )  # fmt: skip
    click.echo(str(tuned))
    click.echo(f"learning_rate = {tuned.learning_rate!r}")
