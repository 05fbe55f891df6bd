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

    @property
    def digits(self) -> int:
        return 2 if self.kind == "lost" else 1

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
    is_labelled: bool = False  # otherwise the float model's own outputs are the truth


DETECTOR = (
    Column("mAP kept, .50", "kept"),
    Column(".50:.95", "kept"),
    Column("recall at .25 kept", "kept", False),
    Column("shift of scores", "points", False),
)
PIXELS = (Column("mean IoU kept", "kept"), Column("pixels alike", "points", False))
CLASSIFIER = (Column("top-1 lost", "lost"), Column("the float model's class", "points", False))
ALIKE = (Column("another class than the float model's", "lost"),)
ADAROUND = "Quark, AdaRound"
TASKS = {
    "yolox": Task("YOLOX", DETECTOR, is_labelled=True),
    "fastestdet": Task("FastestDet", DETECTOR, is_labelled=True),
    "ultraface": Task("UltraFace", DETECTOR),
    "yunet": Task("YuNet", DETECTOR),
    "deeplab": Task("DeepLab, MobileNetV2", PIXELS),
    "mobilenet": Task("MobileNet (0.25)", CLASSIFIER, False, True),
    "squeezenet": Task("SqueezeNet", CLASSIFIER, False, True),
    "resnet8": Task("resnet8", ALIKE, False),
    "vww": Task("visual wake words", ALIKE, False),
}


ASYMMETRIC = """\
## Beside other tools

`python benchmarks/beside.py --nncf PYTHON --modelopt PYTHON --quark PYTHON` writes these tables.
The models are published ones; neither they nor the pictures are in this repository. 100 pictures of
ImageNet calibrate the classifiers, and 400 others measure them. 64 pictures of COCO calibrate the
detectors, and 64 others measure them. All files run in onnxruntime. Those of npumake are for
ara240, whose activations are asymmetric like those of the others.

- **8 bits alone** and **mixed** are apart. `best` has `most_int16: 0` in the first, and 0.1 in the
  second. `default` has `method: default`, which may put the last tensors of a classifier in int16.
  A16 has activations of 16 bits. **int16** is the share of multiply-accumulates that read 16 bits.
- **kept** is the share of the float model's figure, in percent; **lost** are points of it.
- **best ahead** are the points by which `best` of the same table is closer to the float model than
  the row. Brackets hold 95 % intervals of a paired bootstrap: both models on the same pictures,
  drawn again 1,000 times. If an interval holds 0, no difference was measured.
- **shift of scores** are the points by which the scores of the float model's boxes move, for boxes
  with a score of .25 or more. A box that is lost counts as a score of 0.
- **leaves in float** counts the operators with a tensor that has no codes.
- Each tool has its documented settings, and each of its rows one of them. onnxruntime's Entropy has
  128 bins for 128 codes, so it finds the ranges of MinMax. Quark's AdaRound, with its default of at
  most 1,000 iterations a layer, has a row for resnet8 alone: it did not finish UltraFace in 25
  minutes.
"""
SYMMETRIC = """\
## Beside other tools, symmetric activations

`python benchmarks/beside.py --target rdk-x5`, with the same options, writes these tables. Columns
and pictures are those above; all activations are symmetric. The files of npumake are for rdk-x5,
with `calibration: {symmetric: true}`; without it, the search may choose asymmetric ranges there.
onnxruntime has `ActivationSymmetric`, NNCF its preset `performance`, Quark its `A8W8`, with MinMax.
NNCF's preset gives unsigned codes to what is never negative, as behind a ReLU. These are 256
levels where the signed codes of this chip have 128, so its files would not run on it. With 256
levels for both, the tables above compare the same models.
ModelOpt's int8 is symmetric in all tables. rdk-x5's own tool puts what leaves the NPU in int16, and
so does npumake in `default` and `best, mixed`; `best` of 8 bits alone goes without.
"""
TARGETS = {"ara240": ASYMMETRIC, "rdk-x5": SYMMETRIC}  # the text above the tables of each


def sections(results: Mapping[str, Mapping[str, Figures]]) -> str:
    """The part of docs/accuracy.md, from the figures by target and model."""
    return "\n".join(_section(text, results[target]) for target, text in TARGETS.items())


def _section(text: str, results: Mapping[str, Figures]) -> str:
    versions = {name: v for figures in results.values() for name, v in figures["versions"].items()}
    named = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    models = [_model(name, results[name]) for name in TASKS if name in results]
    return "\n".join([text, f"Versions: {named}.\n", *models])


def _model(name: str, figures: Figures) -> str:
    task = TASKS[name]
    pairs = zip(task.columns, figures["float"], strict=False)
    floats = " / ".join(f"{100 * value:.1f}" for column, value in pairs if column.is_compared)
    truth = f"Float: {floats} %" if task.is_labelled else "The float model's outputs are the truth"
    rows = "\n".join(rows_of(name, figures))
    return f"### {task.title}\n\n{figures['pictures']} pictures. {truth}.\n\n{rows}"


def rows_of(name: str, figures: Figures) -> Iterator[str]:
    """The tables of one model: 8 bits alone, then mixed."""
    for mixed in (False, True):
        rows = [row for row in figures["rows"] if row["mixed"] == mixed]
        if rows:
            yield from table(TASKS[name].columns, rows, mixed)
            yield ""


def table(columns: Sequence[Column], rows: Sequence[Figures], mixed: bool) -> Iterator[str]:
    compared = [column for column in columns if column.is_compared]
    head = ["mixed" if mixed else "8 bits alone", *(column.title for column in columns)]
    head += [f"best ahead: {column.title}" for column in compared]
    head += ["int16", "leaves in float"] if mixed else ["leaves in float"]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        if "error" in row:
            cells = [f"error: {row['error']}", *[""] * (len(head) - 2)]
        else:
            cells = _cells(row, columns)
            cells[-1:-1] = [f"{100 * row['int16']:.1f} %"] if mixed else []
        yield f"| {' | '.join([_title(row), *cells])} |"


def _title(row: Figures) -> str:
    """The tool, with the CPU minutes of the one that takes the longest."""
    tool, minutes = str(row["tool"]), row.get("minutes")
    return f"{tool}, {minutes:.1f} CPU minutes" if minutes and tool == ADAROUND else tool


def _cells(row: Figures, columns: Sequence[Column]) -> list[str]:
    figures = zip(columns, row["figures"], row["ahead"], strict=True)
    shown = [(column, figure[0], ahead) for column, figure, ahead in figures]
    values = [_text(value, column.digits) for column, value, _ in shown]
    ahead = [
        with_interval(figure, column.digits) if figure else ""
        for column, _, figure in shown
        if column.is_compared
    ]
    return [*values, *ahead, row["float"]]


def with_interval(figure: Sequence[float], digits: int = 1) -> str:
    value, low, high = (_text(number, digits) for number in figure)
    return f"{value} ({low} to {high})"


def _text(number: float, digits: int) -> str:
    return f"{round(number, digits) + 0.0:.{digits}f}"  # no negative zero
