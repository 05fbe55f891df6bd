"""The placement of a compiled file, read from the file; and Vela's tables, which may lie."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from compilers.files import Made, made_of
from draws import drawn_pairs
from npumake.compilers.backends import BACKENDS
from npumake.compilers.file_placement import NPU_OPERATOR, file_placement
from npumake.compilers.vela import estimate_in
from npumake.errors import GraphError, StageError
from npumake.frontends.tflite.schema import read_network
from npumake.graph import Graph, parse_text
from npumake.passes import optimized
from npumake.targets.reader import read_target

SIZE = (1, 3, 12, 12)
RNG = np.random.default_rng(5)
FED = {"x": RNG.normal(size=SIZE).astype(np.float32)}


def numbers(*dims: int) -> str:
    return ", ".join(f"{value:.4f}" for value in RNG.normal(size=dims).ravel() * 0.4)


WEIGHTS = f"""float[8,3,3,3] w1 = {{{numbers(8, 3, 3, 3)}}},
    float[8,8,3,3] w2 = {{{numbers(8, 8, 3, 3)}}}, float[4,8,3,3] w3 = {{{numbers(4, 8, 3, 3)}}},
    int64[8] turned = {{7, 1, 3, 2, 0, 5, 4, 6}}, int64[8] around = {{0, 0, 1, 1, 0, 0, 1, 1}}"""
CONV = "Conv<pads=[1,1,1,1]>"
MIDDLES = {
    **{name: f"{name}({{}})" for name in ("Elu", "Gelu", "Erf", "Mish", "Softplus", "Abs", "Neg")},
    **{name: f"{name}({{}})" for name in ("Relu", "Sigmoid", "Tanh", "HardSwish", "Exp")},
    "Gather": "Gather<axis=1>({}, turned)",
    "Pad": 'Pad<mode="edge">({}, around)',
    "MaxPool": "MaxPool<kernel_shape=[2,2], strides=[2,2]>({})",
    "Transpose": "Transpose<perm=[0,1,3,2]>({})",
}


def twice(first: str, second: str) -> Graph:
    """Conv, the first operator, Conv, the second one, Conv."""
    return optimized(
        parse_text(
            f"""<ir_version: 9, opset_import: ["" : 20]> f (float[1,3,12,12] x) => (float[] y)
            <{WEIGHTS}> {{ a = {CONV}(x, w1)  b = {MIDDLES[first].format("a")}
            c = {CONV}(b, w2)  d = {MIDDLES[second].format("c")}  y = {CONV}(d, w3) }}"""
        )
    )


def compiled(made: Made, chip: str) -> bytes:
    return BACKENDS["vela"](made.data, read_target(chip))[0]


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["ethos-u55-128", "ethos-u65-256", "ethos-u85-256"])
@pytest.mark.parametrize(("first", "second"), drawn_pairs(MIDDLES, [*MIDDLES]))
def test_nodes_are_placed_as_vela_s_file_runs_them(first, second, chip):
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    made = made_of(twice(first, second), FED)
    data = compiled(made, chip)
    found = file_placement(data, made.program, made.graph, "vela")
    assert found is not None
    operators = read_network(data).operators
    assert found.subgraphs == sum(o.type == NPU_OPERATOR for o in operators)
    assert found.cpu.keys().isdisjoint({"a", "c", "y", *found.unit})
    written = [t.name for o in operators if o.type != NPU_OPERATOR for t in o.outputs]
    for node in ("b", "d"):
        named = any(name == node or name.startswith(f"{node}_") for name in written)
        assert (node in found.cpu) == named
    numbers_in_order = [found.unit[node] for node in ("a", "c", "y")]
    assert numbers_in_order == sorted(numbers_in_order)
    assert numbers_in_order[-1] == found.subgraphs - 1


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["Sqrt", "LayerNormalization"])
def test_of_a_file_without_an_npu_part_nothing_is_on_the_npu(operator):
    pytest.importorskip("ethosu", reason="ethos-u-vela is not installed")
    call = "Sqrt(x)" if operator == "Sqrt" else "LayerNormalization(x, g)"
    graph = parse_text(
        f"""<ir_version: 9, opset_import: ["" : 20]> f (float[1,3,12,12] x) => (float[1,3,12,12] y)
        <float[12] g = {{{numbers(12)}}}> {{ y = {call} }}"""
    )
    made = made_of(graph, {"x": np.abs(FED["x"])})
    data, members = BACKENDS["vela"](made.data, read_target("ethos-u65-256"))
    estimate = json.loads(members["vela.json"])
    assert estimate["operators"]["npu"] == 0
    assert estimate["summary"]["inferences_per_second"] in ("nan", "inf")
    found = file_placement(data, made.program, made.graph, "vela")
    assert found is not None
    assert (found.subgraphs, dict(found.unit)) == (0, {})


@pytest.mark.slow
def test_a_file_that_vela_did_not_compile_is_all_on_the_cpu():
    made = made_of(twice("Elu", "Relu"), FED)
    found = file_placement(made.data, made.program, made.graph, "vela")
    assert found is not None
    assert found.subgraphs == 0
    assert {"a", "b", "c", "y"} <= found.cpu.keys()
    assert found.cpu["b"] == ("CAST", "ADD", "GATHER")


def qnn_file(*nodes: onnx.NodeProto) -> bytes:
    """An ONNX file as onnxruntime writes it around a compiled subgraph."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 2]) for name in "xy"]
    graph = helper.make_graph([*nodes], "g", ends[:1], ends[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def context(source: str, result: str) -> onnx.NodeProto:
    named = {"domain": "com.microsoft", "name": f"QNN_{result}"}
    return helper.make_node("EPContext", [source], [result], **named, main_context=1)


def test_an_epcontext_is_a_subgraph_of_the_htp_and_the_rest_is_the_cpu_s():
    graph = parse_text("f (float[1,2] x) => (float[1,2] y) { a = Relu(x) b = Ceil(a) y = Relu(b) }")
    made = made_of(graph, {"x": np.ones((1, 2), np.float32)})
    whole = file_placement(qnn_file(context("x", "y")), made.program, graph, "qnn")
    assert whole is not None
    assert (whole.subgraphs, whole.cpu, set(whole.unit)) == (1, {}, {"a", "b", "y"})
    ceil = helper.make_node("Ceil", ["a"], ["b"], name="b")
    split = qnn_file(context("x", "a"), ceil, context("b", "y"))
    found = file_placement(split, made.program, graph, "qnn")
    assert found is not None
    assert (found.subgraphs, found.cpu, set(found.unit)) == (2, {"b": ("Ceil",)}, {"a", "y"})


OTHERS = ["hybrid", "tflite", "iree", "onnx", "openvino", "rknn", "torq"]


@pytest.mark.parametrize("backend", OTHERS)
def test_other_files_do_not_say_where_they_run(backend):
    made = made_of(parse_text("f (float[1,2] x) => (float[1,2] y) { y = Relu(x) }"),
                   {"x": np.ones((1, 2), np.float32)})  # fmt: skip
    assert file_placement(b"", made.program, made.graph, backend) is None


@pytest.mark.parametrize("data", [b"", b"TFL3", b"\0\0\0\0TFL3" + b"\xff" * 64])
def test_a_damaged_file_is_an_error_of_its_own(data):
    made = made_of(parse_text("f (float[1,2] x) => (float[1,2] y) { y = Relu(x) }"),
                   {"x": np.ones((1, 2), np.float32)})  # fmt: skip
    with pytest.raises(GraphError):
        file_placement(data, made.program, made.graph, "vela")


SUMMARY = "experiment,inference_time,cycles_total\n"
LAYERS = "Name,Target,MAC Count\n"


@pytest.mark.parametrize("lie", ["nan", "inf", "-inf", "NaN", "1e999", "", "many"])
def test_a_figure_that_is_no_number_is_kept_as_vela_wrote_it(lie, tmp_path):
    (tmp_path / "m_summary_x.csv").write_text(f"{SUMMARY}default,{lie},7\n")
    (tmp_path / "m_per-layer.csv").write_text(f"{LAYERS}a,NPU,{lie}\nb,CPU\nc,CPU,1,2,3\n")
    estimate = estimate_in(tmp_path)
    summary = {"experiment": "default", "inference_time": lie, "cycles_total": 7}
    assert estimate["summary"] == summary
    assert estimate["operators"] == {"npu": 1, "cpu": 2}
    assert estimate["layers"][1] == {"Name": "b", "Target": "CPU", "MAC Count": ""}
    assert json.loads(json.dumps(estimate, allow_nan=False)) == estimate


@pytest.mark.parametrize("text", [None, "", SUMMARY, '"', "\xff"])
def test_a_table_that_cannot_be_read_is_one_error(text, tmp_path):
    (tmp_path / "m_per-layer.csv").write_text(f"{LAYERS}a,NPU,1\n")
    if text is not None:
        (tmp_path / "m_summary_x.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(StageError, match="ethos-u-vela wrote"):
        estimate_in(tmp_path)
