"""On a narrow terminal every figure of a table fits; names and types give way."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from npumake.cli.columns import Column, Line, draw_table
from npumake.cli.tables import comparison_table
from npumake.cli.terminal import shortened
from npumake.debug.compared import Comparison, Distance, NodeRow, OutputRow
from npumake.debug.compiled_check import CheckedOutput, CompiledCheck

NONE = Distance(0.0, 0.0, None, 0.0, 0.0, 0.0)
LONG = "model.22/cv3.2/cv3.2.2/Conv_with_a_name_that_no_terminal_holds"
CHECK = CompiledCheck("chip", "LiteRT", 8, (CheckedOutput("y", 0.987654, 0, None, "int8", (1,)),))


def compared(dtype: str) -> Comparison:
    row = (LONG, "BPU", 0, "GlobalAveragePool", 0.912345, 0.923456, 123.456789, dtype, NONE, NONE)
    return Comparison(
        "chip", 64, (NodeRow(*row),), (OutputRow("y", 0.934567, 0.945678, NONE, NONE),)
    )


@pytest.mark.parametrize("dtype", ["int8/int8", "float/float", "int16/int16"])
@pytest.mark.parametrize("width", [80, 100, 119, 120, 160])
@pytest.mark.parametrize("check", [CHECK, None])
def test_every_figure_fits(width: int, dtype: str, check: CompiledCheck | None) -> None:
    stream = io.StringIO()
    table = comparison_table("net", compared(dtype), check, width)
    Console(file=stream, width=width).print(table)
    shown = stream.getvalue()
    cosines = ["0.912345", "0.923456", "0.934567", "0.945678"]
    wanted = [*cosines, "123.", dtype, "_terminal_holds"[-6:], *(["0.987654"] if check else [])]
    assert [text for text in wanted if text not in shown] == []
    assert max(map(len, shown.splitlines())) <= width


def test_the_title_tells_how_many_samples_the_compiled_file_ran_on() -> None:
    title = comparison_table("net", compared("int8/int8"), CHECK).title
    assert str(title).endswith("64 samples (the compiled file: 8)")
    assert str(comparison_table("net", compared("int8/int8")).title).endswith("64 samples")


COLUMNS = (
    Column("Node", "name"),
    Column("ON"),
    Column("Some Optional", is_optional=True),
    Column("Longer Figure", "figure"),
    Column("Because", "prose"),
)
PROSE = "it is clipped at 0.622"


def cells(name: str) -> list[Line]:
    return [Line((name, "BPU", "id(7)", "-0.123456", PROSE)), Line(("", "--", "", "nan", ""))]


def printed(table: Table) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=1 << 16, color_system=None).print(table)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("character", ["a", "名", "\x1b"], ids=["narrow", "wide", "escape"])
@pytest.mark.parametrize("length", [1, 20, 200])
def test_a_table_is_never_wider_than_it_may_be(character: str, length: int) -> None:
    name = character * length
    for width in range(60, 400, 7):
        lines = printed(draw_table(COLUMNS, cells(name), width, "title", cells(name)[:1]))
        assert max(map(cell_len, lines)) <= width
        text = "\n".join(lines)
        assert text.count("-0.123456") == text.count("BPU") == 2
        assert not set(PROSE.split()) - set(text.split())


def test_what_still_does_not_fit_is_left_to_the_terminal() -> None:
    text = "\n".join(printed(draw_table(COLUMNS, cells("n" * 99), 1)))
    assert "-0.123456" in text
    assert "id(7)" not in text


def test_without_a_width_nothing_is_shortened() -> None:
    assert "n" * 5000 in "\n".join(printed(draw_table(COLUMNS, cells("n" * 5000))))


@pytest.mark.parametrize("most", [1, 5, 11, 12, 30])
def test_a_shortened_name_keeps_its_head_and_its_tail(most: int) -> None:
    name = "head_of_a_long_name_with_a_tail"
    short = shortened(name, most)
    head, _, tail = short.partition("...")
    assert len(short) <= max(most, 5)
    assert name.startswith(head)
    assert name.endswith(tail)
    assert 0 < len(head) <= len(tail)
