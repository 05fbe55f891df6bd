"""Q and DQ nodes, as the tables of this folder read and insert them."""

from __future__ import annotations

from typing import NamedTuple

from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array

Q, DQ = "QuantizeLinear", "DequantizeLinear"


class StoredCodes(NamedTuple):
    """Integers and their grid: real = scale * (codes - zero point)."""

    codes: Value
    scale: Value
    zero_point: Value | None


def codes_at(node: Node, index: int) -> StoredCodes:
    """The operand at three inputs in a row. Raises GraphError where one is missing."""
    codes, scale, zero_point = (*node.inputs[index : index + 3], None, None, None)[:3]
    if codes is None or scale is None:
        raise GraphError(f"`{node.name}` ({node.op_type}) lacks an operand or its scale")
    return StoredCodes(codes, scale, zero_point)


def real(graph: Graph, codes: StoredCodes, before: Node, axis: int | None = None) -> Value:
    """The dequantized operand; the DQ that is there already, where one is."""
    held = array(codes.scale)
    axis = None if held is not None and held.size == 1 else axis
    for use in codes.codes.uses():
        known = use.node
        same = tuple(known.inputs) == codes or (
            len(known.inputs) == 2 and tuple(known.inputs) == codes[:2] and codes[2] is None
        )
        if known.op_type == DQ and same and _stands_before(graph, known, before):
            return known.outputs[0]
    given = [value for value in codes if value is not None]
    name = str(codes.codes.name).removesuffix("_quantized")
    return graph.insert(DQ, given, f"{name}_dequantized", before=before, axis=axis)


def _stands_before(graph: Graph, one: Node, other: Node) -> bool:
    order = {node: index for index, node in enumerate(graph.nodes())}
    return order[one] < order[other]


def quantize_result(
    graph: Graph, node: Node, scale: Value, zero_point: Value | None, made: Value | None = None
) -> Value:
    """The node, which made codes, makes real numbers; a Q behind it makes the codes, by their old
    name, for whoever read them. `made` is the output in question, the first by default."""
    made = node.outputs[0] if made is None else made
    readers, name = [use.node for use in tuple(made.uses())], str(made.name)
    given = [value for value in (made, scale, zero_point) if value is not None]
    codes = graph.insert(Q, given, f"{name}_codes", after=node)
    graph.replace_readers(made, codes, readers)
    graph.forget_shape(made, and_type=True)
    if made.is_graph_output():
        graph.replace_output(made, codes)
    else:
        graph.rename(made, graph.free_name(name.removesuffix("_quantized")))
        graph.rename(codes, name)
    return codes
