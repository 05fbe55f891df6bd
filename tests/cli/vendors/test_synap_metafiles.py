"""Metafiles that work with SyNAP's toolkit mean here what they mean there: each once got wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from onnx import helper

from dialect_cases import SYNAP
from forks import run_npumake
from frontends.tflite_writer import Op, T, written
from npumake.bundle.archive import Bundle
from npumake.cli.main import main
from npumake.debug.compared import Comparison
from npumake.engine.ort import OrtSession
from npumake.graph import Graph, parse_text
from npumake.kernels.measure import cosine
from npumake.runtime import Session
from workspaces import REPO, few, shared_data

CONVS = {"conv1": "input1", "conv2": "conv1", "conv3": "conv2", "conv4": "conv3"}
CONVS |= {"conv5": "conv2", "conv6": "conv5"}  # the guide's sample model: two branches


def sample_model() -> bytes:
    random, nodes, weights = np.random.default_rng(0), [], []
    for name, read in CONVS.items():
        inputs = 3 if read == "input1" else 8
        kernel = random.normal(size=(8, inputs, 3, 3)) / np.sqrt(9 * inputs)
        for key, values in (("w", kernel), ("b", random.normal(size=8) / 4)):
            weights.append(onnx.numpy_helper.from_array(values.astype(np.float32), f"{name}_{key}"))
        fed = read if read == "input1" else f"{read}_out"
        reads = [fed, f"{name}_w", f"{name}_b"]
        nodes.append(helper.make_node("Conv", reads, [f"{name}_out"], name, pads=[1, 1, 1, 1]))
    fed = [helper.make_tensor_value_info("input1", 1, [1, 3, 8, 8])]
    made = [helper.make_tensor_value_info(f"conv{n}_out", 1, [1, 8, 8, 8]) for n in (4, 6)]
    graph = helper.make_graph(nodes, "sample", fed, made, weights)
    return onnx.helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()


MODEL = sample_model()


@pytest.fixture(autouse=True)
def here(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The folder the shell is in. One store for all tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(REPO / "pipeline"))
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "metafiles"))
    monkeypatch.delenv("CI", raising=False)
    Path("sample.onnx").write_bytes(MODEL)
    Path("s").mkdir()
    for number in range(8):
        x = np.random.default_rng(number).normal(size=(1, 3, 8, 8)).astype(np.float32)
        np.save(f"s/{number}.npy", x)
    return tmp_path


def told(metafile: str, model: str = "sample.onnx", target: str = "SL1680", code: int = 0) -> str:
    """What the command says, as a user runs it from here."""
    Path("meta.yaml").write_text(metafile)
    return converted("meta.yaml", model, target, code)


def converted(meta: str, model: str, target: str, code: int = 0) -> str:
    command = ["synap", "convert", "--model", model]
    run = run_npumake(*command, "--meta", meta, "--target", target, "--out-dir", "out")
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout + run.stderr


def info() -> str:
    return Path("out/model_info.txt").read_text()


def grids() -> dict[str, dict[str, object]]:
    return dict(yaml.safe_load(Path("out/quantization_info.yaml").read_text()))


def delegates() -> dict[str, str]:
    """By layer, of the layer table."""
    table = info().partition("Layer table:")[2].partition("=" * 100)[0].splitlines()[2:]
    return {row.split("|")[3].strip(): row.split("|")[1].strip() for row in table}


def compiled() -> Session:
    return Session("out/model.hybrid")


QUANTIZED = "quantization: {dataset: s/*.npy, data_type: "


@pytest.mark.slow
def test_int16_is_int16_of_weights_too_and_all_but_the_float_model():
    told(f"{QUANTIZED}int16}}")
    found = grids()
    assert {entry["qtype"] for name, entry in found.items() if ":bias" not in name} == {"i16"}
    assert {entry["quantizer"] for entry in found.values()} == {"dynamic_fixed_point"}
    bias = found["@conv2:bias"]
    assert bias["fl"] == found["@conv1:out0"]["fl"] + found["@conv2:weight"]["fl"]
    assert bias["qtype"] == "i64"
    program = Bundle.from_bytes(Path("out/model.hybrid").read_bytes()).program
    weights = [step.constants["weight"] for step in program.instructions if step.op == "conv"]
    assert {str(weight.dtype) for weight in weights} == {"int16"}
    x = {"input1": np.load("s/0.npy")}
    for made, meant in zip(compiled().run(None, x), OrtSession(MODEL).run(None, x), strict=True):
        assert cosine(made, meant) > 0.9999999


LABELS = [
    ("uint8", "u8", "asymmetric_affine"),
    ("int8, scheme: asymmetric_affine", "i8", "asymmetric_affine"),
    ("int8, scheme: perchannel_symmetric_affine", "i8", "perchannel_symmetric_affine"),
    ("int8", "i8", "dynamic_fixed_point"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "qtype", "weights"), few(LABELS, lambda case: case[0] != LABELS[1][0])
)
def test_a_grid_is_labeled_by_its_scheme_and_told_in_its_numbers(said, qtype, weights):
    told(f"{QUANTIZED}{said}}}")
    found = grids()
    fed, weight = found["@input1:out0"], found["@conv1:weight"]
    assert (fed["qtype"], weight["qtype"], weight["quantizer"]) == (qtype, qtype, weights)
    usual = "dynamic_fixed_point" if weights == "dynamic_fixed_point" else "asymmetric_affine"
    assert fed["quantizer"] == found["@conv3:out0"]["quantizer"] == usual
    for entry in (fed, weight):
        assert (
            ("fl" in entry) == (entry["quantizer"] == "dynamic_fixed_point") != ("scale" in entry)
        )
    per_channel = weights == "perchannel_symmetric_affine"
    assert isinstance(weight.get("scale", 0.0), list) == per_channel
    key = "fractional_length" if usual == "dynamic_fixed_point" else "zero_point"
    edge = yaml.safe_load(info().split("=" * 100)[1].partition(":")[2])
    assert (edge["Inputs"][0]["quantization"]["scheme"], key in str(edge)) == (usual, True)


@pytest.mark.slow
def test_what_is_left_out_is_what_uint8_makes():
    told("quantization: {dataset: s/*.npy}")
    left_out = Path("out/model.hybrid").read_bytes()
    told(f"{QUANTIZED}uint8, scheme: asymmetric_affine}}")
    assert Path("out/model.hybrid").read_bytes() == left_out


@pytest.mark.slow
def test_without_a_dataset_the_npu_runs_float16_and_a_gpu_what_the_metafile_gives_it():
    """The guide's heterogeneous example, as it stands."""
    told("delegate:\n  '*': npu\n  conv5: gpu\n  conv5...: gpu\n")
    expected = {f"conv{n}": "npu" if n < 5 else "gpu" for n in range(1, 7)}
    assert delegates() == expected
    assert "\nsubgraphs: 2\n" in info()
    made = Graph.load(Path("out/build/out/calibrated.sl1680.onnx"))
    casts = {str(node.name) for node in made.nodes("Cast")}
    assert "conv1_out_half" in casts
    assert not any(name.startswith("conv6_out") for name in casts)


@pytest.mark.slow
@pytest.mark.parametrize("target", few(["SL1620", "DVF120", "GENERIC"], lambda t: t == "SL1620"))
def test_a_chip_without_an_npu_runs_all_of_it_on_the_cpu(target: str):
    told("", target=target)
    assert set(delegates().values()) == {"cpu"}


@pytest.mark.slow
def test_the_guide_s_list_of_every_layer_s_type_is_a_type_for_every_layer():
    kinds = ("uint8", "uint8", "int16", "int16", "float16", "int16", "float16")
    types = dict(zip(("input1", *CONVS), kinds, strict=True))
    text = ", ".join(f"{name}: {kind}" for name, kind in types.items())
    told(f"{QUANTIZED}{{{text}}}}}")
    found = {name: entry["qtype"] for name, entry in grids().items() if name.endswith("weight")}
    assert found == {
        "@conv1:weight": "u8",
        **{f"@conv{n}:weight": "i16" for n in (2, 3, 5)},
    }
    assert set(delegates().values()) == {"npu"}


@pytest.mark.slow
@pytest.mark.parametrize("count", few([1, 3], lambda count: count == 1))
def test_few_samples_are_a_note(count: int):
    for file in sorted(Path("s").iterdir())[count:]:
        file.unlink()
    found = told(f"{QUANTIZED}uint8}}")
    plural = "s" * (count > 1)
    assert f"{count} sample{plural}, at least 8 are needed" in found
    assert f"note: {count} calibration sample{plural}; `max` needs 8" in found


@pytest.mark.slow
def test_an_inner_tensor_named_as_input_is_where_the_model_begins():
    text = "inputs: [{name: conv2_out, shape: [1, 8, 8, 8]}]\noutputs: [{name: conv4_out}]\n"
    told(f"{text}quantization: {{data_type: int16, dataset: random}}")
    assert list(delegates()) == ["conv3", "conv4"]
    shaped = onnx.shape_inference.infer_shapes(onnx.load_from_string(MODEL))
    cut = onnx.utils.Extractor(shaped).extract_model(["conv2_out"], ["conv4_out"])
    x = {"conv2_out": np.random.default_rng(0).uniform(-1, 1, (1, 8, 8, 8)).astype(np.float32)}
    (made,), (meant,) = compiled().run(None, x), OrtSession(cut.SerializeToString()).run(None, x)
    assert cosine(made, meant) > 0.9999


CUTS = {
    "a tensor there is not": ("conv9_out", [1, 8, 8, 8], "did you mean `conv"),
    "another shape": ("conv2_out", [1, 4, 8, 8], "which is [1, 8, 8, 8]"),
    "an output": ("conv4_out", [1, 8, 8, 8], "nothing reads `conv4_out`"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CUTS)
def test_where_a_model_cannot_begin_is_one_error_at_the_metafile_s_key(case):
    name, shape, expected = CUTS[case]
    found = told(f"inputs:\n  - {{name: {name}, shape: {shape}}}\n", code=2)
    assert expected in found
    assert "meta.yaml:2" in found


def tflite() -> bytes:
    """input → 0: a table, 1: an activated sum, 2: a table."""
    tensors = [T((1, 4, 4, 2)) for _ in range(4)]
    total = Op("ADD", [1, 1], [2], 11, [(0, "b", 1)])
    steps = [Op("TANH", [0], [1]), total, Op("LOGISTIC", [2], [3])]
    return written(tensors, steps, [0], [3])


@pytest.mark.slow
def test_operators_of_tflite_are_named_by_their_numbers():
    Path("net.tflite").write_bytes(tflite())
    told("delegate:\n  '*': cpu\n  \"2\": npu\n", "net.tflite")
    assert list(delegates().values())[-1] == "npu"
    assert set(list(delegates().values())[:-1]) == {"cpu"}


@pytest.mark.slow
def test_a_number_that_no_operator_has_is_a_short_error():
    Path("net.tflite").write_bytes(tflite())
    found = told("delegate: {'*': cpu, '9': npu}\n", "net.tflite", code=2)
    assert "the numbers 0 to 2" in found
    assert "meta.yaml:1:27" in found
    assert len(found) < 1000


@pytest.mark.slow
def test_a_tflite_model_ends_at_the_file_s_tensor_activated_as_its_operator_does():
    Path("net.tflite").write_bytes(tflite())
    told("outputs: [{name: t2}]\n", "net.tflite", "SL1620")
    x = np.full((1, 4, 4, 2), -1.0, np.float32)
    (made,) = compiled().run(None, {"t0": x})
    assert np.array_equal(made, np.zeros_like(x))  # Relu of 2 tanh(-1)


@pytest.mark.slow
def test_a_format_stays_with_an_output_that_is_named_by_its_layer():
    text = "outputs:\n  - {name: conv4, format: first}\n  - {name: conv6, format: second x=1}\n"
    told(text)
    edge = yaml.safe_load(info().split("=" * 100)[1].partition(":")[2])
    assert [(one["name"], one["format"]) for one in edge["Outputs"]] == [
        ("conv4_out", "first"),
        ("conv6_out", "second x=1"),
    ]


@pytest.mark.slow
def test_more_outputs_than_the_model_has_are_an_error():
    found = told("outputs: [{format: a}, {format: b}, {format: c}]", code=2)
    assert "3 outputs for a model of 2: conv4_out, conv6_out" in found


@pytest.mark.slow
def test_the_entropy_of_16_bits_is_nothing_and_that_of_8_orders_the_layers():
    told(f"{QUANTIZED}int16, algorithm: kl_divergence}}")
    wide = entropies()
    told(f"{QUANTIZED}uint8, algorithm: kl_divergence}}")
    narrow = entropies()
    assert set(wide) == set(narrow) >= {"@conv1:out0", "@conv1:weight", "@input1:out0"}
    assert max(wide.values()) <= min(narrow.values()) + 1e-6 < max(narrow.values())


def entropies() -> dict[str, float]:
    lines = Path("out/quantization_entropy.txt").read_text().splitlines()
    return {line.rpartition(", ")[0]: float(line.rpartition(", ")[2]) for line in lines}


@pytest.mark.slow
def test_an_error_speaks_of_the_metafile():
    found = told("quantization: {dataset: none/*.npy}", code=2)
    assert "no file matches `none/*.npy`" in found
    assert "paths start at the metafile's folder" in found
    assert "meta.yaml:1" in found


REAL = {
    "mobilenet_v1_0.25_224_float.tflite": (127.5, 127.5),
    "cifar10_resnet8_float.tflite": (0.0, 1.0),
    "vww_96_float.tflite": (0.0, 255.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_int16_of_a_trained_model_answers_as_the_float_model(name: str):
    model = shared_data() / "models" / "classification" / name
    if not model.is_file():
        pytest.skip(f"{model} is not here")
    pictures = sorted((shared_data() / "images" / "imagenet500").glob("*.jp*g"))[:12]
    Path("p").mkdir()
    for picture in pictures:
        (Path("p") / picture.name).write_bytes(picture.read_bytes())
    mean, scale = REAL[name]
    text = f"inputs: [{{means: {mean}, scale: {scale}}}]\n"
    text += "quantization: {dataset: p/*.jp*g, data_type: int16}"
    told(text, str(model))
    found = Comparison.load(Path("out/build/out/comparison.sl1680.json"))
    assert all(output.cosine >= 0.9998 for output in found.outputs)


@pytest.mark.slow
def test_the_guide_s_first_metafile_runs_word_for_word():
    model = shared_data() / "models" / "classification" / "mobilenet_v1_0.25_224_float.tflite"
    if not model.is_file():
        pytest.skip(f"{model} is not here")
    picture = next((shared_data() / "images" / "imagenet500").glob("*.jp*g"))
    Path("sample").mkdir()
    Path("sample/one_224x224.jpg").write_bytes(picture.read_bytes())
    Path("a/b").mkdir(parents=True)
    Path("a/b/meta.yaml").write_text(SYNAP.replace("data_layout: default", "data_layout: nhwc"))
    converted("a/b/meta.yaml", str(model), "VS680")
    assert "format: confidence_array" in info()


def test_without_a_metafile_a_hint_speaks_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    text = "net (float[N,3,8,8] x) => (float[N,3,8,8] y) { y = Relu(x) }"
    parse_text(f'<ir_version: 8, opset_import: ["" : 13]>\n{text}').save(tmp_path / "m.onnx")
    with pytest.raises(SystemExit):
        main(["synap", "convert", "--model", "m.onnx", "--target", "VS680", "--out-dir", "out"])
    assert "write, for example  inputs: [{name: x, shape:" in capsys.readouterr().out
