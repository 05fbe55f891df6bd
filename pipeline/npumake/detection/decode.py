"""Decodes a detector's outputs into boxes, scores, classes and masks, by its `outputs[]`.

    bind by name → dequantize → per scale: flatten row by row, smallest stride first, concatenate
    → DFL and distances to boxes → required activation → best class → non-maximum suppression

Raw scales decode to pixels; `normalized` describes the original graph only. Source: the decoder of
EdgeFirst's HAL; `Rules` has its defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from npumake.detection.anchors import BOX_DECODERS, of_anchors, scores_of
from npumake.detection.cell_decoders import CELL_DECODERS, SSD, from_corners
from npumake.detection.metadata import Metadata
from npumake.detection.outputs import DetectorOutput, OutputGrid
from npumake.detection.parts import (
    BOX,
    DETECTIONS,
    OBJECTNESS,
    SCORES,
    WHOLE_HEADS,
    require,
    require_fitting,
    require_joined,
    whole_head,
)
from npumake.errors import GraphError, did_you_mean
from npumake.kernels import boxes as geometry
from npumake.kernels.affine import per_axis

Arrays = Mapping[str, np.ndarray]
AS_CHANNELS = ("box_coords", "num_classes", "num_protos", "num_features")
PARTS = {"scores": SCORES, "objectness": OBJECTNESS, "mask_coefs": SCORES}
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sigmoid": geometry.sigmoid,
    "tanh": np.tanh,
}


@dataclass(frozen=True)
class Rules:
    """`candidates` is the number of boxes before suppression; 0 means all, as a mAP needs."""

    score: float = 0.5
    iou: float = 0.5
    candidates: int = 300
    max_boxes: int = 300
    class_aware: bool = False


def rules_for_map(metadata: Metadata) -> Rules:
    """The rules for a mean average precision: Ultralytics' thresholds, all candidates."""
    return Rules(0.001, 0.7, 0, 300, metadata.nms == "class_aware")


@dataclass(frozen=True)
class Detections:
    """Detections, best first. `boxes` (n, 4) are x1, y1, x2, y2 in 0..1 of the model's input. Masks
    are `coefficients` (n, k) @ `protos` (k, h, w); both are None for a model without masks."""

    boxes: np.ndarray
    scores: np.ndarray
    classes: np.ndarray
    coefficients: np.ndarray | None = None
    protos: np.ndarray | None = None

    @property
    def masks(self) -> np.ndarray | None:
        """(n, h, w), bool, at the size of the prototypes."""
        if self.coefficients is None or self.protos is None:
            return None
        return geometry.masks(self.coefficients, self.protos, self.boxes)


def decode(
    arrays: Arrays, outputs: Sequence[DetectorOutput], size: tuple[int, int], rules: Rules = Rules()
) -> Detections:
    """Decodes one picture; `size` is (height, width) of the model's input. Integer arrays are
    dequantized by their entry's grid. Raises GraphError for outputs that cannot be decoded."""
    described = {output.type: output for output in outputs if output.type}
    if "detections" in described:
        return _end_to_end(arrays, described["detections"], size, rules)
    parts = _parts(arrays, described, size)
    scores = parts["scores"]
    classes, best = scores.argmax(0), scores.max(0)
    chosen = np.flatnonzero(best >= rules.score)
    if rules.candidates:
        order = np.argsort(-best[chosen], kind="stable")
        chosen = chosen[order[: rules.candidates]]
    boxes = geometry.corners(parts["boxes"][:, chosen])
    by_class = classes[chosen] if rules.class_aware else None
    survivors = geometry.suppressed(boxes, best[chosen], rules.iou, rules.max_boxes, by_class)
    chosen, boxes = chosen[survivors], boxes[survivors]
    if "mask_coefs" not in parts or "protos" not in parts:
        return Detections(boxes, best[chosen], classes[chosen])
    coefficients = parts["mask_coefs"][:, chosen].T
    return Detections(boxes, best[chosen], classes[chosen], coefficients, parts["protos"])


def _parts(
    arrays: Arrays, described: Mapping[str, DetectorOutput], size: tuple[int, int]
) -> dict[str, np.ndarray]:
    """Boxes (4, n) as center and size in 0..1, scores (classes, n), coefficients (k, n), protos."""
    parts: dict[str, np.ndarray] = {}
    if "protos" in described:
        parts["protos"] = _prototypes(arrays, described["protos"])
    if "detection" in described:
        return parts | _of_one(arrays, described["detection"], size, len(parts.get("protos", ())))
    if missing := [kind for kind in ("boxes", "scores") if kind not in described]:
        hint = f"give one of `outputs` in the metadata  type: {missing[0]}"
        raise GraphError(f"the outputs hold no {missing[0]}", hint=hint)
    for kind, channels in PARTS.items():
        if kind in described:
            parts[kind] = require(_joined(arrays, described[kind]), channels, described[kind])
    boxes = described["boxes"]
    parts["boxes"] = _boxes(arrays, boxes, size)
    require_fitting(parts)
    return parts | {"scores": scores_of(boxes.decoder, parts)}


def _prototypes(arrays: Arrays, output: DetectorOutput) -> np.ndarray:
    """(k, h, w). Raises GraphError."""
    protos = _first(_tensor(arrays, output), output)
    if protos.ndim != 3:
        hint = "prototypes are [1, number, height, width], or `dshape` names their axes"
        message = f"`{output.name}` of shape {list(output.shape)} holds no prototypes"
        raise GraphError(message, hint=hint)
    return protos


def _boxes(arrays: Arrays, boxes: DetectorOutput, size: tuple[int, int]) -> np.ndarray:
    """(4, n), center and size in 0..1. Raises GraphError."""
    is_decoded = boxes.encoding == "anchor" or boxes.decoder in (*BOX_DECODERS, SSD)
    if not is_decoded and any(child.stride for child in boxes.outputs):
        return _from_scales(arrays, boxes, size)
    rows = require(_joined(arrays, boxes), BOX, boxes)
    if boxes.encoding == "anchor":
        return of_anchors(rows, boxes, size)
    if boxes.decoder is not None and boxes.decoder in BOX_DECODERS:
        return BOX_DECODERS[boxes.decoder](rows, size)
    return from_corners(rows) if boxes.decoder == SSD else _in_unit(rows, boxes, size)


def _of_one(
    arrays: Arrays, whole: DetectorOutput, size: tuple[int, int], coefficients: int
) -> dict[str, np.ndarray]:
    """Splits rows: four of boxes, then scores, then `coefficients` rows of mask coefficients. With
    `obj_x_class`, the first score is the objectness, a factor of the others."""
    rows = _joined(arrays, whole)
    if (of_cells := CELL_DECODERS.get(whole.decoder or "")) is not None:
        return of_cells(require(rows, WHOLE_HEADS[str(whole.decoder)], whole), size)
    has_objectness = whole.score_format == "obj_x_class"
    require(rows, whole_head(has_objectness, coefficients), whole)
    end = len(rows) - coefficients
    scores = rows[4:end]
    if has_objectness:
        scores = scores[1:] * scores[:1]
    parts = {"boxes": _in_unit(rows[:4], whole, size), "scores": scores}
    return parts | ({"mask_coefs": rows[end:]} if coefficients else {})


def _in_unit(boxes: np.ndarray, output: DetectorOutput, size: tuple[int, int]) -> np.ndarray:
    height, width = size
    unit = np.array([width, height, width, height], boxes.dtype)[:, None]
    return boxes if output.normalized else boxes / unit


def _from_scales(arrays: Arrays, boxes: DetectorOutput, size: tuple[int, int]) -> np.ndarray:
    """(4, n): the boxes of all raw scales, each decoded with its stride."""
    decoded = []
    for child in _by_stride(boxes):
        raw = _first(_tensor(arrays, child), child)
        if raw.ndim != 3 or len(raw) % 4 or (boxes.encoding != "dfl" and len(raw) != 4):
            hint = "they are [1, 4, height, width], or with `encoding: dfl` [1, 4 x bins, ...]"
            message = f"`{child.name}` of shape {list(child.shape)} holds no raw boxes"
            raise GraphError(message, hint=hint)
        flat = raw.reshape(len(raw), -1)
        distances = geometry.expected_bins(flat) if boxes.encoding == "dfl" else flat
        centers = geometry.cell_centers(*raw.shape[1:])
        stride = np.array(child.stride * 2, np.float32)[:, None]
        decoded.append(geometry.boxes_of(distances, centers, stride))
    height, width = size
    unit = np.array([width, height, width, height], np.float32)[:, None]
    return np.concatenate(decoded, 1) / unit


def _joined(arrays: Arrays, output: DetectorOutput) -> np.ndarray:
    """(channels, n), activated; scales are joined along boxes, other children along channels."""
    parts = []
    for child in _by_stride(output):
        values = _first(_tensor(arrays, child), child)
        required = child.activation_required or output.activation_required
        values = _activated(values, required)
        parts.append(values.reshape(len(values), -1))
    axis = 1 if any(part.stride for part in output.outputs) else 0
    require_joined(parts, 1 - axis, output)
    return np.concatenate(parts, axis)


def _by_stride(output: DetectorOutput) -> list[DetectorOutput]:
    return sorted(output.tensors, key=lambda child: child.stride)


def _activated(values: np.ndarray, required: str | None) -> np.ndarray:
    if required is None:
        return values
    if required == "softmax":
        weights = np.exp(values - values.max(0))
        return weights / weights.sum(0)
    return ACTIVATIONS[required](values)


def _tensor(arrays: Arrays, output: DetectorOutput) -> np.ndarray:
    """The output's array, dequantized, float32."""
    if output.name not in arrays:
        hint = did_you_mean(output.name, arrays)
        raise GraphError(f"no output `{output.name}` among those to decode", hint=hint)
    array = arrays[output.name]
    if array.dtype.kind not in "iu" or output.quantization is None:
        return array.astype(np.float32)
    return _dequantized(array, output.quantization)


def _dequantized(codes: np.ndarray, grid: OutputGrid) -> np.ndarray:
    scale = np.array(grid.scale, np.float32)
    zero_point = np.array(grid.zero_point, np.float32)
    axis = grid.axis or 0
    scale, zero_point = (
        per_axis(values, codes.ndim, axis) if len(values) > 1 else values[0]
        for values in (scale, zero_point)
    )
    return (codes.astype(np.float32) - zero_point) * scale


def _padded(array: np.ndarray, output: DetectorOutput) -> np.ndarray:
    """The float model has no trailing axes of padding, which a converter describes."""
    trailing = takewhile(lambda axis: axis[0] == "padding", reversed(output.dshape))
    whole = (*array.shape, *(1 for _ in trailing))
    return array.reshape(whole) if whole == output.shape else array


def _first(array: np.ndarray, output: DetectorOutput) -> np.ndarray:
    """The one picture, channels first, without padding axes. Raises GraphError."""
    names = [name for name, _ in output.dshape]
    array = _padded(array, output)
    if array.shape != output.shape:
        message = f"`{output.name}` has shape {list(array.shape)}, not {list(output.shape)}"
        raise GraphError(message, hint="give its `shape` in the metadata, and `dshape`, if any")
    if not names and array.ndim < 2:
        hint = "name its axes in `dshape`"
        raise GraphError(f"`{output.name}` of shape {list(array.shape)} has no boxes", hint=hint)
    if not names:
        return array[0]
    channel = next((n for n in AS_CHANNELS if n in names), None)
    axes = [channel, *(n for n in names if n not in (channel, "batch", "padding"))]
    order = [names.index(name) for name in axes if name is not None]
    dropped = [index for index in range(len(names)) if index not in order]
    if any(array.shape[index] != 1 for index in dropped):
        hint = "one picture is decoded at a time: `batch` must be 1"
        raise GraphError(f"`{output.name}` holds several pictures", hint=hint)
    return array.transpose(*dropped, *order).reshape([array.shape[index] for index in order])


def _end_to_end(
    arrays: Arrays, output: DetectorOutput, size: tuple[int, int], rules: Rules
) -> Detections:
    """Rows of x1, y1, x2, y2, score, class. The model suppresses overlaps itself."""
    values = _joined(arrays, output)
    rows = values.T if output.dshape else values
    require(rows.T, DETECTIONS, output)
    rows = rows[rows[:, 4] >= rules.score][: rules.max_boxes]
    boxes = _in_unit(rows[:, :4].T, output, size).T
    return Detections(boxes, rows[:, 4], rows[:, 5].astype(np.int64))
