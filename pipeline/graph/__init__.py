"""A model as a graph of nodes and values: the only room that knows ONNX.

It wraps onnx-ir: `Graph` gives the verbs for reading and editing, so that names, types and
use-lists stay true in one place. It refuses to know what a graph is for: nothing here
quantizes, runs or stores.
"""

from pipeline.graph.branches import inline
from pipeline.graph.build import empty
from pipeline.graph.building import Building, Tensor
from pipeline.graph.graph import Graph, Node, Value
from pipeline.graph.match import (
    array,
    attribute,
    dtype,
    is_float,
    only_consumer,
    open_dimensions,
    producer,
    shape,
    type_number,
)
from pipeline.graph.origin import origin
from pipeline.graph.parse import parse, parse_text, upgraded

__all__ = [
    "Building",
    "Graph",
    "Node",
    "Tensor",
    "Value",
    "array",
    "attribute",
    "dtype",
    "empty",
    "inline",
    "is_float",
    "only_consumer",
    "open_dimensions",
    "origin",
    "parse",
    "parse_text",
    "producer",
    "shape",
    "type_number",
    "upgraded",
]
