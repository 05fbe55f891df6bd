"""Q and DQ nodes, as this folder reads and inserts them."""

from __future__ import annotations

from typing import NamedTuple

from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array
from npumake.graph.qdq import insert_dequantize, insert_quantize, is_dequantize


class StoredCodes(NamedTuple):
    """Integers and their grid: real = scale * (codes - zero point)."""

    codes: Value
    scale: Value
    zero_point: Value | None


def codes_at(node: Node, index: int) -> StoredCodes:
    """The operand in three consecutive inputs. Raises GraphError for a missing one."""
    codes, scale, zero_point = (*node.inputs[index : index + 3], None, None, None)[:3]
    if codes is None or scale is None:
        raise GraphError(f"`{node.name}` ({node.op_type}) lacks an operand or its scale")
    return StoredCodes(codes, scale, zero_point)


def real(graph: Graph, codes: StoredCodes, before: Node, axis: int | None = None) -> Value:
    """The dequantized operand, from an existing DQ if there is one."""
    scale = array(codes.scale)
    axis = None if scale is not None and scale.size == 1 else axis
    for use in codes.codes.uses():
        dq = use.node
        is_same = tuple(dq.inputs) == codes or (
            len(dq.inputs) == 2 and tuple(dq.inputs) == codes[:2] and codes[2] is None
        )
        if is_dequantize(dq) and is_same and _stands_before(graph, dq, before):
            return dq.outputs[0]
    parameters = [value for value in codes[1:] if value is not None]
    name = str(codes.codes.name).removesuffix("_quantized")
    name = f"{name}_dequantized"
    return insert_dequantize(graph, codes.codes, parameters, name, before=before, axis=axis)


def _stands_before(graph: Graph, first: Node, second: Node) -> bool:
    order = {node: index for index, node in enumerate(graph.nodes())}
    return order[first] < order[second]


def quantize_result(
    graph: Graph, node: Node, scale: Value, zero_point: Value | None, output: Value | None = None
) -> Value:
    """Changes a node from codes to floats, with a Q behind it. The codes keep their name and
    readers. `output` defaults to the node's first."""
    output = node.outputs[0] if output is None else output
    readers, name = [use.node for use in tuple(output.uses())], str(output.name)
    parameters = [value for value in (scale, zero_point) if value is not None]
    codes = insert_quantize(graph, output, parameters, f"{name}_codes")
    graph.replace_readers(output, codes, readers)
    graph.forget_shape(output, and_type=True)
    if output.is_graph_output():
        graph.replace_output(output, codes)
    else:
        graph.rename(output, graph.free_name(name.removesuffix("_quantized")))
        graph.rename(codes, name)
    return codes
