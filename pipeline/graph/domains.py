"""Attributes and parameters outside what the ONNX operator specification lets them be.

onnx's checker knows names and types alone, and engines differ in what else they forgive: here a
flag is 0 or 1, a count is 1 or more, a list of sizes has one axis, and a window fits its weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import onnx_ir as ir

from pipeline.errors import GraphError
from pipeline.graph.match import attribute, open_dimensions, shape

FLAGS = frozenset(
    "antialias ceil_mode center_point_box count_include_pad exclude_outside exclusive "
    "input_forget keepdims largest layout linear_before_reset noop_with_empty_axes reverse "
    "select_last_index sorted storage_order transA transB".split()
)
COUNTS = frozenset(
    "blocksize dilations group hidden_size kernel_shape num_outputs size strides".split()
)
ENDLESS = frozenset({"max", "min", "value"})  # float attributes that may be infinite
WINDOWS = ("Conv", "ConvTranspose", "AveragePool", "MaxPool", "LpPool")
WEIGHED = ("Conv", "ConvTranspose")
PER_AXIS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2, "output_padding": 1}
# Inputs that are lists, by operator; by opset some are attributes, which are lists anyway.
LISTS = {
    "Expand": (1,),
    "Pad": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceSum": (1,),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}


def refuse_odd_attributes(nodes: Iterable[ir.Node]) -> None:
    """Raises GraphError for the first node whose attributes no engine has to understand."""
    for node in nodes:
        if node.domain in ("", "ai.onnx"):
            _refuse_numbers(node)
            _refuse_no_list(node)


def _refuse_numbers(node: ir.Node) -> None:
    for name in node.attributes:
        given = attribute(node, name)
        numbers = given if isinstance(given, tuple) else (given,)
        if name in FLAGS and any(number not in (0, 1) for number in numbers):
            raise _odd(node, f"`{name}` is {given}, which is neither 0 nor 1")
        if name not in ENDLESS and any(_is_endless(number) for number in numbers):
            raise _odd(node, f"`{name}` is {_text(given)}, which is not finite")
        whole = all(isinstance(number, int) for number in numbers)
        if name in COUNTS and whole and min(numbers, default=1) < 1:
            raise _odd(node, f"`{name}` is {_text(given)}: less than 1")


def _refuse_no_list(node: ir.Node) -> None:
    for index in LISTS.get(node.op_type, ()):
        value = node.inputs[index] if index < len(node.inputs) else None
        constant = None if value is None else value.const_value
        if value is not None and constant is not None and len(constant.shape) > 1:
            what = f"input {index}, `{value.name}`, has the shape {list(constant.shape)}"
            raise _odd(node, f"{what}, where a list belongs")


def refuse_windows(nodes: Iterable[ir.Node]) -> None:
    """Raises GraphError for the first window that does not fit what it slides over, as far as
    shapes are known."""
    for node in nodes:
        x = node.inputs[0] if node.op_type in WINDOWS and not node.domain else None
        if x is None or open_dimensions(x):
            continue
        sizes = shape(x)
        if len(sizes) < 3:
            raise _odd(node, f"it reads {list(sizes)}, which has no axis for a window")
        _refuse_axes(node, len(sizes) - 2)
        weight = node.inputs[1] if node.op_type in WEIGHED else None
        if weight is not None and not open_dimensions(weight):
            _refuse_weight(node, sizes, shape(weight))


def _refuse_axes(node: ir.Node, rank: int) -> None:
    for name, each in PER_AXIS.items():
        given = attribute(node, name)
        if given is not None and len(given) != each * rank:
            raise _odd(node, f"`{name}` is {_text(given)}: {each * rank} belong to {rank} axes")


def _refuse_weight(node: ir.Node, sizes: Sequence[int], weight: Sequence[int]) -> None:
    group, kernel = attribute(node, "group", 1), attribute(node, "kernel_shape")
    if len(weight) != len(sizes):
        raise _odd(node, f"its weight is {list(weight)}, what it reads {list(sizes)}")
    if kernel is not None and list(kernel) != list(weight[2:]):
        raise _odd(node, f"`kernel_shape` is {_text(kernel)}, its weight {list(weight)}")
    read = weight[1] * group if node.op_type == "Conv" else weight[0]
    if read != sizes[1] or weight[0] % group:
        raise _odd(
            node, f"it reads {sizes[1]} channels in {group} groups, its weight is {list(weight)}"
        )


def _is_endless(number: object) -> bool:
    return isinstance(number, float) and not math.isfinite(number)


def _text(given: object) -> str:
    return str(list(given)) if isinstance(given, tuple) else str(given)


def _odd(node: ir.Node, what: str) -> GraphError:
    return GraphError(f"{node.op_type} `{node.name}`: {what}")
