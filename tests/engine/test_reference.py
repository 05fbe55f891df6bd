"""The judge: the same integers whoever asks, however often, on however many threads."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.errors import GraphError
from npumake.graph import Graph, parse_text

TEXT = """a (float[1,3,8,8] x) => (float[] y, float[] r)
<float[3,3,1,1] w = {1.0,-0.5,0.3, 0.2,0.1,-0.7, 0.9,0.8,-0.6}, float[3] b = {0.1,-0.2,0.3}>
{ c = Conv(x, w, b)  r = Relu(c)  t = Tanh(r)  m = Concat<axis=1>(r, t)  y = Softmax<axis=1>(m) }"""

# What a fresh interpreter makes of the quantized graph and the feed: digests, one per line.
SCRIPT = """
import hashlib, sys
from pathlib import Path
import numpy as np
import onnx
import onnx.parser
from npumake.bundle.archive import Bundle
from npumake.bundle.program import Instruction, Program
from npumake.engine.lower import lowered
from npumake.engine.reference import ReferenceSession
from npumake.graph import Graph
program = lowered(Graph.load(Path(sys.argv[1])), "half_even")
made = ReferenceSession(program).run(None, {"x": np.load(sys.argv[2])})
sys.stdout.write(hashlib.sha256(Bundle("chip", program, {}).to_bytes()).hexdigest() + "\\n")
sys.stdout.write(hashlib.sha256(b"".join(a.tobytes() for a in made)).hexdigest())
"""


@pytest.fixture
def case(chip, samples, quantized) -> tuple[Graph, dict[str, np.ndarray]]:
    graph = parse_text(TEXT)
    feeds = samples(graph)
    return quantized(graph, feeds, chip()), feeds[0]


@pytest.mark.slow
def test_program_and_result_depend_on_neither_hash_seed_nor_threads(case, tmp_path):
    graph, feed = case
    graph.save(tmp_path / "q.onnx")
    np.save(tmp_path / "x.npy", feed["x"])
    program = lowered(graph, "half_even")
    here = Bundle("chip", program, {}).to_bytes()
    made = b"".join(a.tobytes() for a in ReferenceSession(program).run(None, feed))
    expected = "\n".join(hashlib.sha256(data).hexdigest() for data in (here, made))
    for seed, threads in (("1", "1"), ("2", "2")):
        world = os.environ | {
            "PYTHONHASHSEED": seed,
            "NPUMAKE_THREADS": threads,
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            "PYTHONPATH": str(Path(__file__).parents[2] / "pipeline"),
        }
        command = [sys.executable, "-c", SCRIPT, str(tmp_path / "q.onnx"), str(tmp_path / "x.npy")]
        said = subprocess.run(command, env=world, check=True, capture_output=True, text=True)
        assert said.stdout == expected


def test_running_twice_gives_the_same_bits(case):
    graph, feed = case
    session = ReferenceSession(lowered(graph, "half_even"))
    first, second = session.run(None, feed), session.run(None, feed)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_any_tensor_can_be_asked_for_in_any_order(case):
    graph, feed = case
    session = ReferenceSession(lowered(graph, "half_even"))
    r, codes, y = session.run(["r", "y_quantized", "y"], feed)
    assert (session.input_names, session.output_names) == (("x",), ("y", "r"))
    assert (r.dtype, codes.dtype, y.dtype) == (np.float32, np.int8, np.float32)
    assert all(np.array_equal(a, b) for a, b in zip((y, r), session.run(None, feed), strict=True))


def test_a_missing_feed_is_an_error(case):
    session = ReferenceSession(lowered(case[0], "half_even"))
    with pytest.raises(GraphError, match="the input `x` is not fed"):
        session.run(None, {})


@pytest.mark.parametrize(
    "wrong", [np.zeros((1, 3, 8, 7), np.float32), np.zeros((1, 3, 8, 8), np.float64)]
)
def test_a_feed_of_another_shape_or_type_is_an_error(case, wrong):
    session = ReferenceSession(lowered(case[0], "half_even"))
    with pytest.raises(GraphError, match=r"`x` is fed .*, the program takes float32\[1, 3, 8, 8\]"):
        session.run(None, {"x": wrong})


def test_nan_has_no_place_on_a_grid(case):
    session = ReferenceSession(lowered(case[0], "half_even"))
    with pytest.raises(GraphError, match="NaN"):
        session.run(None, {"x": np.full((1, 3, 8, 8), np.nan, np.float32)})


def test_the_roundings_differ_in_ties():
    """Means of two neighbors, on grids of scale 1."""
    graph = parse_text(
        """a (float[1,1,4,2] x) => (float[] y) <float s = {1.0}, int8 z = {0}>
        { q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
          m = AveragePool<kernel_shape=[1,2]>(d)
          r = QuantizeLinear(m, s, z)  y = DequantizeLinear(r, s, z) }"""
    )
    x = np.array([[1, 0], [2, 1], [-1, 0], [-2, -1]], np.float32).reshape(1, 1, 4, 2)

    def means(rounding):
        return ReferenceSession(lowered(graph, rounding)).run(None, {"x": x})[0].ravel().tolist()

    assert means("half_even") == [0, 2, 0, -2]
    assert means("half_up") == [1, 2, 0, -1]
    assert means("half_away") == [1, 2, -1, -2]


def test_a_single_number_goes_on_to_the_cpu():
    graph = parse_text(
        """a (float[4] x) => (float[4] y, float m) <float s = {0.5}, int8 z = {3}>
        { m = ReduceMax<keepdims=0>(x)  q = QuantizeLinear(m, s, z)  d = DequantizeLinear(q, s, z)
          y = Sub(x, d) }"""
    )
    made = ReferenceSession(lowered(graph, "half_even")).run(None, {"x": np.float32([1, 2, 3, 4])})
    assert [each.tolist() for each in made] == [[-3, -2, -1, 0], 4.0]


def test_an_instruction_nobody_knows_is_an_error():
    strange = Instruction("fly", "wing", (), ("y",))
    with pytest.raises(GraphError, match="`wing` needs a kernel that does not exist: `fly`"):
        ReferenceSession(Program((), ("y",), {}, (strange,)))


def test_a_cpu_model_that_reads_other_files_is_refused():
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> a (float[2] x) => (float[2] y) { y = Add(x, w) }'
    )
    outside = onnx.TensorProto(name="w", data_type=1, dims=[2], data_location=1)
    outside.external_data.add(key="location", value="../../secret")
    model.graph.initializer.append(outside)
    held = np.frombuffer(model.SerializeToString(), np.uint8)
    step = Instruction("onnx", "leaky", ("x",), ("y",), {"model": held})
    with pytest.raises(GraphError, match="is outside the folder"):
        ReferenceSession(Program(("x",), ("y",), {}, (step,)))
