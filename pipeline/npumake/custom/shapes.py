"""Shape inference across custom operators.

ONNX infers up to a custom node, the node's shape function continues, and so on. An output has the
type that the model declares, or else the type of the node's first input.
"""

from __future__ import annotations

from typing import Any

from npumake.custom.blame import blamed
from npumake.custom.operators import Operators, require
from npumake.errors import GraphError, StageError
from npumake.graph import Graph, Node, declare, is_foreign, open_dimensions


def with_shapes(graph: Graph, operators: Operators) -> Graph:
    """The graph with all shapes and types inferred.

    Raises GraphError for an operator without implementation and for unknown shapes. Raises
    StageError if the user's function fails.
    """
    require(graph, operators)
    graph = graph.with_shapes()
    waiting = {str(node.name) for node in graph.nodes() if is_foreign(node)}
    while waiting:
        nodes = [node for node in graph.nodes() if node.name in waiting]
        ready = [node for node in nodes if not any(map(_is_open, node.inputs))]
        if not ready:
            raise GraphError(f"the shapes that `{nodes[0].name}` reads are not known")
        for node in ready:
            _tell(node, operators)
        waiting -= {str(node.name) for node in ready}
        graph = graph.with_shapes()
    return graph


def _is_open(value: Any) -> bool:
    return value is not None and bool(open_dimensions(value))


def _tell(node: Node, operators: Operators) -> None:
    """Declares the node's output shapes by the user's function."""
    operator = operators.by_type[node.op_type]
    if operator.shapes is None:
        if any(map(_is_open, node.outputs)):
            raise GraphError(
                f"the output shape of `{node.name}` is unknown",
                ", ".join(operator.files),
                f'decorate a function with @op_shape_infer_register("{node.op_type}")',
            )
        return
    input_shapes = [[] if value is None else list(value.shape or ()) for value in node.inputs]
    with blamed(f"the shapes of `{node.name}` ({node.op_type})", operator.files):
        shapes = [tuple(int(size) for size in shape) for shape in operator.shapes(input_shapes)]
    if len(shapes) != len(node.outputs) or any(size < 0 for shape in shapes for size in shape):
        raise StageError(
            f"the shape function of `{node.op_type}` gives {[list(s) for s in shapes]} for the "
            f"{len(node.outputs)} outputs of `{node.name}`",
            ", ".join(operator.files),
            "it must give a list of one shape per output",
        )
    for value, shape in zip(node.outputs, shapes, strict=True):
        declare(value, shape, like=node.inputs[0] if node.inputs else None)
