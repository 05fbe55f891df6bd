"""An operator that is written out may stand in a graph twice: each keeps its own inner tensors."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from compilers.test_float_decompositions import FED, NODES, alike, graph_of
from npumake.compilers.float_decompositions import written_out
from npumake.compilers.floats import FLOATS
from npumake.compilers.tflite import tflite_file
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.graph import Graph, parse, parse_text
from npumake.runtime.litert import LiteRtSession

MORE = {
    "Attention": (23, "y = Attention(x, z, x)"),
    "Attention, causal": (23, "y = Attention <is_causal = 1, scale = 0.3>(x, z, x)"),
    "Celu": (20, "y = Celu <alpha = 0.4>(x)"),
    "LSTM": (20, "r = Reshape(x, rows) h, y, c = LSTM <hidden_size = 2>(r, w, v)"),
    "LSTM, reversed": (
        20,
        'r = Reshape(x, rows) y, h, c = LSTM <hidden_size = 2, direction = "reverse">(r, w, v)',
    ),
    "ReduceL2": (20, "y = ReduceL2 <keepdims = 0>(x)"),
    "RotaryEmbedding": (23, "r = Reshape(x, even) y = RotaryEmbedding(r, turns, turns)"),
    "RotaryEmbedding, interleaved": (
        23,
        "r = Reshape(x, even) y = RotaryEmbedding <interleaved = 1>(r, turns, turns)",
    ),
    "Selu": (20, "y = Selu <alpha = 0.4, gamma = 1.5>(x)"),
}
# A cubic GridSample is some hundred nodes.
NAMES = [
    pytest.param(name, marks=pytest.mark.slow) if "GridSample" in name and "cubic" in name else name
    for name in sorted({*NODES, *MORE})
]
RNG = np.random.default_rng(1)


def numbers(*shape: int) -> str:
    return "{" + ",".join(f"{number:.3f}" for number in RNG.normal(0, 0.5, shape).ravel()) + "}"


HELD = (
    f"int64[3] rows = {{5,4,7}}, int64[4] even = {{1,7,5,4}}, float[1,8,7] w = {numbers(1, 8, 7)}, "
    f"float[1,8,2] v = {numbers(1, 8, 2)}, float[1,5,2] turns = {numbers(1, 5, 2)}"
)


def once(name: str) -> Graph:
    if name in NODES and name not in MORE:
        return graph_of(name)[0]
    opset, body = MORE[name]
    ports = ", ".join(f"float[1,4,5,7] {key}" for key in FED if f" {key}," in body or key == "x")
    text = f'<ir_version: 10, opset_import: ["" : {opset}]> agraph ({ports}) => (float[] y)'
    return parse_text(f"{text} <{HELD}> {{ {body} }}").with_shapes()


def twice(name: str, *, chained: bool) -> Graph:
    """The nodes again with other numbers as attributes; `chained`, they read what the first made,
    in the mean, else the same input."""
    proto = onnx.load_from_string(once(name).to_bytes())
    del proto.graph.value_info[:]
    nodes = list(proto.graph.node)
    renamed = {value: f"{value}_again" for node in nodes for value in node.output}
    if chained:
        mean = onnx.helper.make_node("ReduceMean", ["y"], ["mean"], name="mean", keepdims=0)
        first = proto.graph.input[0].name
        renamed[first] = f"{first}_again"
        read = onnx.helper.make_node("Add", [first, "mean"], [renamed[first]], name="read")
        proto.graph.node.extend([mean, read])
    for node in nodes:
        again = onnx.NodeProto.FromString(node.SerializeToString())
        again.name = f"{node.name}_again"
        again.input[:] = [renamed.get(value, value) for value in node.input]
        again.output[:] = [renamed[value] for value in node.output]
        for attribute in again.attribute:
            if attribute.type == onnx.AttributeProto.FLOAT:
                attribute.f *= 0.75
        proto.graph.node.append(again)
    made = onnx.ValueInfoProto.FromString(proto.graph.output[0].SerializeToString())
    made.name = "y_again"
    proto.graph.output.append(made)
    return parse(proto.SerializeToString(), "twice.onnx").with_shapes()


@pytest.mark.parametrize("chained", [False, True], ids=["shared", "chained"])
@pytest.mark.parametrize("name", NAMES)
def test_each_of_two_is_the_one_of_onnxruntime(name, chained):
    pytest.importorskip("ai_edge_litert.interpreter", reason="LiteRT is not installed")
    graph = twice(name, chained=chained)
    fed = {str(value.name): FED[str(value.name)] for value in graph.inputs}
    wanted = OrtSession(graph.to_bytes()).run(["y", "y_again"], fed)
    session = LiteRtSession(tflite_file(lowered(graph, "twice", ()), graph), "made.tflite")
    made = session.run(["y", "y_again"], fed)
    for one, other in zip(made, wanted, strict=True):
        np.testing.assert_allclose(alike(one, other), other, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("name", sorted(MORE))
def test_the_second_adds_no_name_of_the_first(name):
    graph = twice(name, chained=False)
    program, nodes = written_out(lowered(graph, "twice", ()), graph, FLOATS)
    made = [value for step in program.instructions for value in step.outputs]
    names = [step.name for step in program.instructions]
    assert len(made) == len(set(made))
    assert len(names) == len(set(names))
    assert set(names) <= set(nodes)
