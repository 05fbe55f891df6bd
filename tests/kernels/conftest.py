"""The ONNX reference evaluator as the oracle of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

OPSET = 19


def _model(op: str, arrays: tuple[np.ndarray, ...], attributes: dict[str, Any]) -> onnx.ModelProto:
    names = [f"x{i}" if array.size else "" for i, array in enumerate(arrays)]
    inputs = [
        onnx.helper.make_tensor_value_info(n, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), None)
        for n, a in zip(names, arrays, strict=True)
        if n
    ]
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    node = onnx.helper.make_node(op, names, ["y"], **attributes)
    graph = onnx.helper.make_graph([node], op, inputs, [y])
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", OPSET)], ir_version=9
    )


def _feeds(arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return {f"x{i}": array for i, array in enumerate(arrays) if array.size}


@pytest.fixture(scope="session")
def reference() -> Callable[..., np.ndarray]:
    """reference(op, *arrays, **attributes): the one output by ONNX's own evaluator."""

    def run(op: str, *arrays: np.ndarray, **attributes: Any) -> np.ndarray:
        return ReferenceEvaluator(_model(op, arrays, attributes)).run(None, _feeds(arrays))[0]

    return run


@pytest.fixture(scope="session")
def ort() -> Callable[..., np.ndarray]:
    """ort(op, *arrays, **attributes): the one output by onnxruntime on the CPU."""

    def run(op: str, *arrays: np.ndarray, **attributes: Any) -> np.ndarray:
        model = _model(op, arrays, attributes).SerializeToString()
        session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        return session.run(None, _feeds(arrays))[0]

    return run
