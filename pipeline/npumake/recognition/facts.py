"""Facts about a model file, read once: what recognizers decide by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from npumake.detection.anchors import X_FIRST
from npumake.errors import GraphError
from npumake.frontends import suffix_of
from npumake.frontends.tflite.detections import anchors as anchors_in
from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.graph import Graph, Value, array, dtype, is_float, shape
from npumake.graph.qdq import is_quantize
from npumake.recognition.tflite_notes import NO_NOTES, TFLiteNotes, exported_notes, tflite_notes

CHANNELS = (1, 3)  # of a picture
MIN_SIDE = 8  # pixels; a smaller plane is not a picture
SPECTRUM_RATIO = 4  # of one channel, a longer plane is a spectrum rather than a picture
CODES = {"uint8": 0, "int8": 128}  # the code of an 8-bit pixel is pixel - this


class InputGrid(NamedTuple):
    """real = scale * (code - zero_point), codes of 8 bits."""

    scale: float
    zero_point: int
    dtype: str

    @property
    def mean(self) -> float:
        """The pixel whose code means 0."""
        return self.zero_point + CODES[self.dtype]

    @property
    def reach(self) -> tuple[float, float]:
        """The real values of pixels 0 and 255."""
        return -self.mean * self.scale, (255 - self.mean) * self.scale


ANCHOR_DIGITS = 6  # of an anchor in metadata


@dataclass(frozen=True)
class PictureInput:
    """An input that takes a picture: sizes in pixels, `grid` if the file quantizes it."""

    name: str
    shape: tuple[int, ...]
    is_nhwc: bool
    grid: InputGrid | None = None

    @property
    def channels(self) -> int:
        return self.shape[3 if self.is_nhwc else 1]

    @property
    def size(self) -> tuple[int, int]:
        """(height, width)."""
        height, width = self.shape[1:3] if self.is_nhwc else self.shape[2:]
        return height, width


@dataclass(frozen=True)
class ModelFacts:
    """`notes` are the metadata of an ONNX file or an exported .tflite; `names` are those of the
    nodes and tensors, joined."""

    file: str
    graph: Graph  # with static shapes, as original_float has it
    producer: str
    notes: Mapping[str, str]
    operators: frozenset[str]
    names: str
    image: PictureInput
    outputs: Mapping[str, tuple[int, ...]]
    tflite: TFLiteNotes = NO_NOTES
    anchors: tuple[tuple[float, ...], ...] = ()  # (cx, cy, w, h) of a .tflite's postprocessor

    @property
    def suffix(self) -> str:
        return suffix_of(self.file)

    @property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the outputs, in order."""
        return tuple(self.outputs.values())


def facts_of(file: str, data: bytes, trained: Graph, graph: Graph) -> ModelFacts | None:
    """The facts of the model in `data`; None unless exactly one input takes a picture. `trained` is
    the graph as read from the file, `graph` the same with static shapes."""
    pictures = [picture for value in graph.inputs if (picture := picture_input(value)) is not None]
    if len(pictures) != 1:
        return None
    names = [str(value.name) for value in graph.values().values()]
    names += [str(node.name) for node in graph.nodes()]
    is_tflite = suffix_of(file) == ".tflite"
    return ModelFacts(
        file,
        graph,
        trained.model.producer_name or "",
        {**(exported_notes(data) if is_tflite else {}), **trained.metadata},
        frozenset(node.op_type for node in graph.nodes()),
        "\n".join(names),
        pictures[0],
        {str(value.name): shape(value) for value in graph.outputs},
        tflite_notes(data) if is_tflite else NO_NOTES,
        _anchors(data) if is_tflite else (),
    )


def _anchors(data: bytes) -> tuple[tuple[float, ...], ...]:
    """The anchors in a .tflite; () without any."""
    try:
        table = anchors_in(data)
    except (GraphError, MalformedError):
        return ()
    if table is None or table.shape[1:] != (4,):
        return ()
    return tuple(map(tuple, table[:, X_FIRST].astype(float).round(ANCHOR_DIGITS).tolist()))


def picture_input(value: Value) -> PictureInput | None:
    """The input as one of a picture; None for another rank, type or number of channels."""
    sizes = shape(value)
    if len(sizes) != 4 or sizes[0] != 1 or not is_float(value):
        return None
    is_nhwc = sizes[3] in CHANNELS and sizes[1] not in CHANNELS
    picture = PictureInput(str(value.name), sizes, is_nhwc, input_grid(value))
    if picture.channels not in CHANNELS or min(picture.size) < MIN_SIDE:
        return None
    is_long = max(picture.size) >= SPECTRUM_RATIO * min(picture.size)
    return None if picture.channels == 1 and is_long else picture


def obstacle(value: Value) -> str:
    """Why an input of the shape of a picture takes none; empty for another shape."""
    sizes = shape(value)
    if len(sizes) != 4 or not {sizes[1], sizes[3]} & {*CHANNELS}:
        return ""
    if not is_float(value):
        return f"is {dtype(value)}, no float to normalize: export it without its Cast"
    return f"takes {sizes[0]} at a time: export it with a batch of 1" if sizes[0] != 1 else ""


def input_grid(value: Value) -> InputGrid | None:
    """The grid of the QuantizeLinear that reads the input; None without one."""
    for use in value.uses():
        scale, zero_point = (array(v) for v in (*use.node.inputs, None, None)[1:3])
        if is_quantize(use.node) and scale is not None and scale.size == 1:
            dtype = "uint8" if zero_point is None else str(zero_point.dtype)
            if dtype in CODES:
                point = 0 if zero_point is None else int(zero_point.item())
                return InputGrid(float(scale.item()), point, dtype)
    return None


def classes_of(facts: ModelFacts) -> int:
    """The number of classes of a classifier's one output; 0 for another model."""
    if len(facts.sizes) != 1:
        return 0
    sizes = [size for size in facts.sizes[0] if size > 1]
    return sizes[0] if len(sizes) == 1 else 0
