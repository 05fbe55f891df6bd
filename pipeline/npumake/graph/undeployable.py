"""Refuses models that no compiled file can compute: those that draw random numbers or return text.

Nodes that no output needs are not judged. A Dropout with the ratio 0 drops nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from npumake.errors import GraphError
from npumake.graph.graph import Graph, Node
from npumake.graph.match import array

DRAWING = frozenset(
    {
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"),
        *("RandomUniform", "RandomUniformLike"),
    }
)
IN_EVALUATION = (
    "export the model in evaluation mode; in PyTorch call model.eval() before the export"
)


def refuse_undeployable(graph: Graph) -> None:
    """Raises GraphError for the first node that is random, is in training mode or makes text."""
    for node in _needed(graph):
        if node.domain in ("", "ai.onnx") and node.op_type in DRAWING:
            message = f"{node.op_type} `{node.name}` draws other numbers in every run"
            hint = "make its output an input of the model, or a constant, and export it again"
            raise GraphError(message, hint=hint)
        if node.op_type == "Dropout" and not node.domain:
            _refuse_training(node)
        if text := next((v for v in node.outputs if v.dtype == ir.DataType.STRING), None):
            raise GraphError(
                f"{node.op_type} `{node.name}` makes text, `{text.name}`: files for NPUs have "
                "numbers alone",
                hint=f"set  model: {{outputs: [{', '.join(_numeric(graph, node))}]}}",
            )


def _refuse_training(node: Node) -> None:
    """Raises GraphError for a Dropout that drops, or may do so by a computed flag."""
    ratio, training = (*node.inputs[1:3], None, None)[:2]
    if training is None or (ratio is not None and array(ratio) is not None and not _any(ratio)):
        return
    if array(training) is not None:
        if _any(training):
            message = f"Dropout `{node.name}` is in training mode: it drops other values every run"
            raise GraphError(message, hint=IN_EVALUATION)
    elif training.is_graph_input():
        message = f"Dropout `{node.name}` is in training mode when input `{training.name}` is true"
        hint = f"set  inputs: {{{training.name}: {{value: false}}}}"
        raise GraphError(message, hint=hint)
    else:
        message = f"Dropout `{node.name}` computes whether it is in training mode"
        raise GraphError(message, hint=IN_EVALUATION)


def _any(value: ir.Value) -> bool:
    values = array(value)
    return values is None or bool(values.any())


def _numeric(graph: Graph, maker: Node) -> Iterator[str]:
    """The outputs that are numbers, and what the text is made from, each once."""
    numbers = [v for v in graph.outputs if v.dtype != ir.DataType.STRING]
    sources = [v for v in maker.inputs if v is not None and v.producer() and array(v) is None]
    yield from dict.fromkeys(str(v.name) for v in numbers or sources)


def _needed(graph: Graph) -> Iterator[Node]:
    """The nodes that outputs need, those of branches too, in the order of the file."""
    needed: set[Node] = set()
    waiting = [value.producer() for value in graph.outputs]
    while waiting:
        node = waiting.pop()
        if node is None or node in needed:
            continue
        needed.add(node)
        waiting += [value.producer() for value in node.inputs if value is not None]
        waiting += [inner for body in _bodies(node) for inner in body]
    for scope in (graph.model.graph, *graph.model.graph.subgraphs()):
        yield from (node for node in scope if node in needed)


def _bodies(node: Node) -> Iterator[ir.Graph]:
    for item in node.attributes.values():
        if item.type == ir.AttributeType.GRAPH:
            yield item.as_graph()
