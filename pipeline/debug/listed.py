"""The rows of a comparison as the vendor's tool lists them, each with what is known of its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pipeline.bundle.program import Tensor
from pipeline.debug.compared import Row
from pipeline.debug.node_table import Entry, Listing


def listed(listing: Listing, rows: Sequence[Row]) -> tuple[Row, ...]:
    """`rows` has those of the nodes of the graph that make floats."""
    known = {row.node: row for row in rows}
    return tuple(_row(entry, known) for entry in listing.entries() if entry.node in known)


def same_grid(a: Tensor, b: Tensor) -> bool:
    return (a.dtype, a.scale, a.zero_point) == (b.dtype, b.scale, b.zero_point)


def _row(entry: Entry, rows: Mapping[str, Row]) -> Row:
    row = replace(rows[entry.node], node=entry.name, type=entry.type)
    if entry.cpu:
        return replace(row, on="CPU", subgraph=None, threshold=None, dtype="float/float")
    if not entry.makes:
        row = replace(row, cosine=None, calibrated_cosine=None)
    reads = entry.threshold if entry.threshold is not None else row.threshold
    return replace(row, threshold=reads if entry.reads else None)
