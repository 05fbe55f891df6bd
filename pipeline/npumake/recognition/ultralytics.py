"""Exports of Ultralytics and of YOLOv5: by the metadata they carry, and by the shape of the head.

The metadata has `names`, `stride`, `imgsz`, and since version 8 `task`. The heads, with N boxes of
nc classes, K mask coefficients and P numbers of keypoints or an angle:

    v8 to v12      [1, 4 + nc (+ K or P), N]              N is one box per cell
    v10, v26       [1, n, 6]                              suppressed by the model
    v5, v7         [1, N, 5 + nc (+ K)]                   N is three per cell, with objectness
    masks          [1, K, h, w]                           prototypes beside

Source: ultralytics/engine/exporter.py, yolov5/export.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from npumake.detection.class_names import class_names
from npumake.detection.outputs import DetectorOutput, output_document
from npumake.digest import Json
from npumake.recognition.facts import ModelFacts
from npumake.recognition.feeds import IMAGENET, UNIT, PictureFeed
from npumake.recognition.recognized import LETTERBOX, Family, Task, center

STRIDES = (8, 16, 32)
ROW = 6  # of an end-to-end model
TASKS: Mapping[str, Task] = {"classify": "classify", "detect": "detect", "segment": "segment"}
EDGEFIRST_TASKS = {"classify": "classification", "segment": "segmentation"}
EXTRAS = {"pose": "keypoints", "obb": "angles"}  # what follows the scores, by task
RGB = PictureFeed(UNIT)
PROTOS = ("num_protos", "height", "width")


class DetectorHead(NamedTuple):
    """A detection output: its form, and its number of classes."""

    name: str
    form: str  # "flat", "anchors", "rows"
    classes: int


def exported_size(notes: Mapping[str, str]) -> tuple[int, int] | None:
    """(height, width) of the metadata; None without it."""
    try:
        value = json.loads(notes.get("imgsz", ""))
    except ValueError:
        return None
    sizes = value if isinstance(value, list) else [value, value]
    if len(sizes) != 2 or not all(isinstance(side, int) and side > 0 for side in sizes):
        return None
    return sizes[0], sizes[1]


def ultralytics(facts: ModelFacts) -> Family | None:
    """By `names` and `stride` of the metadata."""
    notes = facts.notes
    if "names" not in notes or "stride" not in notes:
        return None
    labels = class_names(notes)
    task = notes.get("task") or _task_of_shapes(facts)
    version = notes.get("version", "")
    exporter = " ".join(("Ultralytics", version)).strip()
    evidence = f"metadata of {exporter}: task {task}, {len(labels)} names"
    if task == "classify":
        return _classifier(facts, evidence, labels)
    document, split = head_metadata(facts, labels, task)
    doubts = () if document else ("no decoder is known for this head: boxes are not drawn",)
    kind = TASKS.get(task, "detect")
    return Family(
        evidence, (RGB,), kind, LETTERBOX, labels, document, split, doubts=doubts, is_declared=True
    )


def yolo_by_shape(facts: ModelFacts) -> Family | None:
    """Without metadata: by the number of boxes in the outputs."""
    head = _head(facts, 0)
    if head is None or head.form == "rows":
        return None
    kind = "YOLOv8" if head.form == "flat" else "YOLOv5"
    evidence = f"output `{head.name}` has the shape of a {kind} head, {head.classes} classes"
    document, split = head_metadata(facts, (), "detect", head)
    doubt = "the file carries no metadata: class names are unknown"
    return Family(evidence, (RGB,), "detect", LETTERBOX, (), document, split, doubts=(doubt,))


def _task_of_shapes(facts: ModelFacts) -> str:
    """The task of YOLOv5, which does not note it."""
    ranks = [len(sizes) for sizes in facts.sizes]
    if ranks == [2]:
        return "classify"
    return "segment" if 4 in ranks and 3 in ranks else "detect"


def _classifier(facts: ModelFacts, evidence: str, labels: tuple[str, ...]) -> Family:
    """Version 8 and later takes 0..1, YOLOv5 ImageNet's mean and std; both crop the middle."""
    feed = RGB if "task" in facts.notes else PictureFeed(IMAGENET)
    height, _ = facts.image.size
    resize = center(height)
    document = base_metadata(facts, labels, "classify")
    return Family(evidence, (feed,), "classify", resize, labels, document, is_declared=True)


def cells(size: tuple[int, int], strides: Sequence[int] = STRIDES) -> int:
    """The number of cells of all scales."""
    height, width = size
    return sum(-(-height // stride) * -(-width // stride) for stride in strides)


def _head(facts: ModelFacts, classes: int) -> DetectorHead | None:
    """The detection output; `classes` is 0 if unknown."""
    count = cells(facts.image.size)
    anchored = {
        3 * cells(facts.image.size, s) for s in (STRIDES, (*STRIDES, 64), (8, 16), (16, 32))
    }
    for name, sizes in facts.outputs.items():
        if len(sizes) != 3 or sizes[0] != 1:
            continue
        others = 0 if classes == 0 else None
        if sizes[2] == count and sizes[1] > 4:
            return DetectorHead(name, "flat", classes or sizes[1] - 4 - _coefficients(facts))
        if sizes[1] in anchored and sizes[2] > 5:
            return DetectorHead(name, "anchors", classes or sizes[2] - 5 - _coefficients(facts))
        if others is None and sizes[2] == ROW:
            return DetectorHead(name, "rows", classes)
    return None


def _coefficients(facts: ModelFacts) -> int:
    channels = 3 if _is_nhwc(facts) else 1
    protos = [sizes[channels] for sizes in facts.sizes if len(sizes) == 4]
    return protos[0] if protos else 0


def base_metadata(facts: ModelFacts, labels: Sequence[str], task: str) -> dict[str, Json]:
    """An edgefirst.json without outputs."""
    name = EDGEFIRST_TASKS.get(task, "detection")
    model: dict[str, Json] = {"task": name}
    if name != "classification":
        model |= {"detection": True, "segmentation": name == "segmentation"}
    return {
        "schema_version": 2,
        "dataset": {"classes": list(labels)},
        "input": {"shape": list(facts.image.shape), "cameraadaptor": "rgb"},
        "model": model,
        **({} if name == "classification" else {"nms": "class_aware"}),
    }


def head_metadata(
    facts: ModelFacts, labels: Sequence[str], task: str, head: DetectorHead | None = None
) -> tuple[Json, bool]:
    """An edgefirst.json of the head, and whether the head has to be split by it. (None, False) for
    an unknown head."""
    head = head or _head(facts, len(labels))
    if head is None:
        return None, False
    document = base_metadata(facts, labels, task)
    if head.form == "rows":
        document["model"]["end2end"] = True
        return document, False
    if head.form == "anchors":
        document["outputs"] = [output_document(entry) for entry in _anchored(facts, head)]
        return document, False
    rest = facts.outputs[head.name][1] - 4 - head.classes
    if facts.suffix == ".tflite" and not (rest and task in EXTRAS):
        document["outputs"] = [output_document(entry) for entry in _flat(facts, head)]
        return document, False
    if rest and task in EXTRAS:
        document["split_hints"] = [_hint(head, EXTRAS[task], rest)]
        return document, True
    return document, False


def _hint(head: DetectorHead, extra: str, rest: int) -> Json:
    """Boxes, scores and `rest` channels of another kind, cut where the model joins them."""
    end = 4 + head.classes
    return {
        "type": "quantization_split",
        "target": head.name,
        "boundaries": [
            {"name": "boxes", "channels": [0, 4]},
            {"name": "scores", "channels": [4, end], "activation": "sigmoid"},
            {"name": extra, "channels": [end, end + rest]},
        ],
    }


def anchored_metadata(facts: ModelFacts) -> Json:
    """An edgefirst.json of one output of rows [1, n, 5 + classes] in pixels, as YOLOv5 has it."""
    ((name, sizes),) = facts.outputs.items()
    document = base_metadata(facts, (), "detect")
    head = DetectorHead(name, "anchors", sizes[2] - 5)
    return {**document, "outputs": [output_document(entry) for entry in _anchored(facts, head)]}


def decoded_by(facts: ModelFacts, decoder: str) -> Json:
    """An edgefirst.json of the one output of rows, which `decoder` turns into boxes."""
    ((name, sizes),) = facts.outputs.items()
    rows = ("batch", "num_boxes", "num_features")
    maps = ("batch", "num_features", "height", "width")
    dims = tuple(zip(rows if len(sizes) == 3 else maps, sizes, strict=True))
    output = DetectorOutput(name, sizes, "detection", dims, decoder=decoder, dtype="float32")
    document = base_metadata(facts, (), "detect")
    return {**document, "outputs": [output_document(output)]}


def _flat(facts: ModelFacts, head: DetectorHead) -> list[DetectorOutput]:
    """`outputs` of version 8 and later in a .tflite: its boxes are in 0..1 of the picture."""
    outputs = []
    for name, sizes in facts.outputs.items():
        if name != head.name:
            outputs.append(_beside(facts, name, sizes))
            continue
        dims = tuple(zip(("batch", "num_features", "num_boxes"), sizes, strict=True))
        head_output = DetectorOutput(name, sizes, "detection", dims, decoder="ultralytics")
        outputs.append(replace(head_output, encoding="direct", normalized=True, dtype="float32"))
    return outputs


def _anchored(facts: ModelFacts, head: DetectorHead) -> list[DetectorOutput]:
    """`outputs` of a YOLOv5: rows of boxes in pixels, objectness, scores and coefficients."""
    outputs = []
    for name, sizes in facts.outputs.items():
        if name == head.name:
            dims = tuple(zip(("batch", "num_boxes", "num_features"), sizes, strict=True))
            outputs.append(
                DetectorOutput(
                    name,
                    sizes,
                    "detection",
                    dims,
                    decoder="ultralytics",
                    encoding="direct",
                    score_format="obj_x_class",
                    normalized=facts.suffix == ".tflite",
                    dtype="float32",
                )
            )
        else:
            outputs.append(_beside(facts, name, sizes))
    return outputs


def _beside(facts: ModelFacts, name: str, sizes: tuple[int, ...]) -> DetectorOutput:
    """An output beside the head: prototypes of masks, or one without a known meaning."""
    if len(sizes) != 4 or not _coefficients(facts):
        return DetectorOutput(name, sizes, dtype="float32")
    order = ("height", "width", "num_protos") if _is_nhwc(facts) else PROTOS
    dims = tuple(zip(("batch", *order), sizes, strict=True))
    stride = facts.image.size[0] // dict(dims)["height"]
    return DetectorOutput(name, sizes, "protos", dims, (stride, stride), dtype="float32")


def _is_nhwc(facts: ModelFacts) -> bool:
    return facts.suffix == ".tflite" and facts.image.is_nhwc
