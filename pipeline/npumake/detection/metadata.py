"""EdgeFirst's metadata, schema v2: typed where it has an effect, else copied unchanged.

A converter may add keys. It may delete only `split_hints`, which it replaces by `outputs`.
`npumake.detection.older` converts older documents to v2. `npumake.detection.keys` gives the reason
for each documented key that is only copied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from npumake.detection.entry import TEXT, TEXTS, WHOLE, WHOLES, MetadataEntry, one_of, read_object
from npumake.detection.keys import KINDS
from npumake.detection.older import as_v2
from npumake.detection.outputs import DetectorOutput, check, output_document, read_output
from npumake.digest import Json
from npumake.errors import ProjectError

NOTE = "edgefirst"  # its key among the metadata_props of an ONNX model
SCHEMA = 2
SPLIT = "quantization_split"
TILINGS = ("tiled", "whole_frame")
MAX_CLASSES = 1 << 16
BOXES = ("detections", "detection", "boxes")  # types of outputs that hold boxes


@dataclass(frozen=True)
class Boundary:
    """Channels [start, end) of a target, after decoding."""

    name: str
    start: int
    end: int
    activation: str | None = None


@dataclass(frozen=True)
class SplitHint:
    target: str
    boundaries: tuple[Boundary, ...]
    strides: tuple[int, ...] = ()
    anchors_per_cell: int = 1


@dataclass(frozen=True)
class Tiling:
    mode: str
    full_frame: bool = False


@dataclass(frozen=True)
class Metadata:
    """`document` is schema v2 with all original keys; the other fields have an effect."""

    document: Mapping[str, Json]
    hints: tuple[SplitHint, ...] = ()
    outputs: tuple[DetectorOutput, ...] = ()
    tiling: Tiling | None = None
    input_shape: tuple[int, ...] = ()
    classes: tuple[str, ...] = ()
    nms: str = "class_agnostic"
    end2end: bool = False
    task: str = ""

    @property
    def has_decoder(self) -> bool:
        """Whether an output is boxes, alone or with others. A classifier has none, nor an unknown
        head."""
        return any(output.type in BOXES for output in self.outputs)

    def to_json(self) -> str:
        return json.dumps(self.document, ensure_ascii=False, allow_nan=False)


def read_metadata(data: str | bytes, name: str) -> Metadata:
    """Parses the metadata. Raises ProjectError, with the key, for invalid JSON, a newer schema, a
    value of the wrong kind and a tiling other than version 1."""
    document = read_object(data, name)
    version = MetadataEntry(document, name).get("schema_version", WHOLE, 1)
    if not 1 <= version <= SCHEMA:
        message = f"metadata of schema version {version}; the newest known is {SCHEMA}"
        raise ProjectError(message, f"{name}: schema_version", f"export it as version {SCHEMA}")
    if version < SCHEMA:
        document = as_v2(document, name)
    top = MetadataEntry(document, name)
    _check_kinds(top)
    outputs = tuple(map(read_output, top.entries("outputs")))
    check(outputs, f"{name}: outputs")
    model = top.entry("model")
    return Metadata(
        document=document,
        hints=tuple(h for entry in top.entries("split_hints") if (h := _hint(entry))),
        outputs=outputs,
        tiling=_tiling(top),
        input_shape=tuple(top.entry("input").data.get("shape") or ()),
        classes=tuple(top.entry("dataset").get("classes", TEXTS, ())[:MAX_CLASSES]),
        nms=top.data.get("nms") or "class_agnostic",
        end2end=bool(model.data.get("end2end")),
        task=model.get("task", TEXT, ""),
    )


def with_outputs(
    metadata: Metadata, outputs: Sequence[DetectorOutput], *, keep_hints: bool = False
) -> Metadata:
    """The metadata with these `outputs`; they replace `split_hints` unless `keep_hints`."""
    described = [output_document(output) for output in outputs]
    return replaced(metadata, {"outputs": described}, keep_hints=keep_hints)


def with_block(metadata: Metadata, name: str, block: Mapping[str, Json]) -> Metadata:
    """The metadata with a converter's block: version, timestamp and its record. Raises ProjectError
    if a block of that name exists."""
    if name in metadata.document:
        raise ProjectError(f"the metadata has a block `{name}` already", f"{NOTE}.json: {name}")
    return replaced(metadata, {name: dict(block)})


def replaced(metadata: Metadata, added: Mapping[str, Json], *, keep_hints: bool = True) -> Metadata:
    """The metadata with these keys added or replaced."""
    remaining = {
        key: value for key, value in metadata.document.items() if keep_hints or key != "split_hints"
    }
    return read_metadata(json.dumps(remaining | dict(added), allow_nan=False), f"{NOTE}.json")


def _check_kinds(top: MetadataEntry) -> None:
    """Raises ProjectError if a documented key has a value of the wrong kind."""
    for key, kind in KINDS.items():
        *groups, last = key.split(".")
        entry = top
        for group in groups:
            entry = entry.entry(group)
        entry.get(last, kind)


def _hint(entry: MetadataEntry) -> SplitHint | None:
    """The hint; None for an unknown type of hint, which is skipped."""
    if entry.get("type", TEXT) != SPLIT:
        return None
    for key in ("input_dtype", "output_dtype", "description"):
        entry.get(key, TEXT)
    strides = tuple(_list(entry.get("strides", WHOLES, [])))
    if list(strides) != sorted(set(strides)) or any(stride < 1 for stride in strides):
        raise ProjectError("`strides` must ascend", entry.below("strides"), "such as [8, 16, 32]")
    anchors = entry.get("anchors_per_cell", WHOLE, 1)
    if anchors < 1:
        message = "`anchors_per_cell` must be 1 or more"
        raise ProjectError(message, entry.below("anchors_per_cell"), "leave it out for 1")
    boundaries = tuple(map(_boundary, entry.entries("boundaries")))
    reached = 0
    for boundary in boundaries:
        if boundary.start != reached or boundary.end <= boundary.start:
            hint = "each starts where the one before ends"
            raise ProjectError("`boundaries` have gaps or overlap", entry.below("boundaries"), hint)
        reached = boundary.end
    if not boundaries:
        hint = 'such as [{"name": "boxes", "channels": [0, 4]}]'
        raise ProjectError("no `boundaries`", entry.where, hint)
    return SplitHint(entry.need("target", TEXT), boundaries, strides, anchors)


def _boundary(entry: MetadataEntry) -> Boundary:
    channels = _list(entry.need("channels", WHOLES))
    if len(channels) != 2:
        hint = "such as [0, 4]"
        raise ProjectError("`channels` must be [start, end)", entry.below("channels"), hint)
    activation = entry.get("activation", one_of("sigmoid", "softmax", "tanh"))
    return Boundary(entry.need("name", TEXT), channels[0], channels[1], activation)


def _list(value: Json) -> list[int]:
    return value if isinstance(value, list) else [value]


def _tiling(top: MetadataEntry) -> Tiling | None:
    """Raises ProjectError for a tiling that is not version 1, before any work is done."""
    if "tiling" not in top.data:
        return None
    document = top.data["tiling"]
    if not isinstance(document, dict):
        hint = f"with `version` 1 and `mode`: {' or '.join(TILINGS)}"
        raise ProjectError("`tiling` must be an object", top.below("tiling"), hint)
    entry = MetadataEntry(document, top.below("tiling"))
    if entry.get("version", WHOLE) != 1:
        hint = 'write  "version": 1'
        raise ProjectError("only version 1 of `tiling` is known", entry.below("version"), hint)
    full = entry.entry("full_frame").data.get("enabled") is True
    return Tiling(entry.need("mode", one_of(*TILINGS)), full)
