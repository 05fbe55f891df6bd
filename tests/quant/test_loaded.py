"""Models that carry Q/DQ keep their scales, and get only what follows from them."""

from __future__ import annotations

import numpy as np
import pytest

from npumake.borders.images import mark_images
from npumake.data.samples import Samples
from npumake.engine.lower import lowered
from npumake.engine.ort import OrtSession
from npumake.engine.reference import ReferenceSession
from npumake.errors import ProjectError
from npumake.graph import annotations_of, array, parse_text
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.calibration.statistics import Statistics
from npumake.quant.search.model_graphs import model_graphs
from npumake.quant.search.recipe import Recipe
from npumake.stages.calibrated import calibrated
from npumake.stages.comparison import comparison
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.stages.samples import samples
from npumake.targets.reader import read_target

NONE = Statistics({})
NO_SAMPLES = Samples((), lambda index: {})
LOADED = Recipe("load", True, {})
NPU = read_target("ara240")
LOADED_HERE = Recipe("load", NPU.activations.symmetric, {})

numbers = ", ".join(f"{value:.3f}" for value in np.linspace(-1, 1, 36))
# As training with fake quantization exports it: float weights behind Q/DQ, a float bias, and a
# MaxPool between grids that has none of its own.
TRAINED = f"""agraph (float[1,2,6,6] x) => (float[1,2,3,3] y)
    <float s = {{0.02}}, int8 z = {{-3}}, float t = {{0.05}}, int8 o = {{4}},
     float[2,2,3,3] w = {{{numbers}}}, float[2] s_w = {{0.0079, 0.0081}}, int8[2] z_w = {{0, 0}},
     float[2] b = {{0.3, -0.4}}> {{
    q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
    q_w = QuantizeLinear<axis=0>(w, s_w, z_w)  d_w = DequantizeLinear<axis=0>(q_w, s_w, z_w)
    c = Conv<pads=[1,1,1,1]>(d, d_w, b)  r = Relu(c)
    q_r = QuantizeLinear(r, t, o)  d_r = DequantizeLinear(q_r, t, o)
    y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(d_r) }}"""
FLOAT = "agraph (float[1,4] x) => (float[1,4] y) { y = Relu(x) }"


def grids(graph):
    nodes = graph.nodes("QuantizeLinear")
    return [tuple(array(value).tolist() for value in node.inputs[1:]) for node in nodes]


def test_a_trained_grid_is_kept_and_given_to_what_only_moves_its_codes():
    graph = optimized(parse_text(TRAINED))
    made = calibrated(graph, LOADED, NO_SAMPLES, NPU)
    kept = grids(graph)
    assert [pair for pair in grids(made) if pair in kept] == [*kept, kept[-1]]
    assert len(grids(made)) == len(kept) + 1  # behind the MaxPool


def test_loaded_it_runs_in_integers_alone_as_onnxruntime_does():
    graph = optimized(parse_text(TRAINED))
    program = lowered(quantized(calibrated(graph, LOADED, NO_SAMPLES, NPU), NPU), "half_even")
    assert "onnx" not in {step.op for step in program.instructions}
    x = {"x": np.random.default_rng(0).normal(size=(1, 2, 6, 6)).astype(np.float32)}
    (wanted,), (exact,) = OrtSession(graph.to_bytes()).run(None, x), ReferenceSession(program).run(
        None, x
    )  # fmt: skip
    assert np.abs(wanted - exact).max() <= 0.05 * 1.001  # one step


def test_a_float_weight_between_two_grids_gets_the_targets():
    text = TRAINED.replace("Conv<pads=[1,1,1,1]>(d, d_w, b)", "Conv<pads=[1,1,1,1]>(d, w, b)")
    made = calibrated(optimized(parse_text(text)), LOADED, NO_SAMPLES, NPU)
    (conv,) = made.nodes("Conv")
    assert conv.inputs[1].producer().op_type == "DequantizeLinear"


def test_an_image_is_a_code_already():
    graph = parse_text(TRAINED)
    mark_images(graph, ["x"])
    bare = graph.copy()
    node = graph.nodes("QuantizeLinear")[0]
    front = graph.insert("Relu", [graph.inputs[0]], "front")
    graph.set_inputs(node, {0: front})
    made = calibrated(graph.with_shapes(), LOADED, NO_SAMPLES, NPU)
    assert (1.0, 0) in grids(made)
    assert (1.0, 0) not in grids(calibrated(bare, LOADED, NO_SAMPLES, NPU))  # it has its own


@pytest.mark.parametrize(
    ("text", "method", "hint"),
    [
        (FLOAT, "load", "choose kl, max or max_percentile to find its thresholds"),
        (TRAINED, "kl", "write  method: load"),
        (TRAINED, "max", "write  method: load"),
    ],
)
def test_a_method_that_does_not_fit_the_model_is_refused_where_it_is_written(text, method, hint):
    with pytest.raises(ProjectError) as caught:
        recipe(parse_text(text), NONE, NO_SAMPLES, Calibration(method), NPU)
    assert (caught.value.where, caught.value.hint) == ("calibration.method", hint)


def test_it_needs_no_samples(tmp_path):
    graph = optimized(parse_text(TRAINED))
    none = samples(graph, {}, {}, {})
    none.save(tmp_path / "samples.npz")
    assert len(Samples.load(tmp_path / "samples.npz")) == 0
    made = calibrated(graph, LOADED, NO_SAMPLES, NPU)
    graphs = model_graphs(graph, LOADED, made, quantized(made, NPU), NPU)
    compared = comparison(graphs, NONE, LOADED, none, Calibration("load"), NPU, None)
    assert compared.samples == 0
    assert [(row.type, row.on) for row in compared.rows] == [
        ("Conv+Relu", "DNPU"),
        ("MaxPool", "DNPU"),
    ]


HALF = Quantization({"*": "float16"})


@pytest.mark.parametrize("chip", ["sl1680", "sl1620"])
def test_a_float_model_with_nothing_to_load_runs_in_floats_where_nothing_else_is_asked(chip):
    graph, target = optimized(parse_text(FLOAT)), read_target(chip)
    noise = samples(graph, {}, {}, {})
    found = recipe(
        graph, observe(graph, noise), noise, Calibration("load"), target, quantization=HALF
    )
    made = calibrated(graph, found, noise, target, quantization=HALF)
    assert (grids(made), annotations_of(made)) == ([], ())
    assert bool(made.nodes("Cast")) == target.float16


def test_a_chip_without_float16_cannot_run_a_float_model_without_scales():
    graph = optimized(parse_text(FLOAT))
    noise = samples(graph, {}, {}, {})
    with pytest.raises(ProjectError, match="no Q/DQ to load scales from"):
        recipe(graph, observe(graph, noise), noise, Calibration("load"), NPU, quantization=HALF)


def test_a_node_may_be_kept_from_the_chip_though_the_model_brings_its_scales():
    graph = optimized(parse_text(TRAINED))
    kept = Quantization(cpu=("c",))
    found = recipe(graph, NONE, NO_SAMPLES, Calibration("load"), NPU, quantization=kept)
    assert found == LOADED_HERE
    made = calibrated(graph, LOADED, NO_SAMPLES, NPU, quantization=kept)
    graphs = model_graphs(graph, LOADED, made, quantized(made, NPU), NPU)
    compared = comparison(graphs, NONE, LOADED, NO_SAMPLES, Calibration("load"), NPU, None)
    assert {row.node: row.on for row in compared.rows} == {"c": "CPU", "y": "DNPU"}
    wide = Quantization({"*": "int16"})
    with pytest.raises(ProjectError, match="`types` would ignore them"):
        recipe(graph, NONE, NO_SAMPLES, Calibration("load"), NPU, quantization=wide)


def test_a_float_model_without_samples_is_for_skip_alone():
    graph = optimized(parse_text(FLOAT))
    noise = samples(graph, {}, {}, {})
    measured = observe(graph, noise)
    with pytest.raises(ProjectError, match="no samples to calibrate with"):
        recipe(graph, measured, noise, Calibration("kl"), NPU)
    skipped = recipe(graph, measured, noise, Calibration("skip"), NPU)
    x = measured.tensors["x"]
    assert skipped.ranges["x"] == (x.low, x.high)


def test_passes_leave_codes_and_scales_alone():
    graph = parse_text(TRAINED)
    assert grids(optimized(graph)) == grids(graph)
