"""Rules of Resize: one index per output element; for linear, two neighbors and a weight."""

from __future__ import annotations

from typing import get_args

from npumake.engine.quantized_node import LoweredStep, QuantizedNode, constant_parameters, factor
from npumake.graph import Node, array, attribute, shape
from npumake.kernels import resize

# The modes and attributes that the kernels compute.
PLAIN = {"antialias": 0, "exclude_outside": 0, "keep_aspect_ratio_policy": "stretch"}


def fits(node: Node) -> bool:
    """Nearest over any axes, or linear over two, at coordinates that only depend on
    the sizes."""
    mode = attribute(node, "mode", "nearest")
    if not is_known(node) or not constant_parameters(node):
        return False
    if any(attribute(node, name, plain) != plain for name, plain in PLAIN.items()):
        return False
    if mode == "linear":
        return len(changed(node)) <= 2 and coordinates(node) != "half_pixel_symmetric"
    return bool(mode == "nearest")


def lower(site: QuantizedNode) -> LoweredStep:
    node, before, after = site.node, site.operands[0].grid.shape, site.output.shape
    linear = attribute(node, "mode", "nearest") == "linear"
    scales = changed(node)
    unit = 2.0 ** -(resize.FRACTION_BITS * len(scales)) if linear else 1.0
    constants = factor(site.operands[0].scale / site.scale * unit)
    for axis, scale in scales.items():
        n, m = before[axis], after[axis]
        if linear:
            taps = resize.linear_taps(n, m, m / n if scale is None else scale, coordinates(node))
            named = {"low": taps.low, "high": taps.high, "weight": taps.weight}
        else:
            rule = attribute(node, "nearest_mode", "round_prefer_floor")
            named = {"index": resize.nearest_indices(n, m, scale, coordinates(node), rule)}
        constants |= {f"{role}_{axis}": values for role, values in named.items()}
    op = "resize_linear" if linear else "resize_nearest"
    return LoweredStep(op, constants, {"axes": list(scales)})


def is_known(node: Node) -> bool:
    """Whether the kernels support the coordinate mode. tf_crop_and_resize reads a region, and
    tf_half_pixel_for_nn left ONNX with opset 13."""
    mode = attribute(node, "coordinate_transformation_mode", "half_pixel")
    return mode in get_args(resize.Coordinates)


def coordinates(node: Node) -> resize.Coordinates:
    """The coordinate mode; half_pixel_symmetric equals half_pixel if the scales give whole
    sizes."""
    mode: resize.Coordinates = attribute(node, "coordinate_transformation_mode", "half_pixel")
    if mode != "half_pixel_symmetric":
        return mode
    assert node.inputs[0] is not None
    before, after = shape(node.inputs[0]), shape(node.outputs[0])
    scales = changed(node).items()
    whole = all(k is None or k * before[axis] == after[axis] for axis, k in scales)
    return "half_pixel" if whole else mode


def changed(node: Node) -> dict[int, float | None]:
    """The declared scale of each axis whose scale is not 1; None for axes whose size the model
    declares instead."""
    assert node.inputs[0] is not None
    before, after = shape(node.inputs[0]), shape(node.outputs[0])
    declared = array(node.inputs[2]) if len(node.inputs) > 2 else None
    if declared is None or not declared.size:
        return {axis: None for axis in range(len(before)) if before[axis] != after[axis]}
    axes = [axis % len(before) for axis in attribute(node, "axes", range(len(before)))]
    scales = dict(zip(axes, declared.tolist(), strict=True))
    return {axis: scales[axis] for axis in sorted(scales) if scales[axis] != 1}
