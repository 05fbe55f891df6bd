"""Real .tflite models, as their files say: the same numbers, the same grids.

The models lie beside the repository, not in it; where they are absent this is skipped.
"""

from __future__ import annotations

import numpy as np
import pytest

from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.frontends import read_model
from npumake.frontends.tflite.schema import read_network
from npumake.graph import array, dtype, shape
from npumake.kernels.measure import cosine
from npumake.passes import optimized
from npumake.quant.qdq.brought_grids import carries_grids, with_own_grids
from npumake.quant.qdq.integers import with_integer_weights
from npumake.targets.reader import read_target
from workspaces import shared_data

FILES = sorted((shared_data() / "models").rglob("*.tflite"))
QUANTIZED = [file for file in FILES if "quant" in file.stem or "int8" in file.stem]
# Its weights are int8 and its activations float: the interpreter rounds these to 8 bits on the
# way, by a range it measures anew each time.
DYNAMIC = "kws_tiny_float"
LAST_BITS = {DYNAMIC: 0.9999}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILES, reason="shared/data/models is not here"),
]
every_quantized = pytest.mark.parametrize("file", QUANTIZED, ids=lambda file: file.stem)


def interpreted(file, x):
    """What the interpreter gives for x, and the step of its output; 0 where it is float."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not here")
    resolver = litert.OpResolverType.BUILTIN_REF
    session = litert.Interpreter(str(file), experimental_op_resolver_type=resolver)
    session.allocate_tensors()
    (fed,), (made,) = session.get_input_details(), session.get_output_details()
    session.set_tensor(fed["index"], coded(x, fed))
    session.invoke()
    y, (scale, zero_point) = session.get_tensor(made["index"]), made["quantization"]
    return (np.float32(scale) * (y.astype(np.float32) - zero_point) if scale else y), scale


def coded(x, details):
    scale, zero_point = details["quantization"]
    if not scale:
        return x
    limits = np.iinfo(details["dtype"])
    codes = np.rint(x / np.float32(scale)) + zero_point
    return np.clip(codes, limits.min, limits.max).astype(details["dtype"])


def fed(graph):
    (value,) = graph.inputs
    return np.random.default_rng(0).normal(size=shape(value)).astype(dtype(value))


@pytest.mark.parametrize("file", sorted({*FILES} - {*QUANTIZED}), ids=lambda file: file.stem)
def test_a_float_model_computes_what_the_interpreter_does(file):
    graph = read_model(file.read_bytes(), file.name)
    x = fed(graph)
    wanted, _ = interpreted(file, x)
    for made in (graph, optimized(graph)):
        (y,) = OrtSession(made.to_bytes()).run(None, {str(graph.inputs[0].name): x})
        assert y.shape == wanted.shape
        assert cosine(wanted, y) >= LAST_BITS.get(file.stem, 0.999999)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_one_transpose_is_left_where_the_image_comes_in(file):
    better = optimized(read_model(file.read_bytes(), file.name))
    assert len(better.nodes("Transpose")) == (len(shape(better.inputs[0])) == 4)


@every_quantized
def test_every_scale_and_zero_point_is_the_files_own(file):
    graph = optimized(read_model(file.read_bytes(), file.name))
    said = {
        (tensor.grid.scale.tobytes(), tensor.grid.zero_point.tobytes())
        for step in read_network(file.read_bytes()).operators
        for tensor in (*step.inputs, *step.outputs)
        if tensor is not None and tensor.grid is not None
    }
    nodes = graph.nodes("QuantizeLinear", "DequantizeLinear")
    kept = {tuple(array(value).tobytes() for value in node.inputs[1:]) for node in nodes}
    assert kept == said


@every_quantized
def test_a_quantized_model_stays_within_steps_of_the_interpreter(file):
    """Which rounds every accumulator twice, in fixed point: 4 steps after the 31 layers of a
    MobileNet, none in the small networks."""
    graph = read_model(file.read_bytes(), file.name)
    grid = read_network(file.read_bytes()).inputs[0].grid
    limits = np.iinfo(grid.zero_point.dtype)
    codes = np.random.default_rng(0).integers(limits.min, limits.max + 1, shape(graph.inputs[0]))
    x = (grid.scale * (codes - grid.zero_point.astype(np.int32))).astype(np.float32)
    wanted, step = interpreted(file, x)
    most = 4 if "mobilenet" in file.stem else 0
    for made in (graph, optimized(graph)):
        (y,) = OrtSession(made.to_bytes()).run(None, {str(graph.inputs[0].name): x})
        assert np.abs(np.rint((y - wanted) / step)).max() <= most


@every_quantized
@pytest.mark.parametrize("chip", ["ara240", "rdk-x5"])
def test_loaded_it_runs_in_integers_within_one_step_of_onnxruntime(file, chip):
    target = read_target(chip)
    graph = optimized(read_model(file.read_bytes(), file.name))
    assert carries_grids(graph)
    made = with_integer_weights(with_own_grids(graph, target))
    program = lowered(made, target.rounding, target.operators)
    steps = [s for s in program.instructions if program.tensors[s.outputs[0]].scale is not None]
    left = {step.name for step in program.instructions if step.op == "onnx"}
    assert len(left) <= 1  # what rdk-x5 leaves to its CPU: the Softmax
    watched = made.copy()
    watched.expose(step.outputs[0] for step in steps)
    x = {str(graph.inputs[0].name): fed(graph)}
    wanted = OrtSession(watched.to_bytes()).run(None, x)
    exact = ReferenceSession(program).run([step.outputs[0] for step in steps], x)
    assert max(np.abs(np.subtract(a, b, dtype=np.int32)).max()
               for a, b in zip(exact, wanted, strict=True)) <= 1  # fmt: skip
