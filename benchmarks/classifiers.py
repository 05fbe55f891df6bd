"""Classifiers of the literature as untrained graphs, for cost models.

    classifier("resnet18")     224 x 224, 1000 classes, batch normalization folded into the Conv

Only shapes matter here: all weights are one small number. Sources: He et al. 2016, table 1;
Howard et al. 2017, table 1; Sandler et al. 2018, table 2; Szegedy et al. 2015, table 1; Chen et
al. 2023 (FasterNet), table 9; Chen et al. 2022 (RepGhost), table 7, as deployed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from npumake.graph import Graph

SIDE, CLASSES = 224, 1000


class Net:
    """A network as it grows; `channels` of each map by its name."""

    def __init__(self) -> None:
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.channels = {"data": 3}

    def node(self, op: str, *inputs: str, channels: int = 0, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name + "_y"], name, **attributes))
        self.channels[name + "_y"] = channels or self.channels[inputs[0]]
        return name + "_y"

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def conv(
        self, x: str, m: int, kernel: int = 1, stride: int = 1, group: int = 1, act: str = "Relu"
    ) -> str:
        n = self.channels[x] // group
        weight = np.full((m, n, kernel, kernel), 1.0 / (n * kernel**2), np.float32)
        inputs = (x, self.constant(weight), self.constant(np.zeros(m, np.float32)))
        pads, strides = [(kernel - 1) // 2] * 4, [stride] * 2
        if kernel == stride:
            pads = [0] * 4
        y = self.node("Conv", *inputs, channels=m, group=group, pads=pads, strides=strides)
        return self.relu6(y) if act == "Relu6" else self.node(act, y) if act else y

    def relu6(self, x: str) -> str:
        low, high = (self.constant(np.array(n, np.float32)) for n in (0, 6))
        return self.node("Clip", x, low, high)

    def depthwise(self, x: str, kernel: int, stride: int = 1, act: str = "Relu") -> str:
        return self.conv(x, self.channels[x], kernel, stride, self.channels[x], act)

    def pool(self, x: str, kernel: int, stride: int) -> str:
        pads = [(kernel - 1) // 2] * 4
        return self.node("MaxPool", x, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads)

    def head(self, x: str) -> str:
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        weight = np.full((CLASSES, self.channels[x]), 1.0 / self.channels[x], np.float32)
        bias = self.constant(np.zeros(CLASSES, np.float32))
        return self.node("Gemm", flat, self.constant(weight), bias, transB=1)


def _resnet18(net: Net) -> str:
    x = net.pool(net.conv("data", 64, 7, 2), 3, 2)
    for m, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            y = net.conv(net.conv(x, m, 3, stride), m, 3, act="")
            if stride == 2:
                x = net.conv(x, m, 1, 2, act="")
            x = net.node("Relu", net.node("Add", y, x))
    return net.head(x)


def _mobilenetv1(net: Net) -> str:
    x = net.conv("data", 32, 3, 2)
    blocks = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5)
    for m, stride in (*blocks, (1024, 2), (1024, 1)):
        x = net.conv(net.depthwise(x, 3, stride), m)
    return net.head(x)


def _mobilenetv2(net: Net) -> str:
    x = net.conv("data", 32, 3, 2, act="Relu6")
    rows = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1))
    for t, m, n, first in (*rows, (6, 160, 3, 2), (6, 320, 1, 1)):
        for stride in (first, *[1] * (n - 1)):
            y = x if t == 1 else net.conv(x, t * net.channels[x], act="Relu6")
            y = net.conv(net.depthwise(y, 3, stride, "Relu6"), m, act="")
            x = net.node("Add", y, x) if stride == 1 and net.channels[x] == m else y
    return net.head(net.conv(x, 1280, act="Relu6"))


def _inception(net: Net, x: str, a: int, b: tuple[int, int], c: tuple[int, int], d: int) -> str:
    parts = [net.conv(x, a), net.conv(net.conv(x, b[0]), b[1], 3)]
    parts += [net.conv(net.conv(x, c[0]), c[1], 3), net.conv(net.pool(x, 3, 1), d)]
    return net.node("Concat", *parts, axis=1, channels=a + b[1] + c[1] + d)


def _googlenet(net: Net) -> str:
    x = net.pool(net.conv("data", 64, 7, 2), 3, 2)
    x = net.pool(net.conv(net.conv(x, 64), 192, 3), 3, 2)
    x = _inception(net, x, 64, (96, 128), (16, 32), 32)
    x = net.pool(_inception(net, x, 128, (128, 192), (32, 96), 64), 3, 2)
    x = _inception(net, x, 192, (96, 208), (16, 48), 64)
    x = _inception(net, x, 160, (112, 224), (24, 64), 64)
    x = _inception(net, x, 128, (128, 256), (24, 64), 64)
    x = _inception(net, x, 112, (144, 288), (32, 64), 64)
    x = net.pool(_inception(net, x, 256, (160, 320), (32, 128), 128), 3, 2)
    x = _inception(net, x, 256, (160, 320), (32, 128), 128)
    return net.head(_inception(net, x, 384, (192, 384), (48, 128), 128))


def _fasternet_t0(net: Net) -> str:
    x = net.conv("data", 40, 4, 4, act="")
    for stage, n in enumerate((1, 2, 8, 2)):
        if stage:
            x = net.conv(x, 2 * net.channels[x], 2, 2, act="")
        for _ in range(n):
            m = net.channels[x]
            sizes = net.constant(np.array([m // 4, m - m // 4]))
            part = net.node("Split", x, sizes, axis=1, channels=m // 4)
            rest = _second_output(net, m - m // 4)
            mixed = net.node("Concat", net.conv(part, m // 4, 3, act=""), rest, axis=1, channels=m)
            wide = net.conv(mixed, 2 * m, act="")
            x = net.node("Add", net.conv(_gelu(net, wide), m, act=""), x)
    x = net.node("GlobalAveragePool", x)
    return net.head(_gelu(net, net.conv(x, 1280, act="")))


def _second_output(net: Net, channels: int) -> str:
    """Of the last node, which has one so far."""
    name = net.nodes[-1].name + "_z"
    net.nodes[-1].output.append(name)
    net.channels[name] = channels
    return name


def _gelu(net: Net, x: str) -> str:
    """One table of the unit, whatever the function; a Tanh costs what a Gelu does."""
    return net.node("Tanh", x)


def _excited(net: Net, x: str) -> str:
    few = net.conv(net.node("GlobalAveragePool", x), max(8, net.channels[x] // 4 // 4 * 4))
    gate = net.node("HardSigmoid", net.conv(few, net.channels[x], act=""), alpha=1 / 6, beta=0.5)
    return net.node("Mul", x, gate)


REPGHOST = (
    *((3, 8, 16, 0, 1), (3, 24, 24, 0, 2), (3, 36, 24, 0, 1), (5, 36, 40, 1, 2), (5, 60, 40, 1, 1)),
    *((3, 120, 80, 0, 2), (3, 100, 80, 0, 1), (3, 120, 80, 0, 1), (3, 120, 80, 0, 1)),
    *((3, 240, 112, 1, 1), (3, 336, 112, 1, 1), (5, 336, 160, 1, 2), (5, 480, 160, 0, 1)),
    *((5, 480, 160, 1, 1), (5, 480, 160, 0, 1), (5, 480, 160, 1, 1)),
)


def _repghostnet_100(net: Net) -> str:
    x = net.conv("data", 16, 3, 2)
    for kernel, mid, m, squeezed, stride in REPGHOST:
        y = net.depthwise(net.conv(x, mid), 3)
        if stride == 2:
            y = net.depthwise(y, kernel, 2, "")
        if squeezed:
            y = _excited(net, y)
        y = net.depthwise(net.conv(y, m, act=""), 3, act="")
        if stride == 2 or net.channels[x] != m:
            x = net.conv(net.depthwise(x, kernel, stride, ""), m, act="")
        x = net.node("Add", y, x)
    x = net.node("GlobalAveragePool", net.conv(x, 960))
    return net.head(net.conv(x, 1280))


CLASSIFIERS: Mapping[str, Callable[[Net], str]] = {
    "resnet18": _resnet18,
    "mobilenetv1": _mobilenetv1,
    "mobilenetv2": _mobilenetv2,
    "googlenet": _googlenet,
    "fasternet_t0": _fasternet_t0,
    "repghostnet_100": _repghostnet_100,
}


def classifier(name: str) -> Graph:
    net = Net()
    last = CLASSIFIERS[name](net)
    known = [
        helper.make_tensor_value_info(value, TensorProto.FLOAT, size)
        for value, size in (("data", [1, 3, SIDE, SIDE]), (last, [1, CLASSES]))
    ]
    graph = helper.make_graph(net.nodes, name, known[:1], known[1:], net.weights)
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return Graph.from_bytes(model.SerializeToString())
