"""A calibrated model of hb_mapper or hb_compile is read as Q/DQ of the same thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from npumake.engine.ort import OrtSession
from npumake.errors import GraphError
from npumake.frontends import read_model
from npumake.graph import upgraded
from npumake.quant.qdq.brought_grids import carries_grids
from workspaces import shared_data

MOCK = shared_data().parent / "oracle" / "small" / "mock_calibrated.onnx"
WEIGHTS = np.random.default_rng(0).normal(0, 0.3, (4, 3, 1, 1)).astype(np.float32)
THRESHOLDS = (0.25, 0.5, 0.75, 1.0)


def calibration(source: str, **attributes: Any) -> onnx.NodeProto:
    name = f"{source}_HzCalibration"
    made = [f"{source}_calibrated"]
    return helper.make_node(
        "HzCalibration", [source], made, name=name, domain="horizon", **attributes
    )


def model(*behind: onnx.NodeProto, **weight: Any) -> bytes:
    """A Conv between calibrated tensors, and what comes behind `c_calibrated`."""
    said = {"thresholds": THRESHOLDS, "axis": 0, "tensor_type": "weight", **weight}
    nodes = [
        calibration("x", thresholds=[127.0], tensor_type="feature"),
        calibration("w", **{key: value for key, value in said.items() if value is not None}),
        helper.make_node("Conv", ["x_calibrated", "w_calibrated"], ["c"], name="conv"),
        calibration("c", thresholds=[60.0]),
        *(behind or (helper.make_node("Relu", ["c_calibrated"], ["y"], name="r"),)),
    ]
    shapes = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 4, 4])]
    made = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 4, 4])]
    weights = [numpy_helper.from_array(WEIGHTS, "w")]
    graph = helper.make_graph(nodes, "net", shapes, made, weights)
    imports = [helper.make_opsetid("", 11), helper.make_opsetid("horizon", 1)]
    data = helper.make_model(graph, opset_imports=imports, ir_version=7)
    return bytes(data.SerializeToString())


def on_grid(x: np.ndarray, threshold: Any) -> np.ndarray:
    scale = np.asarray(threshold, np.float32) / np.float32(127)
    return np.clip(np.rint(x / scale), -128, 127).astype(np.float32) * scale


def answer(data: bytes, x: np.ndarray) -> np.ndarray:
    graph = read_model(data, "calibrated.onnx")
    (found,) = OrtSession(upgraded(graph).to_bytes()).run(None, {"x": x})
    return found


X = np.random.default_rng(1).integers(-128, 128, (1, 3, 4, 4)).astype(np.float32)


def convolved(weights: np.ndarray) -> np.ndarray:
    products = np.einsum("oi,nihw->nohw", weights[:, :, 0, 0], on_grid(X, 127.0))
    return on_grid(products, 60.0)


def test_thresholds_are_grids_of_127_codes():
    per_channel = np.reshape(THRESHOLDS, (4, 1, 1, 1))
    expected = np.maximum(convolved(on_grid(WEIGHTS, per_channel)), 0)
    np.testing.assert_allclose(answer(model(), X), expected, atol=60 / 127)


def test_one_threshold_is_that_of_the_whole_tensor():
    expected = np.maximum(convolved(on_grid(WEIGHTS, 0.5)), 0)
    np.testing.assert_allclose(answer(model(thresholds=[0.5]), X), expected, atol=60 / 127)


def test_a_swish_is_a_product_with_its_sigmoid():
    swish = helper.make_node("HzSwish", ["c_calibrated"], ["y"], name="act", domain="horizon")
    per_channel = np.reshape(THRESHOLDS, (4, 1, 1, 1))
    c = convolved(on_grid(WEIGHTS, per_channel))
    np.testing.assert_allclose(answer(model(swish), X), c / (1 + np.exp(-c)), atol=1.0)


def test_a_calibrated_model_carries_its_scales():
    assert carries_grids(read_model(model(), "calibrated.onnx"))


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (model(thresholds=None), "`w_HzCalibration` holds no thresholds"),
        (model(thresholds=[-1.0]), "is negative or not finite"),
        (model(thresholds=[float("nan")]), "not finite"),
        (model(thresholds=[1.0, 2.0]), "2 thresholds for axis 0 of"),
        (model(axis=7), "4 thresholds for axis 7 of"),
        (
            model(helper.make_node("HzGelu", ["c_calibrated"], ["y"], domain="horizon")),
            "the meaning of these operators is not published: HzGelu",
        ),
    ],
)
def test_what_has_no_published_meaning_is_one_error(data: bytes, what: str):
    with pytest.raises(GraphError, match=what):
        read_model(data, "calibrated.onnx")


@pytest.mark.skipif(not MOCK.is_file(), reason="shared/oracle is not here")
def test_the_oracle_s_model_is_read():
    graph = read_model(MOCK.read_bytes(), MOCK.name)
    assert carries_grids(graph)
    assert {node.domain for node in graph.nodes()} == {""}
