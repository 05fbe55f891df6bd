"""ONNX's own backend cases of one node or function: with what they are fed and should give.

A case is taken that makes one tensor of float32 and has static shapes. What it feeds beside the
activations becomes a constant: sizes, axes, weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from npumake.engine.ort import OrtSession
from npumake.errors import PipelineError
from operators.case import Case

# Every float input of these is an activation; of the others the first.
OF_SEVERAL = frozenset(
    [
        "Add",
        "Attention",
        "Concat",
        "Div",
        "Einsum",
        "Equal",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "MatMul",
        "Max",
        "Mean",
        "Min",
        "Mul",
        "Pow",
        "Sub",
        "Sum",
        "Where",
    ]
)
# 10000 to 10003 in steps of 39: no int8 has a Softmax of these.
BEYOND = frozenset({"test_softmax_large_number"})
RANDOM = frozenset({"Bernoulli", "RandomUniformLike"})
MOST = 1 << 16  # values of a tensor: what is larger says nothing more


@cache
def onnx_cases() -> dict[str, Case]:
    with warnings.catch_warnings():  # of NumPy, where a case divides by zero on purpose
        warnings.simplefilter("ignore")
        found = [case for test in collect_testcases(None) for case in _cases(test)]
    return {case.name: case for case in sorted(found, key=lambda case: case.name)}


def _cases(test: TestCase) -> Iterator[Case]:
    model, data = test.model, test.data_sets
    if model is None or not data or test.name in BEYOND or "training" in test.name:
        return
    given = dict(zip((i.name for i in model.graph.input), data[0][0], strict=False))
    meant = data[0][1]
    if len(meant) != 1 or not _is_float(meant[0]) or not all(map(_is_array, given.values())):
        return
    fed, values = _fed(model, given), (meant[0], *given.values())
    if not fed or max(map(np.size, values)) > MOST or not np.isfinite(meant[0]).all():
        return
    if _is_drawn(model) or not any(opset.domain == "" for opset in model.opset_import):
        return
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for port in list(made.graph.input):
        if port.name not in fed and port.name in given:
            held = numpy_helper.from_array(np.asarray(given[port.name]), port.name)
            made.graph.initializer.append(held)
            made.graph.input.remove(port)
    operator = made.graph.node[0].op_type if len(made.graph.node) == 1 else "functions"
    yield Case(operator, test.name, "as ONNX has it", "", made.SerializeToString(), fed, meant[0])


def _is_drawn(model: onnx.ModelProto) -> bool:
    return any(node.op_type in RANDOM for node in model.graph.node)


def is_computable(case: Case) -> bool:
    """Whether onnxruntime computes it, and what ONNX means."""
    try:
        (found,) = OrtSession(case.model).run(None, case.fed)
    except (PipelineError, RuntimeError):
        return False
    meant = case.meant
    assert meant is not None
    return found.shape == meant.shape and np.allclose(found, meant, rtol=1e-3, atol=1e-5)


def _fed(model: onnx.ModelProto, given: dict[str, object]) -> dict[str, np.ndarray]:
    floats = {n: x for n, x in given.items() if _is_float(x) and np.size(x) and np.ndim(x)}
    types = {node.op_type for node in model.graph.node}
    several = bool(types & OF_SEVERAL) and len(model.graph.node) == 1
    return floats if several else dict(list(floats.items())[:1])


def _is_array(x: object) -> bool:
    return isinstance(x, np.ndarray | np.generic)


def _is_float(x: object) -> bool:
    return _is_array(x) and np.asarray(x).dtype == np.float32
