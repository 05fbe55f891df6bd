"""CPU subgraphs: as few models as the order allows, the same bits, and back to single nodes."""

import numpy as np
import onnx
import onnxruntime

from npumake.bundle.archive import Bundle
from npumake.engine.exact import ExactSession
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.engine.subgraphs import cpu_nodes, joined, model_of, parted
from npumake.graph import parse_text

# The CPU before the chip, two branches behind it that meet, and the chip once more.
GRAPH = """agraph (float[1,2,4,4] x) => (float[1,8] y, float[1,2,4,4] v)
    <float s = {0.25}, int8 o = {0}, int64[2] flat = {1, -1}, int8[8,8] w = {WEIGHTS}> {
    a = Exp(x)  b = Neg(a)
    q = QuantizeLinear(b, s, o)  d = DequantizeLinear(q, s, o)
    left = Sin(d)  more = Cos(left)
    v = Erf(d)
    pooled = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(more)
    row = Reshape(pooled, flat)
    p = QuantizeLinear(row, s, o)  e = DequantizeLinear(p, s, o)
    wd = DequantizeLinear(w, s, o)
    m = MatMul(e, wd)
    r = QuantizeLinear(m, s, o)  f = DequantizeLinear(r, s, o)
    y = Tanh(f) }""".replace("WEIGHTS", ", ".join(str(i % 7 - 3) for i in range(64)))
X = {"x": np.random.default_rng(0).normal(size=(1, 2, 4, 4)).astype(np.float32)}
PROGRAM = lowered(parse_text(GRAPH), "half_even")
JOINED = joined(PROGRAM)


def on_the_cpu(program):
    models = [model_of(step) for step in program.instructions if step.op == "onnx"]
    return [[node.op_type for node in model.nodes()] for model in models]


def test_what_hands_tensors_on_is_one_model_and_branches_are_their_own():
    chains = [["Exp", "Neg"], ["Sin", "Cos", "AveragePool", "Reshape"], ["Erf"], ["Tanh"]]
    assert sorted(on_the_cpu(JOINED)) == sorted(chains)
    assert len(on_the_cpu(PROGRAM)) == sum(map(len, chains))


def test_the_bits_are_those_of_the_nodes_alone():
    alone = ReferenceSession(PROGRAM).run(None, X)
    for session in (
        ReferenceSession(JOINED),
        ExactSession(JOINED),
        ExactSession(JOINED, at_once=1),
    ):
        for ours, theirs in zip(session.run(None, X), alone, strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_nodes_come_from_where_they_came():
    origins = lambda program: sorted(n for step in program.instructions for n in step.origin)  # noqa: E731
    assert origins(joined(parted(JOINED))) == origins(JOINED)


def test_joining_what_was_parted_gives_the_same_bundle():
    data = Bundle("any", JOINED, {}).to_bytes()
    assert Bundle("any", joined(parted(JOINED)), {}).to_bytes() == data
    assert Bundle("any", joined(JOINED), {}).to_bytes() == data
    assert [node.op_type for node in cpu_nodes(parted(JOINED))] == [
        kind for kinds in on_the_cpu(JOINED) for kind in kinds
    ]


def test_any_zip_reader_finds_models_that_stock_tools_open(tmp_path):
    import zipfile

    Bundle("any", JOINED, {}).save(tmp_path / "b.hybrid")
    with zipfile.ZipFile(tmp_path / "b.hybrid") as archive:
        found = {name: archive.read(name) for name in archive.namelist() if name[:4] == "cpu/"}
    assert sorted(found) == [f"cpu/subgraph_{index}.onnx" for index in range(4)]
    for data in found.values():
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    whole = Bundle.load(tmp_path / "b.hybrid").program
    assert [model_of(a).to_bytes() for a in whole.instructions if a.op == "onnx"] == [
        *found.values()
    ]
