"""Twins: a node of the float graph, the same node calibrated, and what the program has of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from npumake.bundle.program import Program
from npumake.engine.fusion import absorbed, result
from npumake.engine.grids import DQ, Q
from npumake.graph import Graph, Node, Value, hands_out_sums, is_float, is_float16, producer
from npumake.quant.precision.placement import activations


def compared_nodes(graph: Graph) -> list[Node]:
    """The nodes that make a float tensor of their own: an absorbed clamp counts with its node,
    and the Q/DQ a model brings along with the node before."""
    others = {absorbed(node) for node in graph.nodes()} | {*graph.nodes(Q, DQ)}
    return [n for n in graph.nodes() if n not in others and is_float(result(n))]


def tensor_of(node: Node) -> str:
    """The tensor that is compared for a node."""
    return str(result(node).name)


class View(NamedTuple):
    """One tensor of the float graph: as readers see it once calibrated, and in the program."""

    calibrated: str
    program: str
    read: tuple[str, ...]  # in the program, what the node that makes it reads
    sums: bool = False  # whether the program has it in int32 before
    half: bool = False  # whether the unit computes it in float16


def views_of(
    optimized_float: Graph, calibrated: Graph, nodes: Iterable[Node], program: Program
) -> dict[str, View]:
    """By the tensor's name. A node keeps its name from stage to stage; what it makes may not."""
    twins = {str(node.name): node for node in calibrated.nodes()}
    outputs = [str(value.name) for value in optimized_float.outputs]
    views = {name: View(name, name, ()) for name in outputs}
    for node in nodes:
        twin = twins[str(node.name)]
        output, quantizer = result(twin), _reader(result(twin), Q)
        codes = output if quantizer is None else quantizer.outputs[0]
        dequantizer = _reader(codes, DQ)
        reader_view = output if dequantizer is None else dequantizer.outputs[0]
        has_codes = str(codes.name) in program.tensors
        read = tuple(str(_codes(value).name) for value in activations(twin))
        program_name = str((codes if has_codes else output).name)
        kinds = hands_out_sums(twin), is_float16(twin)
        views[tensor_of(node)] = View(str(reader_view.name), program_name, read, *kinds)
    return views


def _reader(value: Value, op_type: str) -> Node | None:
    return next((use.node for use in value.uses() if use.node.op_type == op_type), None)


def _codes(value: Value) -> Value:
    """The codes behind a dequantized value."""
    maker = producer(value)
    if maker is None or maker.op_type != DQ or maker.inputs[0] is None:
        return value
    return maker.inputs[0]
