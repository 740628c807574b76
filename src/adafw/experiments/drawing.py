"""What all figures share."""

from typing import Any


def draw_line(axis: Any, curve: Any, style: dict[str, Any]) -> None:
    """A line (x, middle, lower, upper) and its band; nothing for None."""
    if curve is None:  # nothing positive to show on a logarithmic axis
        return
    x, middle, lower, upper = curve
    axis.fill_between(x, lower, upper, color=style["color"], alpha=0.16, linewidth=0)
    axis.plot(x, middle, **style)


def plain(axis: Any) -> None:
    """A light grid, no frame."""
    axis.grid(True, which="major", color="#e4e4e4", linewidth=0.7)
    axis.spines[["top", "right"]].set_visible(False)
