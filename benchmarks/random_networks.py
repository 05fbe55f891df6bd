"""Untrained networks: blocks drawn by a seed, with initial weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from npumake.graph import Graph

SIZE, BLOCKS = 24, 5


class _Net:
    """A network of maps (1, channels, SIZE, SIZE) as it grows."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name + "_y"], name, **attributes))
        return name + "_y"

    def floats(self, *size: int, scale: float) -> str:
        return self.constant((self.rng.normal(size=size) * scale).astype(np.float32))

    def conv(self, x: str, n: int, m: int, kernel: int = 1, group: int = 1) -> str:
        fan = n // group * kernel**2
        weight = self.floats(m, n // group, kernel, kernel, scale=float((2 / fan) ** 0.5))
        bias = self.floats(m, scale=0.1)
        return self.node("Conv", x, weight, bias, group=group, pads=[kernel // 2] * 4)


def _plain(net: _Net, x: str, c: int) -> tuple[str, int]:
    m = int(net.rng.choice([c, 2 * c])) if c < 64 else c
    return net.node("Relu", net.conv(x, c, m, 3)), m


def _separable(net: _Net, x: str, c: int) -> tuple[str, int]:
    lower, upper = (net.constant(np.array(n, np.float32)) for n in (0, 6))
    x = net.node("Clip", net.conv(x, c, c, 3, group=c), lower, upper)
    return net.conv(x, c, c), c


def _residual(net: _Net, x: str, c: int) -> tuple[str, int]:
    y = net.conv(net.node("Relu", net.conv(x, c, c, 3)), c, c, 3)
    return net.node("Relu", net.node("Add", x, y)), c


def _excited(net: _Net, x: str, c: int) -> tuple[str, int]:
    gate = net.node("Relu", net.conv(net.node("GlobalAveragePool", x), c, c // 4))
    return net.node("Mul", x, net.node("Sigmoid", net.conv(gate, c // 4, c))), c


def _joined(net: _Net, x: str, c: int) -> tuple[str, int]:
    parts = [net.node("Relu", net.conv(x, c, c // 2, kernel)) for kernel in (1, 3)]
    return net.node("Concat", *parts, axis=1), c


def _attentive(net: _Net, x: str, c: int) -> tuple[str, int]:
    flat = net.node("Reshape", x, net.constant(np.array([1, c, -1])))
    tokens = net.node("Transpose", flat, perm=[0, 2, 1])
    q, k, v = (net.node("MatMul", tokens, net.floats(c, c, scale=c**-0.5)) for _ in range(3))
    scores = net.node("MatMul", q, net.node("Transpose", k, perm=[0, 2, 1]))
    scaled = net.node("Mul", scores, net.constant(np.array(c**-0.5, np.float32)))
    y = net.node("Add", tokens, net.node("MatMul", net.node("Softmax", scaled, axis=-1), v))
    back = net.node("Transpose", y, perm=[0, 2, 1])
    return net.node("Reshape", back, net.constant(np.array([1, c, SIZE, SIZE]))), c


KINDS: tuple[Callable[[_Net, str, int], tuple[str, int]], ...] = (
    *(_plain, _separable, _residual, _excited, _joined, _attentive),
)


def random_network(seed: int) -> Graph:
    """Of pictures (1, 3, SIZE, SIZE), ten answers."""
    net = _Net(seed)
    x, c = net.node("Relu", net.conv("image", 3, 16, 3)), 16
    for kind in net.rng.choice(len(KINDS), BLOCKS):
        x, c = KINDS[kind](net, x, c)
    flat = net.node("Flatten", net.node("GlobalAveragePool", x))
    y = net.node("Gemm", flat, net.floats(c, 10, scale=c**-0.5), net.floats(10, scale=0.1))
    given = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
    answer = helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(net.nodes, f"random{seed}", [given], [answer], net.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Graph.from_bytes(model.SerializeToString())
