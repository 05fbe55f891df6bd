"""A MobileNetV2 1.0 that nobody trained: the sizes of the real one, weights by a seed.

Each Conv is scaled as its batch normalization would be: over smoothed noise its channels have
spreads and means like those of a trained model, a few of them far apart. Figures of time follow
sizes, so they stand for the real model; figures of accuracy do not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from npumake.engine.ort import OrtSession

SIZE, PICTURES, CLASSES = 224, 2, 1000
# Expansion, channels, blocks and stride: M. Sandler et al., arXiv 1801.04381, table 2.
STAGES = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)
SPREAD = 0.4  # of the logarithm of channels' standard deviations


class Map(NamedTuple):
    """A tensor by name, and its values for some pictures."""

    name: str
    values: np.ndarray


class _Net:
    """A network as it grows, computed node by node."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, np.float32)
        return name

    def node(self, op: str, maps: tuple[Map, ...], *constants: str, **attributes: Any) -> Map:
        name = f"{op.lower()}{len(self.nodes)}"
        read = [*(x.name for x in maps), *constants]
        node = helper.make_node(op, read, [f"{name}_y"], name, **attributes)
        self.nodes.append(node)
        feeds = {x.name: x.values for x in maps} | {c: self.constants[c] for c in constants}
        model = _model([node], _ports(feeds), [f"{name}_y"], {})
        return Map(f"{name}_y", OrtSession(model).run(None, feeds)[0])

    def conv(self, x: Map, channels: int, kernel: int = 1, stride: int = 1, group: int = 1) -> Map:
        before = x.values.shape[1] // group
        weight = self.rng.normal(size=(channels, before, kernel, kernel))
        more = {"group": group, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        plain = self.node("Conv", (x,), self.constant(weight), **more)
        self.nodes.pop()
        spread = np.exp(self.rng.normal(0, SPREAD, channels))
        gain = spread / np.maximum(plain.values.std(axis=(0, 2, 3)), 1e-3)
        bias = self.rng.normal(0.3, 0.6, channels) - gain * plain.values.mean(axis=(0, 2, 3))
        scaled = self.constant(weight * gain[:, None, None, None])
        return self.node("Conv", (x,), scaled, self.constant(bias), **more)

    def clamped(self, x: Map) -> Map:
        return self.node("Clip", (x,), self.constant(np.array(0)), self.constant(np.array(6)))


def mobilenet_v2(seed: int = 0) -> bytes:
    """An ONNX model of pictures (1, 3, SIZE, SIZE) from -1 to 1, CLASSES scores."""
    net = _Net(seed)
    x = net.clamped(net.conv(_noise(net.rng), 32, 3, 2))
    for expansion, channels, blocks, stride in STAGES:
        for number in range(blocks):
            x = _block(net, x, expansion, channels, 1 if number else stride)
    x = net.node("GlobalAveragePool", (net.clamped(net.conv(x, 1280)),))
    x = net.node("Flatten", (x,))
    weight = net.rng.normal(0, 1280**-0.5, (1280, CLASSES))
    y = net.node("Gemm", (x,), net.constant(weight), net.constant(np.zeros(CLASSES)))
    read = {name for node in net.nodes for name in node.input}
    constants = {name: array for name, array in net.constants.items() if name in read}
    return _model(net.nodes, {"image": (1, 3, SIZE, SIZE)}, [y.name], constants)


def _block(net: _Net, x: Map, expansion: int, channels: int, stride: int) -> Map:
    before = x.values.shape[1]
    y = net.clamped(net.conv(x, expansion * before)) if expansion > 1 else x
    inner = y.values.shape[1]
    y = net.conv(net.clamped(net.conv(y, inner, 3, stride, inner)), channels)
    return net.node("Add", (x, y)) if stride == 1 and channels == before else y


def _noise(rng: np.random.Generator) -> Map:
    """Pictures of blots of several sizes."""
    sizes = (4, 14, 56, 224)
    layers = [rng.normal(size=(PICTURES, 3, side, side)) for side in sizes]
    whole = [np.kron(x, np.ones((SIZE // x.shape[2],) * 2)) for x in layers]
    return Map("image", np.tanh(np.sum(whole, 0) / 2).astype(np.float32))


def _ports(feeds: dict[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in feeds.items()}


def _model(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, ...]],
    outputs: list[str],
    constants: dict[str, np.ndarray],
) -> bytes:
    read = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    weights = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "seeded", read, made, weights)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
