"""FAMILIES: each published head is recognized by its shapes, and by nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from npumake.detection.metadata import read_metadata
from npumake.digest import canonical
from npumake.project.reader import built
from npumake.project.sections import Files
from npumake.recognition.families import FAMILIES, family_of
from recognized_models import Shape, facts

SQUARE, PORTRAIT = (1, 3, 320, 320), (1, 3, 224, 224)
YUNET = {
    f"{kind}_{stride}": (1, (320 // stride) ** 2, width)
    for kind, width in (("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10))
    for stride in (8, 16, 32)
}
SCRFD = {
    f"{kind}{stride}": (2 * (320 // stride) ** 2, width)
    for kind, width in (("score", 1), ("bbox", 4), ("kps", 10))
    for stride in (8, 16, 32)
}
STRIDES = (8, 16, 32)
BINS = {f"o{s}_{c}": (1, c, 320 // s, 320 // s) for s in STRIDES for c in (64, 80, 1)}
# Public exports of maps for each stride: rknn_model_zoo, rdk_model_zoo, raw heads of v3 to v7.
MAPS: dict[str, dict[str, Shape]] = {
    "rknn": BINS,
    "rknn, masks": {**BINS, "proto": (1, 32, 80, 80)},
    "NHWC": {f"o{s}_{c}": (1, 320 // s, 320 // s, c) for s in STRIDES for c in (80, 64)},
    "v3": {f"o{s}": (1, 255, 320 // s, 320 // s) for s in STRIDES},
    "v5": {f"o{s}": (1, 3, 320 // s, 320 // s, 85) for s in STRIDES},
}
# Outputs that resemble one of these heads, and whose they are.
RESEMBLING: dict[str, tuple[dict[str, Shape], str]] = {
    "two maps of a pyramid": ({"a": (1, 64, 40, 40), "b": (1, 64, 20, 20)}, "unknown"),
    "features of three strides": (
        {f"o{s}": (1, 256, 320 // s, 320 // s) for s in STRIDES},
        "unknown",
    ),
    "PP-YOLOE, which is no YOLOv8": (
        {"boxes": (1, 2100, 4), "scores": (1, 80, 2100)},
        "YOLO-NAS, PP-YOLOE",
    ),
    "NanoDet of three strides": ({"y": (1, 2100, 112)}, "NanoDet"),
    "RT-DETR": ({"labels": (1, 9), "boxes": (1, 9, 4), "scores": (1, 9)}, "detection transformer"),
}
# name: picture, outputs, operators, file, colours, normalization
HEADS: dict[str, tuple[Shape, dict[str, Shape], tuple[str, ...], str, str, str]] = {
    "YuNet": (SQUARE, YUNET, (), "m.onnx", "bgr", "0..255"),
    "YOLOX": (SQUARE, {"y": (1, 2100, 85)}, ("Slice",), "m.onnx", "bgr", "0..255"),
    "YOLO without metadata": (SQUARE, {"y": (1, 84, 2100)}, (), "m.onnx", "rgb", "0..1"),
    "NanoDet": (SQUARE, {"y": (1, 2125, 112)}, (), "m.onnx", "bgr", "ImageNet mean and std"),
    "detection transformer": (
        SQUARE,
        {"logits": (1, 100, 92), "pred_boxes": (1, 100, 4)},
        (),
        "m.onnx",
        "rgb",
        "ImageNet mean and std",
    ),
    "YOLO with EfficientNMS": (
        SQUARE,
        {
            "num_dets": (1, 1),
            "det_boxes": (1, 9, 4),
            "det_scores": (1, 9),
            "det_classes": (1, 9),
        },
        (),
        "m.onnx",
        "rgb",
        "0..1",
    ),
    "YOLO by strides": (SQUARE, BINS, (), "m.onnx", "rgb", "0..1"),
    "YOLO-NAS, PP-YOLOE": (
        SQUARE,
        {"boxes": (1, 2100, 4), "scores": (1, 2100, 80)},
        (),
        "m.onnx",
        "rgb",
        "0..1",
    ),
    "YOLOv6": (SQUARE, {"outputs": (1, 2100, 85)}, (), "m.onnx", "rgb", "0..1"),
    "FastestDet": (SQUARE, {"y": (1, 85, 20, 20)}, (), "m.onnx", "bgr", "0..1"),
    "MTCNN": (
        (1, 3, 48, 48),
        {"prob1": (1, 2), "conv6-2": (1, 4), "conv6-3": (1, 10)},
        ("PRelu",),
        "m.onnx",
        "rgb",
        "(x - 127.5) / 128",
    ),
    "RetinaFace": (
        SQUARE,
        {"loc": (1, 4200, 4), "conf": (1, 4200, 2), "landms": (1, 4200, 10)},
        (),
        "m.onnx",
        "bgr",
        "minus (104, 117, 123)",
    ),
    "SCRFD": (SQUARE, SCRFD, (), "m.onnx", "rgb", "(x - 127.5) / 128"),
    "UltraFace": (
        (1, 3, 240, 320),
        {"scores": (1, 4420, 2), "boxes": (1, 4420, 4)},
        (),
        "m.onnx",
        "rgb",
        "(x - 127) / 128",
    ),
    "SSD": (
        (1, 300, 300, 3),
        {"boxes": (1, 1917, 4), "scores": (1, 1917, 91)},
        (),
        "m.tflite",
        "rgb",
        "-1..1",
    ),
    "PaddleOCR recognizer": ((1, 3, 48, 320), {"y": (1, 40, 97)}, (), "m.onnx", "bgr", "-1..1"),
    "super-resolution": ((1, 1, 64, 64), {"y": (1, 1, 128, 128)}, (), "m.onnx", "gray", "0..1"),
    "vision transformer": (
        PORTRAIT,
        {"y": (1, 1000)},
        ("LayerNormalization",),
        "m.onnx",
        "rgb",
        "ImageNet mean and std",
    ),
    "torchvision, timm": (
        PORTRAIT,
        {"y": (1, 1000)},
        (),
        "m.onnx",
        "rgb",
        "ImageNet mean and std",
    ),
    "Keras": ((1, 96, 96, 3), {"y": (1, 10)}, (), "m.tflite", "rgb", "0..1"),
    "Caffe": (PORTRAIT, {"y": (1, 1000)}, (), "m.prototxt", "bgr", "ImageNet mean, 0..255"),
    "unknown": ((1, 3, 64, 64), {"y": (1, 7, 9, 5)}, (), "m.onnx", "rgb", "0..1"),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_head_is_recognized_with_its_usual_feed(name: str) -> None:
    picture, outputs, operators, file, colors, normalization = HEADS[name]
    plain = {key.replace("-", "_"): shape for key, shape in outputs.items()}
    given = facts(picture, plain, operators=operators, file=file)
    given = replace(given, outputs=outputs)  # names that the text of a graph cannot hold
    found, family = family_of(given)
    assert (found, family.feeds[0].colors) == (name, colors)
    assert family.feeds[0].normalization.name == normalization


def test_every_recognizer_has_a_model_that_only_it_fits() -> None:
    others = {"EdgeFirst", "Ultralytics", "PaddleOCR detector", "TensorFlow"}  # by notes and names
    assert {each.name for each in FAMILIES} == set(HEADS) | others


@pytest.mark.parametrize("name", HEADS)
def test_what_a_family_proposes_reads_back(name: str) -> None:
    """Transforms are those of `data`, and the metadata is valid."""
    picture, outputs, operators, file, _, _ = HEADS[name]
    plain = {key.replace("-", "_"): shape for key, shape in outputs.items()}
    _, family = family_of(facts(picture, plain, operators=operators, file=file))
    steps = [step.document for step in family.resize]
    section = built(Files, {"files": ".", "transforms": steps})
    assert len(section.transforms) == len(family.resize) > 0
    if family.metadata is not None:
        assert read_metadata(canonical(family.metadata), "edgefirst.json").input_shape == picture


@pytest.mark.parametrize("outputs", MAPS.values(), ids=MAPS)
def test_maps_of_each_stride_are_a_yolo_that_nothing_here_decodes(
    outputs: dict[str, Shape],
) -> None:
    name, family = family_of(facts(SQUARE, outputs))
    assert (name, family.feeds[0].words, family.task) == ("YOLO by strides", "rgb, 0..1", "detect")
    assert "boxes are not drawn" in family.doubts[0]


@pytest.mark.parametrize(("outputs", "whose"), RESEMBLING.values(), ids=RESEMBLING)
def test_what_resembles_a_head_is_told_from_it(outputs: dict[str, Shape], whose: str) -> None:
    name, _ = family_of(facts(SQUARE, outputs))
    assert name == whose
