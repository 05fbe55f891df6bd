"""The checker: where a node runs, why not on the NPU, and what a rewrite brings back."""

import numpy as np
import pytest

from npumake.debug.model_check import check_model, prepared, rewritten
from npumake.engine.ort import OrtSession
from npumake.frontends import read_model
from npumake.graph import parse_text
from npumake.project.sections import Quantization
from npumake.targets.onnx_limits import mark_format
from npumake.targets.reader import read_target, target_names
from workspaces import few, shared_data

X3, X5, SL, NASH = map(read_target, ("rdk-x3", "rdk-x5", "sl1620", "nash-e"))
IMAGE = '<ir_version: 7, opset_import: ["" : 11]> a (float[1,2,8,8] x) => (float[] y)'
CONV = "float[2,2,1,1] w = {1, 2, 3, 4}, int64[4] r = {3, 2, 8, 8}"


def model(body, constants=CONV):
    return parse_text(f"{IMAGE} <{constants}> {{ {body} }}")


def check(body, target, constants=CONV):
    return check_model(prepared(model(body, constants), is_onnx=True), target)


def test_a_node_between_two_regions_divides_them():
    found = check("c = Conv(x, w)  n = Erf(c)  y = Conv(n, w)", X3)
    assert [(row.type, row.on, row.subgraph) for row in found.nodes] == [
        ("Conv", "BPU", 0),
        ("Erf", "CPU", None),
        ("Conv", "BPU", 1),
    ]
    assert found.subgraphs == ("main_graph_subgraph_0", "main_graph_subgraph_1")
    assert found.nodes[1].why == "the BPU does not run Erf"


def test_what_breaks_a_limit_is_told_with_value_limit_and_change():
    (row,) = check("y = AveragePool<kernel_shape=[8,7]>(x)", X3).nodes
    assert (row.on, row.why) == ("CPU", "beyond a documented limit")
    (limit,) = row.beyond
    assert limit.breach.limit == "1 <= kernel_h <= 7"
    assert limit.breach.facts == (("kernel_h", 8),)
    assert limit.change == "average in two steps, or over the whole image"


@pytest.mark.parametrize(
    ("body", "target", "why"),
    [
        ("c = Relu(x)  y = Softmax<axis=3>(c)", X5, "only if `quantization.npu` lists it"),
        ("c = Conv(x, w)  y = Elu(c)", SL, "sl1620 has no NPU"),
        ("y = Transpose<perm=[0,1,3,2]>(x)", X5, "only moves data"),
        ("c = Conv(x, w)  y = Ceil(c)", X5, "no integer kernel here"),
    ],
)
def test_a_node_on_the_cpu_says_why(body, target, why):
    assert why in check(body, target).nodes[-1].why


def test_the_project_decides_too():
    graph = prepared(model("y = Conv(x, w)"), is_onnx=True)
    (row,) = check_model(graph, X5, Quantization(cpu=("y",))).nodes
    assert row.on == "CPU"
    assert "keeps it in float" in row.why


def test_what_nobody_documents_is_unknown_and_not_refused():
    found = check("c = Conv(x, w)  y = Abs(c)", NASH)
    assert [(row.on, row.documented) for row in found.nodes] == [("BPU", False), ("BPU", True)]
    assert found.notes[0] == "not documented for nash-e, assumed to run on its BPU: Conv"


def test_operators_that_no_unit_runs_are_listed_all_at_once():
    found = check("a = Mean(x, x)  b = Hardmax(a)  c = Mean(b, x)  y = Mean(c, x)", X5)
    assert found.unsupported == {"Hardmax": ("b",), "Mean": ("a", "c", "y")}


def test_more_outputs_than_the_vendors_tool_takes_are_told():
    outputs = ", ".join(f"float[] y{n}" for n in range(33))
    body = "  ".join(f"y{n} = Relu(x)" for n in range(33))
    graph = parse_text(f"a (float[1,2,8,8] x) => ({outputs}) {{ {body} }}")
    mark_format(graph, 11, 7)
    note, conv = check_model(graph, X5).notes
    assert note == "it has 33 outputs, D-Robotics's own tool takes at most 32"
    assert "needs one Conv there" in conv


def test_the_document_is_for_machines():
    document = check("y = AveragePool<kernel_shape=[8,7]>(x)", X3).document()
    assert document["target"] == "rdk-x3"
    assert document["nodes"][0]["beyond"] == [
        {
            "limit": "1 <= kernel_h <= 7",
            "found": {"kernel_h": 8},
            "change": "average in two steps, or over the whole image",
        }
    ]


@pytest.mark.parametrize(
    ("body", "constants", "target", "rewrite"),
    [
        ("c = Relu(x)  n = Neg(c)  y = Add(n, x)", CONV, X3, "negate_by_mul"),
        ("c = Conv(x, w)  s = Sigmoid(c)  y = Sub(s, c)", CONV, X3, "negate_by_mul"),
        ("c = Conv(x, w)  y = ReduceMean<axes=[2,3], keepdims=0>(c)", CONV, X5, "keep_reduced"),
        ("c = Conv(x, w)  y = AveragePool<kernel_shape=[8,8]>(c)", CONV, X3, "pool_whole_image"),
    ],
)
def test_a_rewrite_brings_a_node_onto_the_npu_and_keeps_the_numbers(
    body, constants, target, rewrite
):
    before = model(body, constants)
    found = rewritten(before, target)
    assert [name.startswith(rewrite) for name in found.applied] == [True]
    assert found.check.on_cpu == 0
    assert found.model.opset == before.opset == 11
    x = {"x": np.linspace(-3, 3, 128, dtype=np.float32).reshape(1, 2, 8, 8)}
    old, new = (OrtSession(each.to_bytes()).run(None, x)[0] for each in (before, found.model))
    assert old.shape == new.shape
    # A mean in one sum or by rows: the last bits of a float32 near 10 may differ.
    np.testing.assert_allclose(new, old, rtol=0, atol=1e-5)


def test_where_no_rewrite_helps_nothing_is_rewritten():
    found = rewritten(model("c = Conv(x, w)  y = Erf(c)"), X3)
    assert found.applied == ()


FILES = sorted(shared_data().joinpath("models").rglob("*.onnx"))
BRIEF = ("mnist_cntk", "silero_vad_16k_op15", "yunet_n_320_320")
SHAPES = {
    "ppocr_mobile_v2_cls": {"x": (1, 3, 48, 192)},
    "silero_vad_16k_op15": {"input": (1, 576), "state": (2, 1, 128)},
}


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason="shared/data/models is not here")
@pytest.mark.parametrize(
    "file", few(FILES, lambda file: file.stem in BRIEF), ids=lambda file: file.stem
)
def test_every_real_model_is_checked_for_every_target(file):
    graph = read_model(file.read_bytes(), file.name)
    for value in graph.inputs:
        if dims := SHAPES.get(file.stem, {}).get(str(value.name)):
            graph.set_input_shape(value, dims)
    graph = prepared(graph, is_onnx=True)
    for target in map(read_target, target_names()):
        found = check_model(graph, target)
        assert all(row.why or row.subgraph is not None for row in found.nodes)
        assert all((row.subgraph is None) >= bool(row.beyond) for row in found.nodes)
