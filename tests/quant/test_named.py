"""Names for parts of a model: operators, what lies between, and which name says more."""

from __future__ import annotations

import pytest

from npumake.errors import ProjectError
from npumake.graph import GraphNames, parse_text, upgraded
from npumake.project.sections import LayerTypes, Quantization
from npumake.quant.precision.precision_plan import plan_precision
from npumake.quant.precision.selectors import select_nodes, strength
from npumake.quant.precision.type_requests import requested_types
from npumake.targets.reader import read_target

TEXT = """a (float[1,2,4,4] x) => (float[] y, float[] z)
    <float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}> {
    c = Conv(x, w)  r = Relu(c)  s = Sigmoid(r)  d = Conv(s, w)  e = Conv(d, w)
    y = Tanh(e)  z = Sigmoid(d) }"""
NPU = read_target("ara240")


def graph():
    return upgraded(parse_text(TEXT)).with_shapes()


def names(nodes):
    return "".join(sorted(node.outputs[0].name for node in nodes))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Conv(*)", "cde"),
        ("Softmax(*)", ""),
        ("d...", "eyz"),
        ("c -> d", "cdrs"),
        ("x -> r", "cr"),
        ("r -> y", "dersy"),
        ("d, s -> y, z", "desyz"),
        ("y -> c", ""),
        ("Conv_d_200_Conv_e_185", "de"),
        ("Conv_d_7", "d"),
    ],
)
def test_a_name_means_these_nodes(name: str, expected: str):
    assert names(select_nodes(GraphNames(graph()), name, "quantization.types").nodes) == expected


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("Cnov(*)", "there is no operator `Cnov`"),
        ("c -> nowhere", "no node `nowhere`"),
        (" -> c", "no node ``"),
    ],
)
def test_a_name_that_means_nothing_is_an_error(name: str, what: str):
    with pytest.raises(ProjectError, match=what.replace("(", ".")):
        select_nodes(GraphNames(graph()), name, "quantization.types")


@pytest.mark.parametrize("name", ["y/plus", "plus"])
def test_a_node_in_the_body_of_a_loop_has_the_loop_s_name_as_its_hint(name: str):
    model = parse_text("""<ir_version: 8, opset_import: ["" : 17]>
        a (float[1,2] x) => (float[1,2] y) <int64 few = {7}> { y = Loop(few, , x) <body = body
        (int64 i, bool on, float[1,2] s) => (bool more, float[1,2] t)
        { [plus] t = Add(s, x) [same] more = Identity(on) }> }""")
    with pytest.raises(ProjectError, match=f"`{name}` is in a body of `y`") as caught:
        select_nodes(GraphNames(model), name, "quantization.cpu")
    assert caught.value.hint == "name the Loop itself, `y`"


def test_the_name_that_says_more_is_the_stronger():
    ordered = ["*", "INPUTS", "Conv(*)", "c...", "d...", "e -> y", "e"]
    found = [strength(GraphNames(graph()), name, "quantization.types") for name in ordered]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("cpu", "npu", "floats"),
    [
        (["*"], ["c"], "deyz"),
        (["*"], ["r", "y"], "dez"),
        (["d"], ["*"], "d"),
        (["Conv(*)"], ["d..."], "cd"),
        (["d"], ["d"], ""),
    ],
)
def test_cpu_and_npu_meet_where_the_stronger_name_says_and_npu_wins_a_tie(cpu, npu, floats):
    plan = plan_precision(graph(), Quantization(cpu=tuple(cpu), npu=tuple(npu)), NPU)
    assert names(plan.float_nodes).replace("s", "").replace("r", "") == floats


def test_a_node_that_both_units_are_asked_for_is_a_note():
    plan = plan_precision(graph(), Quantization(cpu=("d", "e"), npu=("d", "c...")), NPU)
    assert plan.notes == ("for the NPU, though a rule for the CPU names it as well: d (Conv)",)


@pytest.mark.parametrize(
    ("name", "inputs", "note"),
    [
        ("d", (None, "int16"), "int16 of input 1 of d has no effect: it is no activation"),
        ("d", (None, None, "int16"), "int16 of input 2 has no effect: d has 2 inputs"),
        ("d", ("int16", "int8"), None),
    ],
)
def test_int16_of_what_is_no_activation_of_a_node_is_a_note(name, inputs, note):
    asked = Quantization(layers={name: LayerTypes(inputs=inputs)})
    assert plan_precision(graph(), asked, NPU).notes == ((note,) if note else ())


def test_int16_of_a_node_on_the_cpu_is_a_note():
    layers = {"d": LayerTypes(output="int16"), "e": LayerTypes(output="int8")}
    asked = Quantization(layers=layers, cpu=("d", "e"))
    (note,) = plan_precision(graph(), asked, NPU).notes
    assert note == "CPU, in float, though a rule wants int16: d (Conv)"
    every = Quantization({"*": "int16"}, cpu=("d",))
    assert plan_precision(graph(), every, NPU).notes == ()


def test_the_type_of_an_operator_is_weaker_than_that_of_a_node():
    layers = {"d": LayerTypes(output="int8"), "Conv(*)": LayerTypes(output="int16")}
    for order in (layers, dict(reversed(layers.items()))):
        wide = requested_types(graph(), Quantization(layers=order)).by_use.wide
        assert names(node for node, _ in wide) == "ce"


LONG = "/model.22/cv2.0/cv2.0.2/Conv"


@pytest.mark.parametrize("place", ["cpu", "npu", "layers", "types"])
@pytest.mark.parametrize("name", ["d", "x", LONG, "Tanh(*)"])
def test_an_optional_name_acts_where_the_model_has_it(name: str, place: str):
    model = graph()
    model.nodes("Conv")[0].name = LONG
    value = {"layers": {name: LayerTypes(output="int16")}, "types": {name: "int16"}}
    asked = {place: value.get(place, (name,))}
    strict, optional = (Quantization(**asked, optional=names) for names in ((), (name,)))
    assert requested_types(model, optional).notes == []
    assert plan_precision(model, optional, NPU).notes == plan_precision(model, strict, NPU).notes


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("/model.22/cv2.0/cv2.0.3/Conv", f"; did you mean `{LONG}`?"),
        ("nowhere", ""),
        ("Softmax(*)", ""),
    ],
)
def test_an_optional_name_that_the_model_lacks_is_told(name: str, hint: str):
    model = graph()
    model.nodes("Conv")[0].name = LONG
    asked = Quantization(cpu=(name, "d"), optional=(name, "d"))
    shown = name.removesuffix("(*)")
    expected = f"the rule for `{shown}` has no effect: the model has no such node{hint}"
    assert requested_types(model, asked).notes == [expected]
