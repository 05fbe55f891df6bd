"""A chart of figures over builds as markup: HTML for its labels, SVG for its lines.

The SVG is stretched to the width of the page and its strokes are not, so labels keep their size on
a phone. A point is a stroke of no length with round ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npumake.report.markup import text_of

TICKS = 4
WIDTH, HEIGHT = 1000, 200  # of the SVG's own units
COLORS = 8


@dataclass(frozen=True)
class TrendLine:
    """`points` are (value, tooltip), the last one that of today."""

    name: str
    points: tuple[tuple[float, str], ...]


def trend(lines: Sequence[TrendLine], times: tuple[str, str], figure: str) -> str:
    """The chart; empty where no line has two points. The last points stand at the right."""
    count = max((len(line.points) for line in lines), default=0)
    if count < 2:
        return ""
    values = [value for line in lines for value, _ in line.points]
    low, high = min(values), max(values)
    margin = max((high - low) * 0.08, 1e-6)
    low, high = low - margin, high + margin
    steps = [high - (high - low) * index / (TICKS - 1) for index in range(TICKS)]
    digits = 6 if high - low < 0.001 else 4
    labels = "".join(f"<span>{value:.{digits}f}</span>" for value in steps)
    grid = "".join(
        f'<path class="grid" d="M0 {HEIGHT * index / (TICKS - 1):g}h{WIDTH}"/>'
        for index in range(TICKS)
    )
    curves = "".join(_line(index, line, count, (low, high)) for index, line in enumerate(lines))
    label = text_of(f"{figure}, {times[0]} to {times[1]}")
    return (
        f'<figure class="trend" role="img" aria-label="{label}"><div class="values">{labels}</div>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none">{grid}{curves}</svg>'
        f'<div class="times"><span>{text_of(times[0])}</span><span>{text_of(times[1])}</span></div>'
        f"<figcaption>{text_of(figure)}, by build</figcaption></figure>"
    )


def _line(number: int, line: TrendLine, count: int, ends: tuple[float, float]) -> str:
    low, high = ends
    first = count - len(line.points)
    spots = [
        (WIDTH * (0.02 + 0.96 * index / (count - 1)), HEIGHT * (high - value) / (high - low))
        for index, (value, _) in enumerate(line.points, first)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    points = "".join(
        f'<path class="point" d="M{x:.1f} {y:.1f}h0">'
        f"<title>{text_of(f'{line.name}, {tooltip}')}</title></path>"
        for (x, y), (_, tooltip) in zip(spots, line.points, strict=True)
    )
    return f'<g class="c{number % COLORS}"><polyline points="{path}"/>{points}</g>'
