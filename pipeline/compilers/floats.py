"""Node left to the CPU → the operators of TensorFlow Lite that compute it in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pipeline.bundle.program import Instruction
from pipeline.compilers import spelled
from pipeline.compilers.clamps import refused
from pipeline.compilers.draft import NHWC, Draft, plain
from pipeline.compilers.flatfile import NUMBERS
from pipeline.compilers.operators import OPERATORS, reduced
from pipeline.compilers.recurrent import MOST_STEPS
from pipeline.compilers.resizes import resized
from pipeline.engine.rules import RULES
from pipeline.engine.site import Operand, Site, Weights
from pipeline.engine.twice import rules_of
from pipeline.errors import GraphError
from pipeline.graph import Node, array, attribute
from pipeline.passes.recurrent_steps import KINDS
from pipeline.passes.unroll_recurrent import hindrance

Drawing = Callable[[Draft, Instruction, Node], None]
BINARY = {
    "Add": "ADD",
    "And": "LOGICAL_AND",
    "Div": "DIV",
    "Equal": "EQUAL",
    "Greater": "GREATER",
    "GreaterOrEqual": "GREATER_EQUAL",
    "Less": "LESS",
    "LessOrEqual": "LESS_EQUAL",
    "Max": "MAXIMUM",
    "Min": "MINIMUM",
    "Mul": "MUL",
    "Or": "LOGICAL_OR",
    "PRelu": "PRELU",
    "Pow": "POW",
    "Sub": "SUB",
    "Where": "SELECT_V2",
}
UNARY = {
    "Abs": "ABS",
    "Cos": "COS",
    "Elu": "ELU",
    "Exp": "EXP",
    "Floor": "FLOOR",
    "HardSwish": "HARD_SWISH",
    "Log": "LOG",
    "Neg": "NEG",
    "Not": "LOGICAL_NOT",
    "Relu": "RELU",
    "Sigmoid": "LOGISTIC",
    "Sin": "SIN",
    "Sqrt": "SQRT",
    "Tanh": "TANH",
}
# Instructions that the lowering of a node in float may be, besides those of codes.
IN_FLOAT = {**OPERATORS, "sum": reduced("SUM")}
LOWERED = (
    "AveragePool",
    "Conv",
    "ConvTranspose",
    "Gather",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "MaxPool",
    "Pad",
    "ReduceMax",
    "ReduceMean",
    "ReduceSum",
    "Slice",
)


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


def _like(op: str) -> Drawing:
    """As the instruction of that kind, which asks for no grid."""

    def draw(draft: Draft, step: Instruction, node: Node) -> None:
        rank = len(draft.grid(step.inputs[0]).shape)
        given = {
            "perm": list(attribute(node, "perm", tuple(reversed(range(rank))))),
            "axis": attribute(node, "axis", -1) % max(rank, 1),
        }
        OPERATORS[op](draft, replace(step, attributes=given))

    return draw


def _identity(draft: Draft, step: Instruction, node: Node) -> None:
    """A constant that is an output of the model is copied: an output has a tensor of its own."""
    if step.inputs:
        _like("reshape")(draft, step, node)
        return
    name, held = step.outputs[0], node.inputs[0]
    order = plain(len(draft.grid(name).shape))
    draft.reshape(draft.read(str(held.name if held else ""), order), draft.make(name, order))


def _binary(kind: str) -> Drawing:
    def draw(draft: Draft, step: Instruction, node: Node) -> None:
        names = [str(value.name) for value in node.inputs if value is not None]
        rank = len(draft.grid(step.outputs[0]).shape)
        whole = [n for n in step.inputs if len(draft.grid(n).shape) == rank]
        order = draft.order(whole[0]) if whole else plain(rank)
        first, *others = (draft.read_like(name, order) for name in names)
        if kind == "SELECT_V2":
            draft.draw(kind, [first, *others], [draft.make(step.outputs[0], order)])
            return
        for index in others[:-1]:  # Max and Min take any number of tensors
            made = draft.hidden(step.outputs[0], order, f"{step.outputs[0]}_{index}")
            draft.draw(kind, [first, index], [made])
            first = made
        draft.draw(kind, [first, *others[-1:]], [draft.make(step.outputs[0], order)])

    return draw


def _unary(kind: str) -> Drawing:
    def draw(draft: Draft, step: Instruction, node: Node) -> None:
        order = draft.order(step.inputs[0])
        read = draft.read(step.inputs[0], order)
        draft.draw(kind, [read], [draft.make(step.outputs[0], order)])

    return draw


def _concat(draft: Draft, step: Instruction, node: Node) -> None:
    """Of constants too, which an instruction does not read."""
    names = tuple(str(value.name) for value in node.inputs if value is not None)
    _like("concat")(draft, replace(step, inputs=names), node)


def _cast(draft: Draft, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    types = [NUMBERS[draft.grid(name).dtype] for name in (step.inputs[0], step.outputs[0])]
    options = {index: ("b", number) for index, number in enumerate(types)}
    read = draft.read(step.inputs[0], order)
    draft.draw("CAST", [read], [draft.make(step.outputs[0], order)], options)


def _leaky_relu(draft: Draft, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    made = draft.make(step.outputs[0], order)
    read = draft.read(step.inputs[0], order)
    draft.draw("LEAKY_RELU", [read], [made], {0: ("f", attribute(node, "alpha", 0.01))})


def _blocks(kind: str) -> Drawing:
    """Blocks of an image into channels, or back, those of a place side by side."""

    def draw(draft: Draft, step: Instruction, node: Node) -> None:
        if attribute(node, "mode", "DCR") != "DCR":
            raise refused(step, "it has the mode CRD")
        read, made = draft.read(step.inputs[0], NHWC), draft.make(step.outputs[0], NHWC)
        draft.draw(kind, [read], [made], {0: ("i", attribute(node, "blocksize"))})

    return draw


def _gelu(draft: Draft, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    near = attribute(node, "approximate", "none") == "tanh"
    read, made = draft.read(step.inputs[0], order), draft.make(step.outputs[0], order)
    draft.draw("GELU", [read], [made], {0: ("?", near)})


def _matmul(draft: Draft, step: Instruction, node: Node) -> None:
    names = [str(value.name) for value in node.inputs if value is not None]
    ranks = [len(draft.grid(name).shape) for name in names]
    if ranks[1] == 2 and names[1] in draft.constants:
        _lowered(draft, step, node)
        return
    if min(ranks) < 2:
        raise refused(step, "one of its sides is a vector")
    read = [draft.read(name, plain(rank)) for name, rank in zip(names, ranks, strict=True)]
    made = draft.make(step.outputs[0], plain(max(ranks)))
    draft.draw("BATCH_MATMUL", read, [made])


def _lowered(draft: Draft, step: Instruction, node: Node) -> None:
    """As the instruction the node would be, if there were grids around it."""
    if not RULES[node.op_type].fits(node):
        raise refused(step, f"such a {node.op_type}")
    rule = rules_of("twice")[node.op_type]
    read = replace(draft.grid(step.inputs[0]), scale=1.0)
    weights = [array(node.inputs[index]) for index in rule.weights if index < len(node.inputs)]
    given = tuple(Weights(w.astype(np.float32), np.ones(1)) for w in weights if w is not None)
    made = replace(draft.grid(step.outputs[0]), scale=1.0)
    lowered = rule.lower(Site(node, (Operand(step.inputs[0], read),), given, made))
    constants = dict(lowered.constants)
    if "bias" in constants:
        constants["bias"] = given[1].values.reshape(-1)
    op = "matmul" if lowered.op == "fully_connected_twice" else lowered.op
    IN_FLOAT[op](draft, replace(step, constants=constants, attributes=lowered.attributes))


def _not_written_out(draft: Draft, step: Instruction, node: Node) -> None:
    raise refused(step, hindrance(node, MOST_STEPS) or "it is not written out")


FLOATS: Mapping[str, Drawing] = {
    **{type: _binary(kind) for type, kind in BINARY.items()},
    **{type: _unary(kind) for type, kind in UNARY.items()},
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), _like("reshape")),
    **dict.fromkeys(LOWERED, _lowered),
    **dict.fromkeys(KINDS, _not_written_out),
    "Cast": _cast,
    "Ceil": spelled.ceil,
    "Clip": spelled.clip,
    "Concat": _concat,
    "DepthToSpace": _blocks("DEPTH_TO_SPACE"),
    "Gelu": _gelu,
    "HardSigmoid": spelled.hard_sigmoid,
    "Identity": _identity,
    "LayerNormalization": spelled.layer_norm,
    "LeakyRelu": _leaky_relu,
    "MatMul": _matmul,
    "Mish": spelled.mish,
    "Reciprocal": spelled.reciprocal,
    "Resize": lambda draft, step, node: resized(draft, step),
    "Softmax": _like("softmax_twice"),
    "SpaceToDepth": _blocks("SPACE_TO_DEPTH"),
    "Softplus": spelled.softplus,
    "Softsign": spelled.softsign,
    "Transpose": _like("transpose"),
}
