"""A model as a graph of nodes and values; the only room that imports onnx.

It wraps onnx-ir: the methods of `Graph` read and edit the graph and keep names, types and use lists
consistent. This room does not quantize, run or store graphs.
"""

from npumake.graph.begin import feed_at
from npumake.graph.branches import inline
from npumake.graph.build import Building, TensorSpec
from npumake.graph.downgrade import downgraded
from npumake.graph.fused_parts import record_parts, recorded_parts
from npumake.graph.graph import Graph, Node, Value
from npumake.graph.inner_names import name_after
from npumake.graph.marks import (
    OPERATORS,
    annotate,
    annotations_of,
    border_rounding,
    guard,
    hand_out_sums,
    hands_out_sums,
    is_float16,
    is_guard,
    is_kept_float,
    keep_float,
    mark_float16,
    mark_wide_bias,
    number_operators,
    operator_count,
    operator_nodes,
    round_border,
    run_on_unit,
    runs_on_unit,
    write_for,
    written_for,
)
from npumake.graph.match import (
    array,
    attribute,
    deciding_inputs,
    dtype,
    is_float,
    is_foreign,
    is_given,
    only_consumer,
    open_dimensions,
    producer,
    shape,
    type_name,
    type_number,
)
from npumake.graph.names import GraphNames
from npumake.graph.notes import noted
from npumake.graph.opset import (
    allow_int16,
    allow_swish,
    is_operator,
    may_have_int16,
    operator_called,
)
from npumake.graph.origin import origin
from npumake.graph.outside import Beside, files_beside
from npumake.graph.parse import parse, parse_text
from npumake.graph.part import complete, declare, derived, inside, part, reads
from npumake.graph.renumber import renumber
from npumake.graph.serialized import SerializedGraph, SerializedNode, needed, serialized_part
from npumake.graph.single import in_single
from npumake.graph.upgrade import flatten_around, upgraded

__all__ = [
    "OPERATORS",
    "Beside",
    "Building",
    "Graph",
    "GraphNames",
    "Node",
    "SerializedGraph",
    "SerializedNode",
    "TensorSpec",
    "Value",
    "allow_int16",
    "allow_swish",
    "annotate",
    "annotations_of",
    "array",
    "attribute",
    "border_rounding",
    "complete",
    "deciding_inputs",
    "declare",
    "derived",
    "downgraded",
    "dtype",
    "feed_at",
    "files_beside",
    "flatten_around",
    "guard",
    "hand_out_sums",
    "hands_out_sums",
    "in_single",
    "inline",
    "inside",
    "is_float",
    "is_float16",
    "is_foreign",
    "is_given",
    "is_guard",
    "is_kept_float",
    "is_operator",
    "keep_float",
    "mark_float16",
    "mark_wide_bias",
    "may_have_int16",
    "name_after",
    "needed",
    "noted",
    "number_operators",
    "only_consumer",
    "open_dimensions",
    "operator_called",
    "operator_count",
    "operator_nodes",
    "origin",
    "parse",
    "parse_text",
    "part",
    "producer",
    "reads",
    "record_parts",
    "recorded_parts",
    "renumber",
    "round_border",
    "run_on_unit",
    "runs_on_unit",
    "serialized_part",
    "shape",
    "type_name",
    "type_number",
    "upgraded",
    "write_for",
    "written_for",
]
