"""Converts models that other tools quantized to the one form that later stages read: Q/DQ.

    qdq_spelling   Q/DQ of another domain, without zero point, or of 4 bits → ONNX's own, complete
    qoperators     QLinearConv, QGemm, QLinearAdd …  → DQ, the float operator, Q      QOPERATORS
    data_movement  a MaxPool, Reshape or Gather of codes → DQ, the same operator, Q   MOVES
    dynamic        ConvInteger, MatMulInteger and their kin → floats with the same weights

The float operator between Q/DQ computes the same as the integer one: scales and zero points are the
model's own, and this room never chooses any.
"""

from npumake.errors import GraphError
from npumake.frontends.codes.data_movement import has_moved_codes, move_reals
from npumake.frontends.codes.dynamic import DYNAMIC, DYNAMIC_QUANTIZER, in_floats
from npumake.frontends.codes.qdq_spelling import has_strange_pairs, spell
from npumake.frontends.codes.qoperators import QOPERATORS, in_pairs
from npumake.graph import Graph, upgraded

PER_AXIS_OPSET = 13  # the opset since which Q/DQ has per-channel scales
# Operators that compute on codes without a float counterpart.
IN_CODES = (
    *DYNAMIC,
    DYNAMIC_QUANTIZER,
    "GatherBlockQuantized",
    "MatMulB",  # MatMulBnb4, MatMulBlockQuantized…
    "MatMulNBits",
    "MulInteger",
    "QAttention",
    "QEmbed",
    "QLinear",
    "QMoE",
    "QOrdered",
    "ReduceSumInteger",
    *QOPERATORS,
)
HINT = "use the float model, or one that onnxruntime quantized with QuantFormat.QDQ"


def in_qdq(graph: Graph, name: str) -> Graph:
    """The graph in Q/DQ form; the graph itself if it has no codes. May edit in place.

    Raises GraphError for an operator that computes on codes and is in no table, and for Q/DQ types
    or block scales that no target supports.
    """
    used = {node.op_type for node in graph.nodes()} | _foreign(graph)
    in_codes = any(op.startswith(IN_CODES) for op in used)
    if not (in_codes or has_strange_pairs(graph) or has_moved_codes(graph)):
        return graph
    if unknown := sorted(
        op for op in used if op.startswith(IN_CODES) and op not in _known_operators()
    ):
        raise GraphError(
            f"the model is quantized by its operators: {', '.join(unknown)}", name, HINT
        )
    if graph.opset < PER_AXIS_OPSET:
        graph = upgraded(graph, PER_AXIS_OPSET)
    graph = spell(graph)
    in_floats(graph)
    in_pairs(graph)
    move_reals(graph)
    graph.drop_unused()
    return graph


def _known_operators() -> set[str]:
    return {*QOPERATORS, *DYNAMIC, DYNAMIC_QUANTIZER}


def _foreign(graph: Graph) -> set[str]:
    """Operators in branches and of other domains, which `nodes` omits."""
    return {node.op_type for node in graph.model.graph.all_nodes()}
