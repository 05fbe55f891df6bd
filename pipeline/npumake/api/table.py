"""Table: the plain form of every table that the API returns."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from npumake.errors import ProjectError

Cell: TypeAlias = str | int | float | None
DIGITS = 6  # significant ones of a figure, of a printed table


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; the first column is the name of a row.

    >>> table = Table("sizes", ("file", "bytes"), (("a.tflite", 20), ("b.hybrid", 7)))
    >>> table["b.hybrid"]
    {'file': 'b.hybrid', 'bytes': 7}
    >>> table.column("bytes")
    (20, 7)
    >>> print(table)
    sizes
    file      bytes
    a.tflite  20
    b.hybrid  7
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Cell]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def __getitem__(self, name: str) -> dict[str, Cell]:
        """The row of that name. Raises KeyError."""
        for row in self:
            if row[self.columns[0]] == name:
                return row
        raise KeyError(name)

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of a column. Raises KeyError."""
        if name not in self.columns:
            raise KeyError(name)
        index = self.columns.index(name)
        return tuple(row[index] for row in self.rows)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Raises ProjectError if pandas is not installed."""
        try:
            import pandas  # noqa: PLC0415  # seldom installed
        except ImportError:
            hint = "pip install pandas"
            raise ProjectError("pandas is not installed", "to_pandas", hint) from None
        return pandas.DataFrame(list(self.rows), columns=list(self.columns))

    def __str__(self) -> str:
        lines = [self.columns, *(tuple(map(cell_text, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        padded = (
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        return "\n".join([self.title, *padded])

    def _repr_html_(self) -> str:
        """How Jupyter shows it."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell_text(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        caption = f"<caption>{html.escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table_of(title: str, rows: Sequence[Mapping[str, Cell]], columns: tuple[str, ...]) -> Table:
    """A table of mappings; a cell that a mapping lacks is None."""
    cells = tuple(tuple(row.get(name) for name in columns) for row in rows)
    return Table(title, columns, cells)


def cell_text(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.{DIGITS}g}" if isinstance(cell, float) else str(cell)
