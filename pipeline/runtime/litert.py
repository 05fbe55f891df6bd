"""A .tflite in LiteRT, with its reference kernels: the same bits on every machine.

It is fed and gives real numbers where the file has codes: real = scale * (code - zero point), each
tensor as it lies in the file, images NHWC. Codes may be fed as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from pipeline.errors import GraphError
from pipeline.kernels import affine


class LiteRtSession:
    """Raises GraphError where LiteRT is not installed, or will not take the file."""

    def __init__(self, model: bytes, name: str) -> None:
        try:
            litert = import_module("ai_edge_litert.interpreter")  # large, and an extra
        except ImportError as error:
            hint = "pip install 'npumake[compilers]'"
            raise GraphError("a .tflite runs in LiteRT, which is not here", name, hint) from error
        try:
            self._interpreter = litert.Interpreter(
                model_content=model,
                experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
                num_threads=1,
            )
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise GraphError(f"LiteRT refuses the model: {error}", name) from error
        self._inputs = {d["name"]: d for d in self._interpreter.get_input_details()}
        self._outputs = {d["name"]: d for d in self._interpreter.get_output_details()}
        self.input_names = tuple(self._inputs)
        self.output_names = tuple(self._outputs)

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The named outputs (all when None) for one set of feeds. Raises GraphError."""
        for name, tensor in self._inputs.items():
            if name not in feeds:
                raise GraphError(f"the input `{name}` is not fed")
            self._interpreter.set_tensor(tensor["index"], _codes(feeds[name], tensor))
        try:
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise GraphError(f"LiteRT cannot run the model: {error}") from error
        return [self._real(self._outputs[name]) for name in names or self.output_names]

    def _real(self, tensor: Mapping[str, Any]) -> np.ndarray:
        values: np.ndarray = self._interpreter.get_tensor(tensor["index"])
        scale, zero_point = tensor["quantization"]
        return affine.dequantize(values, np.float32(scale), zero_point) if scale else values


def _codes(given: np.ndarray, tensor: Mapping[str, Any]) -> np.ndarray:
    """What is fed, on the tensor's grid. Raises GraphError where it does not fit."""
    dtype, shape = np.dtype(tensor["dtype"]), tuple(tensor["shape"].tolist())
    scale, zero_point = tensor["quantization"]
    kinds = (dtype, np.dtype(np.float32)) if scale else (dtype,)
    if given.shape != shape or given.dtype not in kinds:
        raise GraphError(
            f"`{tensor['name']}` is fed {given.dtype}{list(given.shape)}, "
            f"the file takes {' or '.join(map(str, kinds))}{list(shape)}"
        )
    if given.dtype == dtype:
        return given
    limits = np.iinfo(dtype)
    return affine.quantize(given, np.float32(scale), zero_point, limits.min, limits.max).astype(
        dtype
    )
