"""The verbs of Graph: what each does to names, use-lists and the interface."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import (
    Graph,
    array,
    only_consumer,
    open_dimensions,
    parse_text,
    part,
    producer,
    shape,
)

ROOT = Path(__file__).parents[2]
CHAIN = "agraph (float[2] x) => (float[2] y) { a = Neg(x)  b = Abs(a)  y = Relu(b) }"
BRANCH = """agraph (float[2] x, bool when) => (float[2] y) { a = Neg(x)
    y = If(when) <then_branch = yes () => (float[2] t) { t = Abs(a) },
                  else_branch = no () => (float[2] e) { e = Relu(x) }> }"""


def ops(graph: Graph) -> list[str]:
    return [node.op_type for node in graph.nodes()]


def run(graph: Graph, *x: float) -> np.ndarray:
    feeds = {str(graph.inputs[0].name): np.array(x, np.float32)}
    return OrtSession(graph.to_bytes()).run(None, feeds)[0]


# -- adding ----------------------------------------------------------------------------------


def test_a_constant_whose_name_is_taken_gets_a_number():
    graph = parse_text(CHAIN)
    names = [graph.constant("a", np.zeros(2, np.float32)).name for _ in range(3)]
    assert names == ["a_1", "a_2", "a_3"]


def test_a_name_inside_a_branch_is_taken():
    assert parse_text(BRANCH).constant("t", np.zeros(2, np.float32)).name == "t_1"


def test_a_scalar_constant_stays_a_scalar():
    value = parse_text(CHAIN).constant("k", np.array(3, np.int64))
    assert shape(value) == ()
    assert array(value) == 3


def test_a_constant_may_be_a_view_of_another_order():
    given = np.arange(6, dtype=np.float32).reshape(2, 3).T
    graph = Graph.from_bytes(graph_with(given).to_bytes())
    np.testing.assert_array_equal(array(graph.nodes("Add")[0].inputs[1]), given)


def graph_with(constant: np.ndarray) -> Graph:
    graph = parse_text("agraph (float[3,2] x) => (float[3,2] y) { y = Relu(x) }")
    made = graph.insert("Add", [graph.inputs[0], graph.constant("k", constant)], "sum")
    graph.replace_readers(graph.inputs[0], made, graph.nodes("Relu"))
    return graph


def test_a_node_is_inserted_behind_another_or_first_of_all():
    graph = parse_text(CHAIN)
    graph.insert("Sin", [graph.nodes("Neg")[0].outputs[0]], "s", graph.nodes("Neg")[0])
    graph.insert("Cos", [graph.inputs[0]], "c")
    assert ops(graph) == ["Cos", "Neg", "Sin", "Abs", "Relu"]


def test_an_inserted_node_has_its_attributes_and_a_free_name():
    graph = parse_text(CHAIN)
    made = graph.insert("Cast", [graph.inputs[0]], "a", to=1)
    assert made.name == producer(made).name == "a_1"
    assert producer(made).attributes["to"].value == 1


# -- rewiring --------------------------------------------------------------------------------


def test_only_the_chosen_readers_read_the_new_value():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { a = Neg(x)  y = Add(a, x) }")
    made = graph.insert("Abs", [graph.inputs[0]], "m")
    graph.replace_readers(graph.inputs[0], made, graph.nodes("Add"))
    assert [value.name for value in graph.nodes("Neg")[0].inputs] == ["x"]
    assert [value.name for value in graph.nodes("Add")[0].inputs] == ["a", "m"]


def test_a_replaced_output_keeps_its_public_name_and_type():
    graph = parse_text(CHAIN)
    (old,) = graph.outputs
    new = graph.insert("Neg", [old], "n", producer(old))
    graph.replace_output(old, new)
    assert [value.name for value in graph.outputs] == ["y"]
    assert shape(graph.outputs[0]) == (2,)
    assert old.name == "y_float"
    assert run(graph, -1, 2).tolist() == [-1, -2]


def test_replaced_uses_include_those_in_a_branch():
    graph = parse_text(BRANCH)
    old = graph.nodes("Neg")[0].outputs[0]
    graph.replace_uses(old, graph.inputs[0])
    assert graph.drop_unused() == 1
    feeds = {"x": np.array([-1, 2], np.float32), "when": np.array(True)}
    assert OrtSession(graph.to_bytes()).run(None, feeds)[0].tolist() == [1, 2]


def test_a_bypassed_node_leaves_what_it_was_given():
    graph = parse_text(CHAIN)
    assert graph.bypass(graph.nodes("Abs")[0])
    assert ops(graph) == ["Neg", "Relu"]
    assert run(graph, -1, 2).tolist() == [1, 0]


def test_the_last_node_can_be_bypassed_and_the_output_keeps_its_name():
    graph = parse_text(CHAIN)
    assert graph.bypass(graph.nodes("Relu")[0])
    assert [value.name for value in graph.outputs] == ["y"]
    assert run(graph, -1, 2).tolist() == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "agraph (float[2] x) => (float[2] y) { y = Identity(x) }",
        "agraph (float[2] x) => (float[2] y) <float[2] c = {1, 2}> { y = Identity(c) }",
        "agraph (float[2] x) => (float[2] a, float[2] y) { a = Neg(x)  y = Identity(a) }",
    ],
    ids=["input to output", "constant to output", "output to output"],
)
def test_a_bypass_that_the_interface_forbids_changes_nothing(text):
    graph = parse_text(text)
    before = graph.to_bytes()
    assert not graph.bypass(graph.nodes("Identity")[0])
    assert graph.to_bytes() == before


def test_inputs_are_set_by_position_with_empty_ones_between():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { y = Clip(x) }")
    (clip,) = graph.nodes()
    graph.set_inputs(clip, {2: graph.constant("high", np.array(1, np.float32))})
    assert [value and value.name for value in clip.inputs] == ["x", None, "high"]
    assert run(graph, -1, 2).tolist() == [-1, 1]


def test_an_attribute_is_written_over_and_none_removes_it():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { y = LeakyRelu<alpha = 0.5>(x) }")
    (node,) = graph.nodes()
    graph.set_attributes(node, alpha=0.25)
    assert run(graph, -1, 2).tolist() == [-0.25, 2]
    graph.set_attributes(node, alpha=None)
    assert not node.attributes


# -- taking away -----------------------------------------------------------------------------


def test_what_no_output_depends_on_is_dropped_and_counted():
    graph = parse_text("""agraph (float[2] x) => (float[2] y) <float[2] c = {1, 2}> {
        a = Neg(x)  b = Mul(a, c)  y = Relu(x) }""")
    assert graph.drop_unused() == 3
    assert ops(graph) == ["Relu"]
    assert sorted(graph.values()) == ["x", "y"]
    assert graph.drop_unused() == 0


def test_exposed_values_are_the_outputs():
    graph = parse_text(CHAIN)
    graph.expose(["b", "a"])
    session = OrtSession(graph.to_bytes())
    assert session.output_names == ("b", "a")
    assert session.run(None, {"x": np.array([-1, 2], np.float32)})[1].tolist() == [1, -2]


def test_a_graph_of_one_node_computes_that_node():
    graph = parse_text("""agraph (float[2] x) => (float[2] y) <float[2] c = {3, 4}> {
        a = Neg(x)  b = Mul(a, c)  y = Relu(b) }""")
    (mul,) = graph.nodes("Mul")
    one = part(graph, [mul], mul.outputs)
    assert ops(one) == ["Mul"]
    assert ([v.name for v in one.inputs], [v.name for v in one.outputs]) == (["a"], ["b"])
    assert run(one, 1, 2).tolist() == [3, 8]
    assert ops(graph) == ["Neg", "Mul", "Relu"]


def test_a_graph_of_one_node_feeds_a_value_read_twice_once():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { y = Mul(x, x) }")
    (mul,) = graph.nodes()
    assert run(part(graph, [mul], mul.outputs), 2, 3).tolist() == [4, 9]


def test_a_part_is_fed_what_its_branches_read():
    graph = parse_text(BRANCH)
    (branch,) = graph.nodes("If")
    one = part(graph, [branch], branch.outputs)
    assert [value.name for value in one.inputs] == ["when", "a", "x"]
    feeds = {"a": np.array([-3, 4], np.float32), "x": np.zeros(2, np.float32)}
    (y,) = OrtSession(one.to_bytes()).run(None, {**feeds, "when": np.array(True)})
    assert y.tolist() == [3, 4]


def test_a_copy_is_another_graph():
    graph = parse_text(CHAIN)
    before, copy = graph.to_bytes(), graph.copy()
    copy.bypass(copy.nodes("Abs")[0])
    copy.set_attributes(copy.nodes()[0], note="changed")
    copy.set_metadata({"k": "v"})
    assert graph.to_bytes() == before
    assert not graph.metadata


# -- asking ----------------------------------------------------------------------------------


def test_nodes_of_a_type_are_those_of_onnx_itself():
    graph = parse_text("""<ir_version: 9, opset_import: ["" : 17, "mine" : 1]>
        agraph (float[2] x) => (float[2] y) { a = mine.Relu(x)  y = Relu(a) }""")
    assert [node.name for node in graph.nodes("Relu")] == ["y"]
    assert len(graph.nodes()) == 2


def test_the_only_consumer_is_alone():
    graph = parse_text("agraph (float[2] x) => (float[2] y) { a = Neg(x)  y = Add(a, a) }")
    assert only_consumer(graph.inputs[0]) is graph.nodes("Neg")[0]
    assert only_consumer(graph.nodes("Neg")[0].outputs[0]) is None
    assert only_consumer(graph.outputs[0]) is None


def test_a_consumer_inside_a_branch_is_none():
    assert only_consumer(parse_text(BRANCH).nodes("Neg")[0].outputs[0]) is None


def test_an_open_dimension_has_no_shape():
    graph = parse_text("agraph (float[N,2] x) => (float[N,2] y) { y = Relu(x) }")
    assert open_dimensions(graph.inputs[0]) == "[N, 2]"
    with pytest.raises(GraphError, match="not static"):
        shape(graph.inputs[0])


def test_shapes_that_do_not_fit_are_one_graph_error():
    text = "agraph (float[2,3] x, float[4,5] w) => (float[2,5] y) { y = MatMul(x, w) }"
    with pytest.raises(GraphError, match="the shapes of the model do not fit"):
        parse_text(text)


# -- as an artifact --------------------------------------------------------------------------


def test_bytes_are_the_same_after_a_round_trip(tmp_path):
    graph = parse_text(BRANCH)
    graph.set_metadata({"b": "2", "a": "1"})
    graph.save(tmp_path / "m.onnx")
    again = Graph.load(tmp_path / "m.onnx")
    assert again.to_bytes() == graph.to_bytes()
    assert onnx.checker.check_model(graph.to_bytes(), full_check=True) is None


def test_bytes_do_not_depend_on_the_hash_seed():
    program = f"""
import hashlib
from npumake.graph import parse_text
from npumake.passes import optimized
graph = optimized(parse_text({BRANCH!r}))
graph.set_metadata({{"b": "2", "a": "1"}})
graph.set_attributes(graph.nodes()[0], z=1, y=2.0, x="three")
print(hashlib.sha256(graph.to_bytes()).hexdigest())
"""
    made = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(made) == 1


def test_a_graph_of_one_node_feeds_what_its_branches_read():
    graph = parse_text("""a (float[2] x, bool when) => (float[2] y) <float[2] c = {5, 7}> {
        a = Neg(x)  b = Abs(x)
        y = If(when) <
            then_branch = yes () => (float[2] t) { s = Add(a, c)  t = Relu(s) },
            else_branch = no () => (float[2] e) {
                n = Not(when)
                e = If(n) <then_branch = yy () => (float[2] f) { f = Sub(b, a) },
                           else_branch = nn () => (float[2] g) { g = Neg(c) }> }> }""")
    (branch,) = graph.nodes("If")
    one = part(graph, [branch], branch.outputs)
    assert sorted(str(value.name) for value in one.inputs) == ["a", "b", "when"]
    feeds = {"a": np.array([1, -9], np.float32), "b": np.array([3, 4], np.float32)}
    session = OrtSession(one.to_bytes())
    assert session.run(None, feeds | {"when": np.array(True)})[0].tolist() == [6, 0]
    assert session.run(None, feeds | {"when": np.array(False)})[0].tolist() == [2, 13]
