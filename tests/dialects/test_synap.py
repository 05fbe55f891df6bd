"""SyNAP's metafile, translated: plain data in, plain data out, every error in the metafile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from dialect_cases import BESIDE, SYNAP, document
from npumake.dialects.synaptics.dialect import notes, translate
from npumake.dialects.synaptics.keys import IGNORED, SECRETS, TARGETS, Metafile, MetafilePreprocess
from npumake.dialects.synaptics.metafile import read_metafile
from npumake.dialects.table import DIALECTS
from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.project.reader import read_project
from npumake.project.sections import FINDING

TFLITE = BESIDE["synap"]
FINDINGS = list(get_args(FINDING))  # no dataset is refused: SyNAP has no word to allow one
ONNX = {"model": {"path": "net.onnx"}, "targets": ["sl1680"]}


def said(text: str, beside: Json = TFLITE) -> Json:
    return translate(document(text), "", beside).data


def error(text: str, beside: Json = TFLITE) -> str:
    with pytest.raises(ProjectError) as caught:
        said(text, beside)
    assert str(caught.value.where).startswith("config.yaml")
    return str(caught.value)


def test_the_guide_s_metafile_becomes_a_native_project():
    assert translate(document(SYNAP), "meta", TFLITE).data == {
        "model": {
            "inputs": ["input"],
            "outputs": ["MobilenetV1/Predictions/Reshape_1"],
            "output_count": 1,
        },
        "inputs": {
            "input": {
                "layout": "NHWC",
                "shape": [1, 224, 224, 3],
                "mean": [128.0, 128.0, 128.0],
                "scale": 0.0078125,
                "type": "rgb",
                "preprocess": {"type": "nv21", "size": [1920, 1080], "crop": True},
            }
        },
        "data": {
            "input": {
                "files": "meta/../../sample/*_224x224.jpg",
                "warn": FINDINGS,
                "channels": "rgb",
                "transforms": [{"pad_resize": {}}],
            }
        },
        "calibration": {"method": "max"},
        "quantization": {"types": [{"*": "uint8"}], "scheme": "asymmetric_affine"},
    }


@pytest.mark.parametrize("text", ["", "delegate: npu\n", "inputs:\n  -\n"])
def test_a_model_of_which_nothing_is_said_brings_its_own_scales_or_is_float16(text: str):
    assert said(text) == {
        "inputs": {"*": {"layout": "NHWC"}},
        "calibration": {"method": "load"},
        "quantization": {"types": {"*": "float16"}},
    }


def test_inputs_without_names_are_called_by_their_number():
    inputs = said("inputs: [{scale: 2}, {scale: 4}]")["inputs"]
    assert {name: given["scale"] for name, given in inputs.items()} == {"@0": 0.5, "@1": 0.25}


def keys_of(section: type, above: str = "") -> list[str]:
    """The dotted keys of a dataclass and of those inside it, items of lists left out."""
    found = []
    for key, hint in get_type_hints(section).items():
        kinds = [hint, *get_args(hint)]
        kinds += [inner for kind in kinds for inner in get_args(kind)]
        inside = [kind for kind in kinds if is_dataclass(kind)]
        found += keys_of(inside[0], f"{above}{key}.") if inside else [above + key]
    assert len(fields(section)) == len(get_type_hints(section))
    return found


# key: another value than the guide's metafile has, and what else must be said with it
OTHER: dict[str, tuple[Any, dict[str, Any]]] = {
    "delegate": ({"*": "npu", "conv1": "cpu"}, {}),
    "data_layout": ("nchw", {"inputs.preprocess": None}),
    "input_format": ("bgr", {"inputs.format": None}),
    "output_format": ("confidence_array", {"outputs.format": None}),
    "denormalize_outputs": (True, {}),
    "dequantize_outputs": (True, {}),
    "optimize": (False, {}),
    "security.secure": (False, {}),
    "security.file": ("other.yaml", {}),
    **{
        f"security.{key}": ("a.key", {"security.file": None, "security.secure": False})
        for key in SECRETS
    },
    "inputs.name": ("image", {}),
    "inputs.shape": ([1, 192, 192, 3], {}),
    "inputs.means": (127.5, {}),
    "inputs.scale": (127.5, {}),
    "inputs.format": ("rgb keep_proportions=0", {}),
    "inputs.security": ("non-secure", {}),
    "inputs.custom": ({"mine": 1}, {}),
    "inputs.preprocess.type": ("nv12", {}),
    "inputs.preprocess.size": ([720, 1280], {}),
    "inputs.preprocess.crop": (False, {}),
    "outputs.name": ("Squeeze", {}),
    "outputs.shape": ([1, 1001], {}),
    "outputs.dequantize": (True, {}),
    "outputs.format": ("yolov8", {}),
    "outputs.security": ("any", {}),
    "outputs.custom": ("mine", {}),
    "quantization.data_type": ({"*": "uint8", "conv2...": "int16"}, {}),
    "quantization.scheme": ("perchannel_symmetric_affine", {"quantization.data_type": "int8"}),
    "quantization.mode": ("full", {}),
    "quantization.algorithm": ("kl_divergence", {}),
    "quantization.options": ({"x": 1}, {}),
    "quantization.dataset": ("random", {}),
    "custom": ({"mine": 1}, {}),
}


def changed(**changes: Any) -> str:
    """The guide's metafile with other values by dotted key, in the only item of a list."""
    data = document(SYNAP).data
    for key, value in changes.items():
        *above, name = key.split(".")
        inside = data
        for part in above:
            inside = inside.setdefault(part, {})
            inside = inside[0] if isinstance(inside, list) else inside
        inside[name] = value
    return json.dumps(data, indent=1)


def test_every_key_of_the_metafile_is_perturbed_below():
    assert sorted(OTHER) == sorted(keys_of(Metafile))


@pytest.mark.parametrize("key", OTHER)
def test_a_key_changes_the_project_or_says_why_not(key: str):
    value, beside = OTHER[key]
    was, now = said(changed(**beside)), said(changed(**beside, **{key: value}))
    assert (was == now) == (key in IGNORED)


@pytest.mark.parametrize("key", IGNORED)
def test_an_ignored_key_is_told_with_its_reason_where_it_asks_for_something(key: str):
    value, beside = OTHER[key]
    ask = {"outputs.dequantize": False, "dequantize_outputs": False, "denormalize_outputs": False}
    value = True if key == "security.secure" else ask.get(key, value)
    told = notes(document(changed(**beside, **{key: value})))
    name = key.rpartition(".")[2]
    assert f"`{name}` is ignored: {IGNORED[key]}" in [note.what for note in told]
    assert all(note.where.line for note in told)


# key: its documented values, and what else must be said with them
VALUES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "delegate": (("cpu", "gpu", {"*": "npu", "a...": "cpu"}), {"quantization": None}),
    "data_layout": (("nchw", "NCHW"), {"inputs.preprocess": None}),
    "inputs.format": (("bgr", "rgb keep_proportions=0", "bgr keep_proportions=0"), {}),
    "inputs.security": (("secure", "non-secure"), {}),
    "inputs.preprocess.type": (get_args(get_type_hints(MetafilePreprocess)["type"]), {}),
    "outputs.security": (("any",), {}),
    "quantization.data_type": (("int8", "int16", "float16", {"INPUTS": "int16"}), {}),
    "quantization.scheme": (
        ("asymmetric_affine", "perchannel_symmetric_affine"),
        {"quantization.data_type": "int8"},
    ),
    "quantization.mode": (("full",), {}),
    "quantization.algorithm": (("kl_divergence", "moving_average", "auto"), {}),
    "quantization.dataset": (("random", ["a/*.npy"], ["a/*.png"]), {}),
}
CASES = [(key, value) for key, (values, _) in VALUES.items() for value in values]


def answer(text: str) -> Any:
    """The project and its notes, or the error."""
    try:
        return said(text), [note.what for note in notes(document(text))]
    except ProjectError as error:
        return error.what


@pytest.mark.parametrize(("key", "value"), CASES, ids=str)
def test_every_documented_value_acts_or_is_told_or_refused(key: str, value: Any):
    beside, guide = VALUES[key][1], document(SYNAP).data
    own: Any = guide
    for part in key.split("."):
        own = own[0] if isinstance(own, list) else own
        own = own.get(part) if own else None
    if value == own:
        return  # the guide's own, which is compared with others
    usual = {"delegate": "npu", "quantization.scheme": "default"}.get(key)
    assert answer(changed(**beside, **{key: value})) != answer(changed(**beside, **{key: usual}))


def quantized(data_type: str, more: str = "") -> Json:
    text = f"quantization:\n  data_type: {data_type}\n  dataset: random\n{more}"
    return said(text, ONNX)["quantization"]


TYPES: dict[str, tuple[str, list[dict[str, str]], str]] = {
    "one type": ("int16", [{"*": "int16"}], "dynamic_fixed_point"),
    "every layer": (
        "{input1: uint8, conv1: uint8, conv2: int16, conv4: float16}",
        [{"*": "uint8"}, {"input1": "uint8"}, {"conv1": "uint8"}, {"conv2": "int16"},
         {"conv4": "float16"}],
        "asymmetric_affine",
    ),
    "the inputs": (
        "{INPUTS: int8, '*': int16}",
        [{"*": "int16"}, {"INPUTS": "int8"}],
        "dynamic_fixed_point",
    ),
    "the head": (
        "{'*': uint8, conv2...: int16, conv5: float16}",
        [{"*": "uint8"}, {"conv2...": "int16"}, {"conv5": "float16"}],
        "asymmetric_affine",
    ),
    "by id": (
        "{conv2...: int16, '@Conv_5': float16}",
        [{"*": "uint8"}, {"conv2...": "int16"}, {"Conv_5": "float16"}],
        "asymmetric_affine",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_the_guide_s_mixed_quantizations_keep_the_order_of_their_rules(name: str):
    text, rules, scheme = TYPES[name]
    assert quantized(text) == {"types": rules, "scheme": scheme}


@pytest.mark.parametrize(
    ("delegate", "expected"),
    [
        ("npu", {}),
        ("default", {}),
        ("{'*': npu, conv5: gpu, conv5...: gpu}", {"cpu": ["conv5", "conv5..."]}),
        ("{conv4...: cpu, conv5: npu}", {"cpu": ["conv4..."], "npu": ["conv5"]}),
        ("{conv1: npu, '*': cpu}", {"cpu": ["*"], "npu": ["conv1"]}),
        ("{'@Conv_5': cpu threads=4}", {"cpu": ["Conv_5"]}),
        ("cpu", {"cpu": ["*"]}),
        ("gpu fp16", {"cpu": ["*"]}),
    ],
)
def test_a_delegate_sends_layers_away_from_the_npu(delegate: str, expected: Json):
    found = said(f"delegate: {delegate}", ONNX)["quantization"]
    assert {unit: found[unit] for unit in ("cpu", "npu") if unit in found} == expected


def test_a_gpu_is_said_to_be_the_cpu():
    (note,) = notes(document("delegate: {'*': npu, conv5: gpu}"))
    assert (note.what[:18], note.where.line) == ("there is no GPU he", 1)


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_a_layout_beside_preprocess_is_a_note_and_no_error(layout: str):
    text = f"data_layout: {layout}\ninputs: [{{preprocess: {{type: rgb}}}}]"
    assert "fed_layout" not in said(text)["inputs"]["*"]
    (note,) = notes(document(text))
    assert (note.what[:27], note.where.line) == ("`data_layout` has no effect", 1)


@pytest.mark.parametrize("scheme", ["", "scheme: default, "])
def test_what_is_left_out_is_uint8_with_a_zero_point(scheme: str):
    found = said(f"quantization: {{{scheme}dataset: random}}", ONNX)["quantization"]
    assert found == {"types": [{"*": "uint8"}], "scheme": "asymmetric_affine"}


@pytest.mark.parametrize(
    ("path", "layout"),
    [("a.tflite", "NHWC"), ("a.PB", "NHWC"), ("a.onnx", "NCHW"), ("a.prototxt", "NCHW")],
)
def test_the_layout_is_that_of_the_model_s_format(path: str, layout: str):
    named = "inputs: [{name: x, shape: [1, 2]}]\noutputs: [{name: y}]"
    found = said(named, {"model": {"path": path}, "targets": ["vs680"]})
    assert found["inputs"]["x"]["layout"] == layout


def test_a_model_of_tflite_may_be_fed_in_the_other_layout():
    assert said("data_layout: NCHW")["inputs"]["*"] == {"layout": "NHWC", "fed_layout": "NCHW"}


def test_policies_are_those_of_the_inputs_and_outputs_by_number():
    text = "inputs: [{security: any}, {security: secure}]\noutputs: [{security: any}]"
    assert said(text)["security"] == {"inputs": {"@1": "secure"}, "outputs": {"@0": "any"}}


DATA: dict[str, tuple[str, str, Json]] = {
    "noise": ("", "random", {"random": 8}),
    "arrays": ("", "s/*.npy", {"files": "s/*.npy"}),
    "normalized arrays": ("scale: 255", "s/*.npy", {"files": "s/*.npy", "normalized": True}),
    "pictures": (
        "format: bgr",
        "s/*.JPG",
        {"files": "s/*.JPG", "channels": "bgr", "transforms": [{"pad_resize": {}}]},
    ),
    "stretched": (
        "format: rgb keep_proportions=0",
        "s/*.png",
        {"files": "s/*.png", "channels": "auto", "transforms": [{"resize": {"mode": "opencv"}}]},
    ),
    "gray": (
        "{name: x, shape: [1, 28, 28, 1]}",
        "/abs/*.png",
        {"files": "/abs/*.png", "channels": "gray", "transforms": [{"pad_resize": {}}]},
    ),
}


@pytest.mark.parametrize("name", DATA)
def test_a_dataset_is_noise_or_arrays_or_pictures_between_gray_bands(name: str):
    entry, dataset, expected = DATA[name]
    text = f"inputs:\n  - {entry}\nquantization: {{dataset: [{dataset}]}}"
    warned = {"warn": FINDINGS} if "files" in expected else {}
    assert list(said(text)["data"].values()) == [expected | warned]


def test_several_inputs_have_a_dataset_each():
    text = "inputs: [{name: a, shape: [4, 2]}, {name: b, shape: [4, 3], scale: 4}]\n"
    found = said(f"{text}quantization: {{dataset: [a/*.npy, b/*.npy]}}")
    assert [found["inputs"][name]["shape"] for name in "ab"] == [[1, 2], [1, 3]]
    assert found["data"] == {
        "a": {"files": "a/*.npy", "warn": FINDINGS},
        "b": {"files": "b/*.npy", "warn": FINDINGS, "normalized": True},
    }


ARRAYS = "quantization: {dataset: s/*.npy"
NAMED = "inputs: [{name: x, shape: [1, 8, 8, 3]"
WRONG: dict[str, tuple[str, str]] = {
    "unknown key": ("data_layuot: nhwc", "unknown key `data_layuot`"),
    "unknown key of an input": ("inputs: [{mean: 1}]", "unknown key `mean`"),
    "layout": ("data_layout: nwhc", "`data_layout` cannot be `nwhc`"),
    "name without shape": ("inputs: [{name: x}]", "input `x` has no `shape`"),
    "shape without name": ("inputs: [{shape: [1, 2]}]", "a `shape` without a `name`"),
    "rank": ("inputs: [{name: x, shape: [1]}]", "a shape of 1 dimension"),
    "some names": (f"{NAMED}}}, {{scale: 1}}]", "some of the inputs have a name"),
    "twice": ("outputs: [{name: a}, {name: a}]", "`a` is written twice under `outputs`"),
    "scale": ("inputs: [{scale: 0}]", "`scale` cannot be 0"),
    "means": (f"{NAMED}, means: [1, 2]}}]", "2 `means` for 3 channels"),
    "datasets": ("quantization: {dataset: [a.npy, b.npy]}", "2 datasets for 1 inputs"),
    "kind of files": ("quantization: {dataset: samples/*}", "may be pictures or arrays"),
    "type": (f"{ARRAYS}, data_type: int4}}", "unknown type `int4`"),
    "type of a layer": (f"{ARRAYS}, data_type: {{conv: uint16}}}}", "unknown type `uint16`"),
    "both 8 bits": (f"{ARRAYS}, data_type: {{a: int8, b: uint8}}}}", "uint8 and int8 in one"),
    "scheme": (f"{ARRAYS}, scheme: perchannel_symmetric_affine}}", "is not for uint8"),
    "algorithm": (f"{ARRAYS}, algorithm: kl}}", "`quantization.algorithm` cannot be `kl`"),
    "delegate": ("delegate: tpu", "unknown delegate `tpu`"),
    "delegate of an input": ("delegate: {INPUTS: cpu}", "`INPUTS` has no delegate"),
    "order": ("delegate: {a: npu, b...: cpu}", "`b...` comes after `a`"),
    "cpu alone": (f"delegate: cpu\n{ARRAYS}}}", "only the NPU is quantized for"),
    "no keys": ("security: {secure: true}", "a secure model needs `encryption_key`"),
    "keys twice": (
        "security: {secure: true, file: a, signature_key: b}",
        "both a security `file` and `signature_key`",
    ),
    "preprocess": ("inputs: [{preprocess: {type: nv16}}]", "cannot be `nv16`"),
    "a list for a group": ("quantization: [1]", "`quantization` must be a mapping"),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_clear_error(name: str):
    text, expected = WRONG[name]
    assert expected in error(text)


def test_onnx_cannot_be_made_nhwc():
    assert "a model in .onnx cannot become nhwc" in error("data_layout: nhwc", ONNX)


def test_a_pb_model_does_not_tell_its_inputs():
    beside = {"model": {"path": "a.pb"}, "targets": ["vs680"]}
    assert "a .pb model does not state its inputs" in error("outputs: [{name: a}]", beside)


@pytest.mark.parametrize(("chip", "away"), [("sl1620", "npu"), ("synap-generic", "gpu")])
def test_a_chip_without_the_delegate_refuses_it(chip: str, away: str):
    beside = {"model": {"path": "a.onnx"}, "targets": [{chip: {}}]}
    assert f"{chip} has no {away}" in error(f"delegate: {away}", beside)


def metafile(folder: Path, text: str) -> Path:
    file = folder / "meta.yaml"
    file.write_text(text)
    return file


def test_variables_are_replaced_before_the_text_is_yaml(tmp_path, monkeypatch):
    monkeypatch.setenv("SIDE", "640")
    text = "inputs: [{preprocess: {type: rgb, size: [${ENV:SIDE}, 480]}, format: 'a${ENV:NO}b'}]"
    found = read_metafile(metafile(tmp_path, text))
    (entry,) = found.document.data["inputs"]
    assert (entry["preprocess"]["size"], entry["format"]) == ([640, 480], "ab")
    assert found.variables == ("NO", "SIDE")


def test_a_format_holds_the_text_of_a_file_beside_the_metafile(tmp_path):
    (tmp_path / "anchors.txt").write_text("[[1,2]]\n")
    text = "outputs: [{format: 'yolov5 anchors=${FILE:anchors.txt}', custom: '${FILE:none}'}]"
    found = read_metafile(metafile(tmp_path, text))
    (entry,) = found.document.data["outputs"]
    assert entry == {"format": "yolov5 anchors=[[1,2]]", "custom": "${FILE:none}"}
    assert found.files == (tmp_path / "meta.yaml", tmp_path / "anchors.txt")


@pytest.mark.parametrize(
    ("name", "expected"), [("../secret.txt", "is outside"), ("none.txt", "cannot read")]
)
def test_a_format_reads_no_other_file(tmp_path, name, expected):
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "here").mkdir()
    with pytest.raises(ProjectError, match=expected) as caught:
        read_metafile(metafile(tmp_path / "here", f"output_format: ${{FILE:{name}}}"))
    assert caught.value.where.line == 1


def test_a_security_file_holds_four_keys_and_is_one_of_the_project_s_files(tmp_path):
    text = "security: {secure: true, file: security.yaml}"
    file, secret = metafile(tmp_path, text), tmp_path / "security.yaml"
    assert read_metafile(file).files == (file,)
    secret.write_text("".join(f"{key}: a\n" for key in SECRETS))
    assert read_metafile(file).files == (file, secret)
    secret.write_text("encryption_key: a\n")
    with pytest.raises(ProjectError, match="missing key `signature_key`") as caught:
        read_metafile(file)
    assert caught.value.where.path.endswith("security.yaml")


def test_a_project_depends_on_what_its_metafile_does(tmp_path, monkeypatch):
    monkeypatch.setenv("SAMPLES", "samples")
    folder = tmp_path / "net"
    folder.mkdir()
    beside = "model: {path: a.onnx}\ntargets: [sl1680]\ndialect: synap\nconfig: meta.yaml\n"
    (folder / "project.yaml").write_text(beside)
    metafile(folder, "quantization: {dataset: '${ENV:SAMPLES}/*.npy'}")
    found = read_project(folder, DIALECTS)
    assert found.sections.data["*"].files == "samples/*.npy"
    assert found.variables == ("SAMPLES",)


UNSET = {
    "a list": "inputs: [{preprocess: {type: rgb, size: [${ENV:NO}, 480]}}]",
    "a word": "quantization: {algorithm: x${ENV:NO}, dataset: a}",
    "a key": "quantizatio${ENV:NO}: {dataset: a}",
    "no YAML": "inputs: [{${ENV:NO}]",
    "a number": "inputs:\n  - name: image\n    scale: a${ENV:NO}",
}


@pytest.mark.parametrize("text", UNSET.values(), ids=UNSET)
def test_an_error_in_a_line_with_an_unset_variable_names_it(tmp_path, monkeypatch, text):
    folder = tmp_path / "net"
    folder.mkdir()
    beside = "model: {path: a.onnx}\ntargets: [sl1680]\ndialect: synap\nconfig: meta.yaml\n"
    (folder / "project.yaml").write_text(beside)
    metafile(folder, f"# ${{ENV:OTHER}}\n{text}")
    with pytest.raises(ProjectError) as caught:
        read_project(folder, DIALECTS)
    assert "set the environment variable `NO` of this line" in caught.value.hint
    assert "OTHER" not in caught.value.hint
    monkeypatch.setenv("NO", "x")
    with pytest.raises(ProjectError) as caught:
        read_project(folder, DIALECTS)
    assert "NO" not in caught.value.hint


def test_a_variable_that_is_not_set_is_noted_at_its_place(tmp_path, monkeypatch):
    folder = tmp_path / "net"
    folder.mkdir()
    beside = "model: {path: a.onnx}\ntargets: [sl1680]\ndialect: synap\nconfig: meta.yaml\n"
    (folder / "project.yaml").write_text(beside)
    metafile(folder, "# ${ENV:NO}\nquantization:\n  dataset: 'a/${ENV:NO}*.npy'")
    (note,) = (n for n in read_project(folder, DIALECTS).notes if "NO" in n.what)
    assert (note.where.line, note.where.column) == (3, 15)  # a comment counts for nothing
    monkeypatch.setenv("NO", "")
    assert not any("NO" in note.what for note in read_project(folder, DIALECTS).notes)


def test_every_documented_target_is_a_chip_of_ours():
    documented: Mapping[str, str] = {"SL1680": "sl1680", "DOLPHIN": "vs680", "VS640A0": "vs640"}
    assert documented.items() <= TARGETS.items()
    for name in ("GENERIC", "DVF120", "VS640", "VS680", "SL1620", "SL1640", "SL1680"):
        assert name in TARGETS
