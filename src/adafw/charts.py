"""Small line charts as SVG text, drawn by hand: no library is needed, in notebooks and on pages."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

import numpy as np
from numpy.typing import NDArray

#: Colours that stay apart on white and on black, for the colour-blind too (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
#: More curves than this have no key: it would hide them.
MOST_NAMES = 6
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 12, 44


@dataclass(frozen=True)
class Polyline:
    """Points to join by a line; those that have no place on the axes are left out."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    name: str = ""
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """The range of an axis, and where its pixels begin and end."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def around(
        cls, values: NDArray[np.float64], start: float, end: float, log: bool = False
    ) -> "Axis":
        """One that holds all values; a single value gets some room, and a line its width."""
        low, high = float(values.min()), float(values.max())
        if log:
            low, high = (low / 2, high * 2) if low == high else (low, high)
        elif low == high:
            low, high = low - 0.5 * max(abs(low), 1.0), high + 0.5 * max(abs(high), 1.0)
        return cls(low, high, start, end, log)

    def place(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pixels of values."""
        if self.log:
            share = np.log(values / self.low) / math.log(self.high / self.low)
        else:
            share = (values - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """About five round numbers: multiples of 1, 2 or 5, or powers of ten."""
        if self.log:
            first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
            if last > first:
                return [10.0**k for k in range(first, last + 1, max(1, (last - first + 3) // 5))]
            some = [
                m * 10.0**k
                for k in range(first - 1, last + 2)
                for m in (1, 2, 5)
                if self.low <= m * 10.0**k <= self.high
            ]
            return some or [self.low, self.high]
        step = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
        step *= next(m for m in (1, 2, 5, 10) if (self.high - self.low) / (m * step) <= 5)
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        return [k * step for k in range(first, last + 1)]


def line_chart(
    curves: Sequence[Polyline],
    x_label: str,
    y_label: str,
    log: bool = False,
    width: int = 420,
    height: int = 260,
    key: Literal["upper right", "below"] = "upper right",
) -> str:
    """An <svg> element of these curves that grows and shrinks with its page.

    Text and axes have the colour of the text around, so that dark pages work. With `log`, y has a
    logarithmic scale and values <= 0 are left out. `key`: where the names stand; below the axis
    they hide no curve, wherever those go.
    """
    kept = [c for c in (_drawable(curve, log) for curve in curves) if c.x.size]
    whole = height + (20 if key == "below" else 0)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" role="img" '
        f'aria-label="{escape(y_label)} against {escape(x_label)}" font-size="13" '
        f'font-family="system-ui, sans-serif" fill="currentColor" style="width:100%;'
        f'max-width:{width}px;height:auto">'
    )
    if not kept:
        middle = f'x="{width // 2}" y="{height // 2}" text-anchor="middle"'
        return f"{head}<text {middle}>nothing to draw</text></svg>"
    x = Axis.around(np.concatenate([c.x for c in kept]), _LEFT, width - _RIGHT)
    # The lowest point a little above the axis, which would hide it.
    y = Axis.around(np.concatenate([c.y for c in kept]), height - _BOTTOM - 6, _TOP, log)
    parts = [head, *_grid(x, y, height - _BOTTOM), *_labels(x_label, y_label, width, height)]
    parts += [_line(curve, x, y) for curve in kept]
    named = [curve for curve in kept if curve.name]
    if len(named) <= MOST_NAMES:
        parts += _key(named, width) if key == "upper right" else _key_below(named, width, height)
    return "".join([*parts, "</svg>"])


def _drawable(curve: Polyline, log: bool) -> Polyline:
    good = np.isfinite(curve.x) & np.isfinite(curve.y)
    if log:
        good &= curve.y > 0
    return Polyline(curve.x[good], curve.y[good], curve.name, curve.colour, curve.dashed)


def _grid(x: Axis, y: Axis, floor: float) -> list[str]:
    """Thin lines at the ticks of y, the ticks' numbers, and a frame's lower and left side."""
    parts, numbers = [], y.ticks()
    digits = _digits(numbers)
    for value, at in zip(numbers, y.place(np.array(numbers)), strict=True):
        parts.append(
            f'<path d="M{x.start:.1f} {at:.1f}H{x.end:.1f}" stroke="currentColor" opacity=".15"/>'
            f'<text x="{x.start - 6:.1f}" y="{at + 4:.1f}" text-anchor="end">'
            f"{_written(value, digits, y.log)}</text>"
        )
    numbers = x.ticks()
    digits = _digits(numbers)
    for value, at in zip(numbers, x.place(np.array(numbers)), strict=True):
        parts.append(
            f'<text x="{at:.1f}" y="{floor + 16:.1f}" text-anchor="middle">'
            f"{value:.{digits}g}</text>"
        )
    corner = f"M{x.start:.1f} {y.end:.1f}V{floor:.1f}H{x.end:.1f}"
    return [*parts, f'<path d="{corner}" fill="none" stroke="currentColor" opacity=".5"/>']


def _written(value: float, digits: int, log: bool) -> str:
    """The number; on a logarithmic axis far from 1 its power, which stays short."""
    text = f"{value:.{digits}g}"
    if not log or 1e-2 <= value < 1e4:
        return text
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    short = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{short}e{int(power)}"


def _digits(numbers: Sequence[float]) -> int:
    """As many as tell the numbers apart."""
    return next(
        (d for d in range(3, 17) if len({f"{v:.{d}g}" for v in numbers}) == len(numbers)), 17
    )


def _labels(x_label: str, y_label: str, width: int, height: int) -> list[str]:
    middle = (_TOP + height - _BOTTOM) / 2
    return [
        f'<text x="{(_LEFT + width - _RIGHT) / 2:.1f}" y="{height - 8}" text-anchor="middle">'
        f"{escape(x_label)}</text>",
        f'<text transform="translate(13 {middle:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>",
    ]


def _line(curve: Polyline, x: Axis, y: Axis) -> str:
    colour = _colour(curve)
    points = list(zip(x.place(curve.x), y.place(curve.y), strict=True))
    if len(points) == 1:
        return f'<circle cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="4" fill="{colour}"/>'
    way = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
    dashes = ' stroke-dasharray="5 4"' if curve.dashed else ""
    return f'<polyline points="{way}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}/>'


def _key(named: Sequence[Polyline], width: int) -> list[str]:
    """Names at the right, one below the other."""
    return [
        f'<text x="{width - _RIGHT - 6}" y="{_TOP + 14 + 16 * k:.0f}" text-anchor="end" '
        f'fill="{_colour(curve)}">{_sign(curve)}{escape(curve.name)}</text>'
        for k, curve in enumerate(named)
    ]


def _key_below(named: Sequence[Polyline], width: int, height: int) -> list[str]:
    """Names in a line of their own."""
    words = "".join(
        f'<tspan dx="{14 * (k > 0)}" fill="{_colour(curve)}">{_sign(curve)}{escape(curve.name)}'
        "</tspan>"
        for k, curve in enumerate(named)
    )
    return [f'<text x="{width / 2:.0f}" y="{height + 12}" text-anchor="middle">{words}</text>']


def _colour(curve: Polyline) -> str:
    return COLOURS[curve.colour % len(COLOURS)]


def _sign(curve: Polyline) -> str:
    """What stands before a name: dashes, a dot for a single point."""
    if curve.dashed:
        return "- - "
    return "● " if curve.x.size == 1 else ""
