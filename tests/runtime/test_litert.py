"""A .tflite that LiteRT cannot run here, or would run for ever, is one clear error."""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np
import pytest

from npumake.compilers import flatfile
from npumake.compilers.flatfile import Fields, FileOperator, FileTensor
from npumake.errors import GraphError
from npumake.frontends.tflite.schema import IDENTIFIER, NAMES
from npumake.runtime import Session

pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
INPUT = FileTensor("x", (1, 4), "int8", None, (0.5,))


def custom(code: str, folder):
    """A file of one operator that only its maker knows."""
    b = flatbuffers.Builder(1024)
    tensors = [flatfile._tensor(b, each, 0) for each in (INPUT, FileTensor("y", (1, 4), "int8"))]
    step = flatfile._table(b, {0: ("i", 0), 1: numbers(b, [0]), 2: numbers(b, [1])})
    named = flatfile._table(
        b, {0: ("b", 32), 1: ("offset", b.CreateString(code)), 3: ("i", NAMES.index("CUSTOM"))}
    )
    return saved(b, [graph(b, tensors, [step], 0, 1)], [named], folder)


def numbers(b: flatbuffers.Builder, values: Sequence[int]) -> tuple[str, int]:
    return ("offset", flatfile._numbers(b, values, np.int32))


def graph(b: flatbuffers.Builder, tensors: list[int], steps: list[int], fed: int, made: int) -> int:
    held = {0: ("offset", flatfile._offsets(b, tensors)), 1: numbers(b, [fed])}
    more: Fields = {2: numbers(b, [made]), 3: ("offset", flatfile._offsets(b, steps))}
    return flatfile._table(b, {**held, **more})


def saved(b: flatbuffers.Builder, graphs: list[int], codes: list[int], folder):
    empty = flatfile._table(b, {})
    model: Fields = {
        0: ("i", 3),
        1: ("offset", flatfile._offsets(b, codes)),
        2: ("offset", flatfile._offsets(b, graphs)),
        4: ("offset", flatfile._offsets(b, [empty])),
    }
    b.Finish(flatfile._table(b, model), IDENTIFIER)
    file = folder / "m.tflite"
    file.write_bytes(bytes(b.Output()))
    return file


def endless(folder):
    """while x == x: x = x + x"""
    b = flatbuffers.Builder(1024)
    types = [("ADD", 1), ("EQUAL", 1), ("WHILE", 1)]
    turns: Fields = {0: ("i", 1), 1: ("i", 2)}
    steps = [
        FileOperator("WHILE", (0,), (1,), 1, 93, turns),
        FileOperator("EQUAL", (0, 0), (1,), 1, 53),
        FileOperator("ADD", (0, 0), (1,), 1, 11),
    ]
    graphs = []
    for step in steps:
        made = "bool" if step.type == "EQUAL" else "int32"
        tensors = [
            flatfile._tensor(b, FileTensor(name, (1,), dtype), 0)
            for name, dtype in (("x", "int32"), ("y", made))
        ]
        graphs.append(graph(b, tensors, [flatfile._operator(b, step, types)], 0, 1))
    return saved(b, graphs, [flatfile._code(b, *each) for each in types], folder)


def test_a_file_for_an_ethos_u_says_so_and_what_runs_here(tmp_path):
    with pytest.raises(GraphError, match="compiled for an Ethos-U") as caught:
        Session(custom("ethos-u", tmp_path))
    assert "target `tflite`" in caught.value.hint


def test_another_s_own_operator_is_named(tmp_path):
    with pytest.raises(GraphError, match="LiteRT lacks: Their-Op"):
        Session(custom("Their-Op", tmp_path))


def test_a_while_is_refused_before_it_is_called(tmp_path):
    with pytest.raises(GraphError, match="a WHILE may never end"):
        Session(endless(tmp_path))
