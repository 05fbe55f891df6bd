"""The vendors' tables, read back as public parsers of their logs read them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from npumake.cli.vendors.log_tables import (
    boxed,
    compile_outputs,
    compile_rows,
    mapper_nodes,
    mapper_outputs,
    means,
    ruled,
)
from npumake.debug.compared import Comparison, Distance, NodeRow, OutputRow, distance
from npumake.kernels.measure import agreement
from vendor_logs import cells, read_ruled
from workspaces import shared_data

NONE = Distance(0.0, 0.0, None, 0.0, 0.0, 0.0)
ROWS = (
    NodeRow("conv", "BPU", 0, "HzSQuantizedConv", 0.9999, 1.0, 127.0, "int8/int8", NONE, NONE),
    NodeRow("a/very/long/name", "BPU", 1, "HzLut", 0.5, 0.75, 1.116712, "int16/int32", NONE, NONE),
    NodeRow("soft", "CPU", None, "Softmax", 0.25, 0.5, None, "float/float", NONE, NONE),
)
COMPARISON = Comparison("rdk-x5", 1, ROWS, (OutputRow("y", 0.998, 0.999, NONE, NONE),))


def test_a_node_is_a_row_of_version_1_1():
    title, rows = read_ruled(mapper_nodes(COMPARISON))
    assert title == "The main quantized node information:"
    assert rows[0] == {
        "Node": "conv",
        "ON": "BPU",
        "Subgraph": "id(0)",
        "Type": "HzSQuantizedConv",
        "Cosine Similarity": "0.999900",
        "Threshold": "127.0",
        "DataType": "int8",
    }
    assert [row["Threshold"] for row in rows] == ["127.0", "1.11671", "--"]
    assert [row["DataType"] for row in rows] == ["int8", "int16", "float"]
    assert rows[2]["Subgraph"] == "--"


def test_an_output_is_a_row_with_three_distances():
    title, rows = read_ruled(mapper_outputs(COMPARISON))
    assert title == "The quantized model output:"
    assert rows == [
        {
            "Output": "y",
            "Cosine Similarity": "0.998000",
            "L1 Distance": "0.000000",
            "L2 Distance": "0.000000",
            "Chebyshev Distance": "0.000000",
        }
    ]


@pytest.mark.parametrize("samples", [1, 7])
def test_the_distances_are_the_mean_and_the_norm_over_the_elements(samples: int):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, samples, 6, 50))
    sums = sum((agreement(x, y) for x, y in zip(a[1:], b[1:], strict=True)), agreement(a[0], b[0]))
    l1, l2 = means(distance(sums), samples)
    error = a - b
    assert l1 == pytest.approx(np.abs(error).mean(), rel=1e-4)
    norms = np.linalg.norm(error.reshape(samples, -1), axis=1) / error[0].size
    assert l2 == pytest.approx(np.sqrt(np.mean(norms**2)), rel=1e-4)


def test_a_checker_compares_nothing():
    _, rows = read_ruled(mapper_nodes(COMPARISON, is_check=True))
    assert {row["Cosine Similarity"] for row in rows} == {"--"}
    assert {row["Threshold"] for row in rows} == {"--"}


def test_hb_compile_has_boxes():
    heads, *rows = compile_rows(COMPARISON)
    assert cells(boxed(heads, rows)) == [
        ["Node", "NodeType", "ON", "Threshold", "Calibrated Cosine", "Quantized Cosine",
         "Output Data Type"],
        ["conv", "HzSQuantizedConv", "BPU", "127.0", "1.000000", "0.999900", "si8"],
        ["a/very/long/name", "HzLut", "BPU", "1.11671", "0.750000", "0.500000", "si32"],
        ["soft", "Softmax", "CPU", "--", "0.500000", "0.250000", "f32"],
    ]  # fmt: skip
    assert cells(compile_outputs(COMPARISON)) == [
        ["TensorName", "Calibrated Cosine", "Quantized Cosine"],
        ["y", "0.999000", "0.998000"],
    ]
    assert len({len(line) for line in boxed(heads, rows).split("\n")}) == 1


def test_a_name_that_a_terminal_obeys_is_spelled_out():
    drawn = ruled("t", ("Node",), [("a\x1b[2J\nb",)])
    assert "\x1b" not in drawn
    assert len(drawn.split("\n")) == 5


def test_the_heads_are_those_of_the_published_tables():
    file = shared_data().parent / "oracle" / "tables" / "yolov8n_cls.json"
    if not file.is_file():
        pytest.skip(f"no {file}")
    found: Any = json.loads(file.read_text(encoding="utf-8"))
    _, rows = read_ruled(mapper_nodes(COMPARISON))
    lower = ("Node", "ON", "Subgraph", "Type")
    assert [n.lower() if n in lower else n for n in rows[0]] == found["columns"]
