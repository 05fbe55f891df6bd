"""A graph of more nodes than one onnxruntime session takes runs in several: same outputs."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from npumake.engine.float_session import MAX_NODES, MixedSession, float_session
from npumake.engine.observed_session import ObservedSession
from npumake.engine.ort import OrtSession
from npumake.graph import Graph

pytestmark = pytest.mark.slow


def ladder(length: int) -> Graph:
    """x → Sigmoid → Add of what came two before → …: every part reads several tensors of others."""
    nodes, before, last = [], "x", "x"
    for number in range(length // 2):
        nodes.append(helper.make_node("Sigmoid", [last], [f"s{number}"]))
        nodes.append(helper.make_node("Add", [f"s{number}", before], [f"a{number}"]))
        before, last = f"s{number}", f"a{number}"
    nodes[-1].output[0] = "y"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "ladder", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return Graph.from_bytes(model.SerializeToString()).with_shapes()


@pytest.fixture(scope="module")
def graph() -> Graph:
    return ladder(2 * MAX_NODES + 100)


FEED = {"x": np.array([[-1.0, 0.5, 2.0]], np.float32)}


def test_it_gives_the_outputs_of_one_session(graph: Graph) -> None:
    session = float_session(graph)
    assert isinstance(session, MixedSession)
    (y,) = session.run(None, FEED)
    (expected,) = OrtSession(graph.to_bytes()).run(None, FEED)
    assert np.array_equal(y, expected)
    assert isinstance(float_session(ladder(100)), OrtSession)


def test_inner_tensors_of_all_parts_are_observed(graph: Graph) -> None:
    names = ["s0", f"a{MAX_NODES // 2}", f"s{MAX_NODES}", "y"]
    arrays = {name: np.zeros((1, 3), np.float32) for name in names}
    ObservedSession(graph, names).writer(arrays)(FEED)
    watched = graph.copy()
    watched.expose(names)
    expected = OrtSession(watched.to_bytes()).run(None, FEED)
    assert all(np.array_equal(arrays[n], e) for n, e in zip(names, expected, strict=True))
