"""Tables as CSV (RFC 4180) and as Markdown, every cell whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


def _rows(table: Table) -> list[list[str]]:
    """The heads, then the cells of each row."""
    columns = [[str(column.header), *map(str, column.cells)] for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def as_csv(table: Table) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(_rows(table))
    return text.getvalue()


def as_markdown(table: Table) -> str:
    heads, *rows = ([cell.replace("|", "\\|") for cell in row] for row in _rows(table))
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


EXPORTS: Mapping[str, Callable[[Table], str]] = {"csv": as_csv, "markdown": as_markdown}
