"""adafw score: how good a model is on a data file."""

from typing import TYPE_CHECKING, Any

import click

from adafw.commands.options import FORMATS, echo_json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from adafw.fitting import LinearPredictor


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
    tally = _Tally(fitted.predictor)
    for piece in read_pieces(data, format_, columns_of(fitted), np.float64, with_target=True):
        assert piece.y is not None  # asked for with the pieces
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

    def __init__(self, model: "LinearPredictor") -> None:
        self.model = model
        self.rows = 0
        self.right = self.loss = self.squares = 0.0
        self.mean = self.spread = 0.0  # of the targets, as Welford sums them

    def add(self, X: Any, y: "NDArray[Any]") -> None:
        """One more piece."""
        self._check(y)
        self.loss += float(self.model.losses(X, y).sum())
        predicted = self.model.predict(X)
        n = len(y)
        if self.model.classes is not None:
            self.right += int((predicted == y).sum())
        else:
            self.squares += float(((predicted - y) ** 2).sum())
            mean = float(y.mean())
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

    def _check(self, y: "NDArray[Any]") -> None:
        """Refuses targets that are no numbers, or none of the model's classes."""
        import numpy as np

        classes, numbers = self.model.classes, y.dtype.kind in "biuf"
        if classes is None:
            if not numbers:
                raise ValueError(f"targets must be numbers, got {y[0]!r}.")
            return
        if numbers != (classes.dtype.kind in "biuf"):
            raise ValueError(f"targets must be labels such as {classes[0]}, got {y[0]!r}.")
        unknown = y[~np.isin(y, classes)]
        if unknown.size:
            raise ValueError(f"targets must be among the model's classes, got {unknown[0]}.")
