"""FAMILIES: published families of models, recognized by their graph. The first that fits counts.

Normalizations are those of each project's own demo. A family that its file does not settle lists
several `feeds`; the measurement on the pictures chooses among them.
"""

from __future__ import annotations

from npumake.detection.notes import metadata_of
from npumake.recognition.anchor_free import pairs, queries, strided_maps, suppressed, yolov6
from npumake.recognition.classifiers import (
    caffe,
    keras,
    tensorflow_slim,
    torch_classifier,
    vision_transformer,
)
from npumake.recognition.detectors import (
    mtcnn,
    nanodet,
    one_scale,
    retinaface,
    scrfd,
    ssd_head,
    ultraface,
    yolox,
    yunet,
)
from npumake.recognition.facts import ModelFacts, classes_of
from npumake.recognition.feeds import (
    IMAGENET,
    RAW,
    SIGNED,
    UNIT,
    Colors,
    PictureFeed,
    PixelNormalization,
)
from npumake.recognition.recognized import (
    LETTERBOX,
    STRETCH,
    Family,
    Recognizer,
    Step,
    Task,
    feeds_of,
)
from npumake.recognition.ultralytics import ultralytics, yolo_by_shape

EDGEFIRST_NORMALIZATIONS = {
    "unsigned": UNIT,
    "signed": SIGNED,
    "raw": RAW,
    "imagenet": IMAGENET,
}


def _edgefirst(facts: ModelFacts) -> Family | None:
    """A model with EdgeFirst's metadata, which names classes, colors and normalization."""
    metadata = metadata_of(facts.graph)
    if metadata is None:
        return None
    document = metadata.document
    word = (document.get("validation") or {}).get("normalization", "")
    camera = (document.get("input") or {}).get("cameraadaptor", "rgb")
    norms = EDGEFIRST_NORMALIZATIONS.get(word, UNIT)
    colors: Colors = "bgr" if camera in ("bgr", "bgra") else "rgb"
    is_classifier = metadata.task == "classification"
    return Family(
        f"EdgeFirst metadata: normalization {word or 'not noted'}, {len(metadata.classes)} classes",
        feeds_of(facts, colors, norms),
        "classify" if is_classifier else "detect",
        STRETCH if is_classifier else LETTERBOX,
        metadata.classes,
        doubts=() if word in EDGEFIRST_NORMALIZATIONS else ("the metadata names no normalization",),
        is_declared=True,
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
        feeds_of(facts, "bgr", SIGNED),
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
    swapped = PixelNormalization(IMAGENET.name, IMAGENET.mean[::-1], IMAGENET.scale[::-1])
    return Family(
        "a PaddleOCR text detector: one map of the picture's size, by Paddle's exporter",
        (PictureFeed(swapped, "bgr"),),
        "segment",
        STRETCH,
    )


def _super_resolution(facts: ModelFacts) -> Family | None:
    sizes = facts.sizes[0] if len(facts.sizes) == 1 else ()
    height, width = facts.image.size
    inner = sizes[1:] if len(sizes) == 4 else ()
    is_larger = any(k * height in inner and k * width in inner for k in (2, 3, 4, 8))
    if not is_larger or facts.image.channels not in inner:
        return None
    evidence = "the output is the picture, enlarged"
    return Family(evidence, feeds_of(facts, "rgb", UNIT, RAW), "other", STRETCH)


def _any(facts: ModelFacts) -> Family | None:
    evidence = "no family that npumake knows"
    feeds = feeds_of(facts, "rgb", UNIT, IMAGENET, RAW, SIGNED)
    kind: Task = "classify" if classes_of(facts) else "other"
    return Family(evidence, feeds, kind, STRETCH)


def family_of(facts: ModelFacts) -> tuple[str, Family]:
    """The name and the result of the first recognizer that fits. The last one always does."""
    matches = ((entry.name, entry.recognize(facts)) for entry in FAMILIES)
    return next((name, family) for name, family in matches if family is not None)


FAMILIES: tuple[Recognizer, ...] = (
    Recognizer("EdgeFirst", _edgefirst),
    Recognizer("Ultralytics", ultralytics),
    Recognizer("YuNet", yunet),
    Recognizer("YOLOX", yolox),
    Recognizer("detection transformer", queries),
    Recognizer("YOLO with EfficientNMS", suppressed),
    Recognizer("YOLO by strides", strided_maps),
    Recognizer("YOLO-NAS, PP-YOLOE", pairs),
    Recognizer("YOLO without metadata", yolo_by_shape),
    Recognizer("YOLOv6", yolov6),
    Recognizer("NanoDet", nanodet),
    Recognizer("FastestDet", one_scale),
    Recognizer("MTCNN", mtcnn),
    Recognizer("RetinaFace", retinaface),
    Recognizer("SCRFD", scrfd),
    Recognizer("UltraFace", ultraface),
    Recognizer("SSD", ssd_head),
    Recognizer("PaddleOCR recognizer", _paddle_recognizer),
    Recognizer("PaddleOCR detector", _paddle_detector),
    Recognizer("super-resolution", _super_resolution),
    Recognizer("TensorFlow", tensorflow_slim),
    Recognizer("Caffe", caffe),
    Recognizer("vision transformer", vision_transformer),
    Recognizer("torchvision, timm", torch_classifier),
    Recognizer("Keras", keras),
    Recognizer("unknown", _any),
)
