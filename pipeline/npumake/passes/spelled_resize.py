"""A Resize as one product with a constant matrix per resized axis.

y = M_h x M_w'        M[i, j]  the weight of input j in output i

onnxruntime resizes the unit vectors to obtain M, for any mode, coordinates and antialias. If
tf_crop_and_resize reads outside, its extrapolation value applies:

y = inside * (M_h x M_w') + (1 - inside) * value
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from npumake.engine import litert, resizing
from npumake.engine.ort import OrtSession
from npumake.engine.quantized_node import constant_parameters
from npumake.graph import Building, Node, TensorSpec, Value, array, attribute, shape
from npumake.passes.writing import Writing

SIZE_TOLERANCE = 1e-6  # relative difference of equal sizes
MAX_MATRIX_ELEMENTS = 1 << 22  # of a matrix
CROP = "tf_crop_and_resize"
ATTRIBUTES = (
    *("antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside"),
    *("mode", "nearest_mode"),
)


def resize(write: Writing) -> bool:
    node, x = write.node, write.node.inputs[0]
    assert x is not None
    if resizing.fits(node) and litert.resizes(node):
        return False
    if not constant_parameters(node):
        return False
    before, after = shape(x), shape(node.outputs[0])
    scales, spans = _scales(node, before), _regions(node, len(before))
    if spans is None:
        return False
    axes = [a for a in range(len(before)) if (before[a], scales[a]) != (after[a], 1) or spans[a]]
    if any(before[axis] * after[axis] > MAX_MATRIX_ELEMENTS for axis in axes):
        return False
    y, inside = x, np.ones(after, bool)
    for axis in axes:
        resampling = _along(node, (before[axis], after[axis]), scales[axis], spans[axis])
        if resampling is None:
            return False
        matrix, row = resampling
        y = _product(write, y, axis, matrix)
        inside &= row.reshape([-1 if a == axis else 1 for a in range(len(after))])
    return _filled(write, y, inside)


def _filled(write: Writing, y: Value, inside: np.ndarray) -> bool:
    if inside.all():
        return write.become("Identity", [y])
    value = attribute(write.node, "extrapolation_value", 0.0)
    masked = write.insert("Mul", [y, write.constant(inside.astype(np.float32), "inside")], "kept")
    return write.become("Add", [masked, write.constant(np.float32(value) * ~inside, "outside")])


def _scales(node: Node, before: tuple[int, ...]) -> list[float]:
    """By axis: the declared scales, else from the sizes, one for all if the aspect ratio is
    kept."""
    scales = litert.scales(node)
    sizes = array(node.inputs[3]) if len(node.inputs) > 3 else None
    policy = attribute(node, "keep_aspect_ratio_policy", "stretch")
    if sizes is None or policy == "stretch":
        return scales
    axes = _axes(node, len(before))
    ratios = [float(size) / before[axis] for axis, size in zip(axes, sizes, strict=True)]
    shared = min(ratios) if policy == "not_larger" else max(ratios)
    return [shared if axis in axes else scale for axis, scale in enumerate(scales)]


def _axes(node: Node, rank: int) -> list[int]:
    return [axis % rank for axis in attribute(node, "axes", range(rank))]


Span = tuple[float, float] | None


def _regions(node: Node, rank: int) -> list[Span] | None:
    """The cropped interval of each axis; None if it is computed."""
    spans: list[Span] = [None] * rank
    if attribute(node, "coordinate_transformation_mode", "half_pixel") != CROP:
        return spans
    roi = array(node.inputs[1]) if len(node.inputs) > 1 else None
    if roi is None or not roi.size:
        return None
    for axis, (begin, end) in zip(_axes(node, rank), roi.reshape(2, -1).T, strict=True):
        spans[axis] = None if (begin, end) == (0, 1) else (float(begin), float(end))
    return spans


def _along(
    node: Node, sizes: tuple[int, int], scale: float, span: Span
) -> tuple[np.ndarray, np.ndarray] | None:
    """M (n, m) of one axis, and which of the m outputs are inside, (m,)."""
    n, m = sizes
    matrix, outside = (
        _resized(node, np.asarray(x, np.float32), (scale, m), span, value)
        for x, value in ((np.eye(n), 0.0), (np.zeros((2, n)), 1.0))
    )
    if matrix.shape[1] != m:
        return None
    return matrix, outside[0] != 1.0


def _resized(
    node: Node, x: np.ndarray, to: tuple[float, int], span: Span, value: float
) -> np.ndarray:
    """x (k, n) resized along its second axis by the scale to the size, with the node's
    attributes."""
    building = Building([TensorSpec("x", x.shape)])
    (scale, size), n = to, x.shape[1]
    by_sizes = abs(scale * n - size) < SIZE_TOLERANCE * size
    attributes: Mapping[str, object] = {name: attribute(node, name) for name in ATTRIBUTES}
    region = None
    if span is not None or attributes["coordinate_transformation_mode"] == CROP:
        begin, end = span or (0.0, 1.0)
        region = building.constant("roi", np.array([0, begin, 1, end], np.float32))
    parameters = (
        [region, None, building.constant("sizes", np.array([len(x), size], np.int64))]
        if by_sizes
        else [region, building.constant("scales", np.array([1, scale], np.float32))]
    )
    outputs = building.add(
        "Resize", [*building.inputs, *parameters], ["y"], extrapolation_value=value, **attributes
    )
    graph = building.to_graph({"y": outputs[0]})
    assert node.graph is not None
    graph.model.opset_imports[""] = node.graph.opset_imports[""]
    session = OrtSession(graph.to_bytes())
    return session.run(["y"], {"x": x})[0]


def _product(write: Writing, x: Value, axis: int, matrix: np.ndarray) -> Value:
    """x M along the axis, which is last in between."""
    rank, factor = len(shape(write.node.outputs[0])), write.constant(matrix, "matrix")
    order = [a for a in range(rank) if a != axis] + [axis]
    back = [order.index(a) for a in range(rank)]
    if order == back == list(range(rank)):
        return write.insert("MatMul", [x, factor], "resized")
    last = write.insert("Transpose", [x], "last", perm=order)
    resized = write.insert("MatMul", [last, factor], "resized")
    return write.insert("Transpose", [resized], "back", perm=back)
