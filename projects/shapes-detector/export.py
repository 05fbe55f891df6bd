"""The trained detector as an ONNX graph: static, batch 1, batch normalization folded.

Names are those of an Ultralytics export (`/model.22/dfl/conv/Conv`), so that tools which look for
them find them. With l, t, r, b the distances to the sides, in cells, g a cell's centre, likewise,
and s its width as a share of the image:

    output0 (1, 4 + classes + MASKS, A)  (g + (r - l, b - t) / 2) s,  (l + r, t + b) s,
                                         sigmoid(scores), coefs
    output1 (1, MASKS, SIZE / 4, SIZE / 4)   the prototypes

The metadata is edgefirst's, schema 2: what the outputs mean, and where they may be split.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import torch
from loss import CELL, CENTRES
from network import JOINED, MASKS, REG_MAX, SPPF, C2f, Conv, Detector
from onnx import TensorProto, helper, numpy_helper
from scenes import CLASSES, SIZE
from torch import Tensor, nn

CELLS = len(CENTRES)
HEAD = "/model.22"
Pads = tuple[int, ...]


@dataclass
class Sheet:
    """The graph as it is written: nodes in order, constants by name."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def node(self, op: str, name: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """`name` is the node's, and with `_output_0` that of its first output, which is given."""
        made = [f"{name}_output_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, made, name, **attributes))
        return made[0]

    def constant(self, name: str, values: Any) -> str:
        self.constants[name] = np.asarray(values)
        return name

    def ints(self, name: str, *values: int) -> str:
        return self.constant(name, np.array(values, np.int64))

    # -- layers, named as PyTorch's modules ---------------------------------------------------

    def convolution(self, name: str, x: str, weight: Tensor, bias: Tensor, stride: int = 1) -> str:
        owner = name.strip("/").replace("/", ".")
        constants = [
            self.constant(f"{owner}.weight", weight.numpy()),
            self.constant(f"{owner}.bias", bias.numpy()),
        ]
        size = weight.shape[-1]
        window: dict[str, Any] = {"kernel_shape": [size] * 2, "strides": [stride] * 2}
        window |= {"pads": [size // 2] * 4, "dilations": [1, 1], "group": 1}
        return self.node("Conv", f"{name}/Conv", x, *constants, **window)

    def conv(self, name: str, x: str, layer: Conv) -> str:
        """Convolution and batch normalization as one, then SiLU."""
        bn = layer.bn
        gain = bn.weight / torch.sqrt(bn.running_var + bn.eps)
        weight = layer.conv.weight * gain[:, None, None, None]
        bias = bn.bias - bn.running_mean * gain
        x = self.convolution(f"{name}/conv", x, weight, bias, layer.conv.stride[0])
        gate = self.node("Sigmoid", f"{name}/act/Sigmoid", x)
        return self.node("Mul", f"{name}/act/Mul", x, gate)

    def c2f(self, name: str, x: str, layer: C2f) -> str:
        y = self.conv(f"{name}/cv1", x, layer.cv1)
        half = layer.cv1.conv.out_channels // 2
        sizes = self.ints(f"{name}/halves", half, half)
        left = self.node("Split", f"{name}/Split", y, sizes, outputs=2, axis=1)
        right = left.removesuffix("0") + "1"
        block = layer.m[0]
        z = self.conv(f"{name}/m.0/cv1", right, block.cv1)
        z = self.conv(f"{name}/m.0/cv2", z, block.cv2)
        z = self.node("Add", f"{name}/m.0/Add", right, z) if block.add else z
        joined = self.node("Concat", f"{name}/Concat", left, right, z, axis=1)
        return self.conv(f"{name}/cv2", joined, layer.cv2)

    def sppf(self, name: str, x: str, layer: SPPF) -> str:
        maps = [self.conv(f"{name}/cv1", x, layer.cv1)]
        window: dict[str, Any] = {"kernel_shape": [5, 5], "pads": [2] * 4, "strides": [1, 1]}
        for suffix in ("", "_1", "_2"):
            maps.append(self.node("MaxPool", f"{name}/m/MaxPool{suffix}", maps[-1], **window))
        joined = self.node("Concat", f"{name}/Concat", *maps, axis=1)
        return self.conv(f"{name}/cv2", joined, layer.cv2)

    def upsampled(self, name: str, x: str) -> str:
        scales = self.constant("twice", np.array([1, 1, 2, 2], np.float32))
        how = {"mode": "nearest", "nearest_mode": "floor"}
        asymmetric = "asymmetric"
        return self.node(
            "Resize",
            f"{name}/Resize",
            x,
            "",
            scales,
            coordinate_transformation_mode=asymmetric,
            **how,
        )

    def branch(self, name: str, x: str, layers: nn.Sequential) -> str:
        """Two Conv and a plain convolution: `cv2.0` holds `cv2.0.0`, `cv2.0.1` and `cv2.0.2`."""
        inner = name.rsplit("/", 1)[1]
        for number in (0, 1):
            x = self.conv(f"{name}/{inner}.{number}", x, layers[number])
        return self.convolution(f"{name}/{inner}.2", x, layers[2].weight, layers[2].bias)


@torch.no_grad()
def as_onnx(model: Detector) -> onnx.ModelProto:
    """`Detector.forward` for one image, and the decoding behind it."""
    sheet, made = Sheet(), ["images"]
    for number, layer in enumerate(model.model[:-1]):
        name, x = f"/model.{number}", made[-1]
        if number in JOINED:
            made.append(sheet.node("Concat", f"{name}/Concat", x, made[JOINED[number] + 1], axis=1))
        elif isinstance(layer, nn.Upsample):
            made.append(sheet.upsampled(name, x))
        else:
            made.append(LAYERS[type(layer)](sheet, name, x, layer))
    segment(sheet, [made[16], made[19], made[22]], model.model[-1])

    shapes = {"output0": [1, 4 + len(CLASSES) + MASKS, CELLS]}
    shapes |= {"output1": [1, MASKS, SIZE // 4, SIZE // 4]}
    graph = helper.make_graph(
        sheet.nodes,
        "shapes-detector",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in shapes.items()],
        [numpy_helper.from_array(values, name) for name, values in sheet.constants.items()],
    )
    made_by = "EdgeFirst Ultralytics"
    opset = [helper.make_opsetid("", 13)]
    proto = helper.make_model(graph, ir_version=8, opset_imports=opset, producer_name=made_by)
    helper.set_model_props(proto, {k: json.dumps(v) for k, v in metadata().items()})
    return proto


LAYERS = {Conv: Sheet.conv, C2f: Sheet.c2f, SPPF: Sheet.sppf}


def segment(sheet: Sheet, maps: list[str], head: nn.Module) -> None:
    """The head: prototypes, coefficients, and what `decoded` makes of boxes and scores."""
    proto = head.proto
    x = sheet.conv(f"{HEAD}/proto/cv1", maps[0], proto.cv1)
    weight = sheet.constant("model.22.proto.upsample.weight", proto.upsample.weight.numpy())
    bias = sheet.constant("model.22.proto.upsample.bias", proto.upsample.bias.numpy())
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    x = sheet.node(
        "ConvTranspose", f"{HEAD}/proto/upsample/ConvTranspose", x, weight, bias, **window
    )
    x = sheet.conv(f"{HEAD}/proto/cv2", x, proto.cv2)
    sheet.conv(f"{HEAD}/proto/cv3", x, proto.cv3)
    sheet.nodes[-1].output[0] = "output1"

    coefs = [sheet.branch(f"{HEAD}/cv4.{n}", x, head.cv4[n]) for n, x in enumerate(maps)]
    coefs = [reshaped(sheet, n, x, MASKS) for n, x in enumerate(coefs)]
    coef = sheet.node("Concat", f"{HEAD}/Concat", *coefs, axis=2)

    outputs = 4 * REG_MAX + len(CLASSES)
    cells = []
    for n, x in enumerate(maps):
        pair = [sheet.branch(f"{HEAD}/{b}.{n}", x, getattr(head, b)[n]) for b in ("cv2", "cv3")]
        joined = sheet.node("Concat", f"{HEAD}/Concat_{n + 1}", *pair, axis=1)
        cells.append(reshaped(sheet, n + 3, joined, outputs))
    joined = sheet.node("Concat", f"{HEAD}/Concat_4", *cells, axis=2)
    rows = sheet.ints(f"{HEAD}/boxes_scores", 4 * REG_MAX, len(CLASSES))
    bins = sheet.node("Split", f"{HEAD}/Split", joined, rows, outputs=2, axis=1)
    boxes = decoded(sheet, bins)
    scores = sheet.node("Sigmoid", f"{HEAD}/Sigmoid", bins.removesuffix("0") + "1")
    both = sheet.node("Concat", f"{HEAD}/Concat_6", boxes, scores, axis=1)
    sheet.node("Concat", f"{HEAD}/Concat_7", both, coef, axis=1)
    sheet.nodes[-1].output[0] = "output0"


def reshaped(sheet: Sheet, number: int, x: str, channels: int) -> str:
    """(1, channels, H, W) → (1, channels, H * W)"""
    name = f"{HEAD}/Reshape_{number}" if number else f"{HEAD}/Reshape"
    return sheet.node("Reshape", name, x, sheet.ints(f"{name}/shape", 1, channels, -1))


def decoded(sheet: Sheet, bins: str) -> str:
    """(1, 4 * REG_MAX, A) → (1, 4, A): centre and size, as shares of the image."""
    dfl = f"{HEAD}/dfl"
    shape = sheet.ints(f"{dfl}/shape", 1, 4, REG_MAX, CELLS)
    x = sheet.node("Reshape", f"{dfl}/Reshape", bins, shape)
    x = sheet.node("Transpose", f"{dfl}/Transpose", x, perm=[0, 2, 1, 3])
    x = sheet.node("Softmax", f"{dfl}/Softmax", x, axis=1)
    weight = np.arange(REG_MAX, dtype=np.float32).reshape(1, REG_MAX, 1, 1)
    weights = sheet.constant("model.22.dfl.conv.weight", weight)
    x = sheet.node("Conv", f"{dfl}/conv/Conv", x, weights, kernel_shape=[1, 1])
    x = sheet.node("Reshape", f"{dfl}/Reshape_1", x, sheet.ints(f"{dfl}/shape_1", 1, 4, CELLS))

    ends = [sheet.ints(f"{HEAD}/{n}", n) for n in (0, 2, 4, 1)]
    lt = sheet.node("Slice", f"{HEAD}/Slice", x, ends[0], ends[1], ends[3])
    rb = sheet.node("Slice", f"{HEAD}/Slice_1", x, ends[1], ends[2], ends[3])
    centres = sheet.constant(f"{HEAD}/anchors", (CENTRES / CELL).T[None].numpy())
    x1y1 = sheet.node("Sub", f"{HEAD}/Sub", centres, lt)
    x2y2 = sheet.node("Add", f"{HEAD}/Add_1", centres, rb)
    both = sheet.node("Add", f"{HEAD}/Add_2", x1y1, x2y2)
    two = sheet.constant(f"{HEAD}/two", np.float32(2))
    centre = sheet.node("Div", f"{HEAD}/Div_1", both, two)
    size = sheet.node("Sub", f"{HEAD}/Sub_1", x2y2, x1y1)
    box = sheet.node("Concat", f"{HEAD}/Concat_5", centre, size, axis=1)
    shares = sheet.constant(f"{HEAD}/strides", (CELL / SIZE).T[None].numpy())
    return sheet.node("Mul", f"{HEAD}/Mul_2", box, shares)


def metadata() -> dict[str, Any]:
    """The entries of metadata_props: `edgefirst` as an Ultralytics training session writes it."""
    scores, coefs = 4 + len(CLASSES), 4 + len(CLASSES) + MASKS
    hint = {
        "type": "quantization_split",
        "target": "output0",
        "input_dtype": "uint8",
        "output_dtype": "int8",
        "description": "boxes, scores and mask coefficients have ranges of their own",
        "boundaries": [
            {"name": "boxes", "channels": [0, 4]},
            {"name": "scores", "channels": [4, scores], "activation": "sigmoid"},
            {"name": "mask_coefs", "channels": [scores, coefs]},
        ],
    }
    name = "shapes-detector"
    edgefirst = {
        "schema_version": 2,
        "name": name,
        "description": "shapes on painted scenes, with masks",
        "dataset": {"name": "painted scenes", "classes": list(CLASSES)},
        "input": {"shape": [1, 3, SIZE, SIZE], "cameraadaptor": "rgb"},
        "model": {"name": name, "task": "segmentation", "detection": True, "segmentation": True},
        "decoder_version": "yolov8",
        "nms": "class_aware",
        "validation": {"iou": 0.7, "score": 0.001, "normalization": "unsigned"},
        "split_hints": [hint],
    }
    return {"edgefirst": edgefirst, "labels": list(CLASSES)}
