"""adafw score: how good a model is on a data file."""

from typing import Any

import click

from adafw.commands.options import FORMATS, echo_json


@click.command(name="score", short_help="Score a model on a data file.")
@click.argument("model", type=click.Path())
@click.argument("data", type=click.Path())
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Format of the data.  [default: by the file's name]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(model: str, data: str, format_: str | None, as_json: bool) -> None:  # fmt: skip
    """Prints accuracy (classes) or R^2 (numbers), and the mean loss, of MODEL on DATA.

    The data, with targets, are read in pieces. Exit codes: 0 done, 1 files could not be read, 2
    wrong usage or bad data.
    """
    import numpy as np

    from adafw.commands.predict import columns_of
    from adafw.fitting.model import LinearModelFile
    from adafw.io.tables import read_pieces

    fitted = LinearModelFile.load(model)
    tally = _Tally(fitted)
    for piece in read_pieces(data, format_, columns_of(fitted), np.float64, with_target=True):
        tally.add(piece.X, piece.y)
    if not tally.rows:
        raise ValueError(f"{data} must hold at least one sample, got none.")
    scores = {"rows": tally.rows, **tally.scores()}
    if as_json:
        echo_json(scores)
    else:
        click.echo("\n".join(f"{name:<10} {value:.8g}" for name, value in scores.items()))


class _Tally:
    """Sums over the pieces of a file."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.rows = 0
        self.right = self.loss = self.squares = 0.0
        self.mean = self.spread = 0.0  # of the targets, as Welford sums them

    def add(self, X: Any, y: Any) -> None:
        """One more piece."""
        import numpy as np

        scores = self.model.decision(X)
        self.loss += float(self._losses(scores, y).sum())
        if self.model.classes is not None:
            self.right += int(np.count_nonzero(self.model.predict(X) == _like(y, self.model)))
            self.rows += len(y)
            return
        if y.dtype.kind not in "biuf":
            raise ValueError(f"targets must be numbers, got {y[0]!r}.")
        predicted = self.model.predict(X)
        self.squares += float(((predicted - y) ** 2).sum())
        n, mean = len(y), float(y.mean())
        self.spread += float(((y - mean) ** 2).sum())
        self.spread += (mean - self.mean) ** 2 * self.rows * n / (self.rows + n)
        self.mean += (mean - self.mean) * n / (self.rows + n)
        self.rows += n

    def scores(self) -> dict[str, float]:
        """What is known now."""
        if self.model.classes is not None:
            return {"accuracy": self.right / self.rows, "mean_loss": self.loss / self.rows}
        return {
            "r2": 1 - self.squares / self.spread if self.spread > 0 else float("nan"),
            "mse": self.squares / self.rows,
            "mean_loss": self.loss / self.rows,
        }

    def _losses(self, scores: Any, y: Any) -> Any:
        """The loss of every row; for several classes, the sum over the binary problems."""
        import numpy as np

        from adafw.fitting.linear import one_against_rest
        from adafw.fitting.names import CLASSIFICATION, REGRESSION

        settings = self.model.header["settings"]
        make: Any = {**CLASSIFICATION, **REGRESSION}[settings["loss"]]
        loss = make(settings["delta"]) if settings["loss"] == "huber" else make()
        if self.model.classes is None:
            return loss.value(scores, y.astype(np.float64))
        targets = one_against_rest(_like(y, self.model), self.model.classes)
        columns = scores[:, None] if scores.ndim == 1 else scores
        return sum(loss.value(columns[:, k], target) for k, target in enumerate(targets))


def _like(y: Any, model: Any) -> Any:
    """Targets in the kind of the model's classes; one that is none of them is refused."""
    import numpy as np

    if (y.dtype.kind in "biuf") != (model.classes.dtype.kind in "biuf"):
        raise ValueError(f"targets must be labels such as {model.classes[0]}, got {y[0]!r}.")
    unknown = y[~np.isin(y, model.classes)]
    if unknown.size:
        raise ValueError(f"targets must be among the model's classes, got {unknown[0]}.")
    return y
