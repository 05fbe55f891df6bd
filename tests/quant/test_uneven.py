"""Channels of very different sizes on one grid: which tensors, and which nodes become int16."""

import numpy as np
import pytest

from npumake.data.samples import Samples
from npumake.engine.ort import OrtSession
from npumake.errors import ProjectError
from npumake.frontends import read_model
from npumake.graph import annotations_of, parse_text, shape, upgraded
from npumake.kernels.measure import cosine
from npumake.passes import optimized
from npumake.project.sections import Calibration, Quantization
from npumake.quant.calibration.channel_imbalance import int16_candidates, uneven_tensors
from npumake.quant.calibration.observe import observe
from npumake.quant.search.recipe import Recipe
from npumake.stages.calibrated import calibrated
from npumake.stages.quantized import quantized
from npumake.stages.recipe import recipe
from npumake.targets.reader import read_target
from workspaces import shared_data

NPU, X5, X3 = (read_target(name) for name in ("ara240", "rdk-x5", "rdk-x3"))
SMALL, LARGE = 0.01, 1.0
MAX = Calibration("max")
PLAIN = Quantization()
STEM = "c = Conv(x, w)  s = Sigmoid(c)  m = Mul(c, s)  "
DEPTHWISE = STEM + "d = Conv<group=G>(m, v)  y = Relu(d)"
ACROSS = STEM + "y = Conv(m, k)"


def graph(body=DEPTHWISE, sizes=(SMALL, LARGE, LARGE, LARGE)):
    """Channels of these sizes; the depthwise weights v bring them back to one."""
    count = len(sizes)
    w, v = (", ".join(map(str, each)) for each in (np.array(sizes), 1 / np.array(sizes)))
    weights = (
        f"float[{count},1,1,1] w = {{{w}}}",
        f"float[{count},1,1,1] v = {{{v}}}",
        f"float[1,{count},1,1] k = {{{v}}}",
    )
    body = body.replace("group=G", f"group={count}")
    text = f"a (float[1,1,8,8] x) => (float[] y) <{', '.join(weights)}> {{ {body} }}"
    return upgraded(parse_text(text)).with_shapes()


FEEDS = [
    {"x": np.random.default_rng(i).normal(size=(1, 1, 8, 8)).astype(np.float32)} for i in range(8)
]
FED = Samples(tuple(map(str, range(len(FEEDS)))), FEEDS.__getitem__)


def tensors(model):
    return uneven_tensors(model, observe(model, FEEDS))


def names(model, target=NPU, asked=PLAIN):
    return int16_candidates(model, observe(model, FEEDS), target, asked)


def test_a_small_channel_is_starved_where_a_depthwise_convolution_makes_it_large():
    assert tensors(graph()) == ("c", "s", "m")


def test_a_convolution_over_all_channels_starves_none():
    assert tensors(graph(ACROSS)) == ()


@pytest.mark.parametrize("small", [LARGE, 0.1], ids=["even", "25 codes"])
def test_channels_with_enough_codes_are_not_starved(small):
    assert tensors(graph(sizes=(small, LARGE, LARGE, LARGE))) == ()


def test_a_dead_channel_is_not_starved():
    assert tensors(graph(DEPTHWISE.replace("m, v", "m, w"))) == ()


def test_one_channel_in_five_is_too_few():
    assert tensors(graph(sizes=(SMALL, *4 * [LARGE]))) == ()


def test_who_makes_the_tensor_and_who_reads_it_become_int16():
    assert names(graph()) == names(graph(), X5) == ("c", "s", "m", "d")


def test_a_chip_without_int16_gets_no_proposal():
    assert names(graph(), X3) == ()


@pytest.mark.parametrize("said", [{"*": "int8"}, ({"c -> y": "int8"}, {"s": "int8"})])
def test_what_the_project_says_is_stronger(said):
    assert names(graph(), NPU, Quantization(said)) == ()


def test_a_wrong_name_is_an_error_at_its_own_key():
    with pytest.raises(ProjectError) as caught:
        names(graph(), NPU, Quantization({"z": "int16"}))
    assert caught.value.where == "quantization.types.z"


def off(asked, calibration=MAX):
    """1 - cosine of the answers of the quantized model, its recipe and what is told of it."""
    model = graph()
    found = recipe(model, observe(model, FEEDS), FED, calibration, NPU, quantization=asked)
    made = quantized(calibrated(model, found, FED, NPU, quantization=asked), NPU)
    meant, said = (OrtSession(g.to_bytes()).run(None, FEEDS[0])[0] for g in (model, made))
    return 1 - cosine(meant, said), found, annotations_of(made)


def test_widen_brings_the_channel_back_and_tells_its_tensors():
    (before, plain, _), (after, found, notes) = off(PLAIN), off(Quantization(widen=True))
    assert (plain.wide, found.wide) == ((), ("c", "s", "m"))
    assert after < before / 5
    assert "int16, where 8 bits are too few, 3 tensors: c, s, m" in notes


@pytest.mark.slow
def test_the_best_recipe_tries_it_unless_it_is_off():
    best = Calibration(recipe="best")
    assert any("widen" in trial.what for trial in off(PLAIN, best)[1].trials)
    assert not any(
        "widen" in trial.what.split(" + ")
        for trial in off(Quantization(widen=False), best)[1].trials
    )


def test_a_recipe_with_wide_nodes_is_read_back_as_written(tmp_path):
    found = off(Quantization(widen=True))[1]
    found.save(tmp_path / "recipe.json")
    assert Recipe.load(tmp_path / "recipe.json") == found


MODELS = shared_data() / "models"
STEMS = {
    "detection/yolox_person_192.onnx": ("Conv_41", "Sigmoid_42", "Mul_43", "Conv_44"),
    "detection/fastestdet_352.onnx": (),
    "detection/yunet_n_320_320.onnx": (),
    "classification/mobilenet_v1_0.25_224_float.tflite": (),
}


@pytest.mark.slow
@pytest.mark.skipif(not MODELS.exists(), reason="shared/data/models is not here")
@pytest.mark.parametrize("name", STEMS)
def test_of_real_models_only_a_stem_that_needs_it_is_widened(name):
    from PIL import Image

    file = MODELS / name
    model = optimized(upgraded(read_model(file.read_bytes(), file.name)).with_shapes())
    (fed,) = model.inputs
    nhwc = shape(fed)[3] == 3
    height, width = shape(fed)[1:3] if nhwc else shape(fed)[2:]
    feeds = []
    for picture in sorted((shared_data() / "images/coco128").rglob("*.jpg"))[:16]:
        pixels = np.asarray(Image.open(picture).convert("RGB").resize((width, height)), np.float32)
        scaled = pixels / 127.5 - 1 if nhwc else pixels[..., ::-1]
        scaled = scaled / 255 if "fastestdet" in name else scaled
        feeds.append({str(fed.name): (scaled if nhwc else scaled.transpose(2, 0, 1))[None]})
    statistics = observe(model, feeds)
    assert int16_candidates(model, statistics, NPU, PLAIN) == STEMS[name]
