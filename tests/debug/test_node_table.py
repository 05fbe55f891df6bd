"""The rows of the vendor's table: one promise per kind that the logs of hb_mapper show."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.debug.compare import compare
from npumake.debug.compared import Comparison
from npumake.debug.model_check import check_model
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph, array, parse_text, upgraded
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.precision.form import in_form
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.onnx_limits import mark_caffe
from npumake.targets.reader import read_target

X3, X5, ULTRA = (read_target(f"rdk-{name}") for name in ("x3", "x5", "ultra"))
CHIPS = {target.name: target for target in (X3, X5, ULTRA)}


def constant(name: str, *dims: int) -> str:
    values = np.random.default_rng(len(dims) + sum(dims)).normal(size=dims).ravel()
    return f"float[{','.join(map(str, dims))}] {name} = {{{','.join(f'{v:.3f}' for v in values)}}}"


WEIGHTS = {
    "w": (4, 4, 1, 1),
    "u": (4, 2, 1, 1),
    "t": (4, 8, 1, 1),
    "z": (4, 4, 2, 2),
    "g": (2, 4),
    "h": (2,),
    "grid": (1, 4, 4, 4),
    "single": (1, 4, 1, 1),
}
CONSTANTS = ", ".join(constant(name, *dims) for name, dims in WEIGHTS.items())
WIDE = constant("wide", 4, 4)
CONSTANTS += ", int64[3] flat = {1,4,-1}, int64[1] one = {1}"
NUMBERS = np.random.default_rng(0).normal(size=(4, 1, 4, 4, 4)).astype(np.float32)
FED = Samples(tuple("0123"), lambda index: {"x": NUMBERS[index]})
DEFAULT = Quantization()
SPLIT = "c = Conv(x, w)  a, b = Split<axis=1>(c)  d = Conv(b, u)  k = Concat<axis=1>(a, b, d)"
SILU = "c = Conv(x, w)  s = Sigmoid(c)  m = Mul(c, s)"


def graph(body: str) -> Graph:
    """Of which each node is called after the tensor it makes."""
    text = f"a (float[1,4,4,4] x) => (float[] y) <{CONSTANTS}> {{ {body} }}"
    found = upgraded(parse_text(text)).with_shapes()
    return optimized(found)


def quantized_on(body, target, asked=DEFAULT) -> tuple[Graph, Graph, Graph]:
    real = graph(body)
    found = recipe(real, observe(real, FED), FED, Calibration("max"), target, quantization=asked)
    made = calibrated(real, found, FED, target, quantization=asked)
    return real, made, quantized(made, target)


def compared(body, target=X5, asked=DEFAULT) -> Comparison:
    real, made, whole = quantized_on(body, target, asked)
    return compare(real, made, whole, FED, target)


def rows(body, target=X5, asked=DEFAULT) -> dict[str, str]:
    return {row.node: row.type for row in compared(body, target, asked).rows}


KINDS = {
    "silu": (f"{SILU}  y = Conv(m, w)", {"c": "", "m": "HzLut", "y": ""}),
    "split": (
        f"{SPLIT}  y = Conv(k, t)",
        {
            "c": "",
            "a": "Split",
            "d": "",
            "a_calibrated_Requantize": "HzRequantize",
            "b_calibrated_Requantize": "HzRequantize",
            "k": "Concat",
            "y": "",
        },
    ),
    "quotient": (
        "c = Conv(x, w)  e = Exp(c)  s = ReduceSum(e, one)  d = Div(e, s)  y = Conv(d, w)",
        {
            "c": "",
            "e": "HzLut",
            "s": "HzSQuantizedReduceSum",
            "d_reciprocal": "HzLut",
            "d_mul": "HzSElementwiseMul",
            "y": "",
        },
    ),
    "shortcut": (
        "c = Conv(x, w)  r = Relu(c)  d = Conv(r, w)  s = Add(d, r)  q = Relu(s)  y = Conv(q, w)",
        {"c": "", "d": "", "y": ""},
    ),
    "sum of tables": (
        f"{SILU}  d = Conv(m, w)  e = Sigmoid(d)  f = Mul(d, e)  q = Add(f, m)  y = Conv(q, w)",
        {"c": "", "m": "HzLut", "d": "", "f": "HzLut", "q": "HzSElementwiseAdd", "y": ""},
    ),
    "gemm": (
        "c = Conv(x, w)  p = GlobalAveragePool(c)  f = Flatten(p)  y = Gemm<transB=1>(f, g, h)",
        {
            "c": "",
            "p": "HzSQuantizedGlobalAveragePool",
            "y": "",
            "y_transpose_output_reshape": "Reshape",
        },
    ),
    "product": ("c = Conv(x, w)  y = Mul(c, grid)", {"c": "", "y": "HzSElementwiseMul"}),
    "channels last": ("c = Conv(x, w)  y = Transpose<perm=[0,2,3,1]>(c)", {"c": ""}),
    "deconvolution": (
        "c = Conv(x, w)  d = ConvTranspose(c, z)  y = Conv(d, w)",
        {"c": "", "d": "ConvTranspose", "y": ""},
    ),
    "leaving": ("c = Conv(x, w)  y = Sigmoid(c)", {"c": "", "y": "HzLut2Layer"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_the_rows_of_the_log(kind):
    body, wanted = KINDS[kind]
    found = {name: type.replace("HzSQuantizedConv", "") for name, type in rows(body).items()}
    assert found == wanted


@pytest.mark.parametrize("asked", ["int8", "int16"])
def test_a_softmax_of_the_unit_is_six_rows(asked):
    body = "c = Conv(x, w)  s = Softmax<axis=1>(c)  y = Conv(s, w)"
    found = compared(body, X5, Quantization(types={"s": asked})).rows
    six = [row for row in found if row.node.endswith("_FROM_QUANTIZED_SOFTMAX")]
    steps = ["reducemax", "sub", "exp", "reducesum", "reciprocal", "mul"]
    assert [row.node.split("_")[1] for row in six] == steps
    assert {row.on for row in six} == {"BPU"}
    assert {row.dtype.partition("/")[0] for row in six} == {asked}
    left = rows(body)
    assert left["s"] == "Softmax"


@pytest.mark.parametrize("name", CHIPS)
def test_silu_is_one_table_of_one_grid_in_both_engines(name):
    target = CHIPS[name]
    _, made, whole = quantized_on(f"{SILU}  y = Conv(m, w)", target)
    assert [node.op_type for node in made.nodes("Sigmoid", "Swish")] == ["Swish"]
    program = lowered(whole, target.rounding, target.runnable)
    assert [step.op for step in program.instructions if step.name == "m"] == ["lookup"]
    for feed in FED:
        exact = ExactSession(program).run(None, feed)[0]
        assert exact.tolist() == ReferenceSession(program).run(None, feed)[0].tolist()


def test_a_gate_that_others_read_stays_a_gate():
    body = f"{SILU}  n = Conv(s, w)  k = Concat<axis=1>(m, n)  y = Conv(k, t)"
    real = graph(body)
    assert in_form(real, X5) is real
    assert in_form(real, read_target("ara240")) is real


def test_a_rule_for_a_sigmoid_is_one_for_the_silu_that_has_it():
    body = f"{SILU}  d = Conv(m, w)  y = Conv(d, w)"
    for name in ("Sigmoid(*)", "Mul(*)", "s", "m"):
        found = compared(body, X5, Quantization(types={name: "int16"})).rows
        assert {row.node: row.dtype for row in found}["m"] == "int16/int16"


def test_what_a_join_alone_reads_is_made_on_its_grid_and_other_parts_are_requantized():
    body = (
        "c = Conv(x, w)  r = Relu(c)  e = Conv(r, w)  f = Conv(e, w)  d = Conv(f, w) "
        "k = Concat<axis=1>(r, d)  y = Conv(k, t)"
    )
    found = compared(body).rows
    assert [row.node for row in found if row.type == "HzRequantize"] == (
        ["r_calibrated_Requantize"]
    )
    _, made, _ = quantized_on(body, X5)
    nodes = {str(node.outputs[0].name): node for node in made.nodes("QuantizeLinear")}
    scale = {name: float(array(nodes[f"{name}_quantized"].inputs[1])) for name in "rdk"}
    assert scale["d"] == scale["k"] != scale["r"]


def test_what_leaves_the_unit_is_int16_on_the_x5_and_int8_on_the_others():
    body = "c = Conv(x, w)  y = Sigmoid(c)"
    types = {name: compared(body, target).rows[-1].dtype for name, target in CHIPS.items()}
    assert types == {"rdk-x3": "int8/int8", "rdk-x5": "int16/int16", "rdk-ultra": "int8/int8"}


def test_the_last_product_reads_8_bits_and_leaves_in_16():
    body = "c = Conv(x, w)  r = Relu(c)  d = Conv(r, w)  e = Relu(d)  y = Mul(r, e)"
    assert compared(body).rows[-1].dtype == "int8/int16"


def test_8_bits_that_are_asked_for_leave_as_8_bits():
    found = compared("c = Conv(x, w)  y = Sigmoid(c)", X5, Quantization(outputs="int8"))
    assert found.rows[-1].dtype.endswith("/int8")


def test_moves_behind_the_last_conv_stay_on_the_unit():
    body = "c = Conv(x, w)  a = Reshape(c, flat)  d = Conv(x, w)  b = Reshape(d, flat) "
    found = compared(f"{body} k = Concat<axis=2>(a, b)  y = Sigmoid(k)").rows
    assert {row.on for row in found} == {"BPU"}
    assert [row.type for row in found if row.dtype == "int16/int16"] == (
        ["Reshape", "Reshape", "Concat", "HzLut2Layer"]
    )


def test_the_names_of_the_version_of_the_log_are_those_of_the_chip():
    table = f"{SILU}  d = Conv(m, w)  e = Sigmoid(d)  f = Mul(d, e)  q = Add(f, m)  y = Conv(q, w)"
    assert rows(table, X3)["m"] == "HzSwish"
    assert rows(table, ULTRA)["UNIT_CONV_FOR_q"] == "HzSQuantizedConv"


def test_a_view_of_an_image_for_a_gemm_is_the_unit_s_on_a_chip_without_reshapes():
    found = compared(KINDS["gemm"][0], X3).rows
    assert [row.subgraph for row in found] == [0, 0, 0, None]
    assert found[-1].node == "y_reshape_output"


@pytest.mark.parametrize("kind", KINDS)
def test_the_checker_lists_what_the_comparison_lists_but_for_grids(kind):
    body, _ = KINDS[kind]
    listed = {row.node: row.on for row in compared(body).rows if row.type != "HzRequantize"}
    assert {row.node: row.on for row in check_model(graph(body), X5).rows} == listed


@pytest.mark.parametrize("kind", KINDS)
def test_every_node_of_the_graph_is_known_beside_the_rows(kind):
    found = compared(KINDS[kind][0])
    real = in_form(graph(KINDS[kind][0]), X5)
    names = {str(node.name) for node in real.nodes()}
    assert {row.node for row in found.of_graph} <= names
    assert None not in {row.cosine for row in found.of_graph}


def test_rows_are_read_back_as_they_were_written(tmp_path):
    found = compared(KINDS["split"][0])
    found.save(tmp_path / "c.json")
    assert Comparison.load(tmp_path / "c.json") == found


def test_a_target_of_which_no_log_is_known_lists_its_nodes():
    found = compared(KINDS["shortcut"][0], read_target("ara240"))
    assert found.rows == found.of_graph
    assert {row.node: row.type for row in found.rows}["s"] == "Add+Relu"


def test_a_vector_times_a_constant_is_a_gemm_of_the_x3():
    real = optimized(
        upgraded(parse_text(f"a (float[4] x) => (float[4] y) <{WIDE}> {{ y = MatMul(x, wide) }}"))
    )
    found = {row.node: (row.on, row.type) for row in check_model(real, X3).rows}
    assert found == {
        "y_reshape_in": ("CPU", "Reshape"),
        "y_gemm": ("BPU", "HzSQuantizedConv"),
    }


@pytest.mark.parametrize(("caffe", "suffix"), [(True, "_reshape_0"), (False, "_reshape_output")])
def test_the_reshape_behind_a_gemm_of_the_x3_is_named_after_the_format(caffe, suffix):
    real = graph(KINDS["gemm"][0])
    if caffe:
        mark_caffe(real)
    assert check_model(real, X3).rows[-1].node == f"y{suffix}"


def test_moves_around_a_conv_of_one_channel_have_no_row():
    body = (
        "c = Conv(x, w)  s = Softmax<axis=3>(c)  r = Transpose<perm=[0,3,2,1]>(s) "
        "d = Conv(r, single)  y = Reshape(d, flat)  "
    )
    found = {row.node: row.on for row in check_model(graph(body), X5).rows}
    assert found == {"c": "BPU", "s": "CPU", "d": "BPU"}


def test_int8_sigmoids_of_the_ultra_have_the_thresholds_of_its_logs():
    thresholds = {}
    for name, target in CHIPS.items():
        made = quantized_on("c = Conv(x, w)  s = Sigmoid(c)  y = Conv(s, w)", target)[1]
        nodes = {str(node.outputs[0].name): node for node in made.nodes("QuantizeLinear")}
        scales = (float(array(nodes[f"{tensor}_quantized"].inputs[1])) for tensor in "cs")
        thresholds[name] = [round(127 * scale, 5) for scale in scales]
    fixed = [round(threshold, 5) for threshold in ULTRA.form.sigmoid]
    assert thresholds.pop("rdk-ultra") == fixed
    assert fixed not in thresholds.values()


def test_what_others_read_too_keeps_the_threshold_of_its_samples():
    body = "c = Conv(x, w)  s = Sigmoid(c)  d = Conv(c, w)  k = Mul(s, d)  y = Conv(k, w)"
    made = quantized_on(body, ULTRA)[1]
    nodes = {str(node.outputs[0].name): node for node in made.nodes("QuantizeLinear")}
    read, made_threshold = (
        127 * float(array(nodes[f"{tensor}_quantized"].inputs[1])) for tensor in "cs"
    )
    assert read != pytest.approx(ULTRA.form.sigmoid[0], rel=1e-3)
    assert made_threshold == pytest.approx(ULTRA.form.sigmoid[1], rel=1e-5)
