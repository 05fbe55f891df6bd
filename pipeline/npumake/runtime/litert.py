"""Runs a .tflite in LiteRT with its reference kernels: the same bits on every machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from npumake.errors import GraphError
from npumake.extras import install_line
from npumake.runtime.codes import CodePort

UNRESOLVED = re.compile(r"unresolved custom op: ([^\s]*[^\s.])")
ETHOS_U = "ethos-u"
ETHOS_U_OPERATOR = b"\x07\0\0\0ethos-u\0"  # a flatbuffer's string: its length, then its letters


def is_for_ethos_u(model: bytes) -> bool:
    """Whether Vela moved a part of the .tflite to the NPU."""
    return ETHOS_U_OPERATOR in model


class LiteRtSession:
    """Raises GraphError if LiteRT is not installed or refuses the file. `every` keeps the inner
    tensors."""

    def __init__(self, model: bytes, name: str, every: bool = False) -> None:
        try:
            litert = import_module("ai_edge_litert.interpreter")  # large, and an extra
        except ImportError as error:
            hint = install_line("ai-edge-litert")
            raise GraphError("a .tflite needs LiteRT, which is missing", name, hint) from error
        try:
            self._interpreter = litert.Interpreter(
                model_content=model,
                experimental_op_resolver_type=litert.OpResolverType.BUILTIN_REF,
                experimental_preserve_all_tensors=every,
                num_threads=1,
            )
            _refuse_endless(self._interpreter, name)
            self._interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise _refused(str(error), name) from error
        inputs, outputs = (
            self._interpreter.get_input_details(),
            self._interpreter.get_output_details(),
        )
        self._index = {d["name"]: d["index"] for d in (*inputs, *outputs)}
        self._inputs = {d["name"]: _port(d) for d in inputs}
        self._outputs = {d["name"]: _port(d) for d in outputs}
        self.inputs = tuple(codes.port for codes in self._inputs.values())
        self.outputs = tuple(codes.port for codes in self._outputs.values())
        self.input_names = tuple(self._inputs)
        self.output_names = tuple(self._outputs)

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The named outputs (None: all) for one set of feeds. Raises GraphError."""
        for name, port in self._inputs.items():
            self._interpreter.set_tensor(self._index[name], port.codes(feeds.get(name)))
        try:
            self._interpreter.invoke()
        except (RuntimeError, ValueError) as error:
            raise GraphError(f"LiteRT cannot run the model: {error}") from error
        return [
            self._outputs[name].real(self._interpreter.get_tensor(self._index[name]))
            for name in names or self.output_names
        ]

    def tensors(self, names: Collection[str]) -> dict[str, np.ndarray]:
        """Numeric tensors of the last run, by name; of several with one name the first."""
        return {
            tensor["name"]: self._interpreter.get_tensor(tensor["index"])
            for tensor in reversed(self._interpreter.get_tensor_details())
            if tensor["name"] in names and tensor["dtype"] is not np.object_
        }


def _refuse_endless(interpreter: Any, name: str) -> None:
    """Raises GraphError for a WHILE: nothing can stop LiteRT in an endless loop."""
    if any(operator["op_name"] == "WHILE" for operator in interpreter._get_ops_details()):
        message = "a WHILE may never end, so npumake does not run it"
        raise GraphError(message, name, "write its turns out before it is converted")


def _refused(message: str, name: str) -> GraphError:
    """The error for a file that LiteRT refuses; names an unresolved custom operator."""
    match = UNRESOLVED.search(message)
    if match is None:
        return GraphError(f"LiteRT refuses the model: {message}", name)
    if match[1] == ETHOS_U:
        reason = "it is compiled for an Ethos-U, which alone runs the NPU's commands in it"
        hint = (
            "run the quantized.TARGET.onnx of its build instead, or add the target `tflite`; "
            "npumake perf FILE prints Vela's estimate"
        )
        return GraphError(reason, name, hint)
    return GraphError(f"it has an operator that LiteRT lacks: {match[1]}", name)


def _port(tensor: Mapping[str, Any]) -> CodePort:
    scale, zero_point = tensor["quantization"]
    dtype = np.dtype(tensor["dtype"]).name
    return CodePort(
        tensor["name"], dtype, tuple(tensor["shape"].tolist()), scale or None, zero_point
    )
