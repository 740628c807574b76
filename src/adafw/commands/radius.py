"""`adafw fit --radius cv` and `--radius-path`: a radius chosen by folds, and models along radii."""

import csv
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.fitting import Deadline, LinearPredictor
from adafw.fitting.radii import Problem, Rule, Scores, check_sized, find_radii, score_radii, walk
from adafw.io.atomic import replacing
from adafw.typing import Plain

#: Radii that are tried.
COUNT = 30


@dataclass(frozen=True)
class Search:
    """Scores of the folds, the number of the radius chosen from them, and the rule."""

    scores: Scores
    chosen: int
    rule: Rule

    @property
    def radius(self) -> float:
        """The one chosen."""
        return float(self.scores.radii[self.chosen])

    def plain(self) -> dict[str, Plain]:
        """For the header of a model."""
        return {
            "rule": self.rule,
            "folds": self.scores.scores.shape[1],
            "radii": self.scores.radii.tolist(),
            "mean_scores": self.scores.means.tolist(),
            "standard_errors": self.scores.errors.tolist(),
        }


def search_radius(problem: Problem, folds: int, rule: Rule, deadline: Deadline) -> Search:
    """The radius of the best accuracy or R^2 over shuffled folds, stratified for classes."""
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if problem.classes is None else StratifiedKFold
    splitter = kind(folds, shuffle=True, random_state=problem.settings.seed)
    parts = list(splitter.split(problem.X, problem.y))

    def score(model: LinearPredictor, rows: NDArray[Any]) -> float:
        y, predicted = problem.y[rows], model.predict(problem.X[rows])
        if model.classes is not None:
            return float((predicted == y).mean())
        spread = float(((y - y.mean()) ** 2).sum())
        return 1 - float(((y - predicted) ** 2).sum()) / spread if spread > 0 else float("nan")

    radii = find_radii(problem, COUNT, deadline)
    scores = score_radii(problem, radii, parts, score, deadline, problem.settings.jobs)
    return Search(scores, scores.choose(rule), rule)


def write_path(path: str, problem: Problem, search: Search | None, deadline: Deadline) -> None:
    """A CSV file with a row for each radius: models fitted to all data, and scores of the folds."""
    check_sized(problem.settings.constraint)
    radii = find_radii(problem, COUNT, deadline) if search is None else search.scores.radii
    design, targets = problem.part()
    head = ["radius", "objective", "gap", "nonzeros"]
    rows: list[list[float | int | str]] = []
    for radius, fitted in walk(design, targets, problem.settings, radii, deadline):
        used = int(np.count_nonzero(np.abs(fitted.predictor.coef).max(axis=0) > 1e-15 * radius))
        value, gap = (sum(getattr(fit, name) for fit in fitted.fits) for name in ("value", "gap"))
        rows.append([radius, value, gap, used])
    if search is not None:
        head += ["mean_score", "standard_error", "chosen"]
        for k, row in enumerate(rows):
            scores = search.scores
            row += [float(scores.means[k]), float(scores.errors[k]), int(k == search.chosen)]
    with replacing(path) as partial, open(partial, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
