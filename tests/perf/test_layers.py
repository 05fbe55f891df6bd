"""What each layer computes and moves, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.bundle.program import Instruction, Program, Tensor
from npumake.perf.layers import layers_of, operations, subgraphs_of

GRID = {"dtype": "int8", "scale": 1.0}
WEIGHT = np.zeros((8, 4, 3, 3), np.int8)
FACTOR = {"mantissa": np.array(1 << 30), "shift": np.array(30)}
ROUNDED = {"low": -128, "high": 127, "rounding": "half_even"}
WINDOW = {"pads": [0] * 4, "strides": [1, 1], "dilations": [1, 1], **ROUNDED}
CONSTANTS = {"weight": WEIGHT, **FACTOR}
CONV = Instruction("conv", "conv", ("q",), ("c",), CONSTANTS, {"group": 1, **WINDOW})
POOLED = {**WINDOW, "kernel": [2, 2], "strides": [2, 2]}
FACTOR_BYTES = sum(values.nbytes for values in FACTOR.values())
PROGRAM = Program(
    ("x",),
    ("y",),
    {
        "x": Tensor((1, 4, 8, 8), "float32"),
        "q": Tensor((1, 4, 8, 8), **GRID),
        "c": Tensor((1, 8, 6, 6), **GRID),
        "p": Tensor((1, 8, 3, 3), **GRID),
        "y": Tensor((1, 8, 3, 3), "float32"),
    },
    (
        Instruction("quantize", "in", ("x",), ("q",)),
        CONV,
        Instruction("max_pool", "pool", ("c",), ("p",), FACTOR, POOLED),
        Instruction("dequantize", "out", ("p",), ("y",)),
    ),
)


def test_a_convolution_multiplies_its_kernel_at_each_place_of_its_output():
    conv, pool = layers_of(PROGRAM, None)
    assert (conv.macs, conv.ops) == (8 * 6 * 6 * 4 * 9, 2 * 8 * 6 * 6 * 4 * 9)
    assert (pool.macs, pool.ops) == (0, 8 * 9 * 4)


def test_a_grouped_convolution_multiplies_the_channels_of_a_group():
    grouped = replace(CONV, constants={"weight": WEIGHT[:, :1]}, attributes={"group": 4})
    assert operations(grouped, PROGRAM) == 2 * 8 * 6 * 6 * 9


def test_a_transposed_convolution_multiplies_its_kernel_at_each_place_of_its_input():
    weight = np.zeros((4, 8, 3, 3), np.int8)
    step = replace(CONV, op="conv_transpose", constants={"weight": weight})
    assert operations(step, PROGRAM) == 2 * 4 * 8 * 8 * 8 * 9


def test_a_matrix_product_multiplies_the_shared_side():
    tensors = {"a": Tensor((2, 3, 5), **GRID), "y": Tensor((2, 3, 7), **GRID)}
    step = Instruction("matmul", "m", ("a",), ("y",), {"weight": np.zeros((5, 7), np.int8)})
    assert operations(step, Program(("a",), ("y",), tensors, (step,))) == 2 * 2 * 3 * 7 * 5


def test_without_a_known_memory_on_the_chip_every_tensor_goes_through_ddr():
    conv, pool = layers_of(PROGRAM, None)
    assert (conv.loaded, conv.stored) == (4 * 64 + WEIGHT.nbytes + FACTOR_BYTES, 8 * 36)
    assert (pool.loaded, pool.stored) == (8 * 36 + FACTOR_BYTES, 8 * 9)


def test_with_room_on_the_chip_only_the_border_and_the_weights_go_through_ddr():
    conv, pool = layers_of(PROGRAM, 8 * 36)
    assert (conv.loaded, conv.stored) == (4 * 64 + WEIGHT.nbytes + FACTOR_BYTES, 0)
    assert (pool.loaded, pool.stored) == (FACTOR_BYTES, 8 * 9)


def test_the_part_of_a_map_beyond_the_chip_goes_out_and_back():
    conv, pool = layers_of(PROGRAM, 8 * 36 - 5)
    assert (conv.stored, pool.loaded) == (5, FACTOR_BYTES + 5)


def test_an_input_in_nv12_is_loaded_in_half_its_bytes():
    conv, _ = layers_of(PROGRAM, 1 << 20, frozenset({"x"}))
    assert conv.loaded == 2 * 64 + WEIGHT.nbytes + FACTOR_BYTES


@pytest.mark.parametrize(("cpu", "expected"), [("max_pool", {1: 0, 2: 0}), ("onnx", {1: 0, 3: 1})])
def test_a_node_on_the_cpu_divides_the_subgraphs(cpu, expected):
    middle = Instruction(cpu, "middle", ("c",), ("p",))
    last = Instruction("lookup" if cpu == "onnx" else "dequantize", "last", ("p",), ("y",))
    program = replace(PROGRAM, instructions=(*PROGRAM.instructions[:2], middle, last))
    assert subgraphs_of(program) == expected
