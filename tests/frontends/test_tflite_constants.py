"""Weights that a .tflite file keeps in half precision, in codes or without their zeros, and what
it computes of shapes."""

from __future__ import annotations

import numpy as np
import pytest

from frontends.test_tflite_operators import interpreted
from frontends.tflite_writer import Op, Sparsity, T, constant, written
from npumake.engine.ort import OrtSession
from npumake.frontends import read_model

RNG = np.random.default_rng(0)
FED, SIZE = (3, 8), (6, 8)
WEIGHT = RNG.normal(size=SIZE).astype(np.float32)
CODES = constant(RNG.integers(-127, 128, SIZE), "int8", scale=[0.02], zero_point=[3])
CHANNELS = constant(CODES.values, "int8", scale=[0.01 * n for n in range(1, 7)], axis=0)


def product(kept, op, dtype="float32"):
    """x W^T, where `op` makes W of what is kept."""
    tensors = [T(FED), kept, T(SIZE, dtype), T((3, 6))]
    steps = [Op(op, [1], [2]), Op("FULLY_CONNECTED", [0, 2], [3], 8)]
    return written(tensors, steps, [0], [3])


def by_rows(dtype):
    """Every row lists its columns that are not zero; one has none."""
    values = np.where(RNG.random(SIZE) < 0.4, WEIGHT, 0).astype(dtype)
    values[2] = 0
    columns = [np.flatnonzero(row) for row in values]
    segments = np.cumsum([0, *map(len, columns)])
    sparsity = Sparsity([0, 1], [6, (segments, np.concatenate(columns))])
    return T(SIZE, dtype, stored=values[values != 0], sparsity=sparsity)


def by_blocks():
    """Blocks of 2 x 4: of three rows of blocks, one keeps both, one the second, one the first."""
    blocks = WEIGHT.reshape(3, 2, 2, 4).swapaxes(1, 2)
    kept = np.stack([blocks[0, 0], blocks[0, 1], blocks[1, 1], blocks[2, 0]])
    sparsity = Sparsity([0, 1, 2, 3], [3, ([0, 2, 3, 4], [0, 1, 1, 0]), 2, 4], [0, 1])
    return T(SIZE, stored=kept, sparsity=sparsity)


def halves_without_zeros():
    """As MediaPipe writes them: DENSIFY, then DEQUANTIZE."""
    tensors = [T(FED), by_rows("float16"), T(SIZE, "float16"), T(SIZE), T((3, 6))]
    steps = [Op("DENSIFY", [1], [2]), Op("DEQUANTIZE", [2], [3])]
    return written(tensors, [*steps, Op("FULLY_CONNECTED", [0, 3], [4], 8)], [0], [4])


def reshaped_to_a_shape():
    """One tensor to the shape of another, which TensorFlow Lite computes as it runs."""
    tensors = [T((3, 8)), constant(np.ones((6, 4))), T((2,), "int32"), T((6, 4))]
    steps = [Op("SHAPE", [1], [2], 55, [(0, "b", 2)]), Op("RESHAPE", [0, 2], [3])]
    return written(tensors, steps, [0], [3])


FILES = {
    "half precision": product(constant(WEIGHT, "float16"), "DEQUANTIZE"),
    "codes": product(CODES, "DEQUANTIZE"),
    "codes per channel": product(CHANNELS, "DEQUANTIZE"),
    "rows without zeros": product(by_rows("float32"), "DENSIFY"),
    "blocks without zeros": product(by_blocks(), "DENSIFY"),
    "half precision without zeros": halves_without_zeros(),
    "the shape of another": reshaped_to_a_shape(),
}


@pytest.mark.parametrize("data", FILES.values(), ids=FILES.keys())
def test_constants_that_are_computed_are_what_the_interpreter_makes_of_them(data):
    (wanted,), x = interpreted(data)
    graph = read_model(data, "m.tflite")
    (given,) = OrtSession(graph.to_bytes()).run(None, {"t0": x})
    np.testing.assert_allclose(given, wanted, rtol=2e-5, atol=2e-5)
    assert {node.op_type for node in graph.nodes()} <= {"Gemm", "Reshape"}


def test_a_batch_left_open_is_one():
    data = written([T((1, 4), signature=(-1, 4)), T((1, 4))], [Op("RELU", [0], [1])], [0], [1])
    (fed,) = read_model(data, "m.tflite").inputs
    assert tuple(fed.shape) == (1, 4)
