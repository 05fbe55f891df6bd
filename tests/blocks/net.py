"""A network as it grows: weights by a seed, scaled as those of a trained network.

Weights keep the variance of what they read. Channels have unlike spreads, a few gammas of a norm
are outliers, and a residual branch is small beside its stream, as in trained transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper, shape_inference

from npumake.engine.ort import Feeds

CHANNEL_SPREAD = 0.3  # of the logarithm of channels' standard deviations
OUTLIERS, OUTLIER_GAIN = 3, 8.0
BRANCH = 0.4  # of a residual branch beside its stream
Form = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


@dataclass(frozen=True)
class Block:
    """A model and its samples: the first ones to calibrate on, the rest to judge by.

    `compared` brings outputs into a form whose elements belong together; `compared_int8` does so
    where codes decide another order, by default in the same way.
    """

    model: bytes
    calibration: Sequence[Feeds]
    held_out: Sequence[Feeds]
    compared: Form = field(default=list)
    compared_int8: Form | None = None


class Net:
    def __init__(self, seed: int, opset: int = 17) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.weights: list[TensorProto] = []
        self.inputs: dict[str, tuple[Sequence[int], str]] = {}

    # -- parts --------------------------------------------------------------------------------

    def input(self, name: str, shape: Sequence[int], dtype: str = "float32") -> str:
        self.inputs[name] = (shape, dtype)
        return name

    def constant(self, values: Any, dtype: str = "float32") -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, "int64")

    def node(self, op: str, *inputs: str, **attributes: Any) -> str:
        return self.several(op, inputs, 1, **attributes)[0]

    def several(self, op: str, inputs: Sequence[str], count: int, **attributes: Any) -> list[str]:
        name = f"{op.lower()}_{len(self.nodes)}"
        outputs = [f"{name}_y{index or ''}" for index in range(count)]
        self.nodes.append(helper.make_node(op, inputs, outputs, name, **attributes))
        return outputs

    def weight(self, *shape: int, fan: int, gain: float = 1.0, axis: int = 0) -> str:
        """Normal weights that read `fan` values each; channels along `axis` have their spreads."""
        spread = np.exp(self.rng.normal(0, CHANNEL_SPREAD, shape[axis]))
        sizes = [-1 if at == axis else 1 for at in range(len(shape))]
        return self.constant(self.rng.normal(size=shape) * gain / fan**0.5 * spread.reshape(sizes))

    def bias(self, count: int, scale: float = 0.1) -> str:
        return self.constant(self.rng.normal(0, scale, count))

    # -- layers -------------------------------------------------------------------------------

    def linear(self, x: str, n: int, m: int, gain: float = 1.0) -> str:
        product = self.node("MatMul", x, self.weight(n, m, fan=n, gain=gain, axis=1))
        return self.node("Add", self.bias(m, 0.1 * gain), product)

    def conv(
        self, x: str, n: int, m: int, kernel: int = 1, gain: float = 1.0, **attributes: Any
    ) -> str:
        """Padded to the same size; `attributes` override."""
        group = attributes.get("group", 1)
        weight = self.weight(m, n // group, kernel, kernel, fan=n // group * kernel**2, gain=gain)
        more = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, **attributes}
        return self.node("Conv", x, weight, self.bias(m), **more)

    def batch_norm(self, x: str, count: int) -> str:
        rng = self.rng
        scale, shift = rng.uniform(0.6, 1.4, count), rng.normal(0, 0.3, count)
        mean, variance = rng.normal(0, 0.2, count), rng.uniform(0.6, 1.6, count)
        held = [self.constant(values) for values in (scale, shift, mean, variance)]
        return self.node("BatchNormalization", x, *held, epsilon=1e-5)

    def conv_silu(self, x: str, n: int, m: int, kernel: int = 1, **attributes: Any) -> str:
        """Conv, BatchNormalization and SiLU; the gain is that of SiLU's."""
        y = self.batch_norm(self.conv(x, n, m, kernel, 1.6, **attributes), m)
        return self.swish(y)

    def swish(self, x: str) -> str:
        return self.node("Mul", x, self.node("Sigmoid", x))

    def gamma(self, count: int) -> str:
        values = np.abs(self.rng.normal(1, 0.2, count))
        values[self.rng.choice(count, OUTLIERS, replace=False)] *= OUTLIER_GAIN
        return self.constant(values)

    def norm(self, x: str, count: int) -> str:
        held = self.gamma(count), self.bias(count)
        return self.node("LayerNormalization", x, *held, axis=-1, epsilon=1e-5)

    def rms_norm(self, x: str, count: int) -> str:
        """Spelled as exporters spell it."""
        square = self.node("Pow", x, self.constant(2.0))
        mean = self.node("ReduceMean", square, axes=[-1])
        root = self.node("Sqrt", self.node("Add", mean, self.constant(1e-6)))
        inverse = self.node("Div", self.constant(1.0), root)
        return self.node("Mul", self.gamma(count), self.node("Mul", x, inverse))

    def gelu(self, x: str) -> str:
        """x / 2 (1 + erf(x / √2)), as torch exports it up to opset 19."""
        erf = self.node("Erf", self.node("Div", x, self.constant(np.sqrt(2))))
        product = self.node("Mul", x, self.node("Add", erf, self.constant(1.0)))
        return self.node("Mul", product, self.constant(0.5))

    # -- shapes -------------------------------------------------------------------------------

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.integers(*shape))

    def transpose(self, x: str, *perm: int) -> str:
        return self.node("Transpose", x, perm=perm)

    def slice(self, x: str, start: int, end: int, axis: int) -> str:
        held = [self.integers(value) for value in (start, end, axis)]
        return self.node("Slice", x, *held)

    def scaled(self, x: str, by: float) -> str:
        return self.node("Mul", x, self.constant(by))

    # -- the whole ----------------------------------------------------------------------------

    def model(self, **outputs: str) -> bytes:
        """An ONNX file that gives these tensors under these names."""
        nodes = [*self.nodes]
        nodes += [helper.make_node("Identity", [x], [y], f"to_{y}") for y, x in outputs.items()]
        read = [
            helper.make_tensor_value_info(name, TYPES[dtype], shape)
            for name, (shape, dtype) in self.inputs.items()
        ]
        made = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        graph = helper.make_graph(nodes, "zoo", read, made, self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        inferred = shape_inference.infer_shapes(model, data_prop=True)
        model.graph.ClearField("output")
        model.graph.output.extend(inferred.graph.output)
        return model.SerializeToString()


Drawing = Callable[[np.random.Generator], np.ndarray]


def block(model: bytes, drawings: Mapping[str, Drawing], **more: Any) -> Block:
    """Samples by the drawing of each input: four to calibrate on, two to judge by."""
    rng = np.random.default_rng(11)
    feeds = [{name: drawn(rng) for name, drawn in drawings.items()} for _ in range(6)]
    return Block(model, feeds[:4], feeds[4:], **more)


def picture(*shape: int) -> Drawing:
    """Blots of several sizes, from -1 to 1: an image, or a tone and its overtones."""

    def drawn(rng: np.random.Generator) -> np.ndarray:
        whole = np.zeros(shape)
        for pieces in (4, 8, 32):
            coarse = rng.normal(size=(*shape[:-2], pieces, pieces))
            row, column = (np.arange(size) * pieces // size for size in shape[-2:])
            whole += coarse[..., row[:, None], column]
        return np.tanh(whole / 2).astype(np.float32)

    return drawn


def stream(*shape: int, axis: int = -1) -> Drawing:
    """A residual stream: channels with unlike spreads and means, a few of them outliers."""
    fixed = np.random.default_rng(shape[axis])
    count = shape[axis]
    spread = np.exp(fixed.normal(0, CHANNEL_SPREAD, count))
    spread[fixed.choice(count, OUTLIERS, replace=False)] *= OUTLIER_GAIN
    mean = fixed.normal(0, 0.3, count)
    sizes = [-1 if at == axis % len(shape) else 1 for at in range(len(shape))]

    def drawn(rng: np.random.Generator) -> np.ndarray:
        values = rng.normal(size=shape) * spread.reshape(sizes) + mean.reshape(sizes)
        return values.astype(np.float32)

    return drawn


def maps(*shape: int) -> Drawing:
    """Maps (1, channels, height, width) behind a SiLU: smooth, channels with unlike spreads."""
    smooth = picture(*shape)
    spread = np.exp(np.random.default_rng(shape[1]).normal(0, CHANNEL_SPREAD, (shape[1], 1, 1)))

    def drawn(rng: np.random.Generator) -> np.ndarray:
        values = 2 * smooth(rng) * spread + rng.normal(0, 0.3, shape)
        return (values / (1 + np.exp(-values))).astype(np.float32)

    return drawn
