"""On a narrow terminal every figure of a table fits; names and types give way."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from npumake.cli.tables import comparison_table
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
