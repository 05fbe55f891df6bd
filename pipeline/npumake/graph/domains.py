"""Refuses attributes and parameters outside the ranges of the ONNX operator specification.

onnx's checker only verifies names and types, and engines differ in what else they accept. Here a
flag is 0 or 1, a count is at least 1, a list has one entry per axis, and a window fits its weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import onnx_ir as ir

from npumake.errors import GraphError
from npumake.graph.match import attribute, open_dimensions, shape
from npumake.kernels.window import extent

FLAGS = frozenset(
    {
        *("antialias", "ceil_mode", "center_point_box", "count_include_pad", "exclude_outside"),
        *("exclusive", "input_forget", "keepdims", "largest", "layout", "linear_before_reset"),
        *("noop_with_empty_axes", "reverse", "select_last_index", "sorted", "storage_order"),
        *("transA", "transB"),
    }
)
COUNTS = frozenset(
    {
        *("blocksize", "dilations", "group", "hidden_size", "kernel_shape", "num_outputs"),
        *("size", "strides"),
    }
)
INPUT_TYPES = frozenset(
    {
        *(ir.DataType.BOOL, ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE),
        *(ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64),
        *(ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64),
    }
)
MAY_BE_INFINITE = frozenset({"max", "min", "value"})  # float attributes that may be infinite
MAY_EXCEED_INT32 = frozenset(
    {"axes", "ends", "seed", "starts", "value_int", "value_ints"}
)  # attributes that may exceed int32
WORDS = {
    "auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"),
    "coordinate_transformation_mode": (
        *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"),
        *("asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn", "output_half_pixel"),
    ),
    "direction": ("forward", "reverse", "bidirectional", "LEFT", "RIGHT"),
    "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
    "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
}
MODES = {
    "DepthToSpace": ("DCR", "CRD"),
    "Pad": ("constant", "edge", "reflect", "wrap"),
    "Resize": ("nearest", "linear", "cubic"),
    "Upsample": ("nearest", "linear"),
}
WINDOWS = ("Conv", "ConvTranspose", "AveragePool", "MaxPool", "LpPool")
WEIGHED = ("Conv", "ConvTranspose")
PER_AXIS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 2, "output_padding": 1}
# Inputs that must be lists, by operator. In some opsets they are attributes, which are lists
# anyway.
REDUCED = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
LISTS = {
    **dict.fromkeys(REDUCED, (1,)),
    **dict.fromkeys(("Expand", "Pad", "Reshape", "Split", "Squeeze", "Tile", "Unsqueeze"), (1,)),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Upsample": (1,),
}
# Inputs that are parameters: none may be NaN, and factors must be finite.
NUMBERS = {"Clip": (1, 2), "Pad": (2,)}
FINITE = {"PRelu": (1,), "Resize": (2,), "Upsample": (1,)}


def refuse_odd_attributes(nodes: Iterable[ir.Node]) -> None:
    """Raises GraphError for the first node with an attribute outside the specification."""
    for node in nodes:
        if node.domain in ("", "ai.onnx"):
            for name in node.attributes:
                value = attribute(node, name)
                numbers = value if isinstance(value, tuple) else (value,)
                if odd := _odd_number(name, numbers) or _odd_word(node.op_type, name, value):
                    raise _odd(node, f"`{name}` is {_text(value)}: {odd}")
            _refuse_parameters(node)


def _odd_number(name: str, numbers: Sequence[object]) -> str:
    """The reason why a number is out of range; empty if none is."""
    if name in FLAGS and any(number not in (0, 1) for number in numbers):
        return "neither 0 nor 1"
    if any(isinstance(number, float) and not _is_allowed(number, name) for number in numbers):
        return "not finite"
    whole = [number for number in numbers if isinstance(number, int)]
    if name in COUNTS and min(whole, default=1) < 1:
        return "less than 1"
    if name not in MAY_EXCEED_INT32 and max(map(abs, whole), default=0) >= 1 << 31:
        return "beyond 32 bits"
    return ""


def _is_allowed(number: float, name: str) -> bool:
    return math.isfinite(number) or (name in MAY_BE_INFINITE and not math.isnan(number))


def _odd_word(op: str, name: str, value: object) -> str:
    choices = MODES.get(op) if name == "mode" else WORDS.get(name)
    return "" if choices is None or value in choices else f"none of {', '.join(choices)}"


def _refuse_parameters(node: ir.Node) -> None:
    for index, value in enumerate(node.inputs):
        constant = None if value is None else value.const_value
        if constant is None:
            continue
        message = f"input {index}, `{constant.name}`"
        if index in LISTS.get(node.op_type, ()) and len(constant.shape) > 1:
            what = f"{message}, has the shape {list(constant.shape)}; it must be a list"
            raise _odd(node, what, "reshape it to one axis before the model is exported")
        if index in (*NUMBERS.get(node.op_type, ()), *FINITE.get(node.op_type, ())):
            numbers = constant.numpy()
            wrong = np.isnan if index in NUMBERS.get(node.op_type, ()) else _is_endless
            if numbers.dtype.kind == "f" and wrong(numbers).any():
                raise _odd(node, f"{message}, is not finite")


def _is_endless(numbers: np.ndarray) -> np.ndarray:
    return ~np.isfinite(numbers)


def refuse_strange_inputs(inputs: Iterable[ir.Value]) -> None:
    """Raises GraphError for inputs that no sample can have: text, complex numbers, types below 8
    bits, and sizes below 1."""
    for value in inputs:
        sizes = [dim for dim in value.shape or () if isinstance(dim, int)]
        if min(sizes, default=1) < 1:
            message = f"input `{value.name}` has the shape {sizes}, which has no elements"
            raise GraphError(message, hint="export the model for inputs of a size of 1 or more")
        if value.dtype is None or value.dtype not in INPUT_TYPES:
            kind = "values of unknown type" if value.dtype is None else value.dtype.name
            message = f"input `{value.name}` takes {kind}; samples are numbers of 8 bits or more"
            raise GraphError(
                message, hint="export the model with float32 inputs, and a Cast inside"
            )


def refuse_windows(nodes: Iterable[ir.Node]) -> None:
    """Raises GraphError for the first window that does not fit its input, if shapes are known."""
    for node in nodes:
        x = node.inputs[0] if node.op_type in WINDOWS and not node.domain else None
        if x is None or open_dimensions(x):
            continue
        sizes = shape(x)
        if len(sizes) < 3:
            raise _odd(node, f"it reads {list(sizes)}, which has no spatial axis")
        _refuse_axes(node, len(sizes) - 2)
        weight = node.inputs[1] if node.op_type in WEIGHED else None
        if weight is not None and open_dimensions(weight):
            continue
        if weight is not None:
            _refuse_weight(node, sizes, shape(weight))
        if node.op_type != "ConvTranspose":
            _refuse_overhang(node, sizes[2:], shape(weight)[2:] if weight is not None else None)


def _refuse_axes(node: ir.Node, rank: int) -> None:
    for name, axis in PER_AXIS.items():
        value = attribute(node, name)
        if value is not None and len(value) != axis * rank:
            raise _odd(node, f"`{name}` is {_text(value)}: {rank} axes need {axis * rank}")


def _refuse_weight(node: ir.Node, sizes: Sequence[int], weight: Sequence[int]) -> None:
    group, kernel = attribute(node, "group", 1), attribute(node, "kernel_shape")
    if len(weight) != len(sizes):
        raise _odd(node, f"its weight is {list(weight)}, its input {list(sizes)}")
    if kernel is not None and list(kernel) != list(weight[2:]):
        raise _odd(node, f"`kernel_shape` is {_text(kernel)}, its weight {list(weight)}")
    read = weight[1] * group if node.op_type == "Conv" else weight[0]
    if read != sizes[1] or weight[0] % group:
        raise _odd(
            node, f"it reads {sizes[1]} channels in {group} groups, its weight is {list(weight)}"
        )


def _refuse_overhang(node: ir.Node, sizes: Sequence[int], weight: Sequence[int] | None) -> None:
    """No window fits an axis that is shorter. onnxruntime divides toward zero and computes one,
    of what is not there."""
    rank, auto = len(sizes), attribute(node, "auto_pad", "NOTSET")
    kernel = weight if weight is not None else attribute(node, "kernel_shape")
    if kernel is None or auto in ("SAME_UPPER", "SAME_LOWER"):
        return
    is_valid = auto == "VALID"
    pads = (0,) * 2 * rank if is_valid else attribute(node, "pads", (0,) * 2 * rank)
    strides, dilations = (attribute(node, name, (1,) * rank) for name in ("strides", "dilations"))
    rounds_up = attribute(node, "ceil_mode", 0) and not is_valid
    for axis in range(rank):
        padded = sizes[axis] + pads[axis] + pads[rank + axis]
        over = extent(kernel[axis], dilations[axis]) - padded
        if over > (strides[axis] - 1 if rounds_up else 0):
            what = (
                f"its window {list(kernel)} is larger than its padded input along axis {axis + 2}"
            )
            hint = "export the model for a larger input, or leave the node out"
            raise _odd(node, f"{what}, of {padded}", hint)


def _text(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _odd(node: ir.Node, what: str, hint: str = "") -> GraphError:
    return GraphError(f"{node.op_type} `{node.name}`: {what}", hint=hint)
