"""Calibrated models of hb_mapper and hb_compile: replaces their `horizon` operators by ONNX's.

    HzCalibration   Q and DQ: scale = threshold / 127, zero point 0
    HzSwish         x * Sigmoid(x)

`thresholds` has one number, or one per channel of `axis` (default 0). Only operator names are
published; unknown attributes are reported and have no effect.
"""

from __future__ import annotations

import numpy as np

from npumake.errors import GraphError
from npumake.graph import Graph, Node, Value, array, attribute
from npumake.graph.qdq import insert_dequantize, insert_quantize
from npumake.progress import tell

DOMAIN = "horizon"
MAX_CODE = 127.0  # int8 code of the threshold
GATE = 0.995926  # threshold behind a Sigmoid, from two public logs of horizon_nn 0.19.3
ATTRIBUTES = frozenset({"axis", "scale_type", "tensor_type", "thresholds"})


def in_onnx(graph: Graph) -> None:
    """Replaces `horizon` operators. Raises GraphError for one without a published meaning."""
    nodes = [node for node in graph.nodes() if node.domain == DOMAIN]
    strange = sorted({node.op_type for node in nodes} - RESPELLED.keys())
    if strange:
        message = f"the meaning of these operators is not published: {', '.join(strange)}"
        hint = "use the float model, or the calibrated one without preprocessing"
        raise GraphError(message, hint=hint)
    for node in nodes:
        RESPELLED[node.op_type](graph, node)
    _report_unknown_attributes(nodes)
    if nodes:
        graph.drop_unused()


def _report_unknown_attributes(nodes: list[Node]) -> None:
    names = {name for node in nodes for name in node.attributes}
    if unknown := sorted(names - ATTRIBUTES):
        tell(
            "the meaning of these attributes of HzCalibration is not published: "
            + ", ".join(unknown)
        )


def _calibration(graph: Graph, node: Node) -> None:
    value, output = node.inputs[0], node.outputs[0]
    if value is None:
        raise GraphError(f"HzCalibration `{node.name}` has no input")
    real = _on_grid(graph, value, *_scale(node, value), node)
    graph.replace_uses(output, real)
    graph.remove(node)


def _on_grid(
    graph: Graph, value: Value, scale: np.ndarray, axis: int | None, before: Node
) -> Value:
    name, zero = str(value.name), np.zeros(np.shape(scale), np.int8)
    grid = [graph.constant(f"{name}_scale", scale), graph.constant(f"{name}_zero", zero)]
    codes = insert_quantize(graph, value, grid, f"{name}_q", before=before, axis=axis)
    return insert_dequantize(graph, codes, grid, f"{name}_dq", before=before, axis=axis)


def _scale(node: Node, value: Value) -> tuple[np.ndarray, int | None]:
    """A scalar, or scales per channel with their axis. Raises GraphError for invalid
    thresholds."""
    thresholds = np.asarray(attribute(node, "thresholds", ()), np.float32)
    where = f"HzCalibration `{node.name}`"
    if not thresholds.size:
        message = f"{where} holds no thresholds: the model is not calibrated"
        raise GraphError(message, hint="use the calibrated model, or the float one")
    if not np.isfinite(thresholds).all() or (thresholds < 0).any():
        raise GraphError(f"{where}: a threshold is negative or not finite")
    scale = np.where(thresholds > 0, thresholds, 1.0).astype(np.float32) / np.float32(MAX_CODE)
    if thresholds.size == 1:
        return scale.reshape(()), None
    axis = int(attribute(node, "axis", 0))
    constant = array(value)
    if constant is not None and not (
        axis < constant.ndim and constant.shape[axis] == thresholds.size
    ):
        message = (
            f"{where} has {thresholds.size} thresholds for axis {axis} of {list(constant.shape)}"
        )
        raise GraphError(message)
    return scale, axis


def _swish(graph: Graph, node: Node) -> None:
    """Quantizes the gate with the tool's fixed threshold if the product is quantized."""
    value, name = node.inputs[0], str(node.name)
    gate = graph.insert("Sigmoid", [value], f"{name}_sigmoid", before=node)
    readers = {use.node.op_type for use in node.outputs[0].uses()}
    if readers == {"HzCalibration"}:
        gate = _on_grid(graph, gate, np.asarray(GATE / MAX_CODE, np.float32), None, node)
    graph.become(node, "Mul", [value, gate])


RESPELLED = {"HzCalibration": _calibration, "HzSwish": _swish}
