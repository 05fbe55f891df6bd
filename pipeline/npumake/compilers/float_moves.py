"""Float nodes that move or select values, as operators of TensorFlow Lite."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction
from npumake.bundle.program import Tensor as Grid
from npumake.compilers import data_movement, operators
from npumake.compilers.clamps import refused
from npumake.compilers.flatfile import NUMBERS
from npumake.compilers.tflite_builder import TFLiteBuilder, plain
from npumake.engine.moving import fill_of
from npumake.graph import Node, Value, array, attribute, shape


def pad(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """As the instruction, which needs a smaller fill value."""
    pads, axes = array(node.inputs[1]), node.inputs[3] if len(node.inputs) > 3 else None
    value = node.inputs[2] if len(node.inputs) > 2 else None
    if pads is None or axes is not None or (pads < 0).any() or _computed(value):
        raise refused(step, "its padding is computed or negative")
    around = [[int(begin), int(end)] for begin, end in pads.reshape(2, -1).T]
    spelled = {"around": around, "mode": attribute(node, "mode", "constant"), "fill": fill_of(node)}
    data_movement.pad(draft, replace(step, attributes=spelled))


def _computed(value: Value | None) -> bool:
    return value is not None and array(value) is None


def gather(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """From a tensor or a table, with constant or computed indices."""
    data, where = (str(value.name) for value in node.inputs if value is not None)
    rank, ranks = len(draft.grid(data).shape), len(draft.grid(where).shape)
    axis, places = attribute(node, "axis", 0) % rank, draft.constants.get(where)
    if places is not None:
        size = draft.grid(data).shape[axis]
        indices = {"indices": np.where(places < 0, places + size, places)}
        axis_attribute = {"axis": axis}
        data_movement.gather(
            draft, replace(step, inputs=(data,), constants=indices, attributes=axis_attribute)
        )
        return
    read = [draft.read(data, plain(rank)), draft.read(where, plain(ranks))]
    output = draft.make(step.outputs[0], plain(rank + ranks - 1))
    draft.draw("GATHER", read, [output], {0: ("i", axis)})


def arg_max(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    axis = attribute(node, "axis", 0) % len(draft.grid(step.inputs[0]).shape)
    keep, last = attribute(node, "keepdims", 1), attribute(node, "select_last_index", 0)
    operators.arg_max(
        draft, replace(step, attributes={"axis": axis, "keepdims": bool(keep), "last": last})
    )


def top_k(draft: TFLiteBuilder, step: Instruction, node: Node) -> None:
    """The largest of the last axis in order, the first of equal ones. Indices are int32."""
    rank, count = len(draft.grid(step.inputs[0]).shape), array(node.inputs[1])
    axis = attribute(node, "axis", -1) % rank
    if count is None or not attribute(node, "largest", 1):
        raise refused(step, "it selects the smallest values, or its k is computed")
    order = (*(a for a in range(rank) if a != axis), axis)
    k = draft.constant(f"{step.name}_k", count.reshape(()).astype(np.int32))
    names = [str(value.name) for value in node.outputs]
    grid = replace(draft.grid(step.inputs[0]), shape=_shape(node))
    values = draft.hidden_on(grid, order, names[0])
    places = draft.hidden_on(Grid(_shape(node), "int32"), order, f"{names[1]}_places")
    draft.draw("TOPK_V2", [draft.read(step.inputs[0], order), k], [values, places])
    for name in step.outputs:
        if name == names[0]:
            draft.hold(name, order, values)
        else:
            types = [("b", NUMBERS[dtype]) for dtype in ("int32", draft.grid(name).dtype)]
            draft.draw("CAST", [places], [draft.make(name, order)], dict(enumerate(types)))


def _shape(node: Node) -> tuple[int, ...]:
    return next(shape(value) for value in node.outputs if value.shape is not None)
