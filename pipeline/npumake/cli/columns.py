"""Tables that fit a terminal: names are shortened, figures and verdicts never are.

If the columns need more characters than there are, heads wrap, then names are shortened in their
middle, then optional columns are left out. If that does not suffice, the terminal wraps the lines
and loses nothing. Without a width everything is shown whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from rich import box
from rich.cells import cell_len
from rich.table import Table

from npumake.cli.terminal import printable, shortened

Kind = Literal["name", "word", "figure", "prose"]
MIN_COLUMN_CHARACTERS = {
    "name": 12,
    "prose": 20,
}  # characters that a column of the kind keeps at least
MAX_PROSE_CHARACTERS = 80  # characters of a line of prose, however wide the terminal is


class Column(NamedTuple):
    """A name is shortened, prose is folded; a word and a figure stay whole."""

    head: str
    kind: Kind = "word"
    is_optional: bool = False  # left out when nothing else can be shortened


class Line(NamedTuple):
    """One cell per column."""

    cells: Sequence[str]
    style: str | None = None


class _Layout(NamedTuple):
    """Widths in characters, by the index of each column that is shown."""

    widths: dict[int, int]
    is_tight: bool = False


def draw_table(
    columns: Sequence[Column],
    lines: Sequence[Line],
    width: int | None = None,
    title: str | None = None,
    results: Sequence[Line] = (),
) -> Table:
    """The table at most `width` characters wide if figures leave that much; `results` are below a
    gap, bold."""
    bold = [line._replace(style="bold") for line in results]
    texts = [Line([printable(c, allowed="") for c in cells], s) for cells, s in (*lines, *bold)]
    layout = _layout(columns, [line.cells for line in texts], width)
    table = _empty(columns, layout, title)
    for number, (cells, style) in enumerate(texts):
        fitted = (_fitted(columns[i], cells[i], room) for i, room in layout.widths.items())
        table.add_row(*fitted, style=style, end_section=number + 1 == len(lines) < len(texts))
    return table


def _fitted(column: Column, text: str, room: int) -> str:
    return shortened(text, room) if column.kind == "name" else text


def _layout(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int | None) -> _Layout:
    full_widths = {
        index: _full_width(column, column.head, [row[index] for row in rows])
        for index, column in enumerate(columns)
    }
    if width is None or sum(full_widths.values()) + 2 * len(full_widths) <= width:
        return _Layout(full_widths)
    for index, column in enumerate(columns):
        head = max(column.head.split(), key=len, default="")
        full_widths[index] = _full_width(column, head, [row[index] for row in rows])
    min_widths = {
        i: min(full_widths[i], MIN_COLUMN_CHARACTERS.get(columns[i].kind, full_widths[i]))
        for i in full_widths
    }
    for index in [i for i, column in enumerate(columns) if column.is_optional]:
        if _spare(min_widths, width) < 0:
            del full_widths[index], min_widths[index]
    return _Layout(_shared(min_widths, full_widths, _spare(min_widths, width)), is_tight=True)


def _full_width(column: Column, head: str, cells: Sequence[str]) -> int:
    """Characters that show the whole column."""
    width = max(map(cell_len, (head, *cells)))
    return min(width, MAX_PROSE_CHARACTERS) if column.kind == "prose" else width


def _spare(widths: dict[int, int], width: int) -> int:
    """Characters that are left beside columns of these widths, and a space around each."""
    return width - sum(widths.values()) - len(widths) - 1


def _shared(min_widths: dict[int, int], full_widths: dict[int, int], spare: int) -> dict[int, int]:
    """The spare characters in equal parts, as far as each column needs them."""
    widths, hungry = (
        dict(min_widths),
        sorted(min_widths, key=lambda i: full_widths[i] - min_widths[i]),
    )
    for number, index in enumerate(hungry):
        gain = min(full_widths[index] - min_widths[index], max(spare, 0) // (len(hungry) - number))
        widths[index] += gain
        spare -= gain
    return widths


def _empty(columns: Sequence[Column], layout: _Layout, title: str | None) -> Table:
    table = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        padding=0 if layout.is_tight else (0, 1, 0, 0),
        pad_edge=False,
    )
    for index, room in layout.widths.items():
        head, kind, _ = columns[index]
        table.add_column(
            head,
            width=room,
            justify="right" if kind == "figure" else "left",
            no_wrap=kind == "name",
            overflow="fold",
        )
    return table
