"""`downgraded`: an older opset, the same results, or an error with the node's name."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.graph import downgraded, parse_text, upgraded
from npumake.graph.downgrade import AS_ATTRIBUTE

OLD = 11
X = "agraph (float[2,4,3,1] x) => (float y)"
BODIES = {
    **{
        name: ("int64[1] a = {1}", f"y = {name}<keepdims=1>(x, a)")
        for name in AS_ATTRIBUTE
        if name.startswith("Reduce")
    },
    "Squeeze": ("int64[1] a = {3}", "y = Squeeze(x, a)"),
    "Unsqueeze": ("int64[1] a = {0}", "y = Unsqueeze(x, a)"),
    "Split": ("int64[2] a = {1, 3}", "z, y = Split<axis=1>(x, a)"),
    "Softmax": ("float a = {1.0}", "y = Softmax<axis=2>(x)"),
    "LogSoftmax": ("float a = {1.0}", "y = LogSoftmax<axis=-2>(x)"),
    "Hardmax": ("float a = {1.0}", "y = Hardmax<axis=2>(x)"),
    "HardSwish": ("float a = {1.0}", "y = HardSwish(x)"),
    "Reshape": ("int64[2] a = {4, 6}", "y = Reshape<allowzero=0>(x, a)"),
    "Clip": ("float a = {0.5}", "y = Clip(x, a)"),
    "Relu": ("float a = {1.0}", "y = Relu(x)"),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_older_graph_gives_the_same(name: str) -> None:
    constants, body = BODIES[name]
    graph = upgraded(parse_text(f"{X} <{constants}> {{ {body} }}"), 18).with_shapes()
    older = downgraded(graph, OLD, 7)
    assert (older.opset, older.model.ir_version) == (OLD, 7)
    x = np.random.default_rng(0).random((2, 4, 3, 1), np.float32) + 0.5
    expected, found = (
        OrtSession(each.to_bytes()).run(None, {"x": x})[0] for each in (graph, older)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_every_operator_with_a_moved_input_is_checked() -> None:
    assert set(AS_ATTRIBUTE) <= set(BODIES)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("y = Softmax<axis=1>(x)", "axis 1 is not the last one"),
        ("y = Gelu(x)", "the operator is newer"),
    ],
)
def test_what_the_opset_cannot_express_is_named(body: str, why: str) -> None:
    header = '<ir_version: 9, opset_import: ["" : 20]>'
    graph = upgraded(parse_text(f"{header} {X} {{ {body} }}")).with_shapes()
    with pytest.raises(GraphError, match=why):
        downgraded(graph, OLD)
