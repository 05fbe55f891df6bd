"""Operators that rearrange or select elements, in TensorFlow Lite.

Depth-to-space and back is a TRANSPOSE between two RESHAPEs. DEPTH_TO_SPACE lacks int16 and ONNX's
CRD order, no NPU supports it, and LiteRT runs both equally fast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npumake.bundle.program import Instruction
from npumake.compilers.clamps import clamped, regrid
from npumake.compilers.tflite_builder import NHWC, Order, TFLiteBuilder, plain


def depth_to_space(draft: TFLiteBuilder, step: Instruction) -> None:
    (n, c, h, w), b = draft.grid(step.inputs[0]).shape, step.attributes["blocksize"]
    if step.attributes["mode"] == "DCR":  # channels are (row, column, channel of the output)
        _turned(draft, step, (n * h, w, b, c // b), (0, 2, 1, 3))
    else:  # (channel of the output, row, column)
        _turned(draft, step, (n * h, w, c // b**2, b, b), (0, 3, 1, 4, 2))


def space_to_depth(draft: TFLiteBuilder, step: Instruction) -> None:
    (n, c, h, w), b = draft.grid(step.inputs[0]).shape, step.attributes["blocksize"]
    _turned(draft, step, (n * h // b, b, w // b, b * c), (0, 2, 1, 3))


def _turned(draft: TFLiteBuilder, step: Instruction, shape: tuple[int, ...], perm: Order) -> None:
    """Reshapes an NHWC image to `shape`, permutes the axes, and reshapes to the output."""
    source, name, order = step.inputs[0], step.outputs[0], plain(len(shape))
    blocks = draft.hidden(source, order, f"{name}_blocks", shape)
    draft.reshape(draft.read(source, NHWC), blocks)
    turned = draft.hidden(source, order, f"{name}_turned", [shape[axis] for axis in perm])
    moves = draft.constant(f"{name}_perm", np.array(perm, np.int32))
    draft.draw("TRANSPOSE", [blocks, moves], [turned])
    image = draft.hidden(source, NHWC, name, draft.grid(name).shape)
    draft.reshape(turned, image)
    regrid(draft, step, image, NHWC)


def tile(draft: TFLiteBuilder, step: Instruction) -> None:
    """Adds new axes of size 1, then repeats all axes."""
    source, name = step.inputs[0], step.outputs[0]
    before, after = draft.grid(source).shape, draft.grid(name).shape
    order = draft.order(source) if len(before) == len(after) else plain(len(after))
    index = draft.read(source, order if len(before) == len(after) else plain(len(before)))
    if len(before) < len(after):
        before = (1,) * (len(after) - len(before)) + before
        whole = draft.hidden(source, order, f"{name}_whole", before)
        draft.reshape(index, whole)
        index = whole
    repeats = np.array([after[axis] // before[axis] for axis in order], np.int32)
    if (repeats != 1).any():
        output = draft.hidden(source, order, name, after)
        draft.draw("TILE", [index, draft.constant(f"{name}_repeats", repeats)], [output])
        index = output
    regrid(draft, step, index, order)


def take(draft: TFLiteBuilder, step: Instruction) -> None:
    """Indices count in the flattened tensor of the program."""
    source, name, places = step.inputs[0], step.outputs[0], step.constants["indices"]
    size = int(np.prod(draft.grid(source).shape))
    flat = draft.hidden(source, plain(1), f"{name}_flat", (size,))
    draft.reshape(draft.read_flat(source), flat)
    order = plain(places.ndim)
    output = draft.hidden(source, order, name, places.shape)
    at = draft.constant(f"{name}_places", places.astype(np.int32))
    draft.draw("GATHER", [flat, at], [output], {0: ("i", 0)})
    regrid(draft, step, output, order)


def selected(kind: str) -> Callable[[TFLiteBuilder, Instruction], None]:
    """A chain of MAXIMUM or MINIMUM, all on the output's grid."""

    def draw(draft: TFLiteBuilder, step: Instruction) -> None:
        name, rank = step.outputs[0], len(draft.grid(step.outputs[0]).shape)
        whole = [n for n in step.inputs if len(draft.grid(n).shape) == rank]
        varying = [n for n in whole if n not in draft.constants] or whole
        order = draft.order(varying[0]) if varying else plain(rank)
        first, *others = (
            _on_grid_of(draft, name, n, draft.read_like(n, order)) for n in step.inputs
        )
        for at, index in enumerate(others[:-1]):
            shape = np.broadcast_shapes(*(draft.grid(n).shape for n in step.inputs[: at + 2]))
            shape = (1,) * (rank - len(shape)) + shape
            partial_result = draft.hidden(name, order, f"{name}_{at}", shape)
            draft.draw(kind, [first, index], [partial_result])
            first = partial_result
        if others:
            clamped(draft, step, kind, [first, others[-1]], order, {})
        else:
            regrid(draft, step, first, order)

    return draw


def _on_grid_of(draft: TFLiteBuilder, name: str, source: str, index: int) -> int:
    """The operand, requantized to the grid of `name` if it differs."""
    lies, grid, tensor = draft.grid(source), draft.grid(name), draft.tensors[index]
    if (lies.scale, lies.zero_point) == (grid.scale, grid.zero_point):
        return index
    output = draft.hidden(name, plain(len(tensor.shape)), f"{name}_{source}", tensor.shape)
    draft.draw("QUANTIZE", [index], [output])
    return output
