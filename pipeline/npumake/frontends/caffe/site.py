"""LayerSite: a layer with its input tensors, and the methods to emit nodes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from npumake.errors import GraphError
from npumake.frontends.caffe.layer import CaffeLayer
from npumake.frontends.caffe.weights import TrainedBlobs
from npumake.graph import Building, TensorSpec, Value, shape, type_number

Shape = tuple[int, ...]

# Caffe's limits of a blob.
MAX_COUNT = 2**31 - 1  # numbers
MAX_AXES = 32


class LayerSite:
    """The context of a layer's translation. `file` is the .prototxt."""

    def __init__(
        self,
        building: Building,
        layer: CaffeLayer,
        inputs: tuple[Value, ...],
        weights: TrainedBlobs,
        file: str,
    ) -> None:
        self.layer = layer
        self.tops = len(layer.tops)
        self._building = building
        self._inputs = inputs
        self._weights = weights
        self._file = file

    # -- reading ---------------------------------------------------------------------------

    def error(self, what: str, hint: str = "") -> GraphError:
        return GraphError(f"layer `{self.layer.name}` ({self.layer.type}) {what}", self._file, hint)

    def parameters(self, name: str) -> Any:
        """The message `name`; its defaults if the layer has none."""
        return getattr(self.layer.message, name)

    def bottoms(self, low: int = 1, high: int | None = None) -> tuple[Value, ...]:
        """The input tensors: between `low` and `high` of them, exactly `low` when `high` is
        None."""
        count, high = len(self._inputs), low if high is None else high
        if not low <= count <= high:
            expected = str(low) if low == high else f"{low} to {high}"
            raise self.error(f"reads {count} blobs, expected {expected}")
        return self._inputs

    def bottom(self) -> Value:
        """The only input tensor."""
        return self.bottoms()[0]

    def axis(self, axis: int, rank: int) -> int:
        """`axis` as a non-negative index; a negative one counts from the end."""
        if not -rank <= axis < rank:
            raise self.error(f"has axis {axis}, but its input has {rank} dimensions")
        return axis % rank

    def blobs(self, *shapes: Shape) -> list[np.ndarray]:
        """The trained blobs, checked against these shapes."""
        return self._weights.of(self.layer.name, shapes)

    # -- writing ---------------------------------------------------------------------------

    def constant(self, label: str, values: Any) -> Value:
        """A float32 constant, or an int64 one for integers."""
        array = np.asarray(values)
        kind = np.int64 if np.issubdtype(array.dtype, np.integer) else np.float32
        return self._building.constant(f"{self.layer.name}_{label}", array.astype(kind))

    def numbers(self, label: str, values: Sequence[int]) -> Value:
        """A constant list of integers: a shape, axes, sizes."""
        return self.constant(label, np.asarray(values, np.int64))

    def nodes(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorSpec],
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """One node with several outputs. Raises GraphError for shapes that a blob cannot
        have."""
        for tensor in outputs:
            self.check_count(tensor.shape)
        named = [t._replace(name=f"{self.layer.name}_{t.name}") for t in outputs]
        return self._building.add(op_type, inputs, named, **attributes)

    def node(
        self,
        op_type: str,
        inputs: Sequence[Value | None],
        shape: Shape,
        dtype: str = "float32",
        **attributes: Any,
    ) -> Value:
        tensor = TensorSpec(op_type.lower(), shape, dtype)
        return self.nodes(op_type, inputs, [tensor], **attributes)[0]

    def cast(self, x: Value, dtype: str) -> Value:
        return self.node("Cast", [x], shape(x), dtype, to=type_number(dtype))

    def check_count(self, dims: Shape) -> None:
        if min(dims, default=1) < 1:
            raise self.error(f"gives a blob of shape {list(dims)}: its input is too small")
        if prod(dims) > MAX_COUNT:
            raise self.error(f"gives a blob of shape {list(dims)}: more than Caffe supports")

    # -- shared by many layers ---------------------------------------------------------------------

    def reshaped(self, x: Value, dims: Shape) -> Value:
        """`x` in another shape; `x` itself if it already has it."""
        if shape(x) == dims:
            return x
        return self.node("Reshape", [x, self.numbers("shape", dims)], dims)

    def scaled(self, x: Value, scale: float, shift: float = 0.0) -> Value:
        """scale * x + shift, in as few nodes as possible."""
        if scale != 1.0:
            x = self.node("Mul", [x, self.constant("scale", scale)], shape(x))
        if shift != 0.0:
            x = self.node("Add", [x, self.constant("shift", shift)], shape(x))
        return x
