"""A type that is asked of an operator places it on the unit that has it."""

import pytest

from npumake.graph import parse_text, upgraded
from npumake.project.sections import LayerTypes, Quantization
from npumake.quant.precision.precision_plan import plan_precision
from npumake.targets.reader import read_target

X5, X3 = read_target("rdk-x5"), read_target("rdk-x3")
# An operator that the unit runs on request, between two layers that it runs.
BODIES = {
    "Softmax": "a = Conv(x, w)  s = Softmax<axis=1>(a)  y = Conv(s, w)",
    "Min": "a = Conv(x, w)  b = Conv(x, v)  s = Min(a, b)  y = Conv(s, w)",
}


def graph(operator):
    text = f"""a (float[1,2,6,6] x) => (float[] y)
    <float[2,2,1,1] w = {{1, 2, -3, 4}}, float[2,2,1,1] v = {{2, 1, 4, -3}}>
    {{ {BODIES[operator]} }}"""
    return upgraded(parse_text(text)).with_shapes()


def ways(operator, type):
    """What a vendor's file may say, as our YAML has it, by operator or name."""
    name = next(str(node.name) for node in graph(operator).nodes(operator))
    for called in (f"{operator}(*)", name):
        yield Quantization(types={called: type})
        for places in ({"input": type}, {"output": type}, {"input": type, "output": type}):
            yield Quantization(layers={called: LayerTypes(**places)})


def placed(operator, asked, target=X5):
    return operator in {
        node.op_type for node in plan_precision(graph(operator), asked, target).chip
    }


@pytest.mark.parametrize("type", ["int8", "int16"])
@pytest.mark.parametrize("operator", BODIES)
def test_a_type_asked_of_an_operator_places_it_on_the_unit(operator, type):
    assert not placed(operator, Quantization())
    assert all(placed(operator, asked) for asked in ways(operator, type))


@pytest.mark.parametrize("operator", BODIES)
def test_a_type_of_everything_and_a_unit_that_is_named_place_no_other(operator):
    assert not placed(operator, Quantization(types={"*": "int16"}))
    asked = Quantization(types={f"{operator}(*)": "int8"}, cpu=(f"{operator}(*)",))
    assert not placed(operator, asked)
    assert not placed(operator, Quantization(types={f"{operator}(*)": "float32"}))


def test_a_type_that_the_unit_cannot_run_is_a_note_that_names_the_node():
    plan = plan_precision(graph("Softmax"), Quantization(types={"Softmax(*)": "int8"}), X3)
    assert any("(Softmax)" in note for note in plan.notes)


def test_everything_on_the_unit_leaves_moves_beside_a_float_border_where_they_are():
    text = "a (float[1,4,6,6] x) => (float[1,6,6,4] y) { y = Transpose<perm=[0,2,3,1]>(x) }"
    model = upgraded(parse_text(text)).with_shapes()
    assert not plan_precision(model, Quantization(npu=("*",)), X5).chip
    named = plan_precision(model, Quantization(npu=("Transpose(*)",)), X5)
    assert [node.op_type for node in named.chip] == ["Transpose"]
