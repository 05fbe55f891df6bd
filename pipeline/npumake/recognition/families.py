"""FAMILIES: published families of models, recognised by their graph. The first that fits counts.

Normalizations are those of each project's own demo. A family that its file does not settle lists
several `feeds`; the measurement on the pictures chooses among them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from npumake.recognition.facts import ModelFacts, classes_of
from npumake.recognition.feeds import (
    CAFFE,
    CLIP,
    IMAGENET,
    MTCNN,
    RAW,
    SIGNED,
    SSD,
    UNIT,
    Colors,
    Normalization,
    PictureFeed,
)
from npumake.recognition.feeds import feed as feed_of
from npumake.recognition.recognised import Family, Recogniser, Ssd, Step, center
from npumake.recognition.ultralytics import LETTERBOX, cells, ultralytics, yolo_by_shape

STRETCH = (Step("pil_resize"),)
SMALL_SIDE = 128  # pixels; classifiers of smaller pictures do not crop
CROP_RATIO = 0.875  # of the short side, as ImageNet classifiers are evaluated
IMAGENET_CLASSES = (1000, 1001)
TF_NAMES = re.compile(r"MobilenetV[123]|Mobilenet/|InceptionV\d|NASNet|resnet_v2", re.IGNORECASE)
TRANSFORMER = frozenset({"LayerNormalization", "Erf", "Gelu"})
CORNER_LETTERBOX = (Step("pad_resize", {"pad_value": 114, "pad_position": "bottom_right"}),)


def _feeds(facts: ModelFacts, colors: Colors, *norms: Normalization) -> tuple[PictureFeed, ...]:
    return tuple(feed_of(each, colors, facts.image.channels) for each in norms)


def crop(facts: ModelFacts) -> tuple[Step, ...]:
    """The transforms of a classifier: the middle of the picture, or all of a small one."""
    height, width = facts.image.size
    if min(height, width) < SMALL_SIDE or height != width:
        return STRETCH
    return center(round(height / CROP_RATIO))


def _has_columns(facts: ModelFacts, *counts: int) -> bool:
    """Whether the outputs are [1, n, count] of one n, in any order."""
    shapes = [tuple(size for size in sizes) for sizes in facts.sizes]
    return (
        len(shapes) == len(counts)
        and all(len(sizes) == 3 for sizes in shapes)
        and sorted(sizes[2] for sizes in shapes) == sorted(counts)
        and len({sizes[1] for sizes in shapes}) == 1
    )


def _paddle_recognizer(facts: ModelFacts) -> Family | None:
    height, width = facts.image.size
    shapes = facts.sizes[0] if len(facts.sizes) == 1 else ()
    if height not in (32, 48) or width <= height or len(shapes) not in (2, 3):
        return None
    if len(shapes) == 2 and shapes[1] > 4:
        return None
    kind = "angle classifier" if len(shapes) == 2 else "text recognizer"
    pad = Step("pad_resize", {"pad_value": 127, "pad_position": "bottom_right"})
    return Family(
        f"a PaddleOCR {kind}: input of {height} x {width}",
        _feeds(facts, "bgr", SIGNED),
        "classify" if len(shapes) == 2 else "other",
        (pad,),
        doubts=("PaddleOCR reads BGR; other exports of it read RGB",),
    )


def _paddle_detector(facts: ModelFacts) -> Family | None:
    is_paddle = "paddle" in facts.producer.lower() or "p2o." in facts.names
    is_map = len(facts.sizes) == 1 and facts.sizes[0] == (1, 1, *facts.image.size)
    if not (is_paddle and is_map):
        return None
    # PaddleOCR applies ImageNet's means, given for RGB, to the channels of a BGR picture.
    swapped = Normalization(IMAGENET.name, IMAGENET.mean[::-1], IMAGENET.scale[::-1])
    return Family(
        "a PaddleOCR text detector: one map of the picture's size, by Paddle's exporter",
        (PictureFeed(swapped, "bgr"),),
        "segment",
        STRETCH,
    )


def _yunet(facts: ModelFacts) -> Family | None:
    if not all(
        f"{kind}_{stride}" in facts.outputs for kind in ("cls", "obj") for stride in (8, 32)
    ):
        return None
    return Family(
        "outputs of YuNet: cls_8, obj_8, bbox_8, kps_8",
        _feeds(facts, "bgr", RAW),
        "detect",
        STRETCH,
    )


def _yolox(facts: ModelFacts) -> Family | None:
    count = cells(facts.image.size)
    if len(facts.sizes) != 1 or facts.sizes[0][:2] != (1, count) or facts.sizes[0][2] < 6:
        return None
    if "Slice" not in facts.operators:  # its Focus layer
        return None
    evidence = f"a YOLOX head, one box in each of {count} cells, behind a Focus layer"
    return Family(evidence, _feeds(facts, "bgr", RAW, IMAGENET), "detect", CORNER_LETTERBOX)


def _nanodet(facts: ModelFacts) -> Family | None:
    four = cells(facts.image.size, (8, 16, 32, 64))
    three = cells(facts.image.size)
    whole = len(facts.sizes) == 1 and facts.sizes[0][1:2] in ((four,), (three,))
    is_dfl = whole and (facts.sizes[0][2] - 32 > 0 or facts.sizes[0][2] - 44 > 0)
    names = " ".join(facts.outputs)
    if not ("dis_pred" in names or "cls_pred_stride" in names or is_dfl):
        return None
    evidence = "a NanoDet head: scores and distances of every cell"
    return Family(evidence, _feeds(facts, "bgr", IMAGENET, UNIT), "detect", STRETCH)


def _one_scale(facts: ModelFacts) -> Family | None:
    """FastestDet: one map of 1 + 4 + classes channels at stride 16."""
    height, width = facts.image.size
    if len(facts.sizes) != 1 or facts.sizes[0][2:] != (height // 16, width // 16):
        return None
    if facts.sizes[0][1] < 6:
        return None
    evidence = "a FastestDet head: one map of stride 16 with objectness, box and classes"
    return Family(evidence, _feeds(facts, "bgr", UNIT), "detect", STRETCH)


def _mtcnn(facts: ModelFacts) -> Family | None:
    names = {name for name in facts.outputs if re.match(r"(prob1|conv[456]-[23])", name)}
    if "PRelu" not in facts.operators or len(names) != len(facts.outputs):
        return None
    evidence = "a stage of MTCNN: outputs prob1 and conv4-2, conv5-2 or conv6-2"
    return Family(evidence, _feeds(facts, "rgb", MTCNN), "detect", STRETCH)


def _retinaface(facts: ModelFacts) -> Family | None:
    if not _has_columns(facts, 2, 4, 10):
        return None
    evidence = "a RetinaFace head: boxes, scores and five landmarks of each anchor"
    means = Normalization("(104, 117, 123) taken off", (123.0, 117.0, 104.0), (1.0,))
    return Family(evidence, _feeds(facts, "bgr", means), "detect", STRETCH)


def _scrfd(facts: ModelFacts) -> Family | None:
    widths = sorted(sizes[-1] for sizes in facts.sizes)
    if len(widths) not in (6, 9) or set(widths) - {1, 4, 10} or not {1, 4} <= set(widths):
        return None
    evidence = "an SCRFD head: scores and distances on three scales"
    return Family(evidence, _feeds(facts, "rgb", MTCNN), "detect", LETTERBOX)


def _ultraface(facts: ModelFacts) -> Family | None:
    if not _has_columns(facts, 2, 4) or facts.image.is_nhwc:
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
        _feeds(facts, "rgb", SSD),
        "detect",
        STRETCH,
        ("face",),
        ssd=Ssd(() if is_decoded else yaml),
    )


def _ssd(facts: ModelFacts) -> Family | None:
    """Boxes and scores of n anchors, as TensorFlow's detection API exports them."""
    columns = sorted(sizes[-1] for sizes in facts.sizes if len(sizes) in (3, 4))
    if len(facts.sizes) != 2 or len(columns) != 2 or 4 not in columns or columns[1] < 2:
        return None
    has_anchors = facts.suffix == ".tflite"
    yaml = ("variances: [0.1, 0.2]", "order: yxhw", f"anchors: {facts.file}") if has_anchors else ()
    return Family(
        "an SSD head: boxes and scores of the same anchors",
        _feeds(facts, "rgb", SIGNED, UNIT, SSD),
        "detect",
        STRETCH,
        ssd=Ssd(yaml),
    )


def _super_resolution(facts: ModelFacts) -> Family | None:
    sizes = facts.sizes[0] if len(facts.sizes) == 1 else ()
    height, width = facts.image.size
    inner = sizes[1:] if len(sizes) == 4 else ()
    is_larger = any(k * height in inner and k * width in inner for k in (2, 3, 4, 8))
    if not is_larger or facts.image.channels not in inner:
        return None
    evidence = "the output is the picture, enlarged"
    return Family(evidence, _feeds(facts, "rgb", UNIT, RAW), "other", STRETCH)


def _tensorflow_slim(facts: ModelFacts) -> Family | None:
    found = TF_NAMES.search(facts.names)
    if found is None or not facts.image.is_nhwc:
        return None
    evidence = f"a network of TensorFlow's model garden: `{found.group(0)}` in its names"
    return _classifier(facts, evidence, SIGNED, UNIT) or Family(
        evidence, _feeds(facts, "rgb", SIGNED, UNIT), "segment", STRETCH
    )


def _caffe(facts: ModelFacts) -> Family | None:
    if facts.suffix != ".prototxt" and "caffe" not in facts.producer.lower():
        return None
    evidence = "made by Caffe, whose models take blue first and the mean taken off"
    norms = (CAFFE, RAW, UNIT, SIGNED)
    feeds = _feeds(facts, "bgr", *norms)
    found = _classifier(facts, evidence, *norms)
    return Family(
        evidence, feeds, "classify" if found else "other", found.resize if found else STRETCH
    )


def _vision_transformer(facts: ModelFacts) -> Family | None:
    if facts.image.is_nhwc or not facts.operators & TRANSFORMER or not classes_of(facts):
        return None
    evidence = "a vision transformer, by its LayerNormalization or Gelu"
    return _classifier(facts, evidence, IMAGENET, SIGNED, CLIP)


def _torch_classifier(facts: ModelFacts) -> Family | None:
    if facts.image.is_nhwc or facts.image.channels != 3:
        return None
    evidence = "a classifier with channels first, as torchvision and timm export it"
    return _classifier(facts, evidence, IMAGENET, UNIT, SIGNED, RAW)


def _keras(facts: ModelFacts) -> Family | None:
    if not facts.image.is_nhwc:
        return None
    evidence = "channels last, as Keras exports it"
    return _classifier(facts, evidence, UNIT, SIGNED, RAW, IMAGENET) or Family(
        evidence, _feeds(facts, "rgb", UNIT, SIGNED, RAW), "other", STRETCH
    )


def _any(facts: ModelFacts) -> Family | None:
    evidence = "no family that npumake knows"
    feeds = _feeds(facts, "rgb", UNIT, IMAGENET, RAW, SIGNED)
    kind = "classify" if classes_of(facts) else "other"
    return Family(evidence, feeds, kind, STRETCH)


def _classifier(facts: ModelFacts, evidence: str, *norms: Normalization) -> Family | None:
    """The family, if the one output has a score per class."""
    count = classes_of(facts)
    if not count:
        return None
    offset = int(count == IMAGENET_CLASSES[1])
    return Family(
        evidence, _feeds(facts, "rgb", *norms), "classify", crop(facts), label_offset=offset
    )


Read = Callable[[ModelFacts], Family | None]
FAMILIES: tuple[Recogniser, ...] = (
    Recogniser("Ultralytics", ultralytics),
    Recogniser("YuNet", _yunet),
    Recogniser("YOLOX", _yolox),
    Recogniser("YOLO without metadata", yolo_by_shape),
    Recogniser("NanoDet", _nanodet),
    Recogniser("FastestDet", _one_scale),
    Recogniser("MTCNN", _mtcnn),
    Recogniser("RetinaFace", _retinaface),
    Recogniser("SCRFD", _scrfd),
    Recogniser("UltraFace", _ultraface),
    Recogniser("SSD", _ssd),
    Recogniser("PaddleOCR recognizer", _paddle_recognizer),
    Recogniser("PaddleOCR detector", _paddle_detector),
    Recogniser("super-resolution", _super_resolution),
    Recogniser("TensorFlow", _tensorflow_slim),
    Recogniser("Caffe", _caffe),
    Recogniser("vision transformer", _vision_transformer),
    Recogniser("torchvision, timm", _torch_classifier),
    Recogniser("Keras", _keras),
    Recogniser("unknown", _any),
)


def family_of(facts: ModelFacts) -> tuple[str, Family]:
    """The name and the result of the first recogniser that fits. The last one always does."""
    found = ((each.name, each.recognise(facts)) for each in FAMILIES)
    return next((name, family) for name, family in found if family is not None)
