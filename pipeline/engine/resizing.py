"""Resize becomes an index per output element, and for linear two neighbours and their weight."""

from __future__ import annotations

from typing import get_args

import numpy as np

from pipeline.engine.site import Site, Step, constant_parameters, factor
from pipeline.graph import Node, array, attribute, shape
from pipeline.kernels import resize

# What the kernels compute, and nothing else; `axes` says that the scales are not one per axis.
PLAIN = {
    "antialias": 0,
    "axes": None,
    "exclude_outside": 0,
    "keep_aspect_ratio_policy": "stretch",
}


def fits(node: Node) -> bool:
    """Nearest over any axes and linear over two, where coordinates depend on the sizes alone."""
    mode = attribute(node, "mode", "nearest")
    if _transform(node) not in get_args(resize.Coordinates) or not constant_parameters(node):
        return False
    if any(attribute(node, name, plain) != plain for name, plain in PLAIN.items()):
        return False
    return mode == "nearest" or (mode == "linear" and len(_changed(node)) <= 2)


def lower(site: Site) -> Step:
    node, before, after = site.node, site.operands[0].grid.shape, site.output.shape
    linear = attribute(node, "mode", "nearest") == "linear"
    scales = _changed(node)
    unit = 2.0 ** -(resize.KEPT_BITS * len(scales)) if linear else 1.0
    constants = factor(site.operands[0].scale / site.scale * unit)
    for axis, scale in scales.items():
        sizes = (before[axis], after[axis], scale, _transform(node))
        if linear:
            taps = resize.linear_taps(*sizes)
            named = {"low": taps.low, "high": taps.high, "weight": taps.weight}
        else:
            rule = attribute(node, "nearest_mode", "round_prefer_floor")
            named = {"index": resize.nearest_indices(*sizes, rule)}
        constants |= {f"{role}_{axis}": values for role, values in named.items()}
    op = "resize_linear" if linear else "resize_nearest"
    return Step(op, constants, {"axes": list(scales)})


def _transform(node: Node) -> resize.Coordinates:
    return attribute(node, "coordinate_transformation_mode", "half_pixel")


def _changed(node: Node) -> dict[int, float]:
    """Output over input by axis, where it is not 1: as given, or from the sizes given instead."""
    assert node.inputs[0] is not None
    before, after = shape(node.inputs[0]), shape(node.outputs[0])
    given = array(node.inputs[2]) if len(node.inputs) > 2 else None
    if given is None or not given.size:
        given = np.divide(after, before)
    return {axis: float(scale) for axis, scale in enumerate(given) if scale != 1}
