"""Small line plots as SVG: one measure, one line a model, axes that start at zero."""

import math
from collections.abc import Sequence
from html import escape

from .rows import Series

WIDTH, HEIGHT = 460, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 26


def line_plot(series: Sequence[Series]) -> str:
    """One `<svg>` of series that share name and unit; nothing where they are empty."""
    drawn = [one for one in series if one.times]
    if not drawn:
        return ""
    low = min(one.times[0] for one in drawn)
    span = max(max(one.times[-1] for one in drawn) - low, 1e-9)
    top = nice_ceiling(max(max(one.values) for one in drawn))
    lines = "".join(_line(one, index, low, span, top) for index, one in enumerate(drawn))
    peak = max(max(one.values) for one in drawn)
    label = escape(f"{drawn[0].name}, {drawn[0].unit}: at most {peak:.4g}")
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f"{_axes(low, span, top)}{lines}</svg>"
    )


def nice_ceiling(value: float) -> float:
    """The next of 1, 2, 2.5, 5 × 10ⁿ at or above a positive value; 1 for the rest."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * 0.999999)


def _axes(low: float, span: float, top: float) -> str:
    parts = []
    for share in (0, 0.5, 1):
        y = HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(top * share)}</text>'
        )
    for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end")):
        x = LEFT + share * (WIDTH - LEFT - RIGHT)
        text = clock_text(low + share * span, span)
        parts.append(f'<text x="{x:.0f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{text}</text>')
    return "".join(parts)


def _line(one: Series, index: int, low: float, span: float, top: float) -> str:
    points = " ".join(
        f"{LEFT + (at - low) / span * (WIDTH - LEFT - RIGHT):.1f},"
        f"{HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM):.1f}"
        for at, value in zip(one.times, one.values, strict=True)
    )
    if len(one.times) == 1:
        x, y = points.split(",")
        return f'<circle class="line-{index % 5}" cx="{x}" cy="{y}" r="3"/>'
    return f'<polyline class="line-{index % 5}" points="{points}"/>'


def short(value: float) -> str:
    """`250`, `1.5k`, `2M`: a number for an axis."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def clock_text(seconds: float, span: float = 60.0) -> str:
    """`0:07`, `3:20` or `1:02:09` since the start of a run; `0.25 s` on a short span."""
    if span < 10:
        return f"{max(0.0, seconds):.2f} s"
    total = max(0, round(seconds))
    hours, rest = divmod(total, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
