"""The logical outputs of a detector, each one tensor or joined from physical tensors.

    real = scale * (q - zero_point)

`dshape` names the dimensions, outermost first. Outputs nest at most once. Source: EdgeFirst's
metadata schema v2, and for `check` the rules of its HAL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from npumake.detection.entry import (
    FLAG,
    LIST,
    NUMBERS,
    OBJECTS,
    SIZES,
    TEXT,
    WHOLE,
    WHOLES,
    MetadataEntry,
    one_of,
)
from npumake.digest import Json
from npumake.errors import ProjectError

ACTIVATIONS = ("sigmoid", "softmax", "tanh")
DIMENSIONS = (
    *("batch", "height", "width", "num_classes", "num_features", "num_boxes", "num_protos"),
    *("num_anchors_x_features", "box_coords", "padding"),
)
CHANNELS = (
    "box_coords",
    "num_features",
    "num_classes",
    "num_protos",
)  # the axes along which children are joined
ENCODINGS = ("dfl", "direct", "ltrb", "anchor")
DTYPES = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "float32", "float64")
MAX_BINS = 64  # of one side of a DFL box

Dims = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class OutputGrid:
    """Quantization parameters: one scale and zero point, or one per index of `axis`."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...] = (0,)
    axis: int | None = None
    dtype: str | None = None


@dataclass(frozen=True)
class DetectorOutput:
    """One entry of `outputs[]`. `stride` is (x, y); `rest` holds keys that are only copied."""

    name: str
    shape: tuple[int, ...]
    type: str | None = None
    dshape: Dims = ()
    stride: tuple[int, ...] = ()
    decoder: str | None = None
    encoding: str | None = None
    score_format: str | None = None
    normalized: bool | None = None
    anchors: tuple[Json, ...] = ()
    dtype: str | None = None
    quantization: OutputGrid | None = None
    scale_index: int | None = None
    activation_applied: str | None = None
    activation_required: str | None = None
    outputs: tuple[DetectorOutput, ...] = ()
    rest: dict[str, Json] = field(default_factory=dict)

    @property
    def tensors(self) -> tuple[DetectorOutput, ...]:
        """The physical tensors: its children, or itself."""
        return self.outputs or (self,)


FIELD_NAMES = frozenset(entry.name for entry in fields(DetectorOutput)) - {"rest"}


def read_output(entry: MetadataEntry, depth: int = 0) -> DetectorOutput:
    """Parses an entry. Raises ProjectError for a value of the wrong kind."""
    stride = entry.get("stride", WHOLES)
    encoding = entry.get("encoding", one_of(*ENCODINGS))
    children = entry.entries("outputs")
    if children and depth:
        raise ProjectError("children of children", entry.where, "outputs nest once")
    return DetectorOutput(
        name=entry.get("name", TEXT, ""),
        shape=tuple(entry.get("shape", SIZES, ())),
        type=entry.get("type", TEXT),
        dshape=_dims(entry),
        stride=tuple(stride if isinstance(stride, list) else [stride] * 2 if stride else ()),
        decoder=entry.get("decoder", TEXT),
        encoding="direct" if encoding == "ltrb" else encoding,
        score_format=entry.get("score_format", one_of("per_class", "obj_x_class")),
        normalized=entry.get("normalized", FLAG),
        anchors=tuple(entry.get("anchors", LIST, ())),
        dtype=entry.get("dtype", one_of(*DTYPES, *FLOATS)),
        quantization=_quantization(entry),
        scale_index=entry.get("scale_index", WHOLE),
        activation_applied=entry.get("activation_applied", one_of(*ACTIVATIONS)),
        activation_required=entry.get("activation_required", one_of(*ACTIVATIONS)),
        outputs=tuple(read_output(child, depth + 1) for child in children),
        rest={key: value for key, value in entry.data.items() if key not in FIELD_NAMES},
    )


def _dims(entry: MetadataEntry) -> Dims:
    items = entry.get("dshape", OBJECTS, ())
    if any(len(item) != 1 for item in items):
        hint = 'such as [{"batch": 1}, {"num_boxes": 8400}]'
        raise ProjectError("each item of `dshape` has one name", entry.below("dshape"), hint)
    named = tuple(pair for item in items for pair in item.items())
    shape = tuple(entry.get("shape", SIZES, ()))
    names = [name for name, _ in named]
    if named and tuple(size for _, size in named) != shape:
        hint = f"`shape` is {list(shape)}: one item for each, in this order"
        raise ProjectError("`dshape` has other sizes than `shape`", entry.below("dshape"), hint)
    if len(set(names)) < len(names) or not set(names) <= set(DIMENSIONS):
        hint = "each name once, of: " + ", ".join(DIMENSIONS)
        raise ProjectError("`dshape` names no dimensions", entry.below("dshape"), hint)
    return named


def _quantization(entry: MetadataEntry) -> OutputGrid | None:
    if entry.data.get("quantization") is None:
        return None
    grid = entry.entry("quantization")
    scale, zero_point = grid.need("scale", NUMBERS), grid.get("zero_point", WHOLES, 0)
    scales = tuple(scale if isinstance(scale, list) else [scale])
    points = tuple(zero_point if isinstance(zero_point, list) else [zero_point])
    axis = grid.get("axis", WHOLE)
    shape = entry.get("shape", SIZES, [])
    if max(len(scales), len(points)) > 1:
        if axis is None or not 0 <= axis < len(shape):
            hint = f"`axis` is the one of {list(shape)} that the scales belong to, from 0"
            raise ProjectError("a grid per channel needs its `axis`", grid.where, hint)
        if not {len(scales), len(points)} <= {1, shape[axis]}:
            hint = f"one per index of `axis` {axis} of {list(shape)}, or a single one"
            raise ProjectError(f"a grid per channel needs {shape[axis]} values", grid.where, hint)
    if not scales or not points:
        hint = 'such as {"scale": 0.1, "zero_point": 0, "dtype": "int8"}'
        raise ProjectError("a grid without a scale or a zero point", grid.where, hint)
    return OutputGrid(scales, points, axis, grid.get("dtype", one_of(*DTYPES, "float16")))


def output_document(output: DetectorOutput) -> dict[str, Json]:
    """The entry as JSON; a tensor's `quantization` is present even if null."""
    document: dict[str, Json] = {
        name: getattr(output, name)
        for name in ("name", "type", "decoder", "encoding", "score_format", "normalized")
    }
    document["shape"] = list(output.shape)
    document["dshape"] = [{name: size} for name, size in output.dshape] or None
    stride = list(output.stride)
    document["stride"] = stride[0] if len(set(stride)) == 1 else stride or None
    document["anchors"] = list(output.anchors) or None
    for name in ("scale_index", "dtype", "activation_applied", "activation_required"):
        document[name] = getattr(output, name)
    document["outputs"] = [output_document(child) for child in output.outputs] or None
    document = {key: value for key, value in document.items() if value is not None} | output.rest
    return document if output.outputs else document | {"quantization": _grid(output.quantization)}


def _grid(grid: OutputGrid | None) -> Json:
    if grid is None:
        return None
    scale, zero_point = (
        values[0] if len(values) == 1 else list(values) for values in (grid.scale, grid.zero_point)
    )
    document = {"scale": scale, "zero_point": zero_point, "axis": grid.axis, "dtype": grid.dtype}
    return {key: value for key, value in document.items() if value is not None}


def check(outputs: Sequence[DetectorOutput], where: str) -> None:
    """Raises ProjectError for typed entries that a decoder could not use."""
    typed = {output.type: output for output in outputs if output.type}
    for output in typed.values():
        if output.outputs:
            _check_children(output, f"{where}: {output.name or output.type}")
    boxes = typed.get("boxes")
    if boxes is None:
        return
    if boxes.encoding is None:
        hint = f"write  encoding: {', '.join(ENCODINGS[:-1])} or {ENCODINGS[-1]}"
        raise ProjectError("boxes without an `encoding`", where, hint)
    if boxes.encoding == "dfl" and not boxes.outputs:
        hint = "write  encoding: direct, or give a child per stride under `outputs`"
        raise ProjectError("`encoding: dfl` of boxes that are one flat tensor", where, hint)
    for other in ("scores", "mask_coefs"):
        if other in typed and _strides(typed[other]) != _strides(boxes):
            hint = f"give {other} a child for each stride of the boxes, and no others"
            raise ProjectError(f"boxes and {other} have other strides", where, hint)


def _strides(output: DetectorOutput) -> tuple[tuple[int, ...], ...]:
    return tuple(sorted(child.stride for child in output.outputs if child.stride))


def _check_children(output: DetectorOutput, where: str) -> None:
    strided = [bool(child.stride) for child in output.outputs]
    if any(strided) != all(strided):
        hint = "give all of them a `stride`, or none"
        raise ProjectError("children with a stride beside children without", where, hint)
    if output.quantization is not None:
        hint = "each child has its own `quantization`"
        raise ProjectError("a grid of its own beside children", where, hint)
    if not any(strided):
        if not all({name for name, _ in child.dshape} & set(CHANNELS) for child in output.outputs):
            message = "children to be joined without a named channel in `dshape`"
            raise ProjectError(message, where, f"name one axis of each: {', '.join(CHANNELS)}")
        return
    for child in output.outputs:
        if output.encoding == "dfl" and (bins := _features(child)) % 4 + (bins // 4 > MAX_BINS):
            hint = f"4 times as many as bins of a side, at most {MAX_BINS}; or  encoding: direct"
            raise ProjectError(f"{bins} channels are not a DFL box of 4 sides", where, hint)
        if child.quantization is not None and child.quantization.dtype is None:
            hint = f"`dtype` is one of {', '.join(DTYPES)}"
            raise ProjectError("the grid of a child needs its `dtype`", where, hint)


def _features(child: DetectorOutput) -> int:
    sizes = dict(child.dshape)
    count = next((sizes[name] for name in CHANNELS if name in sizes), None)
    return next(iter(child.shape[1:2]), 0) if count is None else count
