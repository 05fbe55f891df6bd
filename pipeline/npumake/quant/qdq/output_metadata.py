"""Metadata `outputs[]` of a quantized detector: the grid of each physical tensor.

An output is dequantized, `scale * (q - zero_point)`, or the codes q themselves; CPU outputs have no
grid. The head can no longer be cut: `outputs` replace `split_hints`. Source: EdgeFirst's metadata
schema v2, the physical layer of `outputs[]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from npumake.detection.metadata import with_outputs
from npumake.detection.notes import mark_metadata, metadata_of
from npumake.detection.outputs import DetectorOutput, OutputGrid
from npumake.graph import Graph, Value, dtype, producer
from npumake.graph.qdq import scalar_grid_of
from npumake.quant.precision.placement import source_tensor


def describe_outputs(graph: Graph) -> None:
    """Adds the grids to the metadata of `graph`, if it describes its outputs."""
    metadata = metadata_of(graph)
    if metadata is None or not metadata.outputs:
        return
    values = {str(value.name): value for value in graph.outputs}
    mark_metadata(
        graph, with_outputs(metadata, [_described(output, values) for output in metadata.outputs])
    )


def _described(output: DetectorOutput, values: Mapping[str, Value]) -> DetectorOutput:
    if output.outputs:
        children = (_described(child, values) for child in output.outputs)
        return replace(output, outputs=tuple(children))
    if output.name not in values:
        return output
    value = values[output.name]
    grid = _grid(value)
    stored = dtype(value) if grid is None else grid.dtype
    return replace(output, dtype=stored, quantization=grid)


def _grid(value: Value) -> OutputGrid | None:
    grid = scalar_grid_of(producer(source_tensor(value)))
    if grid is None:
        return None
    scale, zero_point = float(grid.scale), int(grid.zero_point)
    return OutputGrid((scale,), (zero_point,), dtype=grid.zero_point.dtype.name)
