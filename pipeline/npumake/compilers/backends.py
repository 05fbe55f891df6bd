"""BACKENDS: the compilers of targets whose file is not a bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from npumake.bundle.archive import zipped
from npumake.bundle.chain import MEMBER, NOTE
from npumake.bundle.program import Program
from npumake.compilers.adapters.adapter import ADAPTERS, Adapter, adapted
from npumake.compilers.failing_node import located
from npumake.compilers.flatfile import FlatModel, written
from npumake.compilers.iree import tosa, with_iree
from npumake.compilers.onnx_file import onnx_file
from npumake.compilers.openvino_graph import for_openvino, named
from npumake.compilers.process import CompilerError
from npumake.compilers.tflite import tflite_model
from npumake.compilers.tosa_spelling import for_tosa
from npumake.compilers.vela import with_vela
from npumake.detection.notes import carried
from npumake.graph import Graph, noted
from npumake.targets.target import Target

Members = dict[str, bytes]


def _tflite(model: bytes, target: Target) -> tuple[bytes, Members]:
    return model, {}


def _torq(model: bytes, target: Target) -> tuple[bytes, Members]:
    (data,) = adapted(ADAPTERS["torq"], tosa(model), target.backend_options).values()
    return data, {}


# .tflite, target → the compiled file, and the compiler's reports
BACKENDS: Mapping[str, Callable[[bytes, Target], tuple[bytes, Members]]] = {
    "iree": with_iree,
    "tflite": _tflite,
    "torq": _torq,
    "vela": with_vela,
}

# Operators that a compiler needs in another form than TensorFlow Lite's.
SPELLINGS: Mapping[str, Callable[[FlatModel], FlatModel]] = {"iree": for_tosa, "torq": for_tosa}


def model_for(backend: str, program: Program, quantized: Graph) -> FlatModel:
    """The .tflite for this compiler. Raises GraphError."""
    model = tflite_model(program, quantized)
    return SPELLINGS[backend](model) if backend in SPELLINGS else model


def _of_graph(adapter: Adapter, quantized: Graph, target: Target, beside: Members) -> bytes:
    """From a compiler of Q/DQ graphs: its only file, or a ZIP of several. An `.onnx` file keeps the
    notes of a detector."""
    graph = for_openvino(quantized) if adapter.name == "openvino" else quantized
    try:
        products = adapted(adapter, graph.to_bytes(), target.backend_options)
    except CompilerError as error:
        raise named(error, graph) from error
    if len(products) > 1:
        return zipped({**products, **beside})
    ((name, data),) = products.items()
    notes = {**carried(quantized), **_notes(beside)}
    return noted(data, notes, name) if name.endswith(".onnx") else data


def _notes(beside: Members) -> dict[str, str]:
    """The provenance as an entry of an ONNX file's metadata."""
    return {NOTE: beside[MEMBER].decode()} if MEMBER in beside else {}


def built(program: Program, quantized: Graph, target: Target, beside: Members) -> bytes:
    """The compiled file. Members are appended as a ZIP, as TensorFlow Lite does with metadata, if
    the format allows it.

    Raises GraphError for a model that TensorFlow Lite cannot express, StageError if a compiler
    fails.
    """
    if target.backend == "onnx":
        return noted(onnx_file(quantized, target.name), _notes(beside), target.name)
    adapter = ADAPTERS.get(target.backend)
    if adapter is not None and adapter.takes == "model.onnx":
        return _of_graph(adapter, quantized, target, beside)
    model, compiler = model_for(target.backend, program, quantized), BACKENDS[target.backend]
    try:
        data, reports = compiler(written(*model), target)
    except CompilerError as error:
        raise located(error, model, lambda part: compiler(part, target)) from error
    members = {**reports, **beside}
    return data + zipped(members) if members else data
