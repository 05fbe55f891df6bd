"""The target `onnx`: the quantized file with onnxruntime's integer kernels in it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from cli.test_handover import project
from npumake.bundle.chain import NOTE
from npumake.compilers.onnx_file import onnx_file
from npumake.errors import GraphError
from npumake.graph import Graph, noted, parse_text
from npumake.runtime import Session
from workspaces import add_evaluation

CUSTOM = """<ir_version: 9, opset_import: ["" : 20, "mine" : 1]>
m (float[1,4] x) => (float[1,4] y) { y = mine.Twice(x) }"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    workspace = project(tmp_path_factory.mktemp("onnx"), "onnx")
    add_evaluation(workspace, 20)
    assert workspace.doit().returncode == 0
    return workspace.project


def test_it_computes_in_integers_and_names_the_operators_that_it_uses(built):
    model = onnx.load(built / "out/digits.onnx.onnx")
    types = {node.op_type for node in model.graph.node}
    assert "QLinearConv" in types
    assert types.isdisjoint({"Conv", "Add", "Gemm"})
    assert [one.domain for one in model.opset_import] == ["", "com.microsoft"]


def test_it_gives_what_the_quantized_file_gives(built):
    image = np.load(built / "test_images.npy")[:1].astype(np.float32) - 128
    feeds = {"image": image}
    (found,) = Session(built / "out/digits.onnx.onnx").run(None, feeds)
    (meant,) = Session(built / "out/quantized.onnx.onnx").run(None, feeds)
    assert np.array_equal(found, meant)


def test_the_same_graph_is_the_same_bytes(built):
    graph = Graph.load(built / "out/quantized.onnx.onnx")
    assert onnx_file(graph, "onnx") == onnx_file(graph, "onnx")
    compiled = (built / "out/digits.onnx.onnx").read_bytes()
    notes = {prop.key: prop.value for prop in onnx.load_from_string(compiled).metadata_props}
    chain = {NOTE: notes[NOTE]}  # what it was made from
    assert compiled == noted(onnx_file(graph, "onnx"), chain, "onnx")


def test_an_operator_of_the_project_is_refused():
    with pytest.raises(GraphError, match="onnxruntime refuses the model"):
        onnx_file(parse_text(CUSTOM), "onnx")
