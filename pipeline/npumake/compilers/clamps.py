"""An operator with its clamp: fused for a ReLU, else followed by MAXIMUM and MINIMUM."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from npumake.bundle.program import Instruction
from npumake.bundle.program import Tensor as Grid
from npumake.compilers.flatfile import Fields
from npumake.compilers.tflite_builder import Order, TFLiteBuilder
from npumake.errors import GraphError
from npumake.kernels import affine

NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3
BOUNDS: Mapping[int, tuple[float, float]] = {
    RELU: (0.0, np.inf),
    RELU_N1_TO_1: (-1.0, 1.0),
    RELU6: (0.0, 6.0),
}


def refused(step: Instruction, why: str) -> GraphError:
    """The error. Its hint depends on whether the node can run in float
    (npumake.compilers.tflite)."""
    return GraphError(f"TensorFlow Lite has no `{step.name}`: {why}")


def _limits(step: Instruction, grid: Grid) -> tuple[int, int]:
    types = np.iinfo(grid.dtype)
    return step.attributes.get("low", types.min), step.attributes.get("high", types.max)


def activation_of(step: Instruction, grid: Grid) -> int | None:
    """The fused activation with the instruction's clamp; None if there is none."""
    if grid.scale is None:
        return NONE
    limits, types = _limits(step, grid), np.iinfo(grid.dtype)
    if limits == (types.min, types.max):
        return NONE
    for activation, bounds in BOUNDS.items():
        real = np.asarray(bounds, np.float32)
        codes = affine.quantize(
            real, np.float32(grid.scale or 1.0), grid.zero_point, types.min, types.max
        )
        if tuple(codes.tolist()) == limits:
            return activation
    return None


def clamped(
    draft: TFLiteBuilder,
    step: Instruction,
    type: str,
    inputs: list[int],
    order: Order,
    options: Fields | Callable[[int], Fields],
) -> None:
    """Adds the operator with the clamp fused, if its options include an activation."""
    name = step.outputs[0]
    activation = activation_of(step, draft.grid(name))
    if activation == NONE or (activation is not None and callable(options)):
        output = draft.make(name, order)
        draft.draw(type, inputs, [output], options(activation) if callable(options) else options)
        return
    output = draft.hidden(name, order, f"{name}_open")
    draft.draw(type, inputs, [output], options(NONE) if callable(options) else options)
    _clamp(draft, step, output, order)


def _clamp(draft: TFLiteBuilder, step: Instruction, index: int, order: Order) -> None:
    name = step.outputs[0]
    grid = draft.grid(name)
    types, (low, high) = np.iinfo(grid.dtype), _limits(step, grid)
    bounds = {"MAXIMUM": (low, types.min), "MINIMUM": (high, types.max)}
    needed = {type: bound for type, (bound, limit) in bounds.items() if bound != limit}
    for type, bound in needed.items():
        last = type == list(needed)[-1]
        value = draft.constant(f"{name}_{type.lower()}", np.full((1,), bound, grid.dtype), grid)
        output = draft.make(name, order) if last else draft.hidden(name, order, f"{name}_{type}")
        draft.draw(type, [index, value], [output])
        index = output


def regrid(draft: TFLiteBuilder, step: Instruction, index: int, order: Order) -> None:
    """The codes on the output's grid, clamped; adds nothing if both are unchanged."""
    name = step.outputs[0]
    before, after = draft.grid(step.inputs[0]), draft.grid(name)
    if (before.scale, before.zero_point) != (after.scale, after.zero_point):
        clamped(draft, step, "QUANTIZE", [index], order, {})
    elif activation_of(step, after) == NONE:
        draft.hold(name, order, index)
    else:
        _clamp(draft, step, index, order)
