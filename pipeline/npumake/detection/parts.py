"""What the parts of a head must be to decode together: numbers of channels and of boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from npumake.detection.cell_decoders import SIDES
from npumake.detection.outputs import DetectorOutput
from npumake.errors import GraphError


class PartChannels(NamedTuple):
    """The channels of a part: exactly `number` of them, or at least."""

    number: int
    meaning: str
    is_exact: bool = False


BOX = PartChannels(4, "the sides of a box", is_exact=True)
OBJECTNESS = PartChannels(1, "one score of a box", is_exact=True)
SCORES = PartChannels(1, "a score per class")
DETECTIONS = PartChannels(6, "x1, y1, x2, y2, score and class")
WHOLE_HEADS = {
    "fastestdet": PartChannels(6, "objectness, box and classes"),
    "nanodet": PartChannels(SIDES + 1, f"classes and {SIDES} bins of the sides"),
    "yolox": PartChannels(6, "box, objectness and classes"),
}


def whole_head(is_obj_x_class: bool, coefficients: int) -> PartChannels:
    """Of a head whose rows are those of boxes, scores and mask coefficients."""
    words = ["box", *["objectness"] * is_obj_x_class, "classes"]
    words += [f"{coefficients} mask coefficients"] if coefficients else []
    meaning = f"{', '.join(words[:-1])} and {words[-1]}"
    return PartChannels(4 + is_obj_x_class + 1 + coefficients, meaning)


def require(rows: np.ndarray, channels: PartChannels, output: DetectorOutput) -> np.ndarray:
    """`rows` (channels, n), if they have these channels. Raises GraphError."""
    number, meaning, is_exact = channels
    if len(rows) == number or (len(rows) > number and not is_exact):
        return rows
    limit = f"{number}" if is_exact else f"{number} or more"
    message = f"`{output.name}` has {len(rows)} channels, not {limit}: {meaning}"
    hint = f"check its `type`, `decoder` and `dshape`; it is {_kind(output)}"
    raise GraphError(message, hint=hint)


def require_joined(parts: Sequence[np.ndarray], axis: int, output: DetectorOutput) -> None:
    """Raises GraphError for children of other sizes along the axis on which they do not join."""
    sizes = [part.shape[axis] for part in parts]
    if len(set(sizes)) > 1:
        unit = ("channels", "boxes")[axis]
        message = f"the children of `{output.name or output.type}` have {sizes} {unit}"
        raise GraphError(message, hint="they need equal numbers: check their `shape` and `dshape`")


def require_fitting(parts: Mapping[str, np.ndarray]) -> None:
    """Raises GraphError for parts (channels, n) of other numbers of boxes, and for another number
    of mask coefficients than of prototypes (k, h, w)."""
    counts = {kind: rows.shape[1] for kind, rows in parts.items() if kind != "protos"}
    if len(set(counts.values())) > 1:
        by_kind = ", ".join(f"{kind} {count}" for kind, count in counts.items())
        hint = "each part has a column per box: check `type`, `shape` and `dshape` of each"
        raise GraphError(f"the outputs describe other numbers of boxes: {by_kind}", hint=hint)
    numbers = [len(parts[kind]) for kind in ("mask_coefs", "protos") if kind in parts]
    if len(set(numbers)) > 1:
        message = f"{numbers[0]} mask coefficients for {numbers[1]} prototypes"
        raise GraphError(message, hint="check `shape` and `dshape` of `mask_coefs` and `protos`")


def _kind(output: DetectorOutput) -> str:
    decoder = f" of the decoder {output.decoder}" if output.decoder else ""
    return f"{output.type}{decoder}"
