"""Any map of types holds together, compiles, and is what onnxruntime computes."""

from __future__ import annotations

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import examples
from engine.test_every_operator import FEW_OF_INT16, TIES, held
from npumake.graph import array, parse_text, producer, upgraded
from npumake.project.sections import LayerTypes, Quantization
from npumake.targets.target import Activations, Target, WeightGrid

W = "float[2,2,1,1] w = {1.0,-2.0,0.5,3.0}, float[2] b = {0.1,-0.2}, float k = {0.3}"
BODIES = {
    "a gate": """c = Conv(x, w, b)  r = Relu(c)  s = Sigmoid(r)  m = Mul(r, s)
        t = Transpose(m)  u = Transpose(t)  y = Conv(u, w)""",
    "two branches": """c = Conv(x, w)  p = MaxPool<kernel_shape=[1,1]>(c)  n = Neg(x)
        j = Concat<axis=1>(p, n, c)  f = Flatten(j)  y = Softmax(f)""",
    "two answers": "a = Add(x, k)  d = CumSum(a, i)  e = Mul(d, d)  z = Abs(a)  y = Sub(e, z)",
    "nothing but zeros": "n = Sub(x, x)  m = Mul(n, x)  c = Conv(m, w)  y = Softmax(c)",
    "zeros all around": "q = Pad(x, pads)  p = PRelu(q, k)  y = Gather<axis=3>(p, i)",
    "itself": "m = Mul(x, x)  g = GlobalAveragePool(m)  y = Add(m, g)",
}
GRAPHS = {
    name: upgraded(
        parse_text(
            f"a (float[1,2,3,4] x) => (float[] y{', float[] z' * ('z =' in body)}) "
            f"<{W}, int64 i = {{3}}, int64[8] pads = {{0,0,1,0,0,0,0,1}}> {{ {body} }}"
        )
    ).with_shapes()
    for name, body in BODIES.items()
}
TYPES = st.sampled_from(["int8", "uint8", "int16", "float16", "float32"])
CODES = st.sampled_from([None, "int8", "int16"])


@st.composite
def asked(draw):
    """A graph, and any types for any of its nodes and places."""
    name = draw(st.sampled_from(sorted(GRAPHS)))
    nodes = [str(node.name) for node in GRAPHS[name].nodes()]
    names = st.sampled_from(["*", "INPUTS", "x", "x...", *nodes, *(f"{n}..." for n in nodes)])
    rules = st.dictionaries(names, TYPES, max_size=3)
    layers = st.builds(LayerTypes, CODES, st.lists(CODES, max_size=2).map(tuple), CODES)
    return GRAPHS[name], Quantization(
        draw(st.one_of(rules, st.lists(rules, max_size=2).map(tuple))),
        draw(st.dictionaries(st.sampled_from(nodes), layers, max_size=2)),
        draw(st.sampled_from([None, "int8", "int16", "float32"])),
        tuple(draw(st.lists(st.sampled_from(nodes), max_size=1))),
        tuple(draw(st.lists(st.sampled_from(nodes), max_size=1))),
        mode=draw(st.sampled_from(["standard", "full"])),
    )


CHIPS = st.builds(
    Target,
    st.just("chip"),
    st.just("vendor"),
    st.just("NPU"),
    st.sampled_from([Activations("int8", True), Activations("uint8", False)]),
    st.sampled_from([WeightGrid("int8", True), WeightGrid("uint8", False, asymmetric=True)]),
    st.just("half_even"),
    operators=st.sampled_from([None, ("Conv", "Mul", "Relu", "Sigmoid", "Transpose", "Concat")]),
    on_request=st.just(("Softmax",)),
    int16=st.sampled_from([None, (), ("Conv", "Mul", "Transpose"), ("Concat", "MaxPool", "Add")]),
    int16_power_of_two=st.booleans(),
    weights_as_activations=st.booleans(),
    same_types=st.booleans(),
    float16=st.booleans(),
)


@pytest.mark.slow
@examples(150)
@given(asked(), CHIPS)
def test_whatever_is_asked_for_compiles_to_what_onnxruntime_computes(
    samples, quantized, literal, given, chip
):
    graph, quantization = given
    feeds = samples(graph)
    made = quantized(graph, feeds, chip, quantization)
    onnx.checker.check_model(onnx.load_from_string(made.to_bytes()), full_check=True)
    for node in made.nodes("QuantizeLinear"):
        assert grid(node) != grid(producer(node.inputs[0]))  # from a grid to the same one
    few = TIES if chip.int16_power_of_two else FEW_OF_INT16  # 3 steps of four are ties, often
    held(made, feeds[:2], literal, few, chip.runnable)


def grid(node):
    """Where a Q or DQ puts what it reads; None for any other node."""
    if node is None or node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
        return None
    scale, zero_point = (array(value) for value in node.inputs[1:])
    return str(zero_point.dtype), scale.tolist(), zero_point.tolist()
