"""Nearest indices for every pair of sizes, against the fraction that ONNX defines and two engines.

onnxruntime divides in float32 and the reference evaluator of ONNX in float64. Where both agree, we
agree with them. Where they differ and the model gives sizes, we follow the exact fraction, and one
of them is with us.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from npumake.kernels.resize import nearest_indices
from workspaces import few

MODES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
RULES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
SIZES = range(1, 29)
WAYS = list(product(MODES, RULES))
HALF = Fraction(1, 2)
ROUNDED = {
    "floor": floor,
    "ceil": ceil,
    "round_prefer_floor": lambda x: ceil(x - HALF),
    "round_prefer_ceil": lambda x: floor(x + HALF),
}
every_way = pytest.mark.parametrize(("mode", "rule"), WAYS, ids=[f"{m}, {r}" for m, r in WAYS])


def defined(n, m, mode, rule):
    """The indices that ONNX defines for sizes, written down once more, in fractions."""
    found = []
    for i in range(m):
        x = (i + HALF) * n / m - HALF
        if mode == "asymmetric":
            x = Fraction(i * n, m)
        elif mode == "align_corners":
            x = Fraction(i * (n - 1), max(m - 1, 1))
        elif mode == "pytorch_half_pixel" and m == 1:
            x = Fraction(0)
        found.append(min(max(ROUNDED[rule](x), 0), n - 1))
    return found


def engines(n, mode, rule, sizes=None, scale=None):
    """What onnxruntime and the reference evaluator read of 0, 1 … n - 1."""
    given = {
        "sizes": helper.make_tensor("g", TensorProto.INT64, [1], [sizes or 0]),
        "scales": helper.make_tensor("g", TensorProto.FLOAT, [1], [scale or 0.0]),
    }["sizes" if sizes else "scales"]
    inputs = ["x", "", "", "g"] if sizes else ["x", "", "g"]
    node = helper.make_node(
        "Resize",
        inputs,
        ["y"],
        mode="nearest",
        coordinate_transformation_mode=mode,
        nearest_mode=rule,
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [n])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "resize", [x], [y], [given])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    feed = {"x": np.arange(n, dtype=np.float32)}
    read = [run.run(None, feed)[0] for run in (session, ReferenceEvaluator(model))]
    return [values.astype(int).tolist() for values in read]


@every_way
def test_of_sizes_the_index_is_that_of_the_exact_fraction(mode, rule):
    for n, m in product(SIZES, SIZES):
        assert nearest_indices(n, m, None, mode, rule).tolist() == defined(n, m, mode, rule)


@pytest.mark.slow
@every_way
def test_of_sizes_onnxruntime_or_the_reference_of_onnx_agrees(mode, rule):
    pairs = list(product(SIZES, SIZES))
    for n, m in few(pairs, lambda pair: (7 * pair[0] + pair[1]) % 19 == 0):
        ours = nearest_indices(n, m, None, mode, rule).tolist()
        ort, reference = engines(n, mode, rule, sizes=m)
        assert ours in (ort, reference), (n, m)
        assert ours == ort or ort != reference, (n, m)


SCALES = [p / q for q in (1, 2, 3, 4, 5, 7, 10) for p in range(1, 3 * q) if p != q]


@pytest.mark.slow
@every_way
def test_of_scales_the_index_is_that_of_onnxruntime(mode, rule):
    pairs = list(product(range(2, 29), map(np.float32, SCALES)))
    for n, scale in few(pairs, lambda pair: hash((pair[0], float(pair[1]))) % 19 == 0):
        if int(np.float32(n) * scale) in (0, n):
            continue  # onnxruntime copies a tensor that keeps its shape
        ort, _ = engines(n, mode, rule, scale=float(scale))
        assert nearest_indices(n, len(ort), float(scale), mode, rule).tolist() == ort, (n, scale)


@pytest.mark.parametrize("rule", RULES)
def test_a_tie_of_20_to_6_is_rounded_as_its_rule_says(rule):
    """(4 + 1/2) * 20 / 6 - 1/2 is 14.5."""
    want = 15 if rule in ("ceil", "round_prefer_ceil") else 14
    assert nearest_indices(20, 6, None, "half_pixel", rule)[4] == want
