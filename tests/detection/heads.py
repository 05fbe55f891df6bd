"""Heads of detectors as Ultralytics exports them, small and with random weights."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

SIDE, STRIDES, CLASSES, BINS, COEFFICIENTS = 64, (8, 16, 32), 3, 16, 4
SIZES = tuple(SIDE // stride for stride in STRIDES)
BOXES = sum(size * size for size in SIZES)


class Head:
    """Nodes in the making; a tensor is called like its node."""

    def __init__(self, seed: int = 0) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.rng = np.random.default_rng(seed)

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op_type: str, name: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [name], name, **attributes))
        return name

    def conv(self, name: str, x: str, given: int, made: int, size: int = 1, stride: int = 1) -> str:
        weight = self.rng.normal(0, 1 / np.sqrt(given * size**2), (made, given, size, size))
        bias = self.rng.normal(0, 0.5, made).astype(np.float32)
        w = self.constant(f"{name}.w", weight.astype(np.float32))
        b = self.constant(f"{name}.b", bias)
        return self.add(
            "Conv", name, x, w, b, strides=[stride] * 2, pads=[(size - stride + 1) // 2] * 4
        )

    def integers(self, name: str, *values: int) -> str:
        return self.constant(name, np.array(values, np.int64))

    def slice(self, name: str, x: str, start: int, end: int) -> str:
        limits = [self.integers(f"{name}.{key}", value) for key, value in
                  (("start", start), ("end", end), ("axis", 1))]  # fmt: skip
        return self.add("Slice", name, x, *limits)

    def for_any_size(self, anchors: str, map_: str) -> str:
        """The anchors, as many as the map has places: a range to a float, which nobody infers."""
        shape = self.add("Shape", "shape", map_)
        places = self.add("Gather", "places", shape, self.constant("last", np.array(2)))
        real = self.add("Cast", "real", places, to=TensorProto.FLOAT)
        zero, one = (self.constant(f"start{n}", np.array(n, np.float32)) for n in (0, 1))
        numbers = self.add("Range", "numbers", zero, real, one)
        whole = self.add("Cast", "whole", numbers, to=TensorProto.INT64)
        return self.add("Gather", "grid", anchors, whole, axis=2)

    def decoded(self, box: str, bins: int, normalized: bool, any_size: bool) -> str:
        """Boxes of raw ones: the DFL projection, then distances to boxes."""
        if bins > 1:
            shape = self.integers("dfl.shape", 1, 4, bins, BOXES)
            x = self.add("Reshape", "/dfl/Reshape", box, shape)
            x = self.add("Transpose", "/dfl/Transpose", x, perm=[0, 2, 1, 3])
            x = self.add("Softmax", "/dfl/Softmax", x, axis=1)
            w = self.constant("dfl.w", np.arange(bins, dtype=np.float32).reshape(1, bins, 1, 1))
            x = self.add("Conv", "/dfl/conv/Conv", x, w)
            box = self.add("Reshape", "/dfl/Reshape_1", x, self.integers("dfl.out", 1, 4, BOXES))
        centers, strides = anchors()
        if normalized:  # the stride is worked into the distances, and so is the size
            factor = self.constant("factor", strides / SIDE)
            box, centers = self.add("Mul", "/scaled", box, factor), centers * strides / SIDE
        anchor = self.constant("anchors", centers[None])
        anchor = self.for_any_size(anchor, box) if any_size else anchor
        lt, rb = self.slice("/Slice", box, 0, 2), self.slice("/Slice_1", box, 2, 4)
        low, high = self.add("Sub", "/Sub", anchor, lt), self.add("Add", "/Add", anchor, rb)
        total = self.add("Add", "/Add_1", low, high)
        half = self.constant("two", np.array(2, np.float32))
        center = self.add("Div", "/Div_1", total, half)
        size = self.add("Sub", "/Sub_1", high, low)
        joined = self.add("Concat", "/Concat_xywh", center, size, axis=1)
        if normalized:
            return joined
        return self.add("Mul", "/Mul_2", joined, self.constant("strides", strides))

    def proto(self) -> str:
        return self.conv("output1", "p0", 8, COEFFICIENTS)


def anchors() -> tuple[np.ndarray, np.ndarray]:
    """Centers (2, boxes) in cells and strides (1, boxes)."""
    centers = []
    for size in SIZES:
        y, x = np.mgrid[:size, :size] + 0.5
        centers.append(np.stack([x.ravel(), y.ravel()]))
    strides = np.repeat(STRIDES, [size * size for size in SIZES])[None]
    return np.concatenate(centers, 1).astype(np.float32), strides.astype(np.float32)


def head(
    masks: bool = True,
    bins: int = BINS,
    normalized: bool = False,
    any_size: bool = False,
    classes: int = CLASSES,
    points: int = 0,
    **metadata: str,
) -> bytes:
    """A model of one picture: `output0` [1, 4 + classes (+ coefficients), boxes], and `output1`.

    With `points` keypoints, 3 numbers each, in the place of coefficients."""
    made = Head()
    scales, coefficients = [], []
    beside = COEFFICIENTS if masks else 3 * points
    for index, stride in enumerate(STRIDES):
        x = made.conv(f"p{index}", "images", 3, 8, stride, stride)
        x = made.add("Relu", f"r{index}", x)
        box = made.conv(f"/cv2.{index}/Conv", x, 8, 4 * bins)
        score = made.conv(f"/cv3.{index}/Conv", x, 8, classes)
        both = made.add("Concat", f"/Concat_{index}", box, score, axis=1)
        flat = made.integers(f"flat{index}", 1, -1, SIZES[index] ** 2)
        scales.append(made.add("Reshape", f"/Reshape_{index}", both, flat))
        if beside:
            coefficient = made.conv(f"/cv4.{index}/Conv", x, 8, beside)
            coefficients.append(made.add("Reshape", f"/cv4.{index}/Reshape", coefficient, flat))
    joined = made.add("Concat", "/Concat_3", *scales, axis=2)
    box = made.slice("/split_box", joined, 0, 4 * bins)
    score = made.slice("/split_cls", joined, 4 * bins, 4 * bins + classes)
    box = made.decoded(box, bins, normalized, any_size)
    score = made.add("Sigmoid", "/Sigmoid", score)
    parts = [box, score]
    if masks:
        parts.append(made.add("Concat", "/Concat_coefs", *coefficients, axis=2))
        made.proto()
    elif points:
        joined = made.add("Concat", "/Concat_points", *coefficients, axis=2)
        strides = made.constant("point_strides", anchors()[1])
        parts.append(made.add("Mul", "/keypoints", joined, strides))
    made.add("Concat", "output0", *parts, axis=1)
    return _model(made, ["output0", "output1"] if masks else ["output0"], metadata)


def _model(made: Head, outputs: list[str], metadata: dict[str, str]) -> bytes:
    picture = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIDE, SIDE])
    dims = {"output0": [1, None, BOXES], "output1": [1, None, None, None]}
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims[name]) for name in outputs
    ]
    graph = helper.make_graph(made.nodes, "head", [picture], results, made.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, metadata)
    return model.SerializeToString()


def hint(
    masks: bool = True, strides: bool = False, classes: int = CLASSES, points: int = 0
) -> dict[str, Any]:
    ends = [("boxes", 0, 4), ("scores", 4, 4 + classes)]
    if points:
        ends.append(("keypoints", 4 + classes, 4 + classes + 3 * points))
    if masks:
        ends.append(("mask_coefs", 4 + classes, 4 + classes + COEFFICIENTS))
    found: dict[str, Any] = {
        "type": "quantization_split",
        "target": "output0",
        "input_dtype": "uint8",
        "output_dtype": "int8",
        "description": "boxes, scores and masks have ranges of their own",
        "boundaries": [{"name": name, "channels": [start, end]} for name, start, end in ends],
    }
    found["boundaries"][1]["activation"] = "sigmoid"
    return found | ({"strides": list(STRIDES)} if strides else {})


def document(**changes: Any) -> dict[str, Any]:
    """The metadata of a trained model."""
    return {
        "schema_version": 2,
        "decoder_version": "yolov8",
        "dataset": {"name": "shapes", "id": "ds-1", "classes": ["disc", "box", "star"]},
        "input": {"shape": [1, 3, SIDE, SIDE], "cameraadaptor": "rgb"},
        "model": {"task": "segmentation", "end2end": False},
        "nms": "class_agnostic",
        "split_hints": [hint()],
    } | changes


def props(**changes: Any) -> str:
    return json.dumps(document(**changes))
