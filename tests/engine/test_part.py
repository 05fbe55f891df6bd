"""Parts run by name: in order, or only where something changed."""

import numpy as np
import pytest

from npumake.custom.operators import NO_OPERATORS
from npumake.engine.float_session import float_session
from npumake.engine.partial.opened import of_nodes, of_serialized, of_tensors
from npumake.engine.partial.part import EMPTY, Part, as_part, rerun, run_in_order
from npumake.graph import SerializedGraph, parse_text

# `b` and `c` both read `a`; `y` reads both, `z` only `c`.
TEXT = """<ir_version: 9, opset_import: ["" : 17]>
m (float[1,4] x) => (float[1,4] y, float[1,4] z)
<float[4] k = {1, 2, 3, 4}>
{ a = Mul(x, k)  b = Tanh(a)  c = Neg(a)  y = Add(b, c)  z = Sigmoid(c) }"""
X = np.array([[0.1, -0.2, 0.3, -0.4]], np.float32)


@pytest.fixture
def graph():
    return parse_text(TEXT).with_shapes()


def one_by_one(graph):
    """A part of each node."""
    nodes = graph.nodes()
    return [of_nodes(graph, [node], node.outputs, NO_OPERATORS) for node in nodes]


def whole(graph, feeds):
    session = float_session(graph)
    return dict(zip(session.output_names, session.run(None, feeds), strict=True))


def test_parts_in_order_give_what_the_whole_graph_gives(graph):
    values = run_in_order(one_by_one(graph), {"x": X})
    assert sorted(values) == ["a", "b", "c", "x", "y", "z"]
    for name, expected in whole(graph, {"x": X}).items():
        np.testing.assert_array_equal(values[name], expected)


@pytest.mark.parametrize("changed", ["x", "a", "b", "c", "y"])
def test_a_rerun_gives_what_the_graph_gives_after_the_change(graph, changed):
    parts = one_by_one(graph)
    values = run_in_order(parts, {"x": X})
    half = values[changed] / 2
    expected = {"x": half if changed == "x" else X}
    for part in parts:
        expected |= part.run(expected)
        expected |= {changed: half} if changed in part.outputs else {}
    later = [part for part in parts if changed not in part.outputs]
    fresh = rerun(later, {changed: half}, values)
    for name in values:
        np.testing.assert_array_equal({**values, **fresh}[name], expected[name])


def test_a_rerun_leaves_alone_what_reads_nothing_that_changed(graph):
    ran: list[str] = []

    def noted(part: Part) -> Part:
        def compute(values):
            ran.extend(part.outputs)
            return part.compute(values)

        return part._replace(compute=compute)

    parts = [noted(part) for part in one_by_one(graph)]
    values = run_in_order(parts, {"x": X})
    ran.clear()
    assert set(rerun(parts, {"c": values["c"] / 2}, values)) == {"c", "y", "z"}
    assert ran == ["y", "z"]


def test_changed_tensors_take_precedence(graph):
    (part,) = (part for part in one_by_one(graph) if part.outputs == ("z",))
    values, zero = {"c": np.ones((1, 4), np.float32)}, np.zeros((1, 4), np.float32)
    assert part.run(values, {"c": zero})["z"].tolist() == [[0.5] * 4]


def test_the_part_of_a_tensor_is_what_it_depends_on(graph):
    part = of_tensors(graph, ["c", "b"], NO_OPERATORS)
    assert (part.reads, part.outputs) == (("x",), ("c", "b"))
    values = run_in_order(one_by_one(graph), {"x": X})
    for name, array in part.run({"x": X}).items():
        np.testing.assert_array_equal(array, values[name])
    assert [str(value.name) for value in graph.outputs] == ["y", "z"]  # the graph itself stays


@pytest.mark.parametrize("names", [["x"], [], ["x", "b"]])
def test_an_input_is_its_own_part(graph, names):
    values = of_tensors(graph, names, NO_OPERATORS).run({"x": X})
    assert list(values) == names
    assert all(np.array_equal(values[name], X) for name in names if name == "x")


def test_a_serialized_part_is_that_of_its_nodes(graph):
    written = SerializedGraph(graph)
    part = of_serialized(written, written.pieces[1:4], ["y"])
    values = run_in_order(one_by_one(graph), {"x": X})
    assert part.reads == ("a",)
    np.testing.assert_array_equal(part.run(values)["y"], values["y"])


def test_a_serialized_part_takes_constants_of_the_caller(graph):
    written = SerializedGraph(graph)
    ones = np.ones(4, np.float32)
    (piece,) = (piece for piece in written.pieces if piece.makes == ("a",))
    copy = piece.renamed({"k": "ones", "a": "a_copy"})
    part = of_serialized(written, [copy], ["a_copy"], constants={"ones": ones})
    np.testing.assert_array_equal(part.run({"x": X})["a_copy"], X)


def test_a_part_without_outputs_runs_nothing(graph):
    assert of_nodes(graph, graph.nodes(), [], NO_OPERATORS) is EMPTY
    assert of_serialized(SerializedGraph(graph), [], []) is EMPTY
    assert run_in_order([EMPTY], {"x": X}).keys() == {"x"}
    assert rerun([EMPTY], {"x": X}, {}).keys() == {"x"}


def test_a_session_as_a_part_names_what_it_reads_and_outputs(graph):
    part = as_part(float_session(graph))
    assert (part.reads, part.outputs) == (("x",), ("y", "z"))
