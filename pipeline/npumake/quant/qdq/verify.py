"""Verifies the Q/DQ of every integer node, so that no half-quantized node reaches the compiler:

each input is dequantized and the output goes into one QuantizeLinear, indices excepted
int16 only if the target has it for the operator
one type if the target or the operator requires it; mixed nodes may output int16 from 8 bits
a data movement outputs codes of its input's grid
"""

from __future__ import annotations

from npumake.engine.fusion import result
from npumake.errors import StageError
from npumake.graph import Graph, Node
from npumake.graph.qdq import Grid, dequantizer_of, grid_of, sole_quantizer
from npumake.quant.precision.placement import SAME_GRID_OPERATORS
from npumake.quant.precision.precision_plan import PrecisionPlan
from npumake.quant.precision.type_propagation import WIDE, is_mixed, is_of_one_type
from npumake.quant.qdq.grid_assignment import type_of
from npumake.targets.parts import takes_int16
from npumake.targets.target import Target


def verify_qdq(graph: Graph, plan: PrecisionPlan, target: Target) -> None:
    """Raises StageError at the first node that breaks a rule."""
    for node in plan.nodes:
        operands = (index for index in range(len(node.inputs)) if (node, index) in plan.reads)
        read = [_grid(dequantizer_of(node.inputs[index]), node) for index in operands]
        outputs = [
            _grid(sole_quantizer(value), node) for value in [result(node)] if value in plan.makes
        ]
        types = {type_of(grid) for grid in (*read, *outputs)}
        if WIDE in types and not takes_int16(node, target):
            raise StageError(f"{target.name} has no int16 {node.op_type}", str(node.name))
        bound = {type_of(grid) for grid in read} if is_mixed(node, target) else types
        if len(bound) > 1 and is_of_one_type(node, target):
            raise StageError(f"two types around one {node.op_type}", str(node.name))
        if node.op_type in SAME_GRID_OPERATORS and read[:1] != outputs:
            raise StageError(f"two grids around one {node.op_type}", str(node.name))


def _grid(neighbor: Node | None, node: Node) -> Grid:
    """The grid of the Q or DQ beside `node`."""
    grid = None if neighbor is None else grid_of(neighbor)
    if grid is None:
        raise StageError(f"a {node.op_type} lacks Q/DQ on an input or output", str(node.name))
    return grid
