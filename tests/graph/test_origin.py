"""Origins: every node says which nodes of the trained model it computes."""

import numpy as np
import onnx
import pytest

from npumake.engine.lower import lowered
from npumake.graph import Graph, origin, parse, parse_text, upgraded
from npumake.passes import optimized
from npumake.project.sections import Calibration
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.ranges import ranges
from npumake.quant.qdq.grid_assignment import grids_of
from npumake.quant.qdq.insert import with_qdq
from npumake.quant.qdq.integers import with_integer_weights
from npumake.targets.reader import read_target

NORM = "float[2] g = {1, 2}, float[2] m = {0.5, 1}, float[2] v = {1, 4}"
W = "float[2,2,1,1] w = {1, 2, 3, 4}"


def origins(graph: Graph) -> dict[str, tuple[str, ...]]:
    return {str(node.name): origin(node) for node in graph.nodes()}


def of(body: str, constants: str) -> dict[str, tuple[str, ...]]:
    text = f"a (float[1,2,4,4] x) => (float[1,2,N,M] y) <{constants}> {{ {body} }}"
    return origins(optimized(parse_text(text)))


def test_a_node_that_was_read_comes_from_itself():
    assert origins(parse_text("a (float[2] x) => (float[2] y) { b = Neg(x)  y = Abs(b) }")) == {
        "b": ("b",),
        "y": ("y",),
    }


@pytest.mark.parametrize(
    ("body", "constants", "expected"),
    [
        (
            "c = Conv(x, w)  n = BatchNormalization(c, g, g, m, v)  y = Relu(n)",
            f"{W}, {NORM}",
            {"c": ("c", "n"), "y": ("y",)},
        ),
        (
            "p = Pad(x, q)  c = Conv(p, w)  y = Add(c, g)",
            f"{W}, float[2,1,1] g = {{1, 2}}, int64[8] q = {{0,0,1,1,0,0,1,1}}",
            {"c": ("c", "p", "y")},
        ),
        (
            "b = Add(x, t)  c = Clip(b, o, s)  d = Mul(x, c)  y = Div(d, s)",
            "float t = {3}, float o = {0}, float s = {6}",
            {"y": ("y", "b", "c", "d")},
        ),
        (
            "k = Neg(w)  c = Conv(x, k)  u = Abs(c)  i = Identity(c)  y = Relu(i)",
            W,
            {"c": ("c", "i"), "y": ("y",)},
        ),
        (
            "r = Relu(x)  a = Transpose<perm=[1,0,2,3]>(r)  b = Transpose<perm=[1,0,2,3]>(a)"
            "  n = Neg(b)  z = Softmax<axis=3>(a)  s = Transpose<perm=[1,0,2,3]>(z)  y = Add(n, s)",
            "float u = {1}",
            {"r": ("r", "b"), "a": ("a",), "n": ("n",), "z": ("z",), "s": ("s",)},
        ),
        ("y = BatchNormalization(x, g, g, m, v)", NORM, {"y": ("y",)}),
    ],
    ids=["normalization", "pad and bias", "function", "dead and constant", "shared", "rewritten"],
)
def test_an_origin_is_what_the_node_computes(body, constants, expected):
    found = of(body, constants)
    assert {name: set(found[name]) for name in expected} == {k: set(v) for k, v in expected.items()}
    assert all(found[name][0] == expected[name][0] for name in expected)


def test_a_node_is_found_by_its_own_name_or_by_an_original_one():
    text = f"a (float[1,2,4,4] x) => (float[1,2,4,4] y) <{W}, {NORM}> {{ "
    graph = parse_text(f"{text} c = Conv(x, w)  y = BatchNormalization(c, g, g, m, v) }}")
    better = optimized(graph)
    assert [node.op_type for node in better.find("c")] == ["Conv"]
    assert better.find("c") == better.find("y")
    assert better.find("nothing") == ()


def test_an_upgrade_keeps_origins_though_the_converter_renames_nodes():
    data = onnx.parser.parse_model("""<ir_version: 3, opset_import: ["" : 9]>
        agraph (float[1,2,2,2] x, float[4] s) => (float[1,2,8,8] y)
        <float[4] s = {1, 1, 2, 2}> {
        u = Upsample<mode = "nearest">(x, s)  a = Abs(u)  b = Add(u, a)
        z = Upsample<mode = "nearest">(b, s)
        t = Softmax<axis = 1>(z)  y = Neg(t) }""")
    graph = upgraded(parse(data.SerializeToString(), "old.onnx"))
    assert {n.op_type: origin(n) for n in graph.nodes() if n.op_type != "Shape"} == {
        "Resize": ("z",),
        "Abs": ("a",),
        "Add": ("b",),
        "Flatten": ("t",),
        "Softmax": ("t",),
        "Reshape": ("t",),
        "Neg": ("y",),
    }
    assert [origin(node) for node in graph.nodes("Resize")] == [("u",), ("z",)]


def test_what_a_file_says_about_origins_is_not_believed():
    graph = parse_text("a (float[2] x) => (float[2] y) { y = Neg(x) }")
    graph.nodes()[0].metadata_props["npumake.origin"] = "[not JSON"
    assert origins(parse(graph.to_bytes(), "m.onnx")) == {"y": ("y",)}


def test_origins_reach_the_quantized_graph_and_the_program():
    text = f"a (float[1,2,4,4] x) => (float[1,2,4,4] y) <{W}> {{ c = Conv(x, w)  y = Relu(c) }}"
    graph, chip = optimized(parse_text(text)), read_target("ara240")
    image = {"x": np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32)}
    found = ranges(graph, observe(graph, [image]), Calibration("max"))
    grids = {name: grids_of(*limits, chip) for name, limits in found.items()}
    quantized = with_integer_weights(with_qdq(graph, grids, chip))
    assert origins(quantized) == {
        "x_quantized": (),
        "x_dequantized": (),
        "w_dequantized": ("c",),
        "c": ("c",),
        "y": ("y",),
        "y_quantized": ("y",),
        "y_dequantized": ("y",),
    }
    steps = lowered(quantized, chip.rounding).instructions
    assert {step.op: step.origin for step in steps}["conv"] == ("c", "y")
