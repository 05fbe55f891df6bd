"""Rules of operators that only move values: the codes move, rescaled if the grids differ."""

from __future__ import annotations

import numpy as np

from npumake.digest import Json
from npumake.engine.quantized_node import (
    LoweredStep,
    QuantizedNode,
    Rule,
    code_of,
    constant_parameters,
    factor,
)
from npumake.graph import Node, array, attribute, is_float

# A larger fill is a mask: a grid that covers it would resolve nothing else.
MAX_FILL = 256.0


def concat(site: QuantizedNode) -> LoweredStep:
    factors = [operand.scale / site.scale for operand in site.operands]
    axis = attribute(site.node, "axis") % len(site.output.shape)
    return LoweredStep("concat", factor(factors), {"axis": axis})


def selected(op: str) -> Rule:
    """Max or Min of any number of tensors."""

    def lower(site: QuantizedNode) -> LoweredStep:
        return LoweredStep(
            op, factor([operand.scale / site.scale for operand in site.operands]), {}
        )

    return Rule(lower, _has_finite_operands)


def _has_finite_operands(node: Node) -> bool:
    """Whether all constant operands are finite, so that a grid can hold them."""
    constants = [c for value in node.inputs if is_float(value) and (c := array(value)) is not None]
    return all(np.isfinite(values).all() for values in constants)


def reshape(site: QuantizedNode) -> LoweredStep:
    constants = factor(site.operands[0].scale / site.scale)
    return LoweredStep("reshape", constants, {"shape": list(site.output.shape)})


def transpose(site: QuantizedNode) -> LoweredStep:
    rank = len(site.output.shape)
    order = list(attribute(site.node, "perm", tuple(reversed(range(rank)))))
    return LoweredStep("transpose", factor(site.operands[0].scale / site.scale), {"perm": order})


def pad_fits(node: Node) -> bool:
    """Whether the Pad repeats values or adds a constant fill, without `axes` and without
    cropping."""
    pads, value, axes = (array(parameter) for parameter in [*node.inputs[1:], None, None, None][:3])
    if pads is None or axes is not None or not constant_parameters(node) or (pads < 0).any():
        return False
    mode = attribute(node, "mode", "constant")
    if mode != "constant":
        return mode in ("edge", "reflect", "wrap")
    return value is None or bool(np.abs(value.astype(np.float64)).max(initial=0) <= MAX_FILL)


def fill_of(node: Node) -> float:
    """The fill value of a Pad; 0 for modes that repeat values."""
    value = array(node.inputs[2]) if len(node.inputs) > 2 else None
    is_constant = attribute(node, "mode", "constant") == "constant"
    return 0.0 if value is None or not is_constant else float(value.reshape(-1)[0])


def pad(site: QuantizedNode) -> LoweredStep:
    pads = array(site.node.inputs[1])
    assert pads is not None
    attributes: dict[str, Json] = {
        "around": [[int(a), int(b)] for a, b in pads.reshape(2, -1).T],
        "mode": attribute(site.node, "mode", "constant"),
        "fill": code_of(fill_of(site.node), site.output),
    }
    return LoweredStep("pad", factor(site.operands[0].scale / site.scale), attributes)


def gather(site: QuantizedNode) -> LoweredStep:
    indices = array(site.node.inputs[1])
    assert indices is not None
    rank = len(site.operands[0].grid.shape)
    axis = attribute(site.node, "axis", 0) % rank
    constants = factor(site.operands[0].scale / site.scale)
    return LoweredStep("gather", {"indices": indices.astype(np.int64), **constants}, {"axis": axis})


def gather_elements(site: QuantizedNode) -> LoweredStep:
    """Indices of the gathered elements in the flattened tensor."""
    places, indices = _places(site)
    axis = attribute(site.node, "axis", 0) % places.ndim
    read = tuple(slice(None if a == axis else n) for a, n in enumerate(indices.shape))
    return _take(site, np.take_along_axis(places[read], indices, axis))


def gather_nd(site: QuantizedNode) -> LoweredStep:
    """As `gather_elements`, for elements and whole slices."""
    places, indices = _places(site)
    batch = attribute(site.node, "batch_dims", 0)
    shape, depth = places.shape[:batch], indices.shape[-1]
    rows = zip(
        places.reshape(-1, *places.shape[batch:]),
        indices.reshape(-1, *indices.shape[batch:]),
        strict=True,
    )
    elements = np.stack([row[tuple(np.moveaxis(index, -1, 0))] for row, index in rows])
    return _take(
        site, elements.reshape(*shape, *indices.shape[batch:-1], *places.shape[batch + depth :])
    )


def _places(site: QuantizedNode) -> tuple[np.ndarray, np.ndarray]:
    indices, shape = array(site.node.inputs[1]), site.operands[0].grid.shape
    assert indices is not None
    return np.arange(np.prod(shape, dtype=np.int64)).reshape(shape), indices


def _take(site: QuantizedNode, places: np.ndarray) -> LoweredStep:
    return LoweredStep(
        "take", {"indices": places, **factor(site.operands[0].scale / site.scale)}, {}
    )


def tile(site: QuantizedNode) -> LoweredStep:
    """Tile and Expand: the output shape gives the repeats."""
    return LoweredStep("tile", factor(site.operands[0].scale / site.scale), {})


def depth_to_space(site: QuantizedNode) -> LoweredStep:
    mode = attribute(site.node, "mode", "DCR")
    return _blocks(site, "depth_to_space", {"mode": mode})


def blocks_fit(node: Node) -> bool:
    """Opset 28 added a mode to SpaceToDepth; DCR is the default and the only one supported."""
    return bool(attribute(node, "mode", "DCR") == "DCR")


def space_to_depth(site: QuantizedNode) -> LoweredStep:
    return _blocks(site, "space_to_depth", {})


def _blocks(site: QuantizedNode, op: str, attributes: dict[str, Json]) -> LoweredStep:
    size = {"blocksize": attribute(site.node, "blocksize")}
    return LoweredStep(op, factor(site.operands[0].scale / site.scale), size | attributes)


def sliced(site: QuantizedNode) -> LoweredStep:
    """Resolves ends that are negative or out of range into the spans of Python slices."""
    dims = site.operands[0].grid.shape
    parameters = [array(value) for value in site.node.inputs[1:]]
    starts, ends, axes, steps = [*parameters, None, None][:4]
    assert starts is not None
    assert ends is not None
    axes = np.arange(len(starts)) if axes is None else axes % len(dims)
    steps = np.ones(len(starts), np.int64) if steps is None else steps
    spans = [
        [int(axis), bound(start, dims[axis], step, 1), bound(end, dims[axis], step, 0), int(step)]
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    ]
    return LoweredStep("slice", factor(site.operands[0].scale / site.scale), {"spans": spans})


def bound(position: int, size: int, step: int, first: int) -> int | None:
    """A start (first = 1) or end within the axis; None for an end before index 0."""
    counted = int(position) + (size if position < 0 else 0)
    if step > 0:
        return min(max(counted, 0), size)
    bound = min(max(counted, first - 1), size - 1)
    return bound if bound >= 0 else None
