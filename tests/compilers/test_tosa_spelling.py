"""What is spelled otherwise for the TOSA converter is the same model for TensorFlow Lite."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.compilers.flatfile import NUMBERS, FileOperator, FileTensor, FlatModel, written
from npumake.compilers.tflite_builder import KINDS
from npumake.compilers.tosa_spelling import SPELLINGS, for_tosa
from npumake.debug.layer_by_layer import litert_tensors

IMAGE = (1, 5, 7, 3)
SIZES = [(10, 14), (15, 7), (8, 5), (1, 1), (5, 7), (2, 21), (3, 3)]
FLAGS = [(False, False), (True, False), (False, True)]


def codes(name, shape=IMAGE, zero_point=-15, dtype="int8"):
    return FileTensor(name, shape, dtype, None, (0.1,), zero_point)


def numbers(*values):
    array = np.array(values, np.int32)
    return FileTensor(f"n{values}", array.shape, "int32", array)


def drawn(kind, read, constants, made, options=None):
    tensors = [read, *constants, made]
    count = len(tensors) - 1
    operator = FileOperator(
        kind, tuple(range(count)), (count,), *KINDS[kind], options or {}, node="n"
    )
    return FlatModel(tensors, [operator], [0], [count])


def resize(kind, first, size, flags):
    options = {first: ("?", flags[0]), first + 1: ("?", flags[1])}
    made = codes("y", (1, *size, 3))
    return drawn(kind, codes("x"), [numbers(*size)], made, options)


def sliced(begin, end, by, mask, shape):
    spans = [numbers(*begin), numbers(*end), numbers(*by)]
    options = {0: ("i", 0), 1: ("i", mask)}
    return drawn("STRIDED_SLICE", codes("x"), spans, codes("y", shape), options)


def padded():
    around = FileTensor("p", (4, 2), "int32", np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32))
    number = FileTensor("v", (1,), "int8", np.array([-128], np.int8), (0.1,), -15)
    return drawn("PADV2", codes("x"), [around, number], codes("y", (1, 8, 8, 3)))


CAST_TYPES = {0: ("b", NUMBERS["int8"]), 1: ("b", NUMBERS["int32"])}
MODELS = {
    "cast": drawn("CAST", codes("x"), [], FileTensor("y", IMAGE, "int32"), CAST_TYPES),
    "quantize": drawn("QUANTIZE", FileTensor("x", IMAGE, "float32"), [], codes("y")),
    "requantize": drawn("QUANTIZE", codes("x"), [], codes("y", zero_point=9)),
    "pad": padded(),
    "backwards": sliced((0, 0, 6, 0), (1, 5, 0, 3), (1, 1, -1, 1), 4, IMAGE),
    "backwards by two": sliced((0, 4, 6, 0), (1, 0, 0, 3), (1, -2, -3, 1), 4, (1, 2, 3, 3)),
    "forwards": sliced((0, 1, 0, 0), (1, 5, 7, 3), (1, 2, 1, 1), 0, (1, 2, 7, 3)),
    **{
        f"{kind} {size} {flags}": resize(kind, first, size, flags)
        for kind, first in (("RESIZE_NEAREST_NEIGHBOR", 0), ("RESIZE_BILINEAR", 2))
        for size in SIZES
        for flags in FLAGS
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_it_gives_the_same_bits_in_litert(name):
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    plain, spelled = MODELS[name], for_tosa(MODELS[name])
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, IMAGE).astype(np.int8)
    x = x if plain.tensors[0].dtype == "int8" else rng.normal(0, 20, IMAGE).astype(np.float32)
    results = [litert_tensors(written(*m), {"x": x}, {"x": x})["y"] for m in (plain, spelled)]
    assert results[0].shape == plain.tensors[-1].shape
    np.testing.assert_array_equal(*results)


def test_each_operator_keeps_the_name_of_its_node():
    for model in MODELS.values():
        assert {operator.node for operator in for_tosa(model).operators} == {"n"}


def test_every_spelling_is_tried():
    assert {model.operators[0].type for model in MODELS.values()} == SPELLINGS.keys()
