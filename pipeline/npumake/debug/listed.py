"""The rows of a comparison as the vendor's tool lists them, with the figures of their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from npumake.bundle.program import Program, Tensor
from npumake.debug.compared import NodeRow
from npumake.debug.node_table import Entry, Listing
from npumake.debug.twins import View, compared_nodes, tensor_of
from npumake.graph import Graph, Node
from npumake.quant.precision.placement import activations
from npumake.quant.precision.type_propagation import WIDE
from npumake.targets.target import Target


def listing_of(
    graph: Graph,
    target: Target,
    rows: Sequence[NodeRow],
    views: Mapping[str, View],
    program: Program,
) -> Listing | None:
    """The data behind a vendor's rows, for a float graph in the target's form and its node `rows`;
    None if the vendor's listing is unknown."""
    if target.form is None:
        return None
    nodes = compared_nodes(graph)
    return Listing(
        graph,
        target.form,
        {row.node for row in rows if row.subgraph is not None},
        {str(node.name) for node in nodes if views[tensor_of(node)].sums},
        {row.node for row in rows if WIDE in row.dtype},
        {str(node.name): _requantized(node, views[tensor_of(node)], program) for node in nodes},
    )


def listed(listing: Listing, rows: Sequence[NodeRow]) -> tuple[NodeRow, ...]:
    """The vendor's rows, with the figures of the nodes' `rows`."""
    by_node = {row.node: row for row in rows}
    return tuple(_row(entry, by_node) for entry in listing.entries() if entry.node in by_node)


def _requantized(node: Node, view: View, program: Program) -> list[str]:
    """The inputs of a Concat with another grid than its output."""
    whole = program.tensors[view.program]
    if node.op_type != "Concat" or whole.scale is None:
        return []
    grids = (program.tensors.get(name) for name in view.read)
    pairs = zip(activations(node), grids, strict=True)
    return [str(part.name) for part, grid in pairs if grid is None or not _is_same(grid, whole)]


def _is_same(a: Tensor, b: Tensor) -> bool:
    return (a.dtype, a.scale, a.zero_point) == (b.dtype, b.scale, b.zero_point)


def _row(entry: Entry, rows: Mapping[str, NodeRow]) -> NodeRow:
    row = replace(rows[entry.node], node=entry.name, type=entry.type)
    if entry.cpu:
        return replace(row, on="CPU", subgraph=None, threshold=None, dtype="float/float")
    if not entry.makes:
        row = replace(row, cosine=None, calibrated_cosine=None)
    reads = entry.threshold if entry.threshold is not None else row.threshold
    return replace(row, threshold=reads if entry.reads else None)
