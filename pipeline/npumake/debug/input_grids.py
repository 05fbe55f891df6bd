"""Notes on samples that do not fit the grids which a quantized model brought for its inputs.

A model file with scales of its own says which values it reads. Samples far beyond them, or in a
small part of them, were normalized another way than in training: 0..255 in place of 0..1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from npumake.custom.operators import NO_OPERATORS, Operators
from npumake.data.samples import Samples, made_up
from npumake.engine.grids import tensor_on_grid
from npumake.engine.partial.opened import of_tensors
from npumake.graph import Graph, Node, Value, producer, reads
from npumake.graph.qdq import is_quantize

EXCESS_WIDTH = 0.25  # of the grid's width
EXCESS_SHARE = 0.25  # of the samples
# Operators that normalize and arrange an input; behind others a grid is not that of the input.
FRONT = ("Add", "Cast", "Concat", "Div", "Gather", "Identity", "Mul", "Reshape", "Slice", "Sub")
FRONT_OPERATORS = frozenset((*FRONT, "Transpose"))
SMALL_PART = 0.05  # of the grid's width, over all samples


class _Quantizer(NamedTuple):
    """The first QuantizeLinear behind an input."""

    input: str
    node: Node

    @property
    def tensor(self) -> str:
        return str(self.node.inputs[0].name)  # type: ignore[union-attr]

    @property
    def reach(self) -> tuple[float, float]:
        """The real values of its smallest and largest code."""
        grid = tensor_on_grid(self.node, self.node.outputs[0])
        limits, scale = np.iinfo(grid.dtype), grid.scale or 0.0
        return scale * (limits.min - grid.zero_point), scale * (limits.max - grid.zero_point)


def input_grid_notes(
    graph: Graph, samples: Samples, operators: Operators = NO_OPERATORS
) -> tuple[str, ...]:
    """One line per input that the samples do not fit; `graph` has the Q/DQ. Raises GraphError."""
    quantizers = list(_first_quantizers(graph))
    if not quantizers or not len(samples) or made_up(samples):
        return ()
    inputs = {str(value.name) for value in graph.inputs}
    computed = [q.tensor for q in quantizers if q.tensor not in inputs]
    part = of_tensors(graph, computed, operators) if computed else None
    extremes = []
    for feed in samples:
        values = {**feed, **(part.run(feed) if part else {})}
        arrays = [values[quantizer.tensor] for quantizer in quantizers]
        extremes.append([(float(array.min()), float(array.max())) for array in arrays])
    by_input = zip(quantizers, np.array(extremes).swapaxes(0, 1), strict=True)
    return tuple(note for q, ends in by_input if (note := _note(q, ends, samples.names)))


def _note(quantizer: _Quantizer, ends: np.ndarray, names: tuple[str, ...]) -> str:
    """`ends` are the extremes of each sample, (samples, 2); empty where they fit."""
    low, high = quantizer.reach
    width = high - low
    excess = np.maximum(low - ends[:, 0], ends[:, 1] - high)
    beyond = int((excess > EXCESS_WIDTH * width).sum())
    start = f"input `{quantizer.input}`: the model's own grid reads {low:.4g}..{high:.4g}"
    end = "check its `mean` and `scale`"
    if beyond >= max(1.0, EXCESS_SHARE * len(ends)):
        worst = int(excess.argmax())
        example = f"{names[worst]}: {ends[worst, 0]:.4g}..{ends[worst, 1]:.4g}"
        return f"{start}, and {beyond} of {len(ends)} samples go beyond it ({example}); {end}"
    lowest, highest = ends[:, 0].min(), ends[:, 1].max()
    if highest - lowest < SMALL_PART * width:
        return f"{start}, and the samples only {lowest:.4g}..{highest:.4g}; {end}"
    return ""


def _first_quantizers(graph: Graph) -> Iterator[_Quantizer]:
    """Per input the first QuantizeLinear that only its values reach."""
    sources: dict[Value, str] = {value: str(value.name) for value in graph.inputs}
    quantized: set[str] = set()
    for node in graph.nodes():
        names = {sources[value] for value in reads(node) if value in sources}
        if len(names) != 1 or any(_is_unknown(value, sources) for value in reads(node)):
            continue
        (name,) = names
        if node.op_type in FRONT_OPERATORS:
            sources |= dict.fromkeys(node.outputs, name)
        elif is_quantize(node) and name not in quantized:
            quantized.add(name)
            yield _Quantizer(name, node)


def _is_unknown(value: Value, sources: dict[Value, str]) -> bool:
    return value not in sources and producer(value) is not None
