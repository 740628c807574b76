"""The page of `adafw fit --report`: data, certificate, convergence, coefficients, test score."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adafw.charts import Polyline, line_chart
from adafw.fitting import Fitted, LinearModelFile, Targets
from adafw.names import SETS
from adafw.page import definitions, html_table, page
from adafw.typing import JsonTable, Plain

#: Coefficients shown of each score, and scores whose coefficients are shown.
TOP, MOST_SCORES = 15, 20

_STYLE = """
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr));
  gap: 20px 32px; } .panels svg { max-width: none !important; } .panels figure { max-width: 640px; }
.key { font-size: 22px; font-weight: 600; margin: 4px 0; font-variant-numeric: tabular-nums; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; }
.tile { background: var(--tint); border-radius: 8px; padding: 10px 14px; }
.tile small { display: block; }
.coefs { max-width: 720px; display: grid;
  grid-template-columns: minmax(0, 1fr) minmax(80px, 1fr) max-content;
  gap: 3px 12px; font-size: 14px; font-variant-numeric: tabular-nums; align-items: center; }
.coefs > :nth-child(3n+1) { overflow-wrap: anywhere; text-align: right; }
.coefs > :nth-child(3n) { text-align: right; }
.bar { position: relative; height: 13px; background: linear-gradient(var(--rule), var(--rule))
  center / 1px 100% no-repeat; }
.bar i { position: absolute; top: 1px; bottom: 1px; border-radius: 2px; }
.plus { background: #0072b2; left: 50%; } .minus { background: #d55e00; right: 50%; }
@media (prefers-color-scheme: dark) { .bar i, svg [fill^="#"], svg [stroke^="#"] {
  filter: brightness(1.5); } }
"""


@dataclass(frozen=True)
class Sample:
    """What the page says about the data."""

    shape: tuple[int, ...]
    stored: int
    targets: Targets

    def words(self) -> dict[str, object]:
        """Sizes, and the targets in a line."""
        m, n = self.shape
        found: dict[str, object] = {"rows": f"{m:,}", "features": f"{n:,}"}
        if self.stored < m * n:
            share = 100 * self.stored / (m * n)
            found["stored values"] = f"{self.stored:,} ({share:.3g} % of all)"
        labels, classes = self.targets.labels, self.targets.classes
        if classes is not None and labels is not None:
            counts = np.bincount(labels, minlength=len(classes))
            shown = [f"{label_of(c)}: {k:,}" for c, k in zip(classes, counts, strict=True)]
            more = ", ..." if len(shown) > 12 else ""
            found["classes"] = f"{len(classes)} ({', '.join(shown[:12])}{more})"
        else:
            y = self.targets.vectors[0]
            found["target"] = (
                f"mean {y.mean():.4g}, standard deviation {y.std():.4g}, from {y.min():.4g} to "
                f"{y.max():.4g}"
            )
        return found


def render(
    model: LinearModelFile, fitted: Fitted, sample: Sample, test: dict[str, Plain] | None
) -> str:
    """The whole page; nothing in it is fetched from anywhere."""
    settings, data = model.header["settings"], model.header["data"]
    title = f"{data['file']}: {settings['task']} with {settings['loss']} loss"
    size = f" of radius {settings['radius']:g}" if SETS.find(settings["constraint"]).sized else ""
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">Coefficients in the set {escape(settings["constraint"])}'
        f"{escape(size)}; adafw {escape(model.header['adafw'])}</p>",
        *[f'<p class="warn">{escape(notice.text)}</p>' for notice in fitted.notices],
        _tiles(model, test),
        "<h2>Data</h2>",
        definitions({"file": data["file"], **sample.words()}),
        "<h2>Certificate</h2>",
        _certificate(model),
        "<h2>Convergence</h2>",
        _convergence(model, fitted),
        *_search(model),
        "<h2>Largest coefficients</h2>",
        _coefficients(model),
        "<h2>Settings</h2>",
        definitions({k: v for k, v in settings.items() if v is not None}),
    ]
    return page(title, body, _STYLE)


def label_of(value: object) -> str:
    """A class as text: 1, not 1.0."""
    return f"{value:g}" if isinstance(value, float | int | np.number) else str(value)


def _tiles(model: LinearModelFile, test: dict[str, Plain] | None) -> str:
    """The few numbers to look at first."""
    parts = model.header["certificate"]
    done = sum(part["status"] == "converged" for part in parts)
    used = int((np.abs(model.coef).max(axis=0) > 0).sum())
    tiles = [
        ("certified to the tolerance", "yes" if done == len(parts) else f"{done} of {len(parts)}"),
        ("largest gap / objective", _number(max(_relative(p) for p in parts), 2)),
        ("features used", f"{used:,} of {model.n_features:,}"),
        ("seconds", _number(sum(part["seconds"] or 0.0 for part in parts))),
    ]
    if test is not None:
        name = "accuracy" if "accuracy" in test else "r2"
        value = test[name]
        assert value is None or isinstance(value, float)
        label = f"{'R²' if name == 'r2' else name} on {test['file']} ({test['rows']:,} rows)"
        tiles.insert(0, (label, _number(value, 4)))
    items = (
        f'<div class="tile"><small>{escape(k)}</small><span class="key">{escape(v)}</span></div>'
        for k, v in tiles
    )
    return f'<div class="tiles">{"".join(items)}</div>'


def _certificate(model: LinearModelFile) -> str:
    names = _fit_names(model)
    head = ["Objective", "Gap", "At least", "Status", "Algorithm", "Iterations", "Outside the set"]
    rows = []
    for name, part in zip(names, model.header["certificate"], strict=True):
        cells = [
            _number(part["value"], 8), _number(part["gap"]), _number(part["lower_bound"], 8),
            part["status"], part["algorithm"], str(part["iterations"]), _number(part["violation"]),
        ]  # fmt: skip
        rows.append([escape(cell) for cell in ([name] if name else []) + cells])
    first = ["Class"] if names[0] else []
    numbers = [len(first) + k for k in (0, 1, 2, 5, 6)]
    any_b = ", with any intercept," if model.header["settings"]["fit_intercept"] else ""
    return (
        f"<p>No coefficients of the set{any_b} have an objective (mean loss) below "
        "the number under <em>at least</em>; the gap is how far this model can be above the best "
        "one, computed with exact gradients.</p>"
        + html_table(first + head, rows, numbers, kind="stacked")
    )


def _convergence(model: LinearModelFile, fitted: Fitted) -> str:
    names = _fit_names(model)
    gaps, values = [], []
    for k, (fit, name) in enumerate(zip(fitted.fits, names, strict=True)):
        epochs = fit.trace["epoch"]
        gaps.append(Polyline(epochs, fit.trace["gap"], name, k))
        values.append(Polyline(epochs, fit.trace["value"], name or "objective", k))
        if len(fitted.fits) == 1:
            # Of the first records the bound says nothing yet, and would flatten the rest: no loss
            # but Poisson's is below 0.
            least = 0.0 if fit.value >= 0 else 2 * fit.value - max(fit.trace["value"])
            bound = np.where(fit.trace["lower_bound"] < least, np.nan, fit.trace["lower_bound"])
            values.append(Polyline(epochs, bound, "proven lower bound", k + 1, dashed=True))
    charts = (
        line_chart(gaps, "passes over the data", "gap", log=True),
        line_chart(values, "passes over the data", "objective"),
    )
    return f'<div class="panels">{"".join(f"<figure>{chart}</figure>" for chart in charts)}</div>'


def _search(model: LinearModelFile) -> list[str]:
    """Scores of the folds against the radius, where it was chosen."""
    search = model.header.get("search")
    if search is None:
        return []
    radii = np.log10(np.array(search["radii"]))
    # null stands for radii that the time did not allow
    means, errors = (np.array(search[k], dtype=float) for k in ("mean_scores", "standard_errors"))
    chosen = [search["radii"].index(model.header["settings"]["radius"])]
    chart = line_chart(
        [
            Polyline(radii, means, "mean score", 0),
            Polyline(radii[chosen], means[chosen], "chosen", 2),
            Polyline(radii, means - errors, "± standard error", 1, dashed=True),
            Polyline(radii, means + errors, "", 1, dashed=True),
        ],
        "log10 of the radius",
        "held-out score",
        key="below",
    )
    rule = {"best": "the best mean", "one_se": "the smallest within one standard error of the best"}
    text = (
        f"Radius {model.header['settings']['radius']:.4g} has {rule[search['rule']]} of "
        f"{len(radii)} radii over {search['folds']} folds."
    )
    return ["<h2>Choice of the radius</h2>", f"<p>{text}</p>",
            f'<div class="panels"><figure>{chart}</figure></div>']  # fmt: skip


def _coefficients(model: LinearModelFile) -> str:
    names, features = _score_names(model), feature_names(model)
    shown = min(len(names), MOST_SCORES)
    blocks = [
        f"<div>{f'<h3>{escape(names[k])}</h3>' if names[k] else ''}"
        f"{_bars(model.coef[k].astype(float), features)}"
        f'<p class="quiet">intercept {_number(float(model.intercept[k]), 4)}</p></div>'
        for k in range(shown)
    ]
    sides = ""
    if model.classes is not None and len(names) == 1:
        no, yes = (escape(label_of(c)) for c in model.classes)
        sides = f"<p>Positive coefficients speak for {yes}, negative ones for {no}.</p>"
    rest = f'<p class="quiet">and {len(names) - shown} more classes</p>' * (shown < len(names))
    return f'{sides}<div class="panels">{"".join(blocks)}</div>{rest}'


def _bars(coef: NDArray[Any], features: list[str]) -> str:
    """The largest coefficients, each with a bar to the left or right."""
    order = np.argsort(-np.abs(coef), kind="stable")[:TOP]
    order = order[coef[order] != 0]
    if not order.size:
        return "<p>All coefficients are 0.</p>"
    largest = float(np.abs(coef[order[0]]))
    cells = []
    for j in order:
        side, width = "plus" if coef[j] > 0 else "minus", 50 * abs(coef[j]) / largest
        name = escape(features[j]).replace("_", "_<wbr>")  # long names break there
        cells.append(
            f'<span>{name}</span><span class="bar"><i class="{side}" '
            f'style="width:{width:.1f}%"></i></span><span>{_number(coef[j], 4)}</span>'
        )
    left = int(np.count_nonzero(coef)) - len(order)
    more = f'<p class="quiet">and {left:,} smaller ones</p>' if left else ""
    return f'<div class="coefs">{"".join(cells)}</div>{more}'


def feature_names(model: LinearModelFile) -> list[str]:
    """Names of the columns, or their numbers as the file counts them."""
    if model.header["features"] is not None:
        return list(model.header["features"])
    first = 1 if model.header["zero_based"] is False else 0
    return [f"feature {j + first}" for j in range(model.n_features)]


def _score_names(model: LinearModelFile) -> list[str]:
    """The class of each score; nothing where there is one."""
    if model.classes is None or len(model.coef) == 1:
        return [""] * len(model.coef)
    return [label_of(c) for c in model.classes]


def _fit_names(model: LinearModelFile) -> list[str]:
    """The class of each certificate; nothing where one is for all."""
    fits = len(model.header["certificate"])
    return _score_names(model) if fits > 1 else [""]


def _relative(part: JsonTable) -> float:
    if part["gap"] is None or part["value"] is None:
        return float("nan")
    return float(part["gap"] / max(abs(part["value"]), 1e-12))


def _number(value: float | None, digits: int = 3) -> str:
    """A number with a true minus, which no line breaks at; null stands for NaN."""
    return "nan" if value is None else f"{value:.{digits}g}".replace("-", "\u2212")
