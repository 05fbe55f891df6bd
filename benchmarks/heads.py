"""Detectors of the shared data: preprocessing of a picture, and decoding of the outputs to boxes.

If the pictures have boxes of the model's classes, these are the ground truth. Otherwise, for faces
and pixels, the float model's own outputs are, and the share of them that is kept is measured.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image

from npumake.evaluate import ImageDetections, Truths, box_iou
from npumake.evaluate.average_precision import (
    ByClass,
    at_score,
    matches_of_boxes,
    precision_of,
)
from npumake.kernels.boxes import sigmoid, suppressed
from npumake.project.sections import Input

SHARED = Path(os.environ.get("NPUMAKE_SHARED", Path(__file__).parents[2] / "shared")) / "data"
PICTURES = SHARED / "images" / "coco128"
OVERLAP = 0.65
SURE = 0.5  # of a box of the float model that counts as a truth
SHOWN = 0.25  # of a box that a user sees
MOST = 300

Arrays = Mapping[str, np.ndarray]  # what the model answers, by name


@dataclass(frozen=True)
class Head:
    """A detector. `decode` gives boxes (n, 4) as corners in shares of the model's input, scores
    (n, classes). `truth`: COCO's boxes, or the float model's."""

    path: str
    size: tuple[int, int]  # (height, width)
    input: Input
    decode: Callable[[Arrays], tuple[np.ndarray, np.ndarray]] | None = None  # None: pixels
    floor: float = 0.01
    truth: Literal["coco", "float"] = "coco"
    classes: int = 1
    letterbox: bool = False

    def fed(self, file: Path) -> np.ndarray:
        """The picture as it is trained on but for mean and scale: (1, 3, h, w) or NHWC, 0..255."""
        image = Image.open(file).convert("RGB")
        height, width = self.size
        if self.letterbox:
            factor = self._factor(image.size)
            small = image.resize([int(n * factor) for n in image.size], Image.Resampling.BILINEAR)
            image = Image.new("RGB", (width, height), (114, 114, 114))
            image.paste(small)
        else:
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pixels = np.asarray(image, np.float32)[None]
        pixels = pixels[..., ::-1] if self.input.type == "bgr" else pixels
        return pixels if self.input.layout == "NHWC" else pixels.transpose(0, 3, 1, 2)

    def _factor(self, size: tuple[int, int]) -> float:
        return min(self.size[1] / size[0], self.size[0] / size[1])

    def annotated(self, file: Path) -> Truths:
        """What the labels beside the picture say, of the classes that the model has."""
        label = PICTURES / "labels" / f"{file.stem}.txt"
        rows = np.loadtxt(label, ndmin=2) if label.exists() else np.zeros((0, 5))
        rows = rows[rows[:, 0] < self.classes]
        center, half = rows[:, 1:3], rows[:, 3:] / 2
        boxes = np.concatenate([center - half, center + half], 1)
        if self.letterbox:
            size = Image.open(file).size
            shares = np.array(size) * self._factor(size) / np.array(self.size[::-1])
            boxes *= np.tile(shares, 2)
        return Truths(boxes, rows[:, 0].astype(int), np.zeros(len(rows), bool))

    def found(self, answers: Arrays) -> ImageDetections:
        assert self.decode is not None
        boxes, scores = self.decode(answers)
        at, labels = np.nonzero(scores >= self.floor)
        boxes, scores = boxes[at], scores[at, labels]
        kept = suppressed(boxes, scores, OVERLAP, MOST, labels.astype(np.float64))
        return ImageDetections(boxes[kept], scores[kept], labels[kept])


class Seen(NamedTuple):
    """One picture: matches with the truths, and what became of the float model's boxes."""

    matches: ByClass
    shifts: np.ndarray  # (B,) of their scores


class Pixels(NamedTuple):
    """One picture of labels: pixels by class where both models agree, where one has the class, and
    where the float model has it."""

    both: np.ndarray
    either: np.ndarray
    meant: np.ndarray


def pictures(
    head: Head, files: Sequence[Path], said: Sequence[Arrays], meant: Sequence[Arrays]
) -> list[Seen] | list[Pixels]:
    """What `total` needs of each picture."""
    if head.decode is None:
        return [_pixels(*pair) for pair in zip(said, meant, strict=True)]
    found = zip(files, map(head.found, said), map(head.found, meant), strict=True)
    return [_seen(head, *picture) for picture in found]


def _seen(head: Head, file: Path, made: ImageDetections, meant: ImageDetections) -> Seen:
    if head.truth == "coco":
        truths = head.annotated(file)
    else:
        sure = meant.scores >= SURE
        truths = Truths(meant.boxes[sure], meant.labels[sure], np.zeros(sure.sum(), bool))
    return Seen(matches_of_boxes(made, truths), shifts(made, meant))


def shifts(made: ImageDetections, meant: ImageDetections) -> np.ndarray:
    """How far the scores of the float model's boxes of SHOWN or more move, (B,).

    A box is found again in the one of its class that overlaps it most, by half or more. One that is
    lost has a score of 0.
    """
    shown = meant.scores >= SHOWN
    boxes, labels = meant.boxes[shown], meant.labels[shown]
    overlap = box_iou(made.boxes, boxes, np.zeros(len(boxes), bool))
    overlap = np.where((made.labels[:, None] == labels) & (overlap >= 0.5), overlap, 0)
    again = np.where(overlap == overlap.max(0, initial=0.5), made.scores[:, None], 0)
    return again.max(0, initial=0) - meant.scores[shown]


def total(head: Head, seen: Sequence[Any]) -> np.ndarray:
    """mAP at IoU .50 and .50:.95, the recall of boxes with a score of SHOWN, and the mean shift of
    those scores; of pixels, the mean IoU of the classes and the share alike."""
    if head.decode is None:
        both, either, meant = (np.sum(column, axis=0) for column in zip(*seen, strict=True))
        overlaps = both[meant > 0] / either[meant > 0]
        return np.array([overlaps.mean(), both.sum() / meant.sum()])
    matches = [picture.matches for picture in seen]
    found = precision_of(matches, head.classes)
    moved = np.concatenate([picture.shifts for picture in seen])
    recall = at_score(matches, SHOWN).recall
    return np.array([found.map50, found.map50_95, recall, moved.mean() if len(moved) else 0.0])


def score(
    head: Head, files: Sequence[Path], said: Sequence[Arrays], meant: Sequence[Arrays]
) -> np.ndarray:
    """The `total` of these answers, beside those that the float model `meant`."""
    return total(head, pictures(head, files, said, meant))


def _pixels(said: Arrays, meant: Arrays) -> Pixels:
    rows = [next(iter(answers.values()))[0] for answers in (said, meant)]
    classes = np.arange(rows[1].shape[-1])
    a, b = (row.argmax(-1).ravel()[:, None] == classes for row in rows)
    return Pixels((a & b).sum(0), (a | b).sum(0), b.sum(0))


def _grid(height: int, width: int) -> np.ndarray:
    """(height * width, 2): x and y of every cell."""
    y, x = np.mgrid[:height, :width]
    return np.stack([x.ravel(), y.ravel()], 1)


def _around(center: np.ndarray, size: np.ndarray) -> np.ndarray:
    return np.concatenate([center - size / 2, center + size / 2], 1)


def _yolox(answers: Arrays) -> tuple[np.ndarray, np.ndarray]:
    (rows,) = answers["output"]
    cells = np.concatenate([_grid(192 // s, 192 // s) for s in (8, 16, 32)])
    strides = np.repeat([8, 16, 32], [(192 // s) ** 2 for s in (8, 16, 32)])[:, None] / 192
    boxes = _around((rows[:, :2] + cells) * strides, np.exp(rows[:, 2:4]) * strides)
    return boxes, rows[:, 4:5] * rows[:, 5:]


def _fastestdet(answers: Arrays) -> tuple[np.ndarray, np.ndarray]:
    ((rows),) = answers["758"]
    rows = rows.reshape(85, -1).T
    center = (np.tanh(rows[:, 1:3]) + _grid(22, 22)) / 22
    scores = np.maximum(rows[:, :1], 0) ** 0.6 * np.maximum(rows[:, 5:], 0) ** 0.4
    best = scores == scores.max(1, keepdims=True)
    return _around(center, sigmoid(rows[:, 3:5])), scores * best


def _ultraface(answers: Arrays) -> tuple[np.ndarray, np.ndarray]:
    return answers["boxes"][0], answers["scores"][0][:, 1:]


def _priors() -> np.ndarray:
    """(4420, 4): center and size of SSD's boxes, in shares of the picture."""
    rows = []
    for stride, sides in zip(
        (8, 16, 32, 64), ((10, 16, 24), (32, 48), (64, 96), (128, 192, 256)), strict=True
    ):
        width, height = -(-320 // stride), -(-240 // stride)
        center = np.repeat(
            (_grid(height, width) + 0.5) / [320 / stride, 240 / stride], len(sides), 0
        )
        size = np.tile(np.array(sides)[:, None] / [320, 240], (height * width, 1))
        rows.append(np.concatenate([center, size], 1))
    return np.clip(np.concatenate(rows), 0, 1)


def _ultraface_raw(answers: Arrays) -> tuple[np.ndarray, np.ndarray]:
    (raw,), priors = answers["boxes"], _priors()
    center = priors[:, :2] + raw[:, :2] * 0.1 * priors[:, 2:]
    return _around(center, priors[:, 2:] * np.exp(raw[:, 2:] * 0.2)), answers["scores"][0][:, 1:]


def _yunet(answers: Arrays) -> tuple[np.ndarray, np.ndarray]:
    boxes, scores = [], []
    for s in (8, 16, 32):
        raw, cells = answers[f"bbox_{s}"][0], _grid(320 // s, 320 // s)
        boxes.append(_around((raw[:, :2] + cells) * s, np.exp(raw[:, 2:]) * s) / 320)
        scores.append(np.sqrt(answers[f"cls_{s}"][0] * answers[f"obj_{s}"][0]))
    return np.concatenate(boxes), np.concatenate(scores)


_FACES = Input(type="rgb", mean=127.0, scale=1 / 128)
HEADS = {
    "yolox": Head(
        "detection/yolox_person_192.onnx",
        (192, 192),
        Input(type="bgr"),
        _yolox,
        letterbox=True,
    ),
    "fastestdet": Head(
        "detection/fastestdet_352.onnx",
        (352, 352),
        Input(type="bgr", scale=1 / 255),
        _fastestdet,
        classes=80,
    ),
    "ultraface": Head(
        "detection/ultraface_slim320.onnx", (240, 320), _FACES, _ultraface, 0.05, "float"
    ),
    "ultraface_raw": Head(
        "detection/ultraface_slim320_rawhead.onnx",
        (240, 320),
        _FACES,
        _ultraface_raw,
        0.05,
        "float",
    ),
    "yunet": Head(
        "detection/yunet_n_320_320.onnx", (320, 320), Input(type="bgr"), _yunet, 0.05, "float"
    ),
    "deeplab": Head(
        "segmentation/deeplabv3_mnv2_257.onnx",
        (257, 257),
        Input(type="rgb", layout="NHWC", mean=127.5, scale=1 / 127.5),
        truth="float",
    ),
}
