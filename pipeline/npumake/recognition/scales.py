"""Metadata of heads with several outputs: what each one holds, and its stride."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from npumake.detection.anchors import STRIDES, anchor_table
from npumake.detection.cell_decoders import SSD
from npumake.detection.outputs import DetectorOutput, output_document
from npumake.digest import Json
from npumake.recognition.facts import ModelFacts
from npumake.recognition.ultralytics import base_metadata

CHANNELS = {"boxes": "box_coords", "scores": "num_classes", "objectness": "num_classes"}


def by_stride(facts: ModelFacts, decoder: str, prefixes: Mapping[str, str]) -> Json:
    """An edgefirst.json of outputs named by kind and stride, as `bbox_8`."""
    kinds = {
        kind: {
            int(match[1]): name
            for name in facts.outputs
            if (match := re.fullmatch(rf"{prefix}(\d+)", name))
        }
        for kind, prefix in prefixes.items()
    }
    return _of_scales(facts, decoder, kinds)


def by_width(facts: ModelFacts, decoder: str, widths: Mapping[str, int]) -> Json:
    """An edgefirst.json of outputs [1, n, width] or [n, width], the most boxes at stride 8."""
    kinds = {}
    for kind, width in widths.items():
        names = [name for name, sizes in facts.outputs.items() if sizes[-1] == width]
        names.sort(key=lambda name: -facts.outputs[name][-2])
        kinds[kind] = dict(zip(STRIDES, names, strict=False))
    return _of_scales(facts, decoder, kinds)


def _of_scales(facts: ModelFacts, decoder: str, kinds: Mapping[str, Mapping[int, str]]) -> Json:
    """None unless each kind has each stride."""
    if any({*names} != {*STRIDES} for names in kinds.values()):
        return None
    outputs = []
    for kind, names in kinds.items():
        children = tuple(_child(facts, names[stride], kind, stride) for stride in STRIDES)
        if not all(child.dshape for child in children):
            return None
        encoding = "direct" if kind == "boxes" else None
        outputs.append(
            DetectorOutput(kind, (), kind, decoder=decoder, encoding=encoding, outputs=children)
        )
    return _document(facts, outputs, {name for names in kinds.values() for name in names.values()})


def _child(facts: ModelFacts, name: str, kind: str, stride: int) -> DetectorOutput:
    """A tensor of one scale; without dimensions if it is no list of boxes."""
    sizes = facts.outputs[name]
    names = ("batch", "num_boxes", CHANNELS[kind])[-len(sizes) :]
    dims = tuple(zip(names, sizes, strict=True)) if len(sizes) in (2, 3) else ()
    return DetectorOutput(name, sizes, None, dims, (stride, stride), dtype="float32")


def decoded_ssd(facts: ModelFacts, anchors: Sequence[Json] = (), order: str = "") -> Json:
    """An edgefirst.json of boxes [1, n, 4] and scores [1, n, classes] with a background: corners,
    or offsets to `anchors`. None where they are not as many."""
    outputs = []
    for name, sizes in facts.outputs.items():
        if len(sizes) != 3 or sizes[2] == 10:  # landmarks
            continue
        kind = "boxes" if sizes[2] == 4 else "scores"
        if anchors and len(anchor_table(anchors, facts.image.size)) != sizes[1]:
            return None
        outputs.append(_ssd_output(name, sizes, kind, anchors, order))
    if {output.type for output in outputs} != {"boxes", "scores"}:
        return None
    return _document(facts, outputs, {output.name for output in outputs})


def _ssd_output(
    name: str, sizes: tuple[int, ...], kind: str, anchors: Sequence[Json], order: str
) -> DetectorOutput:
    dims = tuple(zip(("batch", "num_boxes", CHANNELS[kind]), sizes, strict=True))
    if kind != "boxes":
        return DetectorOutput(name, sizes, kind, dims, decoder=SSD, dtype="float32")
    encoding = "anchor" if anchors else "direct"
    rest: dict[str, Json] = {"order": order} if order else {}
    return DetectorOutput(
        name,
        sizes,
        kind,
        dims,
        decoder=SSD,
        encoding=encoding,
        anchors=tuple(anchors),
        dtype="float32",
        rest=rest,
    )


def _document(facts: ModelFacts, outputs: Sequence[DetectorOutput], typed: set[str]) -> Json:
    """With the other outputs, such as landmarks, by name only."""
    others = [
        DetectorOutput(name, sizes, dtype="float32")
        for name, sizes in facts.outputs.items()
        if name not in typed
    ]
    document = base_metadata(facts, (), "detect")
    return {**document, "outputs": [output_document(output) for output in (*outputs, *others)]}
