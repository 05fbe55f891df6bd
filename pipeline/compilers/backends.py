"""BACKENDS: what makes the compiled file of a target whose own is not a bundle."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pipeline.bundle.archive import zipped
from pipeline.bundle.program import Program
from pipeline.compilers.iree import with_iree
from pipeline.compilers.tflite import tflite_file
from pipeline.compilers.vela import with_vela
from pipeline.graph import Graph
from pipeline.targets.target import Target

Members = dict[str, bytes]


def _tflite(model: bytes, target: Target) -> tuple[bytes, Members]:
    return model, {}


# .tflite, target → the file, and what the compiler tells beside it
BACKENDS: Mapping[str, Callable[[bytes, Target], tuple[bytes, Members]]] = {
    "iree": with_iree,
    "tflite": _tflite,
    "vela": with_vela,
}


def built(program: Program, quantized: Graph, target: Target, beside: Mapping[str, bytes]) -> bytes:
    """The compiled file; members in a ZIP behind it, as TensorFlow Lite's metadata has them.

    Raises GraphError for what TensorFlow Lite cannot hold, StageError where a compiler fails.
    """
    made, told = BACKENDS[target.backend](tflite_file(program, quantized), target)
    members = {**told, **beside}
    return made + zipped(members) if members else made
