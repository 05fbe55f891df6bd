"""Nodes left to the CPU, as float32 operators of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers import computed_gathers, float_functions, float_moves
from npumake.compilers.clamps import refused
from npumake.compilers.flatfile import NUMBERS
from npumake.compilers.float_decompositions import MAX_STEPS
from npumake.compilers.operators import OPERATORS, reduced
from npumake.compilers.resizes import resized
from npumake.compilers.tflite_builder import TFLiteBuilder, plain
from npumake.compilers.tflite_conv import MAX_MATMUL_AXES
from npumake.engine.quantized_node import Operand, QuantizedConstant, QuantizedNode, is_constant
from npumake.engine.rules import RULES
from npumake.engine.tflite_rules import rules_of
from npumake.graph import Node, array, attribute
from npumake.passes.recurrent_steps import KINDS
from npumake.passes.unroll_recurrent import hindrance

Drawing = Callable[[TFLiteBuilder, Instruction, Node], None]
BINARY = {
    "Add": "ADD",
    "And": "LOGICAL_AND",
    "Div": "DIV",
    "Equal": "EQUAL",
    "Greater": "GREATER",
    "GreaterOrEqual": "GREATER_EQUAL",
    "Less": "LESS",
    "LessOrEqual": "LESS_EQUAL",
    "Mul": "MUL",
    "Or": "LOGICAL_OR",
    "PRelu": "PRELU",
    "Sub": "SUB",
    "Where": "SELECT_V2",
}
UNARY = {
    "Abs": "ABS",
    "Cos": "COS",
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
# Float nodes may lower to these instructions besides those on codes.
IN_FLOAT = {**OPERATORS, "sum": reduced("SUM")}
LOWERED = (
    "AveragePool",
    "Conv",
    "ConvTranspose",
    "DepthToSpace",
    "Expand",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "MaxPool",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceSum",
    "Slice",
    "SpaceToDepth",
    "Tile",
)


def draw_float(draft: TFLiteBuilder, step: Instruction) -> None:
    """Adds the node's operators. Raises GraphError for an operator that is not in FLOATS."""
    node = draft.nodes[step.name]
    if node.op_type not in FLOATS or node.domain:
        raise refused(step, f"it has no {node.op_type}")
    for value in node.inputs:
        values = array(value)
        if value is not None and values is not None:
            draft.hold_constant(str(value.name), values)
    if not step.inputs:  # reads only constants, which are not folded if a branch reads them
        names = tuple(str(value.name) for value in node.inputs if value is not None)
        step = replace(step, inputs=names)
    FLOATS[node.op_type](draft, step, node)


def _like(op: str) -> Drawing:
    """As the instruction of that kind, which needs no grid."""

    def draw(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
        rank = len(draft.grid(step.inputs[0]).shape)
        spelled = {
            "perm": list(attribute(node, "perm", tuple(reversed(range(rank))))),
            "axis": attribute(node, "axis", -1) % max(rank, 1),
        }
        OPERATORS[op](draft, replace(step, attributes=spelled))

    return draw


def _identity(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """A constant output of the model is copied: an output has its own tensor."""
    if step.inputs:
        _like("reshape")(draft, step, node)
        return
    name, value = step.outputs[0], node.inputs[0]
    order = plain(len(draft.grid(name).shape))
    draft.reshape(draft.read(str(value.name if value else ""), order), draft.make(name, order))


def _binary(kind: str) -> Drawing:
    def draw(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
        names = [str(value.name) for value in node.inputs if value is not None]
        rank = len(draft.grid(step.outputs[0]).shape)
        whole = [n for n in step.inputs if len(draft.grid(n).shape) == rank]
        order = draft.order(whole[0]) if whole else plain(rank)
        read = [draft.read_like(name, order) for name in names]
        draft.draw(kind, read, [draft.make(step.outputs[0], order)])

    return draw


def _unary(kind: str) -> Drawing:
    def draw(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
        order = draft.order(step.inputs[0])
        read = draft.read(step.inputs[0], order)
        draft.draw(kind, [read], [draft.make(step.outputs[0], order)])

    return draw


def _whole(step: Instruction, node: Node) -> Instruction:
    """The step with the node's constant inputs, which an instruction omits."""
    return replace(step, inputs=tuple(str(v.name) for v in node.inputs if v is not None))


def _concat(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    _like("concat")(draft, _whole(step, node), node)


def _selected(op: str) -> Drawing:
    return lambda draft, step, node: OPERATORS[op](draft, _whole(step, node))


def _cast(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    types = [draft.grid(name).dtype for name in (step.inputs[0], step.outputs[0])]
    if strange := next((kind for kind in types if kind not in NUMBERS), None):
        raise refused(step, f"it has no type {strange}")
    options = {index: ("b", NUMBERS[kind]) for index, kind in enumerate(types)}
    read = draft.read(step.inputs[0], order)
    draft.draw("CAST", [read], [draft.make(step.outputs[0], order)], options)


def _leaky_relu(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    output = draft.make(step.outputs[0], order)
    read = draft.read(step.inputs[0], order)
    draft.draw("LEAKY_RELU", [read], [output], {0: ("f", attribute(node, "alpha", 0.01))})


def _gelu(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    order = draft.order(step.inputs[0])
    near = attribute(node, "approximate", "none") == "tanh"
    read, output = draft.read(step.inputs[0], order), draft.make(step.outputs[0], order)
    draft.draw("GELU", [read], [output], {0: ("?", near)})


def _pow(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """Both sides have one type; a constant integer exponent becomes a scalar."""
    base, exponent = (str(value.name) for value in node.inputs if value is not None)
    types = [draft.grid(name).dtype for name in (base, exponent)]
    if types[0] != types[1]:
        if exponent not in draft.constants:
            raise refused(step, f"its base is {types[0]} and its exponent {types[1]}")
        draft.constants[exponent] = draft.constants[exponent].astype(types[0])
    _binary("POW")(draft, step, node)


def _matmul(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    names = [str(value.name) for value in node.inputs if value is not None]
    ranks = [len(draft.grid(name).shape) for name in names]
    if ranks[1] == 2 and names[1] in draft.constants:
        _lowered(draft, step, node)
        return
    if min(ranks) < 2:
        raise refused(step, "one of its sides is a vector")
    if max(ranks) > MAX_MATMUL_AXES:
        raise refused(step, f"it has {max(ranks)} axes")
    read = [draft.read(name, plain(rank)) for name, rank in zip(names, ranks, strict=True)]
    output = draft.make(step.outputs[0], plain(max(ranks)))
    draft.draw("BATCH_MATMUL", read, [output])


def _lowered(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """As the instruction that the node would be with grids around it."""
    if not RULES[node.op_type].fits(node):
        constant = all(is_constant(value) for value in node.inputs[1:] if value is not None)
        why = (
            f"it has no {node.op_type} with these attributes"
            if constant
            else "its weights are computed"
        )
        raise refused(step, why)
    rule = rules_of("twice")[node.op_type]
    read = replace(draft.grid(step.inputs[0]), scale=1.0)
    weights = [array(node.inputs[index]) for index in rule.weights if index < len(node.inputs)]
    parameters = tuple(
        QuantizedConstant(w.astype(np.float32), np.ones(1)) for w in weights if w is not None
    )
    output = replace(draft.grid(step.outputs[0]), scale=1.0)
    lowered = rule.lower(QuantizedNode(node, (Operand(step.inputs[0], read),), parameters, output))
    constants = dict(lowered.constants)
    if "bias" in constants:
        constants["bias"] = parameters[1].values.reshape(-1)
    op = "matmul" if lowered.op == "fully_connected_twice" else lowered.op
    IN_FLOAT[op](draft, replace(step, constants=constants, attributes=lowered.attributes))


def _at_computed(drawing: Drawing) -> Drawing:
    """Constant indices are those of the instruction."""

    def draw(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
        (drawing if not RULES[node.op_type].fits(node) else _lowered)(draft, step, node)

    return draw


def _not_written_out(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    raise refused(step, hindrance(node, MAX_STEPS) or "it has no decomposition")


FLOATS: Mapping[str, Drawing] = {
    **{type: _binary(kind) for type, kind in BINARY.items()},
    **{type: _unary(kind) for type, kind in UNARY.items()},
    **dict.fromkeys(("Flatten", "Reshape", "Squeeze", "Unsqueeze"), _like("reshape")),
    **dict.fromkeys(LOWERED, _lowered),
    **dict.fromkeys(KINDS, _not_written_out),
    "ArgMax": float_moves.arg_max,
    "Cast": _cast,
    "Ceil": float_functions.ceil,
    "Clip": float_functions.clip,
    "Concat": _concat,
    "Gather": float_moves.gather,
    "GatherElements": _at_computed(computed_gathers.gather_elements),
    "GatherND": _at_computed(computed_gathers.gather_nd),
    "Gelu": _gelu,
    "HardSigmoid": float_functions.hard_sigmoid,
    "Identity": _identity,
    "LeakyRelu": _leaky_relu,
    "MatMul": _matmul,
    "Max": _selected("maximum"),
    "Min": _selected("minimum"),
    "Mish": float_functions.mish,
    "Pad": float_moves.pad,
    "Pow": _pow,
    "Reciprocal": float_functions.reciprocal,
    "Resize": lambda draft, step, node: resized(draft, step),
    "Softmax": _like("softmax_twice"),
    "Softplus": float_functions.softplus,
    "Softsign": float_functions.softsign,
    "TopK": float_moves.top_k,
    "Transpose": _like("transpose"),
}
