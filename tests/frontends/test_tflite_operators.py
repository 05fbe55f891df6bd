"""Every operator of the table, one small file each, against TensorFlow Lite's own interpreter."""

from __future__ import annotations

import math

import numpy as np
import pytest

from frontends.tflite_writer import Op, T, constant, written
from npumake.engine.ort import OrtSession
from npumake.frontends import read_model
from npumake.frontends.tflite.operators import OPERATORS
from npumake.passes import optimized

litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not here")

RNG = np.random.default_rng(0)
SAME, VALID, RELU, RELU6 = 0, 1, 1, 3
IMAGE = (1, 7, 6, 4)


def drawn(*shape):
    return constant(RNG.normal(size=shape))


def case(op, union, options, constants, made, fed=IMAGE, fed_at=0, dtype="float32", many=1):
    """(operator, file): one fed tensor, then constants, then what is made."""
    tensors = [T(fed), *constants, *[T(made, dtype)] * many]
    inputs = [*range(1, len(constants) + 1)]
    inputs.insert(fed_at, 0)
    outputs = [*range(len(constants) + 1, len(tensors))]
    return op, written(tensors, [Op(op, inputs, outputs, union, options)], [0], outputs)


def conv(padding, w, h, activation=0, dw=1, dh=1):
    kinds = ((0, "b", padding), (1, "i", w), (2, "i", h), (3, "b", activation))
    return [*kinds, (4, "i", dw), (5, "i", dh)]


def depthwise(padding, stride, multiplier, activation):
    return [(0, "b", padding), (1, "i", stride), (2, "i", stride), (3, "i", multiplier),
            (4, "b", activation), (5, "i", 1), (6, "i", 1)]  # fmt: skip


def pool(padding, sw, sh, w, h, activation=0):
    sizes = ((1, "i", sw), (2, "i", sh), (3, "i", w), (4, "i", h))
    return [(0, "b", padding), *sizes, (5, "b", activation)]


def ints(*values):
    return constant(values, "int32")


def unary(op, union=0, options=(), **kinds):
    return case(op, union, options, [], IMAGE, **kinds)


def positive(op):
    """Of |x| + 0: the function is not defined below zero."""
    tensors = [T(IMAGE), T(IMAGE), T(IMAGE)]
    steps = [Op("ABS", [0], [1], 78), Op(op, [1], [2])]
    return op, written(tensors, steps, [0], [2])


def quantized(op):
    """There and back again."""
    codes = T(IMAGE, "int8", scale=[0.05], zero_point=[3])
    steps = [Op("QUANTIZE", [0], [1], 89), Op("DEQUANTIZE", [1], [2], 38)]
    return op, written([T(IMAGE), codes, T(IMAGE)], steps, [0], [2])


def strided(masks, begin, end, step, made):
    options = [(field, "i", mask) for field, mask in enumerate(masks)]
    return case("STRIDED_SLICE", 32, options, [ints(*begin), ints(*end), ints(*step)], made)


def reduced(op, axes, keep, made):
    return case(op, 27, [(0, "?", keep)], [ints(*axes)], made)


def logical(op, *bounds):
    """Of x > bound, for each bound."""
    compared = [Op("GREATER", [0, n], [n + len(bounds)], 61) for n in range(1, len(bounds) + 1)]
    masks = [T(IMAGE, "bool") for _ in bounds]
    read = [step.outputs[0] for step in compared]
    tensors = [T(IMAGE), *map(constant, bounds), *masks, T(IMAGE, "bool")]
    steps = [*compared, Op(op, read, [len(tensors) - 1])]
    return op, written(tensors, steps, [0], [len(tensors) - 1])


def compared(op):
    """Of whole numbers, so that some are the same."""
    rounded, bound, made = T(IMAGE), constant(1.0), T(IMAGE, "bool")
    steps = [Op("ROUND", [0], [1]), Op(op, [1, 2], [3])]
    return op, written([T(IMAGE), rounded, bound, made], steps, [0], [3])


def selected(op, conditions, fed=IMAGE):
    """x where a constant says so, else another."""
    return case(op, 0, (), [constant(conditions, "bool"), drawn(*fed)], fed, fed, fed_at=1)


def mediapipe(strides, padding, made):
    """A transposed convolution with a bias, its padding counted from 1."""
    (tall, wide), constants = strides, [drawn(3, 3, 2, 4), drawn(3)]
    op = "CUSTOM Convolution2DTransposeBias"
    options = np.array([padding + 1, wide, tall], "<i4").tobytes()
    tensors = [T(IMAGE), *constants, T(made)]
    return op, written(tensors, [Op(op, [0, 1, 2], [3], custom=options)], [0], [3])


CASES = [
    unary("ABS", 78),
    case("ADD", 11, [(0, "b", RELU)], [drawn(4)], IMAGE),
    case("ADD", 11, [(0, "b", RELU6)], [drawn(1, 1, 6, 1)], IMAGE),
    case("ADD_N", 0, (), [drawn(*IMAGE), drawn(*IMAGE)], IMAGE),
    case("ARG_MAX", 40, [(0, "b", 2)], [ints(3)], (1, 7, 6), dtype="int32"),
    case("ARG_MIN", 57, [(0, "b", 4)], [ints(1)], (1, 6, 4), dtype="int64"),
    case("AVERAGE_POOL_2D", 5, pool(SAME, 2, 1, 3, 2, RELU), [], (1, 7, 3, 4)),
    case("AVERAGE_POOL_2D", 5, pool(VALID, 1, 1, 6, 7), [], (1, 1, 1, 4)),
    case("BATCH_MATMUL", 101, [(0, "?", False), (1, "?", True)], [drawn(1, 7, 5, 4)], (1, 7, 6, 5)),
    case("BATCH_TO_SPACE_ND", 24, (), [ints(2, 2), constant([[0, 1], [1, 0]], "int32")],
         (1, 5, 7, 3), fed=(4, 3, 4, 3)),
    case("BROADCAST_TO", 0, (), [ints(3, 4, 6)], (3, 4, 6), fed=(4, 1)),
    case("CAST", 37, [(0, "b", 0), (1, "b", 2)], [], IMAGE, dtype="int32"),
    unary("CEIL"),
    case("CONCATENATION", 10, [(0, "i", 3)], [drawn(1, 7, 6, 3)], (1, 7, 6, 7)),
    case("CONV_2D", 1, conv(SAME, 2, 1, RELU6), [drawn(5, 3, 2, 4), drawn(5)], (1, 7, 3, 5)),
    case("CONV_2D", 1, conv(VALID, 1, 1, RELU, 2, 1), [drawn(5, 3, 3, 4), drawn(5)], (1, 5, 2, 5)),
    case("CONV_2D", 1, conv(SAME, 1, 2), [drawn(6, 3, 3, 2), drawn(6)], (1, 4, 6, 6)),
    unary("COS", 84),
    mediapipe((2, 1), SAME, (1, 14, 6, 3)),
    mediapipe((3, 2), VALID, (1, 21, 12, 3)),
    case("DEPTHWISE_CONV_2D", 2, depthwise(SAME, 2, 1, RELU), [drawn(1, 3, 3, 4), drawn(4)],
         (1, 4, 3, 4)),
    case("DEPTHWISE_CONV_2D", 2, depthwise(VALID, 1, 2, 0), [drawn(1, 2, 3, 8), drawn(8)],
         (1, 6, 4, 8)),
    case("DEPTH_TO_SPACE", 94, [(0, "i", 2)], [], (1, 14, 12, 1)),
    quantized("DEQUANTIZE"),
    case("DIV", 29, [(0, "b", 0)], [constant(RNG.uniform(1, 2, (6, 1)))], IMAGE),
    unary("ELU"),
    compared("EQUAL"),
    unary("EXP", 33),
    case("EXPAND_DIMS", 52, (), [ints(1)], (1, 1, 7, 6, 4)),
    unary("FLOOR"),
    case("FULLY_CONNECTED", 8, [(0, "b", RELU)], [drawn(5, 4), drawn(5)], (42, 5)),
    case("FULLY_CONNECTED", 8, [(0, "b", 0), (2, "?", True)], [drawn(5, 4)], (1, 7, 6, 5)),
    case("GATHER", 23, [(0, "i", 2)], [ints(5, 0, 5)], (1, 7, 3, 4)),
    *[unary("GELU", 116, options=[(0, "?", bent)]) for bent in (False, True)],
    compared("GREATER"),
    compared("GREATER_EQUAL"),
    unary("HARD_SWISH", 91),
    unary("L2_NORMALIZATION", 12),
    case("LEAKY_RELU", 75, [(0, "f", 0.3)], [], IMAGE),
    compared("LESS"),
    compared("LESS_EQUAL"),
    positive("LOG"),
    logical("LOGICAL_AND", -1.0, 1.0),
    logical("LOGICAL_NOT", 0.5),
    logical("LOGICAL_OR", -1.0, 1.0),
    unary("LOGISTIC"),
    unary("LOG_SOFTMAX", 36),
    case("MAXIMUM", 39, (), [drawn(4)], IMAGE),
    case("MAX_POOL_2D", 5, pool(SAME, 2, 2, 3, 3), [], (1, 4, 3, 4)),
    reduced("MEAN", [1, 2], True, (1, 1, 1, 4)),
    reduced("MEAN", [2, 1], False, (1, 4)),
    reduced("MEAN", [-1], True, (1, 7, 6, 1)),
    case("MINIMUM", 39, (), [drawn(1)], IMAGE),
    case("MIRROR_PAD", 77, [(0, "b", 0)], [constant([[0, 0], [1, 2], [3, 0], [0, 0]], "int32")],
         (1, 10, 9, 4)),
    case("MUL", 21, [(0, "b", RELU)], [drawn(7, 1, 4)], IMAGE),
    unary("NEG", 42),
    compared("NOT_EQUAL"),
    case("PACK", 59, [(0, "i", 2), (1, "i", 1)], [drawn(*IMAGE)], (1, 2, 7, 6, 4)),
    case("PAD", 22, (), [constant([[0, 0], [1, 2], [0, 3], [0, 1]], "int32")], (1, 10, 9, 5)),
    case("PAD", 22, (), [constant([[1, 2], [0, 3]], "int32")], (6, 7), fed=(3, 4)),
    case("PADV2", 43, (), [constant([[0, 0], [1, 2], [0, 3], [0, 0]], "int32"), constant(2.5)],
         (1, 10, 9, 4)),
    case("POW", 56, (), [constant(2.0)], IMAGE),
    case("PRELU", 0, (), [drawn(1, 1, 4)], IMAGE),
    quantized("QUANTIZE"),
    reduced("REDUCE_MAX", [1, 2], True, (1, 1, 1, 4)),
    reduced("REDUCE_MIN", [3], False, (1, 7, 6)),
    reduced("REDUCE_PROD", [3], False, (1, 7, 6)),
    unary("RELU"),
    unary("RELU6"),
    unary("RELU_0_TO_1"),
    unary("RELU_N1_TO_1"),
    case("RESHAPE", 17, (), [ints(6, 28)], (6, 28)),
    *[case("RESIZE_BILINEAR", 15, [(2, "?", align), (3, "?", half)], [ints(*size)], (1, *size, 4))
      for align, half in [(0, 0), (1, 0), (0, 1)] for size in [(14, 9), (3, 4)]],
    *[case("RESIZE_NEAREST_NEIGHBOR", 74, [(0, "?", align), (1, "?", half)], [ints(*size)],
           (1, *size, 4))
      for align, half in [(0, 0), (1, 0), (0, 1)] for size in [(14, 9), (3, 4)]],
    unary("ROUND"),
    positive("RSQRT"),
    selected("SELECT", RNG.random(IMAGE) < 0.5),
    selected("SELECT", [True, False, True], (3, 5)),
    selected("SELECT_V2", [True, False, True, True]),
    unary("SIGN"),
    unary("SIN"),
    case("SLICE", 48, (), [ints(0, 2, 1, 0), ints(1, 3, -1, 2)], (1, 3, 5, 2)),
    case("SOFTMAX", 9, [(0, "f", 1.0)], [], IMAGE),
    case("SOFTMAX", 9, [(0, "f", 0.5)], [], (3, 9), fed=(3, 9)),
    case("SPACE_TO_BATCH_ND", 25, (), [ints(2, 3), constant([[0, 1], [1, 2]], "int32")],
         (6, 4, 3, 4)),
    case("SPACE_TO_DEPTH", 19, [(0, "i", 2)], [], (1, 3, 3, 12), fed=(1, 6, 6, 3)),
    case("SPLIT", 35, [(0, "i", 2)], [ints(2)], (1, 7, 3, 4), fed_at=1, many=2),
    case("SPLIT_V", 79, [(0, "i", 2)], [ints(3, 3), ints(2)], (1, 7, 3, 4), many=2),
    positive("SQRT"),
    unary("SQUARE", 66),
    case("SQUARED_DIFFERENCE", 76, (), [drawn(4)], IMAGE),
    case("SQUEEZE", 30, (), [], (7, 6, 4)),
    strided([0, 0, 0, 0, 0], [0, 1, 5, 0], [1, 6, 0, 4], [1, 2, -2, 1], (1, 3, 3, 4)),
    strided([2, 12, 0, 0, 0], [0, 3, 1, 1], [1, -1, 0, 0], [1, 1, 1, 2], (1, 6, 5, 2)),
    strided([0, 0, 0, 0, 10], [0, -1, 0, 2], [1, 0, 6, 3], [1, 1, 1, 1], (1, 6)),
    strided([8, 8, 0, 0, 0], [0, 0, 0, 0], [1, 7, 6, 0], [1, 1, 1, -1], IMAGE),
    case("SUB", 28, [(0, "b", 0)], [drawn(6, 4)], IMAGE),
    reduced("SUM", [1, 2], True, (1, 1, 1, 4)),
    unary("TANH"),
    case("TILE", 51, (), [ints(1, 2, 1, 3)], (1, 14, 6, 12)),
    case("TRANSPOSE", 26, (), [ints(0, 3, 1, 2)], (1, 4, 7, 6)),
    case("TRANSPOSE_CONV", 49, [(0, "b", SAME), (1, "i", 2), (2, "i", 2)],
         [ints(1, 14, 12, 3), drawn(3, 3, 3, 4)], (1, 14, 12, 3), fed_at=2),
    case("TRANSPOSE_CONV", 49, [(0, "b", VALID), (1, "i", 2), (2, "i", 3)],
         [ints(1, 21, 12, 3), drawn(3, 2, 2, 4)], (1, 21, 12, 3), fed_at=2),
    case("UNPACK", 64, [(0, "i", 6), (1, "i", 2)], [], (1, 7, 4), many=6),
]  # fmt: skip


def test_every_operator_of_the_table_has_a_case():
    assert {op for op, _ in CASES} == set(OPERATORS)


@pytest.mark.parametrize(("op", "data"), CASES, ids=[f"{n} {c[0]}" for n, c in enumerate(CASES)])
def test_an_operator_computes_what_the_interpreter_does(op, data):
    wanted, x = interpreted(data, op.startswith("CUSTOM"))
    graph = read_model(data, f"{op}.tflite")
    for made in (graph, optimized(graph)):
        given = OrtSession(made.to_bytes()).run(None, {"t0": x})
        for a, b in zip(given, wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


def interpreted(data, is_custom=False):
    """What the interpreter's built-in kernels make of normal numbers, and those. Operators of
    MediaPipe's own only its delegate knows."""
    kernels = litert.OpResolverType
    resolver = kernels.AUTO if is_custom else kernels.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    session = litert.Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    session.allocate_tensors()
    (fed,) = session.get_input_details()
    shape = tuple(int(size) for size in fed["shape"])
    x = np.random.default_rng(1).normal(0, 2, math.prod(shape)).reshape(shape).astype(np.float32)
    session.set_tensor(fed["index"], x)
    session.invoke()
    return [session.get_tensor(made["index"]) for made in session.get_output_details()], x
