"""Places the rows of a comparison as the compiled file does, if its format says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from npumake.compilers.file_placement import FilePlacement, file_placement
from npumake.debug.compared import Comparison, NodeRow
from npumake.debug.compared_models import ComparedModels
from npumake.targets.target import Target

MAX_NAMES = 5  # the note counts the others


def with_file_placement(comparison: Comparison, data: bytes, models: ComparedModels) -> Comparison:
    """The comparison with the units and subgraphs of the compiled file. Raises GraphError for a
    damaged file."""
    backend = models.target.backend
    placement = file_placement(data, models.program, models.quantized, backend)
    return comparison if placement is None else in_placement(comparison, placement, models.target)


def in_placement(comparison: Comparison, placement: FilePlacement, target: Target) -> Comparison:
    """The comparison with the units and subgraphs of the file, and a note if they are others than
    `npumake check` says."""
    rows = tuple(_row_in_file(row, placement, target) for row in comparison.rows)
    changed = [
        (row, other)
        for row, other in zip(rows, comparison.rows, strict=True)
        if (row.subgraph is None) != (other.subgraph is None)
    ]
    notes = [_note([row for row, _ in changed], placement, target)] if changed else []
    if not placement.subgraphs:
        notes.append(f"nothing in the compiled file runs on the {target.unit}")
    return replace(comparison, rows=rows, notes=(*comparison.notes, *notes))


def _row_in_file(row: NodeRow, placement: FilePlacement, target: Target) -> NodeRow:
    if row.node in placement.cpu:
        return replace(row, on="CPU", subgraph=None)
    if row.node in placement.unit:
        return replace(row, on=target.unit, subgraph=placement.unit[row.node])
    return row


def _note(rows: Sequence[NodeRow], placement: FilePlacement, target: Target) -> str:
    units = {
        unit: [_named(row, placement) for row in rows if row.on == unit]
        for unit in ("CPU", target.unit)
    }
    texts = [f"{_listed(names)} on the {unit}" for unit, names in units.items() if names]
    count = placement.subgraphs
    parts = f"{count} subgraph{'s' * (count != 1)} on the {target.unit}"
    return f"the compiled file, unlike `npumake check`, runs {' and '.join(texts)}: {parts}"


def _named(row: NodeRow, placement: FilePlacement) -> str:
    operators = placement.cpu.get(row.node)
    return f"{row.node} ({', '.join(operators)})" if operators else row.node


def _listed(names: Sequence[str]) -> str:
    others = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {others} more" if others > 0 else "")
