"""What a user should know about a fit that is not quite what was asked for, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from adafw.fitting.judge import SHORT_PATIENCE
from adafw.fitting.linear import Fit
from adafw.fitting.settings import Plan


@dataclass(frozen=True)
class Notice:
    """A sentence, and its kind: what front ends choose the form of a warning by."""

    kind: Literal["unfinished", "not started", "no effect"]
    text: str


def notices(fits: Sequence[Fit], plan: Plan) -> tuple[Notice, ...]:
    """A fit that stopped early says how far it got; a radius that nothing feels is named."""
    found = []
    late = [fit for fit in fits if fit.status not in ("converged", "not started")]
    if late:
        worst = max(late, key=lambda fit: fit.tolerance_reached)
        found.append(Notice("unfinished", _unfinished(worst, plan)))
    missing = sum(fit.status == "not started" for fit in fits)
    if missing:
        found.append(Notice("not started", f"{missing} of {len(fits)} classes were not started."))
    if not any(fit.radius_matters for fit in fits):
        found.append(
            Notice(
                "no effect",
                f"the radius {plan.constraint.scale:g} has no effect: ten times it would lower the "
                "objective by less than 1 %; lower the radius, or take the model as one without a "
                "constraint.",
            )
        )
    return tuple(found)


def _unfinished(fit: Fit, plan: Plan) -> str:
    settings = plan.settings
    reasons = {
        "stalled": _standstill(fit),
        "rounding": "rounding allows no more progress",
        "max_epochs": f"max_epochs={settings.max_epochs:g} is used up",
        "max_seconds": "the time is up",
    }
    raising = {
        "max_seconds": "raise max_seconds or tol",
        "stalled": "raise tol",
        "rounding": "raise tol",
    }
    single = (
        " pass float64 data," if fit.status == "rounding" and fit.coef.dtype.itemsize < 8 else ""
    )
    return (
        f"the fit stopped before its tolerance ({reasons.get(fit.status, fit.status)}): gap "
        f"{fit.gap:.3g} is {fit.tolerance_reached:.3g} of the value {fit.value:.6g}, "
        f"tol={settings.tol:g} was asked for; {raising.get(fit.status, 'raise max_epochs or tol')},"
        f"{single} standardise the features, or lower the radius."
    )


def _standstill(fit: Fit) -> str:
    """Since when nothing has come of iterations, by the records."""
    iterations, values = fit.trace["iteration"], fit.trace["value"]
    last = iterations[-1] - iterations[max(0, len(iterations) - 1 - SHORT_PATIENCE)]
    fallen = float(values[max(0, len(values) - 1 - SHORT_PATIENCE)] - values[-1])
    return (
        f"progress has stopped: the last {int(last)} iterations lowered the value by "
        f"{max(0.0, fallen):.2g}"
    )
