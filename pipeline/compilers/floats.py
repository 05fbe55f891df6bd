"""Node left to the CPU → the operator of TensorFlow Lite that computes it in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pipeline.bundle.program import Instruction
from pipeline.compilers.draft import Draft, plain
from pipeline.compilers.operators import OPERATORS
from pipeline.compilers.resizes import resized
from pipeline.engine.rules import RULES
from pipeline.engine.site import Operand, Site
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


def _hard_sigmoid(draft: Draft, step: Instruction, node: Node) -> None:
    """min(max(alpha * x + beta, 0), 1)."""
    order = draft.order(step.inputs[0])
    index = draft.read(step.inputs[0], order)
    steps = {
        "MUL": attribute(node, "alpha", 0.2),
        "ADD": attribute(node, "beta", 0.5),
        "MAXIMUM": 0.0,
        "MINIMUM": 1.0,
    }
    for kind, number in steps.items():
        value = draft.constant(f"{step.name}_{kind}", np.full((1,), number, np.float32))
        made = draft.hidden(step.outputs[0], order, f"{step.outputs[0]}_{kind}")
        draft.draw(kind, [index, value], [made])
        index = made
    draft.hold(step.outputs[0], order, index)


def _leaky_relu(draft: Draft, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    made = draft.make(step.outputs[0], order)
    read = draft.read(step.inputs[0], order)
    draft.draw("LEAKY_RELU", [read], [made], {0: ("f", attribute(node, "alpha", 0.01))})


def _lowered(draft: Draft, step: Instruction, node: Node) -> None:
    """As the instruction the node would be, if there were grids around it."""
    read, made = draft.grid(step.inputs[0]), draft.grid(step.outputs[0])
    operand = Operand(step.inputs[0], replace(read, scale=1.0))
    if not RULES[node.op_type].fits(node):
        raise GraphError(f"TensorFlow Lite gets no such {node.op_type}: `{step.name}`")
    lowered = RULES[node.op_type].lower(Site(node, (operand,), (), replace(made, scale=1.0)))
    given = replace(step, constants=lowered.constants, attributes=lowered.attributes)
    OPERATORS[lowered.op](draft, given)


FLOATS: Mapping[str, Callable[[Draft, Instruction, Node], None]] = {
    **{type: _binary(kind) for type, kind in BINARY.items()},
    **{type: _unary(kind) for type, kind in UNARY.items()},
    **dict.fromkeys(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"), _like("reshape")),
    "Clip": _clip,
    "Concat": _like("concat"),
    **dict.fromkeys(("Gather", "Pad", "Slice"), _lowered),
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _leaky_relu,
    "PRelu": _binary("PRELU"),
    "Resize": lambda draft, step, node: resized(draft, step),
    "Softmax": _like("softmax_twice"),
    "Transpose": _like("transpose"),
}
