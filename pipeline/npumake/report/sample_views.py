"""Samples as pictures, with the results of the float and the quantized model.

A picture is a model input with one or three channels, converted back to 8-bit RGB; other inputs are
not shown. Detectors with metadata show boxes and masks, segmentation models a class map,
classifiers their TOP_CLASSES best classes; every output shows its cosine.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PIL import Image

from npumake.custom.operators import Operators
from npumake.data.samples import Feed, Samples, made_up
from npumake.detection.decode import Rules, decode
from npumake.detection.metadata import Metadata
from npumake.detection.notes import metadata_of
from npumake.engine.exact import ExactSession
from npumake.engine.float_session import float_session
from npumake.engine.lower import lowered
from npumake.graph import Graph
from npumake.kernels.measure import cosine
from npumake.report.overlays import Overlay, class_map, mask_map, overlay_of
from npumake.report.tensors import rounded
from npumake.targets.target import Target

TOP_CLASSES = 5
MAX_PIXELS = 320  # pixels of the longer side
DIGITS = 4  # of boxes and their scores
MAX_CLASSES = 1 << 16  # a longer output is not a classification

Box = tuple[float, float, float, float, float, str]


@dataclass(frozen=True)
class SampleView:
    """`best` are (class, value), largest first, a class as number and name. `boxes` are
    (x1, y1, x2, y2, score, class) in 0..1 of the picture, None for models without boxes. `painted`
    is an overlay."""

    best: tuple[tuple[str, float], ...] = ()
    boxes: tuple[Box, ...] | None = None
    painted: Overlay | None = None


@dataclass(frozen=True)
class SampleComparison:
    """A sample with both models' results. `picture` is a PNG as a data URI, None for inputs that
    are not pictures."""

    name: str
    picture: str | None
    cosines: Mapping[str, float]
    float: SampleView
    quantized: SampleView


class ModelPair(NamedTuple):
    """The float model and its quantized form; `labels` are the class names by index, if known."""

    real: Graph
    quantized: Graph
    labels: Sequence[str] = ()


def sample_views(
    pair: ModelPair,
    samples: Samples,
    count: int,
    target: Target,
    operators: Operators,
    kind: str | None,
) -> tuple[SampleComparison, ...]:
    """Results for `count` evenly spaced samples; `kind` is the input's `type`, such as "bgr"."""
    if not count or not len(samples) or made_up(samples):
        return ()
    numbers = sorted({round(i * (len(samples) - 1) / max(count - 1, 1)) for i in range(count)})
    floats = float_session(pair.real, operators)
    exact = ExactSession(lowered(pair.quantized, target.rounding, target.runnable), operators)
    metadata = metadata_of(pair.quantized)
    rows = []
    for number in numbers:
        feed = samples.read(number)
        a = dict(zip(floats.output_names, floats.run(None, feed), strict=True))
        b = dict(zip(exact.output_names, exact.run(None, feed), strict=True))
        pixels = picture(feed, kind)
        size = (1, 1) if pixels is None else pixels.shape[:2]
        rows.append(
            SampleComparison(
                samples.names[number],
                None if pixels is None else data_uri(pixels),
                {name: rounded(cosine(a[name], b[name].reshape(a[name].shape))) for name in a},
                sample_view(a, metadata, pair.labels, size),
                sample_view(b, metadata, pair.labels, size),
            )
        )
    return tuple(rows)


def sample_view(
    arrays: Mapping[str, np.ndarray],
    metadata: Metadata | None,
    labels: Sequence[str],
    size: tuple[int, ...],
) -> SampleView:
    """One model's result for one picture of `size`, (height, width)."""
    if metadata is not None and metadata.has_decoder:
        detections = decode(arrays, metadata.outputs, (size[0], size[1]), Rules())
        rows = zip(
            detections.boxes.tolist(),
            detections.scores.tolist(),
            detections.classes.tolist(),
            strict=True,
        )
        boxes = tuple(_box(corners, s, _label(c, labels)) for corners, s, c in rows)
        masks = detections.masks if boxes else None
        overlay = None if masks is None else overlay_of(mask_map(masks, detections.classes), labels)
        return SampleView(boxes=boxes, painted=overlay)
    classes = class_map(arrays, size)
    if classes is not None:
        return SampleView(painted=overlay_of(classes, labels))
    row = np.squeeze(next(iter(arrays.values())))
    if len(arrays) != 1 or row.ndim != 1 or not 1 < row.size <= MAX_CLASSES:
        return SampleView()
    order = np.argsort(-row, kind="stable")[:TOP_CLASSES]
    return SampleView(
        best=tuple((_numbered(int(k), labels), rounded(float(row[k]))) for k in order)
    )


def picture(feed: Feed, kind: str | None) -> np.ndarray | None:
    """(H, W, 3) or (H, W, 1), uint8: the first input with one or three channels, scaled from its
    minimum and maximum; 8-bit values are not scaled."""
    for array in feed.values():
        if array.ndim != 4 or not {array.shape[1], array.shape[3]} & {1, 3}:
            continue
        image = array[0] if array.shape[3] in (1, 3) else np.moveaxis(array[0], 0, 2)
        pixels = _bytes(image)
        return pixels[..., ::-1] if kind == "bgr" and pixels.shape[2] == 3 else pixels
    return None


def _bytes(values: np.ndarray) -> np.ndarray:
    if values.dtype == np.uint8:
        return values
    if values.dtype == np.int8:
        return (values.astype(np.int16) + 128).astype(np.uint8)
    low, high = float(values.min()), float(values.max())
    return np.rint((values - low) * (255.0 / max(high - low, 1e-30))).astype(np.uint8)


def data_uri(pixels: np.ndarray) -> str:
    opened = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    opened.thumbnail((MAX_PIXELS, MAX_PIXELS), Image.Resampling.BILINEAR)
    file = io.BytesIO()
    opened.save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")


def _numbered(index: int, labels: Sequence[str]) -> str:
    """The number of a class, and its name if it is known."""
    name = _label(index, labels)
    return name if name == str(index) else f"{index} {name}"


def _label(index: int, labels: Sequence[str]) -> str:
    return labels[index] if index < len(labels) else str(int(index))


def _box(corners: Sequence[float], score: float, name: str) -> Box:
    x1, y1, x2, y2 = (round(corner, DIGITS) for corner in corners)
    return x1, y1, x2, y2, round(score, DIGITS), name
