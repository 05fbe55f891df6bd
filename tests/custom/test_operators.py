"""Operator files: what they implement, where they may import from, and what they do wrong."""

import sys

import onnx
import pytest

from custom.files import MODEL, OURS, VENDOR
from npumake.custom.operators import NO_OPERATORS, operators_in, require
from npumake.custom.shapes import with_shapes
from npumake.errors import GraphError, Place, ProjectError, StageError
from npumake.graph import Graph, parse, parse_text, shape


def graph(text: str = MODEL) -> Graph:
    return parse_text(text)


@pytest.mark.parametrize("module", ["horizon_nn.custom", "hmct.custom.op_registration"])
def test_a_vendors_file_works_unchanged_wherever_it_imports_from(module):
    text = VENDOR.replace("horizon_nn.custom.op_registration", module)
    assert list(operators_in({"a.py": text.encode()}).by_type) == ["Shrink2"]


def test_the_vendors_modules_are_gone_when_a_file_is_loaded():
    operators_in({"a.py": VENDOR.encode()})
    assert [name for name in sys.modules if name.startswith(("horizon_nn", "hmct"))] == []


def test_the_shape_function_may_stand_in_another_file():
    implementation, _, shapes = OURS.partition("@op_shape")
    head = OURS.splitlines()[0] + "\n"
    files = {"a.py": implementation.encode(), "b.py": f"{head}@op_shape{shapes}".encode()}
    assert operators_in(files).by_type["Shrink2"].files == ("a.py", "b.py")


def test_only_the_files_a_graph_needs_go_with_it():
    other = OURS.replace('"Shrink2"', '"Other"')
    operators = operators_in({"a.py": OURS.encode(), "b.py": other.encode()})
    assert list(operators.used_by(graph()).sources) == ["a.py"]


def test_a_type_implemented_twice_is_refused_with_both_files():
    with pytest.raises(ProjectError, match=r"twice, in a\.py and b\.py"):
        operators_in({"a.py": OURS.encode(), "b.py": OURS.encode()})


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("x = (\n", "SyntaxError: '(' was never closed", Place("a.py", 1, 5)),
        ("def f():\n    raise KeyError('k')\nf()\n", "KeyError: 'k'", Place("a.py", 2, 1)),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3", Place("a.py", 2, 1)),
    ],
)
def test_a_file_that_cannot_be_loaded_is_one_error_at_its_line(text, what, where):
    with pytest.raises(StageError, match="cannot be loaded") as caught:
        operators_in({"a.py": text.encode()})
    assert what in caught.value.what
    assert caught.value.where == where


def test_every_missing_operator_is_listed_at_once():
    two = graph(MODEL.replace("f = Reshape(s", "t = vendor.ops.Other(s) f = Reshape(t"))
    with pytest.raises(GraphError) as caught:
        require(two, NO_OPERATORS)
    assert caught.value.what.endswith("implementation: vendor.ops.Other, vendor.ops.Shrink2")
    assert "custom_operators:" in caught.value.hint


def test_a_shape_function_alone_implements_nothing():
    head = OURS.splitlines()[0] + "\n"
    file = f"{head}@op_shape{OURS.partition('@op_shape')[2]}"
    with pytest.raises(GraphError, match=r"without an implementation: vendor\.ops\.Shrink2"):
        require(graph(), operators_in({"a.py": file.encode()}))


def test_a_custom_operator_in_a_branch_is_refused():
    inside = """<ir_version: 8, opset_import: ["" : 13, "my" : 1]>
    agraph (float[2] x, bool when) => (float[2] y) {
        y = If(when) <then_branch = a () => (float[2] t) { t = my.Op(x) },
                      else_branch = b () => (float[2] e) { e = Relu(x) }> }"""
    with pytest.raises(GraphError, match="inside a branch"):
        require(parse_text(inside), NO_OPERATORS)


def test_shapes_are_known_behind_a_custom_operator():
    inferred = with_shapes(graph(), operators_in({"a.py": OURS.encode()}))
    values = inferred.values()
    assert [shape(values[name]) for name in "sfy"] == [(1, 2, 3, 3), (1, 18), (1, 3)]


@pytest.mark.parametrize(
    ("shapes", "what"),
    [
        ("[]", r"gives \[\] for the 1 outputs"),
        ("[[n, c, -1, 3]]", r"gives \[\[1, 2, -1, 3\]\]"),
        ("[['a']]", "ValueError"),
        ("inputs_shape[1]", "IndexError"),
    ],
)
def test_a_wrong_shape_function_is_one_error(shapes, what):
    text = OURS.replace("[[n, c, h // 2, w // 2]]", shapes)
    with pytest.raises((GraphError, StageError), match=what):
        with_shapes(graph(), operators_in({"a.py": text.encode()}))


def test_a_domain_without_a_version_is_version_1():
    proto = onnx.load_from_string(graph().to_bytes())
    del proto.opset_import[1]
    read = parse(proto.SerializeToString(), "m.onnx")
    assert read.model.graph.opset_imports["vendor.ops"] == 1
