"""RUNS: the file of one case, run. What takes a compiler a second is of several (together.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import onnx

from npumake.bundle.archive import Bundle
from npumake.compilers.onnx_file import onnx_file
from npumake.engine.exact import ExactSession
from npumake.engine.ort import OrtSession
from npumake.engine.port import Port
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import joined
from npumake.runtime.litert import LiteRtSession
from operators.builds import Built, Model

EXACTLY = "half_even"  # the rounding with which the exact engine runs: it takes long to make ready


class Ports(Protocol):
    inputs: tuple[Port, ...]


def run_hybrid(built: Built, model: Model) -> np.ndarray:
    program = Bundle(built.target.name, joined(built.program), {})
    program = Bundle.from_bytes(program.to_bytes()).program
    exactly = built.target.rounding == EXACTLY
    session = ExactSession(program, at_once=1) if exactly else ReferenceSession(program)
    (found,) = session.run(None, model.feeds[0])
    return found


def run_tflite(built: Built, model: Model) -> np.ndarray:
    session = LiteRtSession(built.tflite, "model.tflite")
    (found,) = session.run(None, as_fed(session, model, built))
    return as_meant(found, built)


def run_onnx(built: Built, model: Model) -> np.ndarray:
    (found,) = OrtSession(onnx_file(built.graph, "onnx")).run(None, model.feeds[0])
    return found


RUNS: Mapping[str, Callable[[Built, Model], np.ndarray]] = {
    "hybrid": run_hybrid,
    "onnx": run_onnx,
    "tflite": run_tflite,
    "vela": run_tflite,  # the file before Vela: what Vela makes runs on the chip alone
}


def as_fed(session: Ports, model: Model, built: Built, prefix: str = "") -> dict[str, np.ndarray]:
    """The feeds as the file lays them; it has their names behind the `prefix`."""
    names = [port.name for port in session.inputs if port.name.startswith(prefix)]
    plain = {name: name.removeprefix(prefix) for name in names}
    return {
        name: np.array(model.feeds[0][own].transpose(built.orders[own]), order="C")
        for name, own in plain.items()
    }


def as_meant(found: np.ndarray, built: Built) -> np.ndarray:
    """What a file gives NHWC as NCHW."""
    (output,) = built.program.outputs
    return found.transpose(np.argsort(built.orders[output]))


def is_in_float(built: Built) -> bool:
    """Whether onnxruntime's file still has one of the operator's nodes on float32."""
    data = onnx_file(built.graph, "onnx")
    graph = onnx.shape_inference.infer_shapes(onnx.load_from_string(data)).graph
    values = (*graph.value_info, *graph.input, *graph.output)
    floats = {v.name for v in values if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    own = {node.op_type for node in built.nodes()}
    return any(node.op_type in own and not floats.isdisjoint(node.input) for node in graph.node)
