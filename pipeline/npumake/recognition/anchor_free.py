"""Heads of detectors without anchors: maps of each stride, decoded pairs, and sets of queries.

    strided maps       [1, 64, h, w] and [1, nc, h, w] for strides 8, 16, 32; or NHWC. YOLOv8 to 12
                       as rknn_model_zoo and rdk_model_zoo export them: 64 = 4 sides x 16 bins
                       [1, 3 (5 + nc), h, w] or [1, 3, h, w, 5 + nc]: YOLOv3 to v7
    pairs              [1, N, 4] and [1, N, nc], N one box per cell: YOLO-NAS, PP-YOLOE, DAMO-YOLO
    queries            logits and pred_boxes, dets and labels, boxes and scores: DETR and its heirs
    suppressed         num_dets, det_boxes, det_scores, det_classes: TensorRT's EfficientNMS

No decoder of these heads is here: the normalization is known, boxes are not drawn.
"""

from __future__ import annotations

from npumake.recognition.facts import ModelFacts
from npumake.recognition.feeds import IMAGENET, RAW, UNIT
from npumake.recognition.recognized import LETTERBOX, STRETCH, Family, feeds_of
from npumake.recognition.ultralytics import STRIDES, anchored_metadata, cells

ANCHORS, BOX = 3, 5  # of a scale; numbers of a box with its objectness
BINS = 64  # channels of the boxes: four sides of 16 bins
UNDECODED = "no decoder is known for this head: boxes are not drawn"
YOLOV6 = 85  # columns: 4 of a box, 1 objectness, COCO's 80 classes
# names of the outputs of DETR's heirs: (all of these, whether ImageNet's mean and std are usual)
QUERIES = (
    (("logits", "pred_boxes"), True),  # DETR, by Hugging Face and the authors
    (("pred_logits", "pred_boxes"), True),
    (("dets", "labels"), True),  # RF-DETR
    (("labels", "boxes", "scores"), False),  # RT-DETR, D-FINE
)
SUPPRESSED = ("num_dets", "det_boxes", "det_scores", "det_classes")


def strided_maps(facts: ModelFacts) -> Family | None:
    """YOLO without the layers that join its scales: boxes as bins, or as offsets to anchors."""
    scales = _channels_by_stride(facts)
    if len(scales) != len(STRIDES) or len({*map(len, scales)}) != 1:
        return None
    has_bins = all(BINS in channels and len(channels) > 1 for channels in scales)
    if not has_bins and not all(_are_anchored(channels) for channels in scales):
        return None
    form = f"{BINS} channels of boxes, as YOLOv8 and later" if has_bins else "three anchors each"
    evidence = f"maps of strides 8, 16 and 32 with {form}"
    feeds = feeds_of(facts, "rgb", UNIT)
    return Family(evidence, feeds, "detect", LETTERBOX, doubts=(UNDECODED,))


def _are_anchored(channels: list[int]) -> bool:
    """Whether a scale is one map of three anchors, each a box, objectness and classes."""
    return len(channels) == 1 and channels[0] % ANCHORS == 0 and channels[0] // ANCHORS > BOX


def _channels_by_stride(facts: ModelFacts) -> list[list[int]]:
    """The channels of the maps of each scale, NCHW or NHWC. Maps of other sizes, as of masks, do
    not count; another output gives ()."""
    height, width = facts.image.size
    scales: dict[tuple[int, ...], list[int]] = {
        (height // stride, width // stride): [] for stride in STRIDES
    }
    for sizes in facts.sizes:
        if len(sizes) == 5 and sizes[1] == ANCHORS:  # [1, 3, h, w, 5 + nc]
            sizes = (1, ANCHORS * sizes[4], *sizes[2:4])
        if len(sizes) != 4 or sizes[0] != 1:
            return []
        if sizes[2:] in scales:
            scales[sizes[2:]].append(sizes[1])
        elif sizes[1:3] in scales:
            scales[sizes[1:3]].append(sizes[3])
    return [channels for channels in scales.values() if channels]


def pairs(facts: ModelFacts) -> Family | None:
    """Boxes and scores of every cell, in two outputs."""
    count = cells(facts.image.size)
    shapes = [sizes for sizes in facts.sizes if len(sizes) == 3 and count in sizes[1:]]
    if len(facts.sizes) != 2 or len(shapes) != 2 or not any(4 in sizes[1:] for sizes in shapes):
        return None
    evidence = f"boxes and scores of {count} cells in two outputs, as YOLO-NAS and PP-YOLOE"
    feeds = feeds_of(facts, "rgb", UNIT, IMAGENET, RAW)
    return Family(evidence, feeds, "detect", STRETCH, doubts=(UNDECODED,))


def yolov6(facts: ModelFacts) -> Family | None:
    count = cells(facts.image.size)
    if len(facts.sizes) != 1 or facts.sizes[0][:2] != (1, count) or len(facts.sizes[0]) != 3:
        return None
    if facts.sizes[0][2] != YOLOV6 and "outputs" not in facts.outputs:
        return None
    evidence = f"rows of a box, objectness and classes for {count} cells, as YOLOv6"
    doubt = "YOLOX without its Focus layer has the same shape, and takes bgr, 0..255"
    return Family(
        evidence,
        feeds_of(facts, "rgb", UNIT),
        "detect",
        LETTERBOX,
        metadata=anchored_metadata(facts),
        doubts=(doubt,),
    )


def queries(facts: ModelFacts) -> Family | None:
    """DETR and its heirs, by the names of their outputs."""
    for names, has_imagenet in QUERIES:
        if {*names} <= {*facts.outputs}:
            normalizations = (IMAGENET, UNIT) if has_imagenet else (UNIT, IMAGENET)
            evidence = f"outputs {', '.join(names)}, as DETR and its heirs"
            feeds = feeds_of(facts, "rgb", *normalizations)
            return Family(evidence, feeds, "detect", STRETCH, doubts=(UNDECODED,))
    return None


def suppressed(facts: ModelFacts) -> Family | None:
    """A YOLO that ends in TensorRT's EfficientNMS."""
    if not {*SUPPRESSED} <= {*facts.outputs}:
        return None
    evidence = f"outputs {', '.join(SUPPRESSED)} of EfficientNMS, as YOLO exports for TensorRT"
    feeds = feeds_of(facts, "rgb", UNIT, RAW)
    return Family(evidence, feeds, "detect", LETTERBOX, doubts=(UNDECODED,))
