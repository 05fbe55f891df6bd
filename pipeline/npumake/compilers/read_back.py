"""Reads tensor types, scales and zero points back from a compiled file.

.tflite          every tensor with a name of the plan; after Vela those that Vela keeps
.vmfb            inputs and outputs, by the declaration in the code; their grids from beside it
.onnx            every tensor that onnxruntime keeps, by its own type inference
OpenVINO         the levels of every FakeQuantize, 256 or 65536
qnn, rknn, torq  closed formats that cannot be read
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping

import numpy as np

from npumake.compilers.process import run_python
from npumake.compilers.widths import FileGrid, Grids, Types
from npumake.engine.ort import OrtSession
from npumake.errors import StageError
from npumake.frontends.tflite.schema import TFLiteTensor, read_network
from npumake.graph import Graph, attribute, parse
from npumake.graph.qdq import DEQUANTIZE
from npumake.lifetime.temporaries import temporary_folder
from npumake.runtime.iree import interface

DECLARATION = (
    "import iree.runtime as iree, pathlib;"
    "data = pathlib.Path('model.vmfb').read_bytes();"
    "module = iree.VmModule.copy_buffer(iree.VmInstance(), data);"
    "print(module.lookup_function('main').reflection['iree.abi.declaration'])"
)
RUNTIME = "iree-base-runtime"
MLIR_TYPES = {
    **{"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64"},
    **{"f16": "float16", "f32": "float32", "f64": "float64"},
}
BFLOAT16 = 16  # ONNX's number
LEVELS = {"256": "int8", "65536": "int16"}


def types_of(data: bytes, quantized: Graph, backend: str) -> Types:
    """Type by tensor name in the file compiled from `quantized`. Raises StageError if the file's
    interface differs from the one it was compiled with."""
    return READERS[backend](data, quantized) if backend in READERS else {}


def grids_of(data: bytes, backend: str) -> Grids:
    """Grid by tensor name in the file; empty for a file that passes real numbers, or is closed."""
    return GRID_READERS[backend](data) if backend in GRID_READERS else {}


def _tflite_tensors(data: bytes) -> list[TFLiteTensor]:
    network = read_network(data)
    tensors: list[TFLiteTensor | None] = [*network.inputs, *network.outputs]
    for operator in network.operators:
        tensors += [*operator.inputs, *operator.outputs]
    return [tensor for tensor in tensors if tensor is not None]


def _of_tflite(data: bytes, quantized: Graph) -> Types:
    return {tensor.name: tensor.dtype for tensor in _tflite_tensors(data)}


def _tflite_grids(data: bytes) -> Grids:
    return {
        tensor.name: FileGrid(float(tensor.grid.scale.item()), int(tensor.grid.zero_point.flat[0]))
        for tensor in _tflite_tensors(data)
        if tensor.grid is not None and tensor.grid.scale.size == 1
    }


def _vmfb_grids(data: bytes) -> Grids:
    with temporary_folder() as folder:
        (folder / "model.vmfb").write_bytes(data)
        inputs, outputs = interface(folder / "model.vmfb")
    return {
        port.name: FileGrid(float(np.float32(port.scale)), port.zero_point)
        for port in (*inputs, *outputs)
        if port.scale is not None
    }


def _of_vmfb(data: bytes, quantized: Graph) -> Types:
    """Raises StageError if the code's declaration differs from INTERFACE."""
    with temporary_folder() as folder:
        (folder / "model.vmfb").write_bytes(data)
        declaration = run_python(["-c", DECLARATION], folder, (RUNTIME,)).strip()
        inputs, outputs = interface(folder / "model.vmfb")
    ports = [*inputs, *outputs]
    declared = re.findall(r"tensor<((?:\d+x)*)(\w+)>", declaration)
    shapes = [tuple(int(size) for size in dims.split("x") if size) for dims, _ in declared]
    if shapes != [port.shape for port in ports]:
        raise StageError(f"IREE compiled another interface than the model's: {declaration}")
    return {
        port.name: MLIR_TYPES.get(dtype, dtype)
        for port, (_, dtype) in zip(ports, declared, strict=True)
    }


def _of_onnx(data: bytes, quantized: Graph) -> Types:
    graph = parse(data, "compiled.onnx")
    tensors = quantized.values()
    graph.expose([name for name in graph.values() if name in tensors])
    types = {port.name: str(port.dtype) for port in OrtSession(graph.to_bytes()).outputs}
    casts = [node for node in graph.nodes() if node.op_type == "Cast"]
    narrow = [str(n.outputs[0].name) for n in casts if attribute(n, "to", 0) == BFLOAT16]
    return types | dict.fromkeys(narrow, "bfloat16")  # a session passes it as float32


def _of_openvino(data: bytes, quantized: Graph) -> Types:
    """A FakeQuantize has the name of the dequantized tensor; its codes get that type."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        text = archive.read("model.xml").decode()
    matches = re.finditer(
        r'name="([^"]+)" type="FakeQuantize"[^>]*>\s*<data[^>]*levels="(\d+)"', text
    )
    levels = {match[1]: match[2] for match in matches}
    codes = {
        str(node.outputs[0].name): str(node.inputs[0].name)
        for node in quantized.nodes(DEQUANTIZE)
        if node.inputs[0] is not None
    }
    return {codes[n]: LEVELS.get(level, level) for n, level in levels.items() if n in codes}


READERS: Mapping[str, Callable[[bytes, Graph], Types]] = {
    "iree": _of_vmfb,
    "onnx": _of_onnx,
    "openvino": _of_openvino,
    "tflite": _of_tflite,
    "vela": _of_tflite,
}

GRID_READERS: Mapping[str, Callable[[bytes], Grids]] = {
    "iree": _vmfb_grids,
    "tflite": _tflite_grids,
    "vela": _tflite_grids,
}
