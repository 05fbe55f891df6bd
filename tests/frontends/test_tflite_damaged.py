"""A damaged .tflite file is one GraphError that names the file: no crash, and little memory."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from frontends.tflite_writer import Op, Sparsity, T, constant, written
from npumake.errors import GraphError
from npumake.frontends import read_model

IMAGE = (1, 6, 5, 2)
CONV = [(0, "b", 0), (1, "i", 1), (2, "i", 1), (3, "b", 3), (4, "i", 1), (5, "i", 1)]


def network(**changed):
    """Conv, then Relu: a file of two operators that is all right until something is changed."""
    parts = {
        "fed": T(IMAGE),
        "weight": constant(np.ones((3, 2, 2, 2))),
        "made": T((1, 6, 5, 3)),
        "conv": CONV,
        "conv_inputs": [0, 1],
        "second": Op("RELU", [2], [3]),
        "inputs": [0],
        "outputs": [3],
    } | changed
    tensors = [parts["fed"], parts["weight"], parts["made"], T((1, 6, 5, 3))]
    first = Op("CONV_2D", parts["conv_inputs"], [2], 1, parts["conv"])
    return written(tensors, [first, parts["second"]], parts["inputs"], parts["outputs"])


KEPT = ([0, 1, 1, 2], [1, 3])  # a row of one value, of none, of one


def sparse(shape=(3, 4), order=(0, 1), levels=(3, KEPT), stored=(1.0, 2.0), blocked=()):
    """A sum with what is stored without its zeros."""
    held = T(shape, stored=np.float32(stored), sparsity=Sparsity(order, levels, blocked))
    return written([T((3, 4)), held, T((3, 4))], [Op("ADD", [0, 1], [2], 11)], [0], [2])


GOOD = network()
WRONG = {
    "an unknown operator": (
        network(second=Op("SVDF", [2], [3])),
        "no support for the operators SVDF",
    ),
    "a custom operator": (
        network(second=Op("CUSTOM", [2], [3])),
        "no support for the operators CUSTOM",
    ),
    "a tensor that is missing": (network(second=Op("RELU", [9], [3])), "tensor 9 of 4 is missing"),
    "an input left out": (network(conv_inputs=[-1, 1]), "CONV_2D lacks its input 0"),
    "a cycle": (network(conv_inputs=[0, 1, 3]), "`t3` must be constant"),
    "an operator too early": (network(inputs=[]), "`t0` is read before it is computed"),
    "a tensor made twice": (network(second=Op("RELU", [2], [2])), "`t2` is computed twice"),
    "a constant that is written": (network(second=Op("RELU", [2], [1])), "`t1` is computed twice"),
    "a computed weight": (network(conv_inputs=[0, 0]), "`t0` must be constant"),
    "a stride of nothing": (network(conv=[(0, "b", 0), (1, "i", 0), (2, "i", 1)]), "a stride"),
    "a stride of millions": (network(conv=[(1, "i", 1 << 30), (2, "i", 1)]), "a stride"),
    "an unknown activation": (network(conv=[*CONV[:3], (3, "b", 9)]), "unknown activation 9"),
    "an image of another rank": (network(fed=T((1, 6, 5))), "does not fit the channels of `t0`"),
    "another number of channels": (network(fed=T((1, 6, 5, 3))), "does not fit the channels"),
    "a shape that is not computed": (network(made=T((1, 6, 5, 4))), "declared as [1, 6, 5, 4]"),
    "a huge shape": (network(fed=T((1 << 20, 1 << 20, 4, 2))), "has the shape"),
    "a negative shape": (network(fed=T((1, -6, 5, 2))), "has the shape"),
    "a weight of too few bytes": (
        network(weight=T((3, 2, 2, 2), values=np.ones(3, np.float32))),
        "has 12 bytes",
    ),
    "a scale of nothing": (network(fed=T(IMAGE, "int8", scale=[0.0])), "invalid quantization"),
    "a zero point beyond int8": (
        network(fed=T(IMAGE, "int8", scale=[1.0], zero_point=[200])),
        "invalid quantization",
    ),
    "an activation per channel": (
        network(fed=T(IMAGE, "int8", scale=[1.0, 2.0], axis=3)),
        "is quantized to per channel",
    ),
    "an activation of 16 bits": (
        network(fed=T(IMAGE, "int16", scale=[1.0])),
        "is quantized to int16",
    ),
    "a spectrum": (
        network(fed=T(IMAGE, "complex numbers")),
        "tensor `t0` is of complex numbers: only real numbers can be read",
    ),
    "an unknown type": (
        network(fed=T(IMAGE, "nothing")),
        "tensor `t0` is of type 99, which the format does not have",
    ),
    "a size left open": (
        network(fed=T((1, 6, 1, 2), signature=(-1, 6, -1, 2))),
        "input `t0` leaves its size open: [-1, 6, -1, 2]",
    ),
    "options of a custom operator that are too few": (
        network(second=Op("CUSTOM Convolution2DTransposeBias", [2, 1], [3], custom=bytes(8))),
        "has 8 bytes of options",
    ),
    "a sparse tensor too large": (sparse((1 << 16, 1 << 10)), "is too large for its file"),
    "a sparse tensor of one dimension": (
        sparse(order=[0]),
        "of rank 2 traverses the dimensions [0]",
    ),
    "a sparse tensor that walks one twice": (
        sparse(order=[1, 1]),
        "traverses the dimensions [1, 1]",
    ),
    "a dense level of nothing": (sparse(levels=[0, KEPT]), "0 places along a dimension"),
    "a dense level of millions": (sparse(levels=[1 << 30, KEPT]), "places along a dimension"),
    "segments that are too few": (sparse(levels=[3, ([0, 2], [1, 3])]), "segments of a sparse"),
    "segments that go back": (sparse(levels=[3, ([0, 2, 0, 2], [1, 3])]), "segments of a sparse"),
    "places beyond the end": (sparse(levels=[3, ([0, 1, 1, 2], [1, 9])]), "2 values of a sparse"),
    "more values than places": (sparse(stored=[1.0] * 3), "3 values of a sparse tensor"),
    "a block along no dimension": (
        sparse(order=[0, 1, 2], levels=[3, KEPT, 1], blocked=[5]),
        "a block along the dimension 5 of 2",
    ),
    "no outputs": (network(outputs=[]), "it computes nothing"),
    "an output twice": (network(outputs=[3, 3]), "an output is listed twice"),
    "an input twice": (network(inputs=[0, 0]), "an input is listed twice"),
    "another mark": (GOOD[:4] + b"TFL9" + GOOD[8:], "lacks the identifier TFL3"),
    "a root beyond the end": (
        struct.pack("<I", 1 << 31) + GOOD[4:],
        "is beyond the end of the file",
    ),
}


@pytest.mark.parametrize(("data", "what"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_named_once_with_its_file(data, what):
    with pytest.raises(GraphError) as caught:
        read_model(data, "m.tflite")
    assert what in caught.value.what
    assert caught.value.where == "m.tflite"


def test_the_file_the_mistakes_are_made_in_is_all_right():
    assert [node.op_type for node in read_model(GOOD, "m.tflite").nodes("Conv", "Relu")] == [
        "Conv",
        "Relu",
    ]


def verdict(data):
    """`read`, or the file a GraphError names; any other exception is raised."""
    try:
        read_model(data, "m.tflite")
    except GraphError as error:
        return error.where
    return "read"


TAIL = 8  # bytes at the end that nothing in the file points to


@pytest.mark.parametrize("length", range(0, len(GOOD) - TAIL, 7))
def test_a_truncated_file_is_refused(length):
    with pytest.raises(GraphError) as caught:
        read_model(GOOD[:length], "m.tflite")
    assert caught.value.where == "m.tflite"


@examples(400)
@given(
    st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), min_size=1, max_size=8)
)
def test_bytes_gone_wrong_are_refused_or_read(changes):
    data = bytearray(GOOD)
    for at, byte in changes:
        data[at] = byte
    assert verdict(bytes(data)) in ("read", "m.tflite")  # damage may leave a model


def test_weights_read_over_and_over_do_not_fill_the_memory():
    count, weight = 500, constant(np.ones((256, 256)))
    tensors = [T((1, 256)), weight, *[T((1, 256))] * count]
    steps = [Op("FULLY_CONNECTED", [1 + n if n else 0, 1], [2 + n], 8) for n in range(count)]
    data = written(tensors, steps, [0], [count + 1])
    tracemalloc.start()
    with pytest.raises(GraphError, match="used too often"):
        read_model(data, "m.tflite")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * len(data)
