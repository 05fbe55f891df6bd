"""Node left to the CPU → the operator of TensorFlow Lite that computes it in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pipeline.bundle.program import Instruction
from pipeline.compilers.draft import Draft, plain
from pipeline.compilers.operators import OPERATORS
from pipeline.errors import GraphError
from pipeline.graph import Node, array, attribute

BINARY = {"Add": "ADD", "Div": "DIV", "Mul": "MUL", "Sub": "SUB", "Max": "MAXIMUM"}
UNARY = {
    "Abs": "ABS",
    "Elu": "ELU",
    "Exp": "EXP",
    "HardSwish": "HARD_SWISH",
    "Log": "LOG",
    "Neg": "NEG",
    "Relu": "RELU",
    "Sigmoid": "LOGISTIC",
    "Sqrt": "SQRT",
    "Tanh": "TANH",
}


def draw_float(draft: Draft, step: Instruction) -> None:
    """Raises GraphError for a node that is not in FLOATS."""
    node = draft.nodes[step.name]
    if node.op_type not in FLOATS or node.domain:
        what = f"TensorFlow Lite gets no {node.op_type} in float: `{step.name}`"
        raise GraphError(what, hint=f"in float it gets {', '.join(sorted(FLOATS))}")
    for value in node.inputs:
        values = array(value)
        if value is not None and values is not None:
            draft.hold_constant(str(value.name), values)
    FLOATS[node.op_type](draft, step, node)


def _like(op: str) -> Callable[[Draft, Instruction, Node], None]:
    """As the instruction of that kind, which asks for no grid."""

    def draw(draft: Draft, step: Instruction, node: Node) -> None:
        rank = len(draft.grid(step.inputs[0]).shape)
        given = {
            "perm": list(attribute(node, "perm", tuple(reversed(range(rank))))),
            "axis": attribute(node, "axis", -1) % rank,
        }
        OPERATORS[op](draft, replace(step, attributes=given))

    return draw


def _binary(kind: str) -> Callable[[Draft, Instruction, Node], None]:
    def draw(draft: Draft, step: Instruction, node: Node) -> None:
        names = [str(value.name) for value in node.inputs if value is not None]
        rank = len(draft.grid(step.outputs[0]).shape)
        whole = [n for n in step.inputs if len(draft.grid(n).shape) == rank]
        order = draft.order(whole[0]) if whole else plain(rank)
        read = [draft.read_like(name, order) for name in names]
        draft.draw(kind, read, [draft.make(step.outputs[0], order)])

    return draw


def _unary(kind: str) -> Callable[[Draft, Instruction, Node], None]:
    def draw(draft: Draft, step: Instruction, node: Node) -> None:
        order = draft.order(step.inputs[0])
        read = draft.read(step.inputs[0], order)
        draft.draw(kind, [read], [draft.make(step.outputs[0], order)])

    return draw


def _clip(draft: Draft, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    index = draft.read(step.inputs[0], order)
    for kind, bound in zip(("MAXIMUM", "MINIMUM"), node.inputs[1:], strict=False):
        values = array(bound)
        if values is not None:
            limit = draft.constant(f"{step.name}_{kind}", values.reshape(1).astype(np.float32))
            made = draft.hidden(step.outputs[0], order, f"{step.outputs[0]}_{kind}")
            draft.draw(kind, [index, limit], [made])
            index = made
    draft.hold(step.outputs[0], order, index)


FLOATS: Mapping[str, Callable[[Draft, Instruction, Node], None]] = {
    **{type: _binary(kind) for type, kind in BINARY.items()},
    **{type: _unary(kind) for type, kind in UNARY.items()},
    **dict.fromkeys(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"), _like("reshape")),
    "Clip": _clip,
    "Concat": _like("concat"),
    "Softmax": _like("softmax_twice"),
    "Transpose": _like("transpose"),
}
