"""Resize: TensorFlow Lite has two flags for where an output stands, ONNX a rule for each half.

A nearest one is drawn where some setting of the flags reads the same inputs; with n inputs and m
outputs it reads, for output i,

    neither            floor(i * n / m)
    half pixel         floor((i + 1/2) * n / m)
    align corners      round(i * (n - 1) / (m - 1))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from pipeline.bundle.program import Instruction
from pipeline.compilers.clamps import refused, regrid
from pipeline.compilers.draft import NHWC, Draft
from pipeline.engine import resizing
from pipeline.graph import Node, array, attribute
from pipeline.kernels import resize

# What else ONNX has, and TensorFlow Lite has not.
PLAIN = {"antialias": 0, "exclude_outside": 0, "keep_aspect_ratio_policy": "stretch"}
SAME = 1e-6  # of two scales, one of them in float32
ALIGNED, HALF_PIXEL, NEITHER = (True, False), (False, True), (False, False)
LINEAR = {
    "align_corners": ALIGNED,
    "asymmetric": NEITHER,
    "half_pixel": HALF_PIXEL,
    "pytorch_half_pixel": HALF_PIXEL,
}


def resized(draft: Draft, step: Instruction) -> None:
    """The instruction on codes, or the node left in float: they read and make alike."""
    node, name = draft.nodes[step.name], step.outputs[0]
    before, after = (draft.grid(step.inputs[0]).shape, draft.grid(name).shape)
    if len(after) != 4 or before[:2] != after[:2]:
        raise refused(step, "it resizes more than height and width")
    mode = attribute(node, "mode", "nearest")
    if mode not in ("linear", "nearest"):
        raise refused(step, f"its mode is {mode}")
    if odd := [name for name, plain in PLAIN.items() if attribute(node, name, plain) != plain]:
        raise refused(step, f"it has {odd[0]}")
    linear = mode == "linear"
    coordinates = attribute(node, "coordinate_transformation_mode", "half_pixel")
    flags = LINEAR.get(coordinates) if linear else _nearest(node, before, after)
    in_float = draft.grid(name).scale is None
    elsewhere = linear and in_float and _is_elsewhere(node, coordinates, before, after)
    if flags is None or elsewhere:
        raise refused(step, f"it reads at {coordinates} coordinates")
    aligned, half = flags
    size = draft.constant(f"{name}_size", np.array(after[2:], np.int32))
    kind, first = ("RESIZE_BILINEAR", 2) if linear else ("RESIZE_NEAREST_NEIGHBOR", 0)
    made = draft.hidden(step.inputs[0], NHWC, name, after)
    options = {first: ("?", aligned), first + 1: ("?", half)}
    draft.draw(kind, [draft.read(step.inputs[0], NHWC), size], [made], options)
    if in_float:
        draft.hold(name, NHWC, made)
    else:
        regrid(draft, step, made, NHWC)


def _scales(node: Node, before: tuple[int, ...], after: tuple[int, ...]) -> list[float]:
    """Of height and width, as given: n times that is rounded down to m; else m / n."""
    scales = [m / n for n, m in zip(before, after, strict=True)]
    given = array(node.inputs[2]) if len(node.inputs) > 2 else None
    if given is not None and given.size:
        for axis, scale in zip(attribute(node, "axes", range(given.size)), given, strict=True):
            scales[axis] = float(scale)
    return scales[2:]


def _is_elsewhere(
    node: Node, coordinates: resize.Coordinates, before: tuple[int, ...], after: tuple[int, ...]
) -> bool:
    """Whether ONNX reads a linear one at other places than TensorFlow Lite, which knows the sizes
    alone. On codes our engine reads where the file does, and the comparison tells what it costs."""
    sizes = list(zip(before[2:], after[2:], _scales(node, before, after), strict=True))
    if coordinates == "pytorch_half_pixel" and any(m == 1 != n for n, m, _ in sizes):
        return True
    stretched = any(abs(m / n / scale - 1) > SAME for n, m, scale in sizes)
    return stretched and coordinates != "align_corners"


def _nearest(
    node: Node, before: tuple[int, ...], after: tuple[int, ...]
) -> tuple[bool, bool] | None:
    if not resizing.is_known(node):
        return None
    rule = attribute(node, "nearest_mode", "round_prefer_floor")
    mode, scales = resizing.coordinates(node), resizing.changed(node)
    sizes = list(zip(before, after, strict=True))
    wanted = {
        axis: resize.nearest_indices(*sizes[axis], scale, mode, rule).tolist()
        for axis, scale in scales.items()
    }
    for flags, read in READ.items():
        if all(
            read(n, m) == wanted.get(axis, [*range(m)])
            for axis, (n, m) in enumerate(sizes)
            if axis > 1
        ):
            return flags
    return None


def _agreed(n: int, m: int, flags: tuple[bool, bool]) -> list[int] | None:
    """The inputs that LiteRT reads; None where its kernels do not agree.

    The reference kernel and that of microcontrollers multiply in float32, which misses some
    integers; others compute in whole numbers.
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
