"""The tables of npumake beside other quantizers, from their figures; see beside.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Figures = Mapping[str, Any]
Totals = NDArray[np.floating]


class Column(NamedTuple):
    """A figure: percent that is `kept` of the float model's, points `lost` of it, or points."""

    title: str
    kind: Literal["kept", "lost", "points"]
    is_compared: bool = True

    def figure(self, made: Totals, floats: Totals) -> Totals:
        if self.kind == "kept":
            return 100 * np.divide(made, floats, out=np.ones_like(made), where=floats != 0)
        return 100 * (floats - made if self.kind == "lost" else made)

    def ahead(self, ours: Totals, theirs: Totals, floats: Totals) -> Totals:
        """How far ours is better, in the unit of the figure."""
        gain = self.figure(ours, floats) - self.figure(theirs, floats)
        return -gain if self.kind == "lost" else gain


class Task(NamedTuple):
    title: str
    columns: tuple[Column, ...]
    is_detector: bool = True


DETECTOR = (
    Column("mAP kept, .50", "kept"),
    Column(".50:.95", "kept"),
    Column("recall at .25 kept", "kept", False),
    Column("shift of scores", "points", False),
)
PIXELS = (Column("mean IoU kept", "kept"), Column("pixels alike", "points", False))
CLASSIFIER = (Column("top-1 lost", "lost"), Column("the float model's class", "points", False))
ALIKE = (Column("another class than the float model's", "lost"),)
TASKS = {
    "yolox": Task("YOLOX", DETECTOR),
    "fastestdet": Task("FastestDet", DETECTOR),
    "ultraface": Task("UltraFace", DETECTOR),
    "yunet": Task("YuNet", DETECTOR),
    "deeplab": Task("DeepLab, MobileNetV2", PIXELS),
    "mobilenet": Task("MobileNet (0.25)", CLASSIFIER, False),
    "squeezenet": Task("SqueezeNet", CLASSIFIER, False),
    "resnet8": Task("resnet8", ALIKE, False),
    "vww": Task("visual wake words", ALIKE, False),
}


def rows_of(name: str, figures: Figures) -> Iterator[str]:
    """The tables of one model: 8 bits alone, then mixed."""
    for mixed in (False, True):
        rows = [row for row in figures["rows"] if row["mixed"] == mixed]
        if rows:
            yield from table(TASKS[name].columns, rows, mixed)
            yield ""


def table(columns: Sequence[Column], rows: Sequence[Figures], mixed: bool) -> Iterator[str]:
    compared = [n for n, column in enumerate(columns) if column.is_compared]
    head = ["mixed" if mixed else "8 bits alone", *(column.title for column in columns)]
    head += [f"best ahead: {columns[n].title}" for n in compared]
    head += ["int16", "leaves in float"] if mixed else ["leaves in float"]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        cells = [row["error"], *[""] * (len(head) - 2)] if "error" in row else _cells(row, compared)
        if mixed and "error" not in row:
            cells.insert(-1, f"{100 * row['int16']:.1f} %")
        yield f"| {' | '.join([row['tool'], *cells])} |"


def _cells(row: Figures, compared: Sequence[int]) -> list[str]:
    figures = [f"{figure[0]:.1f}" for figure in row["figures"]]
    ahead = [with_interval(row["ahead"][n]) if row["ahead"][n] else "" for n in compared]
    return [*figures, *ahead, row["float"]]


def with_interval(figure: Sequence[float]) -> str:
    value, low, high = figure
    return f"{value:.1f} ({low:.1f} to {high:.1f})"
