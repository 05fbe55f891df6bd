"""A function of single codes as a table: a GATHER reads 256 codes at CAST(q) + 128.

TensorFlow Lite's int8 kernels fill such a table with floats of the machine they run on. Stored in
the file, the codes are the same everywhere.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npumake.bundle.program import Instruction
from npumake.bundle.program import Tensor as Grid
from npumake.compilers.clamps import refused
from npumake.compilers.flatfile import NUMBERS, Fields
from npumake.compilers.tflite_builder import TFLiteBuilder


def tabled(draft: TFLiteBuilder, step: Instruction) -> None:
    """Raises GraphError for other types than int8: int16 would need 65536 codes."""
    (source,), (output,) = step.inputs, step.outputs
    before, after, order = draft.grid(source), draft.grid(output), draft.order(source)
    if (before.dtype, after.dtype) != ("int8", "int8"):
        kind = draft.nodes[step.name].op_type
        raise refused(step, f"{kind} from {before.dtype} to {after.dtype}")
    low, high = step.attributes.get("low", -128), step.attributes.get("high", 127)
    table = np.clip(step.constants["table"], low, high).astype(np.int8)
    places = Grid(before.shape, "int32")
    wide = draft.hidden_on(places, order, f"{output}_wide")
    place = draft.hidden_on(places, order, f"{output}_place")
    types: Fields = {0: ("b", NUMBERS["int8"]), 1: ("b", NUMBERS["int32"])}
    draft.draw("CAST", [draft.read(source, order)], [wide], types)
    first = draft.constant(f"{output}_first", np.full((1,), 128, np.int32))
    draft.draw("ADD", [wide, first], [place], {0: ("b", 0)})
    lookup = draft.constant(f"{output}_table", table, replace(after, shape=table.shape))
    draft.draw("GATHER", [lookup, place], [draft.make(output, order)], {0: ("i", 0)})
