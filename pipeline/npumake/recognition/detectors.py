"""Heads of detectors, each by the number, names and shapes of its outputs."""

from __future__ import annotations

import re

from npumake.detection.anchors import SCRFD, Y_FIRST, YUNET
from npumake.digest import Json
from npumake.recognition.facts import ModelFacts
from npumake.recognition.feeds import IMAGENET, MTCNN, RAW, SIGNED, SSD, UNIT, PixelNormalization
from npumake.recognition.recognized import (
    CORNER_LETTERBOX,
    LETTERBOX,
    STRETCH,
    Family,
    SsdDetector,
    feeds_of,
)
from npumake.recognition.scales import by_stride, by_width, decoded_ssd
from npumake.recognition.ultralytics import anchored_metadata, cells, decoded_by

SIDES = 32  # channels of NanoDet's boxes: eight bins of each side
# Squares by stride, in pixels.
RETINAFACE: tuple[Json, ...] = (
    {"stride": 8, "sizes": [16, 32]},
    {"stride": 16, "sizes": [64, 128]},
    {"stride": 32, "sizes": [256, 512]},
)
ULTRAFACE: tuple[Json, ...] = (
    {"stride": 8, "sizes": [10, 16, 24]},
    {"stride": 16, "sizes": [32, 48]},
    {"stride": 32, "sizes": [64, 96]},
    {"stride": 64, "sizes": [128, 192, 256]},
)
UNDECODED = "no decoder is known for this head: boxes are not drawn"
OFFSETS = "boxes are offsets to anchors: `evaluation` decodes them, `npumake run` does not"


def has_columns(facts: ModelFacts, *counts: int) -> bool:
    """Whether the outputs are [1, n, count] of one n, in any order."""
    shapes = [tuple(size for size in sizes) for sizes in facts.sizes]
    return (
        len(shapes) == len(counts)
        and all(len(sizes) == 3 for sizes in shapes)
        and sorted(sizes[2] for sizes in shapes) == sorted(counts)
        and len({sizes[1] for sizes in shapes}) == 1
    )


def yunet(facts: ModelFacts) -> Family | None:
    if not all(
        f"{kind}_{stride}" in facts.outputs for kind in ("cls", "obj") for stride in (8, 32)
    ):
        return None
    return Family(
        "outputs of YuNet: cls_8, obj_8, bbox_8, kps_8",
        feeds_of(facts, "bgr", RAW),
        "detect",
        STRETCH,
        ("face",),
        by_stride(facts, YUNET, {"boxes": "bbox_", "scores": "cls_", "objectness": "obj_"}),
    )


def yolox(facts: ModelFacts) -> Family | None:
    count = cells(facts.image.size)
    if len(facts.sizes) != 1 or facts.sizes[0][:2] != (1, count) or facts.sizes[0][2] < 6:
        return None
    if "Slice" not in facts.operators:  # its Focus layer
        return None
    evidence = f"a YOLOX head, one box in each of {count} cells, behind a Focus layer"
    feeds = feeds_of(facts, "bgr", RAW, IMAGENET)
    is_decoded = "Exp" in facts.operators  # boxes in pixels already, as YOLOv5 has them
    document = anchored_metadata(facts) if is_decoded else decoded_by(facts, "yolox")
    return Family(evidence, feeds, "detect", CORNER_LETTERBOX, metadata=document)


def nanodet(facts: ModelFacts) -> Family | None:
    four = cells(facts.image.size, (8, 16, 32, 64))
    three = cells(facts.image.size)
    whole = len(facts.sizes) == 1 and facts.sizes[0][1:2] in ((four,), (three,))
    is_dfl = whole and (facts.sizes[0][2] - 32 > 0 or facts.sizes[0][2] - 44 > 0)
    names = " ".join(facts.outputs)
    if not ("dis_pred" in names or "cls_pred_stride" in names or is_dfl):
        return None
    evidence = "a NanoDet head: scores and distances of every cell"
    feeds = feeds_of(facts, "bgr", IMAGENET, UNIT)
    if not whole or facts.sizes[0][2] <= SIDES:
        return Family(evidence, feeds, "detect", STRETCH, doubts=(UNDECODED,))
    return Family(evidence, feeds, "detect", STRETCH, metadata=decoded_by(facts, "nanodet"))


def one_scale(facts: ModelFacts) -> Family | None:
    """FastestDet: one map of 1 + 4 + classes channels at stride 16."""
    height, width = facts.image.size
    if len(facts.sizes) != 1 or facts.sizes[0][2:] != (height // 16, width // 16):
        return None
    if facts.sizes[0][1] < 6:
        return None
    evidence = "a FastestDet head: one map of stride 16 with objectness, box and classes"
    document = decoded_by(facts, "fastestdet")
    return Family(evidence, feeds_of(facts, "bgr", UNIT), "detect", STRETCH, metadata=document)


def mtcnn(facts: ModelFacts) -> Family | None:
    names = {name for name in facts.outputs if re.match(r"(prob1|conv[456]-[23])", name)}
    if "PRelu" not in facts.operators or len(names) != len(facts.outputs):
        return None
    evidence = "a stage of MTCNN: outputs prob1 and conv4-2, conv5-2 or conv6-2"
    feeds = feeds_of(facts, "rgb", MTCNN)
    return Family(evidence, feeds, "detect", STRETCH, doubts=(UNDECODED,))


def retinaface(facts: ModelFacts) -> Family | None:
    if not has_columns(facts, 2, 4, 10):
        return None
    evidence = "a RetinaFace head: boxes, scores and five landmarks of each anchor"
    means = PixelNormalization("minus (104, 117, 123)", (123.0, 117.0, 104.0), (1.0,))
    feeds = feeds_of(facts, "bgr", means)
    document = decoded_ssd(facts, RETINAFACE)
    return Family(evidence, feeds, "detect", STRETCH, ("face",), document)


def scrfd(facts: ModelFacts) -> Family | None:
    widths = sorted(sizes[-1] for sizes in facts.sizes)
    if len(widths) not in (6, 9) or set(widths) - {1, 4, 10} or not {1, 4} <= set(widths):
        return None
    evidence = "an SCRFD head: scores and distances on three scales"
    feeds = feeds_of(facts, "rgb", MTCNN)
    document = by_width(facts, SCRFD, {"boxes": 4, "scores": 1})
    doubts = () if document else (UNDECODED,)
    return Family(evidence, feeds, "detect", LETTERBOX, ("face",), document, doubts=doubts)


def ultraface(facts: ModelFacts) -> Family | None:
    if not has_columns(facts, 2, 4) or facts.image.is_nhwc:
        return None
    height, width = facts.image.size
    strides = (8, 16, 32, 64)
    if facts.sizes[0][1] != sum(
        -(-height // s) * -(-width // s) * n for s, n in zip(strides, (3, 2, 2, 3), strict=True)
    ):
        return None
    yaml = (
        "sizes: [[10, 16, 24], [32, 48], [64, 96], [128, 192, 256]]",
        "strides: [8, 16, 32, 64]",
    )
    evidence = "an UltraFace head: boxes and two scores of each anchor"
    is_decoded = "Exp" in facts.operators
    return Family(
        evidence,
        feeds_of(facts, "rgb", SSD),
        "detect",
        STRETCH,
        ("face",),
        decoded_ssd(facts, () if is_decoded else ULTRAFACE),
        ssd=SsdDetector(() if is_decoded else yaml),
    )


def ssd_head(facts: ModelFacts) -> Family | None:
    """Boxes and scores of n anchors, as TensorFlow's detection API exports them."""
    columns = sorted(sizes[-1] for sizes in facts.sizes if len(sizes) in (3, 4))
    if len(facts.sizes) != 2 or len(columns) != 2 or 4 not in columns or columns[1] < 2:
        return None
    has_anchors = facts.suffix == ".tflite"
    yaml = ("variances: [0.1, 0.2]", "order: yxhw", f"anchors: {facts.file}") if has_anchors else ()
    document = decoded_ssd(facts, facts.anchors, Y_FIRST) if facts.anchors else None
    return Family(
        "an SSD head: boxes and scores of the same anchors",
        feeds_of(facts, "rgb", SIGNED, UNIT, SSD),
        "detect",
        STRETCH,
        metadata=document,
        ssd=SsdDetector(yaml),
        doubts=() if document else (OFFSETS,),
    )
