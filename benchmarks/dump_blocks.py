"""A small network with the operators that classifiers lack, for dumps: it is built in a second.

LeakyRelu, HardSwish, SiLU, Gelu, a gate, pools with pads, Concat, Resize, Add of two scales, and
Softmax over positions and over classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from faults import SHARED, _picture
from onnx import TensorProto, helper, numpy_helper

from npumake.frontends import read_model
from npumake.graph import Graph, upgraded
from npumake.passes import optimized

BLOCKS = "blocks"
SHAPE = (1, 3, 48, 64)
MEAN = np.array([123.7, 116.3, 103.5]).reshape(3, 1, 1)


@dataclass
class Network:
    """An ONNX graph under construction."""

    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def constant(self, values: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(values, name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def conv(self, x: str, read: int, made: int, kernel: int, **attributes: Any) -> str:
        size = (made, read, kernel, kernel)
        weight = self.rng.normal(0, np.sqrt(2 / (read * kernel * kernel)), size)
        weight *= self.rng.uniform(0.5, 1.5, (made, 1, 1, 1))
        bias = self.rng.normal(0, 0.2, made)
        arrays = (self.constant(each.astype(np.float32)) for each in (weight, bias))
        pads = [kernel // 2] * 4
        return self.add("Conv", x, *arrays, kernel_shape=[kernel, kernel], pads=pads, **attributes)

    def resize(self, x: str, factor: float, mode: str, transform: str) -> str:
        factors = self.constant(np.array([1, 1, factor, factor], np.float32))
        return self.add(
            "Resize", x, "", factors, mode=mode, coordinate_transformation_mode=transform
        )


def blocks() -> Graph:
    net = Network(np.random.default_rng(8))
    stem = net.add("LeakyRelu", net.conv("picture", 3, 16, 3, strides=[2, 2]), alpha=0.1)
    deep = net.add("HardSwish", net.conv(stem, 1, 16, 3, group=16))
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    pooled = net.add("AveragePool", deep, **window)
    gate = net.add("Sigmoid", net.conv(pooled, 16, 16, 1))
    joined = net.add(
        "Concat", net.add("Mul", pooled, gate), net.add("MaxPool", stem, **window), axis=1
    )
    plain = net.conv(joined, 32, 24, 3, strides=[2, 2])
    swish = net.add("Mul", plain, net.add("Sigmoid", plain))
    wide = net.resize(swish, 2.0, "nearest", "asymmetric")
    back = net.add("Relu", net.conv(wide, 24, 16, 3))
    added = net.add("Add", back, stem)
    smooth = net.resize(net.add("Gelu", net.conv(added, 16, 16, 1)), 2.0, "linear", "half_pixel")
    scores = net.add("Softmax", net.conv(smooth, 16, 8, 3, strides=[2, 2]), axis=1)
    flat = net.add("Flatten", net.add("GlobalAveragePool", smooth))
    weight = net.constant(net.rng.normal(0, 0.5, (16, 10)).astype(np.float32))
    classes = net.add("Softmax", net.add("Gemm", flat, weight), axis=1)
    return _graph(net, (scores, classes))


def _graph(net: Network, outputs: tuple[str, ...]) -> Graph:
    made = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    fed = [helper.make_tensor_value_info("picture", TensorProto.FLOAT, SHAPE)]
    graph = helper.make_graph(net.nodes, "blocks", fed, made, net.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return optimized(upgraded(read_model(model.SerializeToString(), "blocks.onnx")).with_shapes())


def pictures(count: int) -> list[dict[str, np.ndarray]]:
    files = sorted((SHARED / "images/coco128").rglob("*.jpg"))[: 5 * count : 5]
    return [
        {"picture": ((_picture(file, SHAPE) - MEAN) / 58.0).astype(np.float32)} for file in files
    ]
