"""The tables in the logs of hb_mapper and hb_compile, in the format that public parsers read.

    hb_mapper     a title, a rule of `=`, the heads, a rule of `-`, then the rows; a column is two
                  characters wider than its widest cell (logs of horizon_nn 1.1)
    hb_compile    a box of + - |, without a title (logs of OpenExplorer 3.x)

With a the float output, b the quantized output and N their number of elements, over all samples:

    L1 = mean |a - b|        L2 = sqrt(mean (a - b)^2 / N)        Chebyshev = max |a - b|

For one sample L2 is |a - b| / N. The logs give no formula, but this one agrees with their figures:
with N = 512,000, an L1 of .245 and an L2 of .000457 the root mean square is 1.33 times the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from npumake.cli.terminal import printable
from npumake.debug.compared import Comparison, Distance, NodeRow

NODES = "The main quantized node information:"
OUTPUTS = "The quantized model output:"
UNKNOWN = "--"

NODE_HEADS = ("Node", "ON", "Subgraph", "Type", "Cosine Similarity", "Threshold", "DataType")
OUTPUT_HEADS = ("Output", "Cosine Similarity", "L1 Distance", "L2 Distance", "Chebyshev Distance")
COMPILE_HEADS = (
    *("Node", "NodeType", "ON", "Threshold"),
    *("Calibrated Cosine", "Quantized Cosine", "Output Data Type"),
)
CHECK_HEADS = ("Node", "NodeType", "ON", "Output Data Type")
TENSOR_HEADS = ("TensorName", "Calibrated Cosine", "Quantized Cosine")
SHORT_TYPES = {  # type names of HBIR
    "int8": "si8",
    "int16": "si16",
    "int32": "si32",
    "uint8": "ui8",
    "float16": "f16",
    "float": "f32",
}

Cells = Sequence[str]


def ruled(title: str, heads: Cells, rows: Sequence[Cells]) -> str:
    """A table in hb_mapper's format."""
    lines = [[printable(cell, allowed="") for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) + 2 for column in zip(*lines, strict=True)]
    texts = ["".join(map(str.ljust, row, widths)) for row in lines]
    rules = (sign * sum(widths) for sign in "=-")
    return "\n".join([title, next(rules), texts[0], next(rules), *texts[1:]])


def boxed(heads: Cells, rows: Sequence[Cells]) -> str:
    """A table in hb_compile's format."""
    lines = [[printable(cell, allowed="") for cell in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    texts = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in lines]
    return "\n".join([rule, texts[0], rule, *texts[1:], rule])


def mapper_nodes(comparison: Comparison, is_check: bool = False) -> str:
    """hb_mapper's node table; a check has no cosines and thresholds."""
    rows = [
        (
            row.node,
            row.on,
            UNKNOWN if row.subgraph is None else f"id({row.subgraph})",
            row.type,
            UNKNOWN if is_check else _cosine(row.cosine),
            UNKNOWN if is_check else _threshold(row),
            row.dtype.partition("/")[0],
        )
        for row in comparison.rows
    ]
    return ruled(NODES, NODE_HEADS, rows)


def mapper_outputs(comparison: Comparison) -> str:
    """hb_mapper's table of outputs."""
    rows = []
    for output in comparison.outputs:
        l1, l2 = means(output.quantized, comparison.samples)
        figures = (output.cosine, l1, l2, output.quantized.chebyshev)
        rows.append((output.name, *(f"{figure:.6f}" for figure in figures)))
    return ruled(OUTPUTS, OUTPUT_HEADS, rows)


def compile_rows(comparison: Comparison, is_check: bool = False) -> list[Cells]:
    """hb_compile's node table with its heads; a check has fewer columns."""
    rows: list[Cells] = [CHECK_HEADS if is_check else COMPILE_HEADS]
    for row in comparison.rows:
        output_type = row.dtype.rpartition("/")[2]
        figures = (_threshold(row), _cosine(row.calibrated_cosine), _cosine(row.cosine))
        columns = () if is_check else figures
        rows.append(
            (row.node, row.type, row.on, *columns, SHORT_TYPES.get(output_type, output_type))
        )
    return rows


def compile_outputs(comparison: Comparison) -> str:
    """hb_compile's table of outputs."""
    rows = [
        (output.name, f"{output.calibrated_cosine:.6f}", f"{output.cosine:.6f}")
        for output in comparison.outputs
    ]
    return boxed(TENSOR_HEADS, rows)


def means(distance: Distance, samples: int) -> tuple[float, float]:
    """L1 and L2 of the logs, from sums over `samples` samples; with e = a - b:

    count = sum e^2 / mse        N = count / samples
    """
    if not distance.mse or not distance.l2:
        return 0.0, 0.0
    count = distance.l2**2 / distance.mse
    return distance.l1 / count, math.sqrt(distance.mse * samples / count)


def _cosine(value: float | None) -> str:
    """A row without a cosine is a step inside one of our nodes."""
    return UNKNOWN if value is None else f"{value:.6f}"


def _threshold(row: NodeRow) -> str:
    return UNKNOWN if row.threshold is None else f"{row.threshold:.6}"
