"""A float32 model keeps its Casts to 16 bits and back; one in half precision is float32."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.engine.ort import OrtSession
from npumake.frontends import read_model
from npumake.graph import parse_text
from npumake.stages.optimized_float import optimized_float

HEAD = (
    '<ir_version: 8, opset_import: ["" : 17]>\n'
    "g (float[1,6,{size},{size}] x) => (float[N,C,H,W] y) <float[6,6,1,1] w = {{{weights}}}>"
)
FLOAT16, BFLOAT16 = 10, 16
RNG = np.random.default_rng(0)

# Each rounds where onnxruntime does: a = Conv(x) becomes y.
BODIES = {
    "pair": "h = Cast<to={to}>(a) y = Cast<to=1>(h)",
    "twice": "h = Cast<to={to}>(a) b = Cast<to=1>(h) c = Mul(b, a) i = Cast<to={to}>(c) "
    "y = Cast<to=1>(i)",
    "moved": "h = Cast<to={to}>(a) t = Transpose<perm=[0,2,3,1]>(h) y = Cast<to=1>(t)",
    "joined": "h = Cast<to={to}>(a) t = Concat<axis=1>(h, h) y = Cast<to=1>(t)",
    "read by two": "h = Cast<to={to}>(a) b = Cast<to=1>(h) t = Transpose<perm=[0,1,3,2]>(h) "
    "c = Cast<to=1>(t) y = Add(b, c)",
    "of an integer": "k = Constant<value_float=3000.7>() m = Mul(a, k) n = Cast<to=6>(m) "
    "h = Cast<to={to}>(n) y = Cast<to=1>(h)",
    "to an integer": "k = Constant<value_float=3000.7>() m = Mul(a, k) h = Cast<to={to}>(m) "
    "n = Cast<to=7>(h) y = Cast<to=1>(n)",
}
HALF_BODIES = {
    "computed": "h = Cast<to=10>(a) b = Add(h, h) y = Cast<to=1>(b)",
    "computed and moved": "h = Cast<to=10>(a) b = Add(h, h) t = Transpose<perm=[0,1,3,2]>(b) "
    "y = Cast<to=1>(t)",
    "in and out": "h = Cast<to=10>(a) b = Relu(h) y = Cast<to=1>(b)",
}


def model(body: str, to: int = FLOAT16, size: int = 8) -> bytes:
    weights = ", ".join(map(str, RNG.normal(size=36).round(3)))
    nodes = f"{{ a = Conv(x, w) {body.format(to=to)} }}"
    return parse_text(f"{HEAD.format(size=size, weights=weights)} {nodes}").to_bytes()


def differences(data: bytes, size: int = 8) -> list[float]:
    """Of `original_float` and `optimized_float` to the user's model."""
    feed = {"x": RNG.normal(size=(1, 6, size, size)).astype(np.float32)}
    (expected,) = OrtSession(data, fusion="none").run(None, feed)
    graph = read_model(data, "m.onnx").with_shapes()
    found = [OrtSession(g.to_bytes(), fusion="none") for g in (graph, optimized_float(graph))]
    return [float(np.abs(s.run(None, feed)[0] - expected).max()) for s in found]


@pytest.mark.parametrize("to", [FLOAT16, BFLOAT16])
@pytest.mark.parametrize("body", BODIES)
def test_a_cast_to_16_bits_and_back_rounds(body, to):
    assert differences(model(BODIES[body], to)) == [0, 0]


@pytest.mark.parametrize("body", HALF_BODIES)
def test_what_onnxruntime_computes_in_float32_is_not_rounded(body):
    assert differences(model(HALF_BODIES[body])) == [0, 0]


@pytest.mark.parametrize("size", [1, 64])
def test_at_a_real_size_and_at_one(size):
    assert differences(model(BODIES["twice"], size=size), size) == [0, 0]


def casts(body: str) -> int:
    graph = optimized_float(read_model(model(body), "m.onnx").with_shapes())
    return sum(node.op_type == "Cast" for node in graph.nodes())


def test_a_model_in_half_precision_has_no_casts():
    blocks = " ".join(f"b{n + 1} = Add(b{n}, h) " for n in range(4))
    # An exporter that keeps Exp in float32 leaves a pair between two such nodes.
    kept = "f = Cast<to=1>(b4) e = Exp(f) g = Cast<to=10>(e) i = Cast<to=1>(g) y = Exp(i)"
    assert casts(f"h = Cast<to=10>(a) b0 = Relu(h) {blocks} {kept}") == 0


def test_a_cast_to_float64_and_back_is_dropped():
    assert casts("h = Cast<to=11>(a) y = Cast<to=1>(h)") == 0


INTEGERS = {"u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "u32": 12}


@pytest.mark.parametrize("to", INTEGERS.values(), ids=list(INTEGERS))
def test_a_cast_to_integers_and_back_truncates(to):
    scaled = "k = Constant<value_float=9.7>() b = Abs(a) m = Mul(b, k)"
    assert differences(model(f"{scaled} h = Cast<to={to}>(m) y = Cast<to=1>(h)")) == [0, 0]
