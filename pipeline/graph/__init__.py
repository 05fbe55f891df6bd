"""A model as a graph of nodes and values: the only room that knows ONNX.

It wraps onnx-ir: `Graph` gives the verbs for reading and editing, so that names, types and
use-lists stay true in one place. It refuses to know what a graph is for: nothing here
quantizes, runs or stores.
"""

from pipeline.graph.begin import feed_at
from pipeline.graph.blocked import REORDERED, reordering
from pipeline.graph.branches import inline
from pipeline.graph.build import Building, Tensor
from pipeline.graph.graph import Graph, Node, Value
from pipeline.graph.handout import Made, handing_out
from pipeline.graph.marks import (
    OPERATORS,
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
    tell,
    told,
)
from pipeline.graph.match import (
    array,
    attribute,
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
from pipeline.graph.notes import noted
from pipeline.graph.opset import allow_int16, is_operator, may_have_int16, operator_called
from pipeline.graph.order import hasty
from pipeline.graph.origin import origin
from pipeline.graph.outside import Beside, files_beside
from pipeline.graph.parse import parse, parse_text
from pipeline.graph.part import complete, declare, derived, inside, part, reads
from pipeline.graph.renumber import renumber
from pipeline.graph.single import in_single
from pipeline.graph.upgrade import flatten_around, upgraded
from pipeline.graph.written import Piece, Written, needed

__all__ = [
    "OPERATORS",
    "REORDERED",
    "Beside",
    "Building",
    "Graph",
    "Made",
    "Node",
    "Piece",
    "Tensor",
    "Value",
    "Written",
    "allow_int16",
    "array",
    "attribute",
    "border_rounding",
    "complete",
    "declare",
    "derived",
    "dtype",
    "feed_at",
    "files_beside",
    "flatten_around",
    "guard",
    "hand_out_sums",
    "handing_out",
    "hands_out_sums",
    "hasty",
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
    "renumber",
    "reordering",
    "round_border",
    "shape",
    "tell",
    "told",
    "type_name",
    "type_number",
    "upgraded",
]
