"""The tail of a model: which nodes become int16, and that small boxes are the better for it."""

from dataclasses import replace

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError
from npumake.graph import parse_text, upgraded
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.observe import observe
from npumake.quant.precision.precision_candidates import with_tensors
from npumake.quant.precision.precision_plan import plan_precision
from npumake.quant.search.output_layers import int16_output_layers
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target

NPU, X5, X3 = (read_target(name) for name in ("ara240", "rdk-x5", "rdk-x3"))
PLAIN = Quantization()
MAX = Calibration("max")
# Corners of a box: the middle, known by the position, and a distance of a hundredth of the picture.
MODEL = """a (float[1,1,1,64] x) => (float[1,4,1,64] y)
<float[4,1,1,1] w = {1, 1, 1, 1}, float[4,1,1,1] k = {-0.01, -0.01, 0.01, 0.01},
 float[1,1,1,64] middle = {MIDDLE}>
{ c = Conv(x, w)  s = Sigmoid(c)  d = Conv<group=4>(s, k)  y = Add(d, middle) }"""


def graph():
    middle = ", ".join(f"{value:.4f}" for value in np.linspace(0.05, 0.95, 64))
    return upgraded(parse_text(MODEL.replace("MIDDLE", middle))).with_shapes()


FEEDS = [
    {"x": np.random.default_rng(i).normal(size=(1, 1, 1, 64)).astype(np.float32)} for i in range(8)
]
FED = Samples(tuple(map(str, range(len(FEEDS)))), FEEDS.__getitem__)


def test_the_tail_is_the_last_layer_and_what_is_behind_it():
    assert (
        int16_output_layers(graph(), NPU, PLAIN)
        == int16_output_layers(graph(), X5, PLAIN)
        == ("d", "y")
    )


def test_a_layer_that_another_reads_is_not_of_the_tail_though_an_answer_too():
    model = upgraded(
        parse_text(
            """a (float[1,1,2,2] x) => (float[] c, float[] y) <float[1,1,1,1] w = {2}>
            { c = Conv(x, w)  r = Relu(c)  y = Conv(r, w) }"""
        )
    ).with_shapes()
    assert int16_output_layers(model, NPU, PLAIN) == ("y",)


def test_what_hands_out_its_sums_already_needs_no_int16():
    model = upgraded(
        parse_text(
            """a (float[1,1,2,2] x) => (float[] y, float[] z) <float[1,1,1,1] w = {2}>
            { c = Conv(x, w)  r = Relu(c)  y = Conv(r, w)  z = Abs(r) }"""
        )
    ).with_shapes()
    assert int16_output_layers(model, NPU, PLAIN) == ("y", "z")
    assert int16_output_layers(model, replace(X5, form=None), PLAIN) == ("z",)


def test_a_chip_without_int16_gets_no_proposal():
    assert int16_output_layers(graph(), X3, PLAIN) == ()


def test_what_the_project_says_is_stronger():
    assert int16_output_layers(graph(), NPU, Quantization({"*": "int8"})) == ()


def test_a_wrong_name_is_an_error_at_its_own_key():
    with pytest.raises(ProjectError) as caught:
        int16_output_layers(graph(), NPU, Quantization({"z": "int16"}))
    assert caught.value.where == "quantization.types.z"


def off(asked, calibration=MAX):
    """The largest error of the quantized model's answers, and its recipe."""
    model = graph()
    found = recipe(model, observe(model, FEEDS), FED, calibration, NPU, quantization=asked)
    made = quantized(calibrated(model, found, FED, NPU, quantization=asked), NPU)
    meant, said = (OrtSession(g.to_bytes()).run(None, FEEDS[0])[0] for g in (model, made))
    return float(np.abs(meant - said).max()), found


def test_a_small_box_on_the_grid_of_the_picture_comes_back():
    (before, _), (after, found) = off(PLAIN), off(Quantization(widen_answers=True))
    assert found.wide == ("d", "y")
    assert after < before / 10


@pytest.mark.parametrize("clamp", ["", "z = Relu(m)", "z = Clip(m, low, high)"])
@pytest.mark.parametrize(
    ("op", "own"), [("Add", 0), ("Mul", 0), ("Sub", 1), ("Max", 0), ("Div", 1)]
)
def test_a_constant_operand_has_the_bits_of_the_tensor_it_makes(op, own, clamp):
    body = f"{{ m = {op}({'x, k' if own == 0 else 'k, x'})  {clamp}  y = Sigmoid(NAME) }}"
    consts = "float[1,2,1,1] k = {0.5, 3}, float low = {0}, float high = {6}"
    name = "z" if clamp else "m"
    text = f"a (float[1,2,2,2] x) => (float[] y) <{consts}> {body.replace('NAME', name)}"
    model = upgraded(parse_text(text)).with_shapes()
    asked = with_tensors(model, PLAIN, [name])
    (node,) = model.nodes(op)
    plan = plan_precision(model, asked, NPU)
    reads = {
        place for (reader, place), kind in plan.reads.items() if reader is node and kind == "int16"
    }
    constant = 1 - own if own else 1
    assert reads == {constant}


@pytest.mark.slow
def test_the_best_recipe_finds_out_by_itself():
    assert "widen_answers" in off(PLAIN, Calibration(recipe="best"))[1].switches


def test_the_default_method_leaves_boxes_in_8_bits():
    made = off(PLAIN, Calibration("default"))[1]
    assert made.trials
    assert "widen_answers" not in made.switches


@pytest.mark.slow
def test_answers_hidden_by_the_noise_of_a_tensor_are_tried_again_without_it():
    """u is 127 a + 2 b and 127 a, c their difference: until u has more than 8 bits, nobody sees
    that the answer has too few."""
    model = upgraded(
        parse_text(
            """a (float[1,2,8,8] x) => (float[1,1,8,8] y)
            <float[2,2,1,1] w = {127, 2, 127, 0}, float[1,2,1,1] v = {1, -1},
             float[1,1,1,1] k = {1}>
            { u = Conv(x, w)  c = Conv(u, v)  r = Relu(c)  d = Conv(r, k)  y = Relu(d) }"""
        )
    ).with_shapes()
    rngs = [np.random.default_rng(seed) for seed in range(8)]
    feeds = [{"x": rng.uniform(-1, 1, (1, 2, 8, 8)).astype(np.float32)} for rng in rngs]
    fed = Samples(tuple(map(str, range(8))), feeds.__getitem__)
    asked = Calibration(recipe="best", symmetric=True)
    unlimited = Quantization(most_int16=1.0)
    found = recipe(model, observe(model, fed), fed, asked, X5, quantization=unlimited)
    tried = [trial for trial in found.trials if "widen_answers" in trial.what]
    alone = [trial.kept for trial in tried if "widen_sensitive" not in trial.what]
    assert alone
    assert not any(alone)
    assert any("widen_sensitive" in trial.what for trial in tried)
    assert len(found.trials) == len({trial.what for trial in found.trials})
