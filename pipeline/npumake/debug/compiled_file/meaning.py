"""What a node of a program means in float: what its rounding is held to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers.float_decompositions import in_float
from npumake.debug.compiled_file.rounding_error import Compute
from npumake.debug.compiled_file.runs import CompiledPart
from npumake.engine.grids import dequantizer
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import CPU, model_of
from npumake.graph import Graph, Node, array
from npumake.graph.qdq import is_quantize


class Meaning(NamedTuple):
    """A node in float: `read` are the program's tensors by position, None for what is no tensor of
    it; `compute` takes real numbers."""

    node: Node
    read: tuple[str, ...]
    compute: Compute


def meaning_of(step: Instruction, part: CompiledPart, session: ReferenceSession) -> Meaning:
    """The node of a step in float; `session` runs those that are left to the CPU."""
    node = next((node for node in part.graph.nodes() if node.name == step.name), None)
    if step.op == CPU:
        node = node or next(iter(model_of(step).nodes()))
        return Meaning(node, step.inputs, lambda read: list(session.execute(step, read)))
    assert node is not None
    if is_quantize(node):  # from one grid to another
        return Meaning(node, step.inputs, list)
    return _in_float(part.graph, node)


def _in_float(graph: Graph, node: Node) -> Meaning:
    """The float node between its Q/DQ, with its constants in float."""
    session = OrtSession(in_float(graph, node).to_bytes(), fusion="none")
    codes = {}
    for value in node.inputs:
        maker = dequantizer(value)
        if maker is not None and value is not None and array(maker.inputs[0]) is None:
            codes[str(value.name)] = str(maker.inputs[0].name) if maker.inputs[0] else ""
    names = [name for name in session.input_names if name in codes]

    def compute(read: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return session.run(None, dict(zip(names, read, strict=True)))

    return Meaning(node, tuple(codes[name] for name in names), compute)
