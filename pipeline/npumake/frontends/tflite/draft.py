"""The graph under construction: every tensor of the file with its value, in one layout or both.

TensorFlow Lite stores images as NHWC, ONNX as NCHW. The interface and layout-independent operators
keep the file's layout. Spatial operators read and return channels-first, with a Transpose where
layouts meet (npumake.passes.cancel_transposes removes pairs).

A quantized tensor becomes a float value behind a Q/DQ pair on the file's grid, directly after its
node. Quantized constants stay codes behind a DQ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from npumake.frontends.tflite.flatbuffer import MalformedError
from npumake.frontends.tflite.schema import TFLiteModel, TFLiteTensor
from npumake.frontends.tflite.tensors import real, turned
from npumake.graph import Building, Graph, Value
from npumake.graph import TensorSpec as Made
from npumake.graph.qdq import DEQUANTIZE, QUANTIZE

TO_NCHW = (0, 3, 1, 2)  # NHWC -> NCHW
TO_NHWC = (0, 2, 3, 1)  # NCHW -> NHWC
CODES = ("int8", "uint8")  # the supported activation types
CONSTANT_CODES = (*CODES, "int32")
RELU, RELU_N1_TO_1, RELU6 = 1, 2, 3  # fused activations; 0 is none
CLIPS = {RELU_N1_TO_1: (-1.0, 1.0), RELU6: (0.0, 6.0)}


class GraphDraft:
    """One translation of a network. `room` bounds the bytes of its constants."""

    def __init__(self, network: TFLiteModel, room: int) -> None:
        if len(set(network.inputs)) < len(network.inputs):
            raise MalformedError("an input is listed twice")
        self._building = Building(
            Made(tensor.name, tensor.shape, "float32" if tensor.grid else tensor.dtype)
            for tensor in network.inputs
        )
        self.room = room
        self.node_names: list[str] = []  # node names, without those that only change the layout
        self._own: dict[TFLiteTensor, Value] = {}
        self._first: dict[TFLiteTensor, Value] = {}
        for tensor, value in zip(network.inputs, self._building.inputs, strict=True):
            self._own[tensor] = self._on_grid(tensor, value)

    # -- reading ---------------------------------------------------------------------------

    def own(self, tensor: TFLiteTensor) -> Value:
        """The tensor in the file's layout."""
        if tensor not in self._own and tensor in self._first:
            value = self._first[tensor]
            name = f"{tensor.name}_nhwc"
            self._own[tensor] = self._added("Transpose", [value], name, perm=TO_NHWC)
        if tensor in self._own:
            return self._own[tensor]
        if tensor.values is None:
            raise MalformedError(f"tensor `{tensor.name}` is read before it is computed")
        return self._own.setdefault(tensor, self._constant(tensor))

    def first(self, tensor: TFLiteTensor) -> Value:
        """The image in channels-first layout."""
        if len(tensor.shape) != 4:
            raise MalformedError("an image operator reads a tensor that is not of rank 4")
        if tensor.values is not None and tensor not in self._own:
            return self._constant(turned(tensor, TO_NCHW))
        if tensor not in self._first:
            name = f"{tensor.name}_nchw"
            self._first[tensor] = self._added("Transpose", [self.own(tensor)], name, perm=TO_NCHW)
        return self._first[tensor]

    def parameter(self, name: str, values: Any, dtype: str) -> Value:
        """A constant that the translation adds: axes, pads, bounds."""
        return self._stored(name, np.array(values, dtype))

    # -- making ----------------------------------------------------------------------------

    def node(
        self, op_type: str, inputs: Sequence[Value | None], name: str, **attributes: Any
    ) -> Value:
        value = self._added(op_type, inputs, name, **attributes)
        self.node_names.append(str(value.producer().name))  # type: ignore[union-attr]
        return value

    def give(self, tensor: TFLiteTensor, value: Value, activation: int = 0) -> None:
        """Defines the tensor as `value`, activated and quantized, in the file's layout."""
        self._refuse_second(tensor)
        self._own[tensor] = self._on_grid(tensor, self._activated(tensor, value, activation))

    def give_first(self, tensor: TFLiteTensor, value: Value, activation: int = 0) -> None:
        """Defines the tensor as `value`, activated and quantized, in channels-first
        layout."""
        self._refuse_second(tensor)
        self._first[tensor] = self._on_grid(tensor, self._activated(tensor, value, activation))

    def give_reshaped(self, tensor: TFLiteTensor, value: Value, activation: int = 0) -> None:
        """Defines the tensor as `value`, activated, quantized and then reshaped."""
        self._refuse_second(tensor)
        flat = self._on_grid(tensor, self._activated(tensor, value, activation))
        self._own[tensor] = self.reshaped(flat, tensor.shape, f"{tensor.name}_reshaped")

    def reshaped(self, value: Value, shape: Sequence[int], name: str) -> Value:
        dims = self.parameter(f"{name}_shape", shape, "int64")
        return self.node("Reshape", [value, dims], name)

    def finished(self, outputs: Sequence[TFLiteTensor]) -> Graph:
        """The graph with these outputs and all shapes. Raises MalformedError if a shape
        contradicts the file, GraphError if shapes do not fit."""
        if len(set(outputs)) < len(outputs):
            raise MalformedError("an output is listed twice")
        whole = self._building.finished({tensor.name: self.own(tensor) for tensor in outputs})
        tensors = {str(value.name): tensor for tensor, value in self._own.items()}
        for name, value in whole.values().items():
            if name in tensors and value.shape is not None:
                _check(tensors[name], tuple(value.shape))
        return whole

    # -- inside ----------------------------------------------------------------------------

    def _added(
        self, op_type: str, inputs: Sequence[Value | None], name: str, **attributes: Any
    ) -> Value:
        (value,) = self._building.add(op_type, inputs, [name], **attributes)
        return value

    def _refuse_second(self, tensor: TFLiteTensor) -> None:
        if tensor in self._own or tensor in self._first or tensor.values is not None:
            raise MalformedError(f"tensor `{tensor.name}` is computed twice")

    def _activated(self, tensor: TFLiteTensor, value: Value, activation: int) -> Value:
        name = f"{tensor.name}_activated"
        if activation in CLIPS:
            bounds = [self.parameter(f"{name}_bound", x, "float32") for x in CLIPS[activation]]
            return self.node("Clip", [value, *bounds], name)
        if activation == RELU:
            return self.node("Relu", [value], name)
        if activation:
            raise MalformedError(f"tensor `{tensor.name}` has the unknown activation {activation}")
        return value

    def _on_grid(self, tensor: TFLiteTensor, value: Value) -> Value:
        """The value behind a Q/DQ pair with the tensor's grid, if it has one."""
        grid = tensor.grid
        if grid is None:
            return value
        if tensor.dtype not in CODES or grid.scale.ndim:
            kind = "per channel" if grid.scale.ndim else tensor.dtype
            message = f"activation `{tensor.name}` is quantized to {kind}"
            raise MalformedError(f"{message}: only 8 bits, with one scale, are supported")
        name = tensor.name
        scale = self._stored(f"{name}_scale", grid.scale)
        zero_point = self._stored(f"{name}_zero_point", grid.zero_point)
        codes = self._added(QUANTIZE, [value, scale, zero_point], f"{name}_quantized")
        return self._added(DEQUANTIZE, [codes, scale, zero_point], f"{name}_dequantized")

    def _constant(self, tensor: TFLiteTensor) -> Value:
        """Codes behind their DQ, half precision as float32, others unchanged."""
        if tensor.dtype == "float16" or (tensor.grid and tensor.dtype not in CONSTANT_CODES):
            tensor = real(tensor)
        assert tensor.values is not None
        stored = self._stored(tensor.name, tensor.values)
        if tensor.grid is None:
            return stored
        parts = (("scale", tensor.grid.scale), ("zero_point", tensor.grid.zero_point))
        grid = [self._stored(f"{tensor.name}_{part}", values) for part, values in parts]
        axis = tensor.grid.axis if tensor.grid.scale.ndim else None
        name = f"{tensor.name}_dequantized"
        return self._added(DEQUANTIZE, [stored, *grid], name, axis=axis)

    def _stored(self, name: str, values: np.ndarray) -> Value:
        self.room -= values.nbytes
        if self.room < 0:
            raise MalformedError("its constants are used too often to expand")
        return self._building.constant(name, values)


def _check(tensor: TFLiteTensor, computed: tuple[object, ...]) -> None:
    if tensor.shape and computed != tensor.shape:
        raise MalformedError(
            f"tensor `{tensor.name}` is declared as {list(tensor.shape)}, "
            f"computed as {list(computed)}"
        )
