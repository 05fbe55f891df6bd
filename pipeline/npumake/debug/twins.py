"""Matches a node of the float graph with the calibrated graph and with the program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from npumake.bundle.program import Program
from npumake.engine.fusion import absorbed, result
from npumake.graph import Graph, Node, Value, hands_out_sums, is_float, is_float16
from npumake.graph.qdq import QDQ_OPERATORS, dequantizer_of, first_dequantizer, first_quantizer
from npumake.quant.precision.placement import activations


def compared_nodes(graph: Graph) -> list[Node]:
    """The nodes with a float output: a fused clamp counts with its node, a model's own Q/DQ with
    the node before."""
    others = {absorbed(node) for node in graph.nodes()} | {*graph.nodes(*QDQ_OPERATORS)}
    return [n for n in graph.nodes() if n not in others and is_float(result(n))]


def nodes_with_twins(graph: Graph, calibrated: Graph) -> list[Node]:
    """The compared nodes that the calibrated graph has. One whose result is not rounded there is
    part of another: a MatMul in front of its bias."""
    names = {str(node.name) for node in calibrated.nodes()}
    return [node for node in compared_nodes(graph) if str(node.name) in names]


def tensor_of(node: Node) -> str:
    """The tensor that is compared for a node."""
    return str(result(node).name)


class View(NamedTuple):
    """The names of one float tensor: for its readers in the calibrated graph, and in the
    program."""

    calibrated: str
    program: str
    read: tuple[str, ...]  # in the program, the inputs of its producer
    sums: bool = False  # the program has it as int32 sums
    half: bool = False  # the unit computes it in float16


def views_of(
    optimized_float: Graph, calibrated: Graph, nodes: Iterable[Node], program: Program
) -> dict[str, View]:
    """Views by tensor name. Node names are the same in all stages; tensor names may differ."""
    twins = {str(node.name): node for node in calibrated.nodes()}
    outputs = [str(value.name) for value in optimized_float.outputs]
    views = {name: View(name, name, ()) for name in outputs}
    for node in nodes:
        twin = twins[str(node.name)]
        output, quantizer = result(twin), first_quantizer(result(twin))
        codes = output if quantizer is None else quantizer.outputs[0]
        dequantizer = first_dequantizer(codes)
        reader_view = output if dequantizer is None else dequantizer.outputs[0]
        has_codes = str(codes.name) in program.tensors
        read = tuple(str(_codes(value).name) for value in activations(twin))
        program_name = str((codes if has_codes else output).name)
        kinds = hands_out_sums(twin), is_float16(twin)
        views[tensor_of(node)] = View(str(reader_view.name), program_name, read, *kinds)
    return views


def _codes(value: Value) -> Value:
    """The quantized tensor behind a dequantized value."""
    dequantizer = dequantizer_of(value)
    codes = None if dequantizer is None else dequantizer.inputs[0]
    return value if codes is None else codes
