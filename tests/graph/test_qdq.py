"""Q/DQ: inserted pairs are read back, and no other module names the two operators."""

import ast
from pathlib import Path

import numpy as np
import pytest

from npumake.graph import Graph, array, parse_text
from npumake.graph.qdq import (
    DEQUANTIZE,
    QDQ_OPERATORS,
    QUANTIZE,
    Grid,
    axis_of,
    before_qdq,
    codes_dtype,
    dequantizer_of,
    dequantizers_of,
    first_quantizer,
    grid_behind,
    grid_of,
    insert_pair,
    pair_of,
    quantizer_of,
    readers_past_pairs,
    rounded_codes,
    scalar_grid_of,
    set_grid,
    sole_quantizer,
    store_grid,
    stored_constant,
    tensor_before_pairs,
)
from syntax import syntax_of

PACKAGE = Path(__file__).parents[2] / "pipeline" / "npumake"
NAMERS = {
    "graph/qdq.py",
    "compilers/adapters/scripts/with_rknn.py",  # runs where this package is not installed
}
PER_TENSOR = Grid(np.array(0.5, np.float32), np.array(3, np.int8))
PER_CHANNEL = Grid(np.array([0.5, 0.25], np.float32), np.zeros(2, np.int8))


def relu() -> Graph:
    """y = Relu(x), and z = Neg(x) beside it."""
    text = "agraph (float[1, 2] x) => (float[1, 2] y, float[1, 2] z) {y = Relu(x) z = Neg(x)}"
    return parse_text(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}')


def dequantized(graph, codes, grid):
    """The output of a DQ of these codes."""
    return graph.insert(DEQUANTIZE, [codes, *store_grid(graph, "w", grid)], "w_real")


def spelled(file: Path) -> set[str]:
    names = {*QDQ_OPERATORS, *(name.encode() for name in QDQ_OPERATORS)}
    constants = (node.value for node in ast.walk(syntax_of(file)) if isinstance(node, ast.Constant))
    return {str(value) for value in constants if value in names}


def test_no_other_module_names_the_operators():
    files = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*.py")}
    assert {name for name, file in files.items() if spelled(file)} == NAMERS


@pytest.mark.parametrize(("grid", "axis"), [(PER_TENSOR, None), (PER_CHANNEL, 0)])
def test_an_inserted_pair_is_read_back(grid, axis):
    graph = relu()
    y = graph.values()["y"]
    pair = insert_pair(graph, y, grid, "y", axis=axis)
    (quantizer, dequantizer) = pair_of(pair.real)
    assert [quantizer.op_type, dequantizer.op_type] == [QUANTIZE, DEQUANTIZE]
    assert (quantizer, dequantizer) == (quantizer_of(pair.codes), dequantizer_of(pair.real))
    assert dequantizers_of(pair.codes) == [dequantizer]
    assert (first_quantizer(y), sole_quantizer(y)) == (quantizer, None)  # y is a model output
    for found in (grid_of(quantizer), grid_of(dequantizer), grid_behind(pair.real)):
        assert all(map(np.array_equal, found, grid))
    assert (scalar_grid_of(quantizer) is None) == (grid is PER_CHANNEL)
    assert axis_of(quantizer) == axis_of(dequantizer) == (1 if axis is None else axis)


def test_a_chain_of_pairs_leads_back_to_its_tensor_and_on_to_its_readers():
    graph = relu()
    x = graph.values()["x"]
    readers = [(use.node, use.idx) for use in x.uses()]
    once = insert_pair(graph, x, PER_TENSOR, "x").real
    twice = insert_pair(graph, once, PER_TENSOR, "again").real
    graph.replace_readers(x, twice, [node for node, _ in readers])
    assert tensor_before_pairs(twice) is before_qdq(twice) is x
    assert sole_quantizer(x) is quantizer_of(pair_of(once)[0].outputs[0])
    assert [*readers_past_pairs(x)] == readers


def test_codes_without_a_quantizer_end_the_chain():
    graph = relu()
    codes = graph.constant("w_codes", np.array([[1, 2]], np.int8))
    real = dequantized(graph, codes, PER_TENSOR)
    assert tensor_before_pairs(real) is real
    assert before_qdq(real) is codes
    assert pair_of(real) is None


def test_a_missing_zero_point_is_zero_of_the_type_of_the_codes():
    graph = relu()
    codes = graph.constant("w_codes", np.array([[1, 2]], np.int8))
    real = graph.insert(DEQUANTIZE, [codes, graph.constant("s", np.array(0.5, np.float32))], "w")
    zero_point = grid_behind(real).zero_point
    assert (zero_point.dtype, zero_point.shape, int(zero_point)) == (np.int8, (), 0)
    assert codes_dtype(dequantizer_of(real)) == np.int8


def test_a_computed_scale_is_no_grid():
    graph = relu()
    values = graph.values()
    codes = graph.insert(QUANTIZE, [values["x"], values["y"]], "codes", values["y"].producer())
    assert grid_of(quantizer_of(codes)) is None


def test_a_node_of_another_operator_has_no_grid():
    (node,) = relu().nodes("Relu")
    assert grid_of(node) is None


def test_a_constant_is_the_same_as_codes_and_as_floats_behind_a_pair():
    graph = relu()
    weight = graph.constant("w", np.array([[-1.0, 0.3], [0.6, 5.0]], np.float32))
    (reader,) = graph.nodes("Relu")
    pair = insert_pair(graph, weight, PER_CHANNEL, "w", axis=0, before=reader)
    floats = stored_constant(pair.real)
    assert floats.real.tolist() == [[-1.0, 0.5], [0.5, 5.0]]
    stored = graph.constant("w_codes", floats.codes)
    graph.set_inputs(dequantizer_of(pair.real), {0: stored})
    codes = stored_constant(pair.real)
    assert np.array_equal(codes.codes, floats.codes)
    assert np.array_equal(codes.steps, floats.codes)
    assert codes.real.tolist() == floats.real.tolist()


@pytest.mark.parametrize("values", [[np.nan, 1.0], [np.inf, 1.0]])
def test_a_constant_that_is_not_finite_has_no_codes(values):
    graph = relu()
    weight = graph.constant("w", np.array([values], np.float32))
    (reader,) = graph.nodes("Relu")
    assert stored_constant(insert_pair(graph, weight, PER_TENSOR, "w", before=reader).real) is None


def test_a_constant_with_infinities_saturates_where_it_is_stored():
    """The bias of an attention mask is 0 or -inf."""
    graph = relu()
    mask = graph.constant("mask", np.array([[-np.inf, 0.0, np.inf]], np.float32))
    (reader,) = graph.nodes("Relu")
    pair = insert_pair(graph, mask, PER_TENSOR, "mask", before=reader)
    codes = rounded_codes(quantizer_of(dequantizer_of(pair.real).inputs[0]))
    limits = np.iinfo(codes.dtype)
    assert (codes.min(), codes.max()) == (limits.min, limits.max)


def test_scales_of_blocks_are_no_stored_constant():
    graph = relu()
    codes = graph.constant("w_codes", np.array([[1, 2]], np.int8))
    real = dequantized(graph, codes, PER_TENSOR)
    graph.set_attributes(dequantizer_of(real), block_size=2)
    assert stored_constant(real) is None


def test_both_nodes_of_a_pair_move_to_another_grid():
    graph = relu()
    pair = insert_pair(graph, graph.values()["y"], PER_TENSOR, "y")
    moved = Grid(np.array(0.125, np.float32), np.array(-1, np.int8))
    set_grid(graph, pair_of(pair.real), *store_grid(graph, "moved", moved))
    for node in pair_of(pair.real):
        assert scalar_grid_of(node) == moved
        assert array(node.inputs[1]) == moved.scale
