"""What only moves or selects gives back codes that it read, those that onnxruntime picks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from draws import examples
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.graph import parse

OPSET = 19
ZERO_POINT = -3
SCALE = 0.5


class Case(NamedTuple):
    op: str
    shapes: list[tuple[int, ...]]  # of the tensors it reads
    parameters: list[np.ndarray]  # the constants behind them
    attributes: dict


def shapes(least=1, most=6):
    return st.lists(st.integers(1, 4), min_size=least, max_size=most).map(tuple)


def integers(low, high, shape):
    size = int(np.prod(shape))
    numbers = st.lists(st.integers(low, high), min_size=size, max_size=size)
    return numbers.map(lambda found: np.array(found, np.int64).reshape(shape))


@st.composite
def depths(draw):
    n, d, h, w = draw(st.tuples(*[st.integers(1, 3)] * 4))
    b, mode = draw(st.integers(1, 3)), draw(st.sampled_from(["DCR", "CRD"]))
    return Case("DepthToSpace", [(n, d * b * b, h, w)], [], {"blocksize": b, "mode": mode})


@st.composite
def spaces(draw):
    n, c, h, w = draw(st.tuples(*[st.integers(1, 3)] * 4))
    b = draw(st.integers(1, 3))
    return Case("SpaceToDepth", [(n, c, h * b, w * b)], [], {"blocksize": b})


@st.composite
def tiles(draw):
    shape = draw(shapes(most=5))
    return Case("Tile", [shape], [draw(integers(1, 3, (len(shape),)))], {})


@st.composite
def expansions(draw):
    """Axes of 1 are repeated, new ones come in front; asked for as 1, an axis stays."""
    after = draw(shapes(most=5))
    kept = draw(st.integers(0, len(after)))
    before = tuple(draw(st.sampled_from([1, n])) for n in after[len(after) - kept :])
    told = [draw(st.sampled_from([1, n])) if b == n else n for b, n in zip(before, after[-kept:])]  # noqa: B905
    target = [*after[: len(after) - kept], *(told if kept else [])]
    return Case("Expand", [before], [np.array(target, np.int64)], {})


@st.composite
def gathers(draw):
    shape = draw(shapes(most=4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    indices = draw(st.sampled_from([(), (1,), (3,), (2, 2), (1, 2, 1)]))
    at = draw(integers(-shape[axis], shape[axis] - 1, indices))
    return Case("Gather", [shape], [at], {"axis": axis})


@st.composite
def gathers_of_elements(draw):
    shape = draw(shapes(most=4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    like = list(shape)
    like[axis] = draw(st.integers(1, 4))
    return Case(
        "GatherElements",
        [shape],
        [draw(integers(-shape[axis], shape[axis] - 1, like))],
        {"axis": axis},
    )


@st.composite
def gathers_of_slices(draw):
    shape = draw(shapes(least=2, most=4))
    batch = draw(st.integers(0, len(shape) - 1))
    depth = draw(st.integers(1, len(shape) - batch))
    rows = (*shape[:batch], *draw(st.sampled_from([(1,), (2,), (2, 1)])))
    columns = [draw(integers(-n, n - 1, rows)) for n in shape[batch : batch + depth]]
    return Case("GatherND", [shape], [np.stack(columns, -1)], {"batch_dims": batch})


@st.composite
def slices(draw):
    shape = draw(shapes())
    axes = draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    spans = []
    for axis in axes:
        n = shape[axis]
        first, last = sorted(draw(st.lists(st.integers(0, n), unique=True, min_size=2, max_size=2)))
        step = draw(st.integers(1, 3))
        if draw(st.booleans()):
            spans.append((last - 1, first - n - 1, -step))
        else:
            spans.append((first - n if first < n else first, last, step))
    starts, ends, steps = (np.array(column, np.int64) for column in zip(*spans, strict=True))
    signed = np.array([axis - draw(st.sampled_from([0, len(shape)])) for axis in axes])
    return Case("Slice", [shape], [starts, ends, signed, steps], {})


@st.composite
def pads(draw):
    shape = draw(shapes(most=4))
    mode = draw(st.sampled_from(["constant", "edge", "reflect"]))
    most = [n - 1 if mode == "reflect" else 2 for n in shape] * 2
    return Case("Pad", [shape], [np.array([draw(st.integers(0, m)) for m in most])], {"mode": mode})


@st.composite
def turns(draw):
    shape = draw(shapes())
    return Case("Transpose", [shape], [], {"perm": draw(st.permutations(range(len(shape))))})


@st.composite
def flattenings(draw):
    shape = draw(shapes())
    return Case("Flatten", [shape], [], {"axis": draw(st.integers(-len(shape), len(shape)))})


@st.composite
def reshapes(draw):
    shape = draw(shapes())
    target = draw(st.permutations(shape))
    open_axis = draw(st.integers(0, len(target) - 1))
    dims = [-1 if axis == open_axis else n for axis, n in enumerate(target)]
    return Case("Reshape", [shape], [np.array(dims, np.int64)], {})


@st.composite
def new_axes(draw):
    shape = draw(shapes(most=4))
    rank = len(shape) + 2
    axes = draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=2, max_size=2))
    return Case("Unsqueeze", [shape], [np.array(axes) - draw(st.sampled_from([0, rank]))], {})


@st.composite
def dropped_axes(draw):
    shape = [*draw(shapes(most=4)), 1]
    at = draw(st.integers(0, len(shape) - 1))
    shape[at], shape[-1] = 1, shape[at]
    return Case("Squeeze", [tuple(shape)], [np.array([at])], {})


@st.composite
def extremes(draw):
    shape = draw(shapes(most=5))
    rank = len(shape)
    axes = draw(st.lists(st.integers(0, rank - 1), unique=True, min_size=1))
    signed = np.array([axis - draw(st.sampled_from([0, rank])) for axis in axes])
    op, keep = draw(st.sampled_from(["ReduceMax", "ReduceMin"])), draw(st.integers(0, 1))
    return Case(op, [shape], [signed], {"keepdims": keep})


@st.composite
def selections(draw):
    after = draw(shapes(most=5))
    parts = [
        tuple(draw(st.sampled_from([1, n])) for n in after[draw(st.integers(0, len(after))) :])
        for _ in range(draw(st.integers(0, 2)))
    ]
    return Case(draw(st.sampled_from(["Max", "Min"])), [after, *parts], [], {})


KINDS = {
    "DepthToSpace": depths(),
    "Expand": expansions(),
    "Flatten": flattenings(),
    "Gather": gathers(),
    "GatherElements": gathers_of_elements(),
    "GatherND": gathers_of_slices(),
    "Max and Min": selections(),
    "Pad": pads(),
    "ReduceMax and ReduceMin": extremes(),
    "Reshape": reshapes(),
    "Slice": slices(),
    "SpaceToDepth": spaces(),
    "Squeeze": dropped_axes(),
    "Tile": tiles(),
    "Transpose": turns(),
    "Unsqueeze": new_axes(),
}


def model_of(case, shape=None):
    """The operator alone, or with Q and DQ of one grid around it where its output has a shape."""
    on_grids = shape is not None
    names = [f"x{index}" for index in range(len(case.shapes))]
    constants = [numpy_helper.from_array(p, f"c{index}") for index, p in enumerate(case.parameters)]
    grid = [
        numpy_helper.from_array(np.float32(SCALE), "scale"),
        numpy_helper.from_array(np.int8(ZERO_POINT), "zero"),
    ]

    def pair(name):
        return [
            helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{name}_q"]),
            helper.make_node("DequantizeLinear", [f"{name}_q", "scale", "zero"], [f"{name}_d"]),
        ]

    read = [f"{name}_d" if on_grids else name for name in names]
    made = "made" if on_grids else "y"
    node = helper.make_node(
        case.op, [*read, *(c.name for c in constants)], [made], name="op", **case.attributes
    )
    nodes = [node]
    if on_grids:
        nodes = [*(n for name in names for n in pair(name)), node, *pair("made")]
        nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in zip(names, case.shapes, strict=True)
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [*constants, *(grid if on_grids else [])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@examples(25)
@given(data=st.data())
def test_no_code_changes_where_the_grid_is_kept(kind, data):
    case = data.draw(KINDS[kind])
    rng = np.random.default_rng(0)
    steps = [np.asarray(rng.integers(-125, 131, shape)) for shape in case.shapes]
    fed = {f"x{i}": np.asarray(SCALE * values, np.float32) for i, values in enumerate(steps)}
    (want,) = OrtSession(model_of(case).SerializeToString(), 1).run(None, fed)
    graph = parse(model_of(case, want.shape).SerializeToString(), "case").with_shapes()
    for rounding in ("half_even", "twice"):
        program = lowered(graph, rounding)
        assert "onnx" not in {step.op for step in program.instructions}
        for session in (ReferenceSession(program), ExactSession(program, at_once=1)):
            (made,) = session.run(None, fed)
            assert np.array_equal(made, want)
