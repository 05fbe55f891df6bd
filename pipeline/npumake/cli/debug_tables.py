"""Tables of `npumake debug` for machines, with every name whole."""

from __future__ import annotations

from collections.abc import Mapping

from npumake.cli.screen import SCREEN

Figures = Mapping[str, Mapping[str, str]]  # by node and metric


def export_sensitivities(by_kind: Mapping[str, Figures]) -> None:
    """Writes the figures of each node, by kind of node."""
    from npumake.cli.columns import Column, Line, draw_table

    tables = [table for table in by_kind.values() if table]
    metrics = [*next(iter(tables[0].values()))] if tables else []
    columns = [Column("Kind"), Column("Node", "name")]
    columns += [Column(metric, "figure") for metric in metrics]
    lines = [
        Line((kind, node, *row.values()))
        for kind, table in by_kind.items()
        for node, row in table.items()
    ]
    SCREEN.table(draw_table(columns, lines, None))
