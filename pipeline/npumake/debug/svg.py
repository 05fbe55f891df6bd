"""The debugger's plots as SVG, written without a library; the same figures give the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from npumake.debug.distributions import Bars, Boxes

WIDTH, HEIGHT = 960, 400  # of one panel
LEFT, RIGHT, TOP, BOTTOM = 90, 20, 44, 48  # margins in pixels
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#e377c2", "#17becf", "#7f7f7f")
RED, BLUE, GRID, INK = "#d62728", "#1f4fd6", "#dddddd", "#222222"
TICKS = 6


class Panel(NamedTuple):
    """The mapping from values to points, and the frame around them."""

    low: tuple[float, float]  # x, y
    high: tuple[float, float]

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * _share(value, self.low[0], self.high[0])

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * _share(value, self.low[1], self.high[1])

    def points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in zip(xs, ys, strict=True))


def lines(title: str, curves: Mapping[str, Mapping[str, float]]) -> str:
    """A curve per name, over the nodes in order."""
    values = [v for curve in curves.values() for v in curve.values() if math.isfinite(v)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.05 * (high - low) or 0.05 * max(abs(high), 1e-9)
    count = max(len(curve) for curve in curves.values())
    panel = Panel((0.0, low - margin), (max(count - 1.0, 1.0), high + margin))
    body = [*_frame(panel, title, "node, in the order of the graph"), *_legend(list(curves))]
    for color, (name, curve) in zip(_colors(len(curves)), curves.items(), strict=True):
        finite = [(i, *item) for i, item in enumerate(curve.items()) if math.isfinite(item[1])]
        points = panel.points([i for i, _, _ in finite], [v for _, _, v in finite])
        body.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        for index, node, value in finite:
            at = f'cx="{panel.x(index):.1f}" cy="{panel.y(value):.1f}"'
            label = escape(f"{name}: {node} {value:.6g}", quote=False)
            body.append(f'<circle {at} r="3" fill="{color}"><title>{label}</title></circle>')
    return _document([body])


def distributions(
    title: str, panels: Mapping[str, Mapping[str, Bars]], threshold: float | None
) -> str:
    """A panel per name; blue triangles at the largest magnitude, dashed red at the threshold."""
    bodies = []
    for name, parts in panels.items():
        limit = threshold if "error" not in name else None
        reach = max([bars.largest for bars in parts.values()] + ([limit] if limit else []))
        max_count = max(float(bars.counts.max(initial=0)) for bars in parts.values())
        panel = Panel(
            (-reach * 1.05 or -1.0, 0.0), (reach * 1.05 or 1.0, 1.05 * (max_count or 1.0))
        )
        body = [*_frame(panel, f"{title}: {name}", "value"), *_legend(list(parts))]
        for color, bars in zip(_colors(len(parts)), parts.values(), strict=True):
            xs, ys = np.repeat(bars.edges, 2), [0.0, *np.repeat(bars.counts, 2), 0.0]
            shape = panel.points(list(np.clip(xs, panel.low[0], panel.high[0])), ys)
            body.append(f'<polygon points="{shape}" fill="{color}" fill-opacity="0.35"')
            body.append(f'stroke="{color}"/>')
            body += [_triangle(panel, side * bars.largest) for side in (-1, 1)]
        body += [] if not limit else [_upright(panel, side * limit) for side in (-1, 1)]
        bodies.append(body)
    return _document(bodies)


def channels(title: str, boxes: Boxes) -> str:
    """A box per channel: extremes and quartiles, the median red, the mean dashed blue."""
    count = len(boxes.low)
    low, high = float(boxes.low.min()), float(boxes.high.max())
    margin = 0.05 * (high - low) or 1.0
    panel = Panel((-1.0, low - margin), (float(count), high + margin))
    body = [*_frame(panel, f"{title}: {count} channels", "channel")]
    half = 0.35 * (panel.x(1) - panel.x(0))
    for index, (bottom, first, _, third, top, _) in enumerate(zip(*boxes, strict=True)):
        x, up, down = panel.x(index), panel.y(third), panel.y(first)
        body.append(_line(x, panel.y(bottom), x, panel.y(top), INK, 0.7))
        body.append(
            f'<rect x="{x - half:.2f}" y="{up:.1f}" width="{2 * half:.2f}" '
            f'height="{max(down - up, 0.5):.1f}" fill="#9ecae1" stroke="{INK}" stroke-width="0.5"/>'
        )
    for values, color, dashes in ((boxes.median, RED, ""), (boxes.mean, BLUE, "5,4")):
        points = panel.points(range(count), list(values))
        body.append(
            f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.3" '
            f'stroke-dasharray="{dashes}"/>'
        )
    body.append(_text(WIDTH - RIGHT, TOP - 10, "median red, mean blue", "end"))
    return _document([body])


def _frame(panel: Panel, title: str, below: str) -> Iterator[str]:
    yield _text(LEFT, 26, title, "start", 16)
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, below, "middle")
    for tick in _ticks(panel.low[1], panel.high[1]):
        yield _line(LEFT, panel.y(tick), WIDTH - RIGHT, panel.y(tick), GRID, 1)
        yield _text(LEFT - 8, panel.y(tick) + 4, f"{tick:.6g}", "end")
    for tick in _ticks(panel.low[0], panel.high[0]):
        yield _line(panel.x(tick), HEIGHT - BOTTOM, panel.x(tick), HEIGHT - BOTTOM + 5, INK, 1)
        yield _text(panel.x(tick), HEIGHT - BOTTOM + 18, f"{tick:.6g}", "middle")
    yield _line(LEFT, TOP, LEFT, HEIGHT - BOTTOM, INK, 1)
    yield _line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, INK, 1)


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between `low` and `high`: steps of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]


def _legend(names: Sequence[str]) -> Iterator[str]:
    for index, (color, name) in enumerate(zip(_colors(len(names)), names, strict=True)):
        y = TOP + 8 + 18 * index
        yield f'<rect x="{LEFT + 12}" y="{y}" width="12" height="12" fill="{color}"/>'
        yield _text(LEFT + 30, y + 11, name[-80:], "start")


def _colors(count: int) -> list[str]:
    return [COLORS[index % len(COLORS)] for index in range(count)]


def _share(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low)


def _text(x: float, y: float, text: str, anchor: str, size: int = 12) -> str:
    at = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
    return f'<text {at} fill="{INK}">{escape(text, quote=False)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, color: str, width: float) -> str:
    at = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {at} stroke="{color}" stroke-width="{width}"/>'


def _triangle(panel: Panel, value: float) -> str:
    x, y = panel.x(value), HEIGHT - BOTTOM
    return f'<polygon points="{x:.1f},{y - 9} {x - 5:.1f},{y} {x + 5:.1f},{y}" fill="{BLUE}"/>'


def _upright(panel: Panel, value: float) -> str:
    line = _line(panel.x(value), TOP, panel.x(value), HEIGHT - BOTTOM, RED, 1.5)
    return line.replace("/>", ' stroke-dasharray="6,4"/>')


def _document(panels: Sequence[Sequence[str]]) -> str:
    size = f'width="{WIDTH}" height="{HEIGHT * len(panels)}"'
    view = f'viewBox="0 0 {WIDTH} {HEIGHT * len(panels)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} font-family="sans-serif">'
    body = [
        f'<g transform="translate(0,{HEIGHT * number})">' + "\n".join(panel) + "</g>"
        for number, panel in enumerate(panels)
    ]
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *body, "</svg>\n"])
