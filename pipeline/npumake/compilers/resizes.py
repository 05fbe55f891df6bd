"""Resize: TensorFlow Lite has two flags for the coordinates, ONNX many modes.

A nearest Resize uses the flags that read the same inputs, if any do. With n inputs and m outputs,
output i reads

    neither            floor(i * n / m)
    half pixel         floor((i + 1/2) * n / m)
    align corners      round(i * (n - 1) / (m - 1))

Any other nearest Resize is a GATHER along each axis. A linear one at other coordinates was already
replaced: in float by a product (npumake.passes.spelled_resize), on codes by the float node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers.clamps import refused, regrid
from npumake.compilers.data_movement import gather_along
from npumake.compilers.tflite_builder import NHWC, TFLiteBuilder
from npumake.engine import litert, resizing
from npumake.engine.quantized_node import constant_parameters
from npumake.graph import Node, attribute
from npumake.kernels import resize

ALIGNED, HALF_PIXEL, NEITHER = (True, False), (False, True), (False, False)
LINEAR = {
    "align_corners": ALIGNED,
    "asymmetric": NEITHER,
    "half_pixel": HALF_PIXEL,
    "pytorch_half_pixel": HALF_PIXEL,
}


def resized(draft: TFLiteBuilder, step: Instruction) -> None:
    """For the instruction on codes and the float node, whose inputs and outputs correspond."""
    node, name = draft.nodes[step.name], step.outputs[0]
    before, after = (draft.grid(step.inputs[0]).shape, draft.grid(name).shape)
    if not resizing.fits(node) or not litert.resizes(node):
        raise refused(step, _hindrance(node))
    linear, how = litert.is_bilinear(node), litert.coordinates(node)
    places = {} if linear else _places(node, before, after)
    flags = LINEAR[how] if linear else _nearest(places, before, after)
    if flags is None:
        gather_along(draft, step, draft.order(step.inputs[0]), places)
        return
    aligned, half = flags
    size = draft.constant(f"{name}_size", np.array(after[2:], np.int32))
    kind, first = ("RESIZE_BILINEAR", 2) if linear else ("RESIZE_NEAREST_NEIGHBOR", 0)
    output = draft.hidden(step.inputs[0], NHWC, name, after)
    options = {first: ("?", aligned), first + 1: ("?", half)}
    draft.draw(kind, [draft.read(step.inputs[0], NHWC), size], [output], options)
    if draft.grid(name).scale is None:
        draft.hold(name, NHWC, output)
    else:
        regrid(draft, step, output, NHWC)


def _hindrance(node: Node) -> str:
    if not constant_parameters(node):
        return "its sizes are computed"
    mode, policy = attribute(node, "mode", "nearest"), "keep_aspect_ratio_policy"
    if attribute(node, policy, "stretch") != "stretch":
        return f"it has {policy}"
    return f"it resizes by {mode} at {litert.coordinates(node)} coordinates"


def _places(node: Node, before: tuple[int, ...], after: tuple[int, ...]) -> dict[int, np.ndarray]:
    """The indices that a nearest Resize reads, for every axis that it changes."""
    how, rule = resizing.coordinates(node), attribute(node, "nearest_mode", "round_prefer_floor")
    return {
        axis: resize.nearest_indices(before[axis], after[axis], scale, how, rule)
        for axis, scale in resizing.changed(node).items()
    }


def _nearest(
    places: Mapping[int, np.ndarray], before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[bool, bool] | None:
    """The flags with which TensorFlow Lite reads these indices, else None."""
    if len(after) != 4 or not places.keys() <= {2, 3}:
        return None
    sizes = {axis: (before[axis], after[axis]) for axis in (2, 3)}
    targets = {axis: places.get(axis, np.arange(n)).tolist() for axis, (n, _) in sizes.items()}
    for flags, read in READ.items():
        if {axis: read(*size) for axis, size in sizes.items()} == targets:
            return flags
    return None


def _agreed(n: int, m: int, flags: tuple[bool, bool]) -> list[int] | None:
    """The indices that LiteRT reads; None if its kernels disagree.

    The reference kernel and that of microcontrollers multiply in float32, which misses some
    integers; others compute in integers.
    """
    i = np.arange(m)
    aligned, half = flags[0] and m > 1, flags[1]
    scale = np.float32(n - 1) / np.float32(m - 1) if aligned else np.float32(n) / np.float32(m)
    real = (i.astype(np.float32) + np.float32(0.5 if half else 0.0)) * scale
    if aligned:
        exact = (2 * i * (n - 1) + m - 1) // (2 * (m - 1))
        rounded = np.floor(real.astype(np.float64) + 0.5)
    else:
        exact = (2 * i + half) * n // (2 * m)
        rounded = np.floor(real)
    if not np.array_equal(np.minimum(rounded, n - 1), exact):
        return None
    return [int(place) for place in exact]


READ: Mapping[tuple[bool, bool], Callable[[int, int], list[int] | None]] = {
    flags: partial(_agreed, flags=flags) for flags in (NEITHER, HALF_PIXEL, ALIGNED)
}
