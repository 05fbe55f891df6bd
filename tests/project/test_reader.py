"""A directory of YAML → Project."""

import json
import random
import subprocess
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from npumake.digest import plain
from npumake.errors import Place, ProjectError
from npumake.project.document import parse_document
from npumake.project.reader import built, project_of, read_project, sections_of
from npumake.project.schema import schema_of
from npumake.project.sections import Calibration, Files, Input, ModelSection, Sections
from npumake.project.transforms import Mean, Resize, Transform

SMALL = "model: {path: m.onnx}\ndata: {image: {files: s/*.npy}}\ntargets: [imx93]\n"
FULL = {
    "model": {
        "path": "m.onnx",
        "split": "hints",
        "metadata": "edgefirst.json",
        "weights": "w.caffemodel",
        "outputs": ["head"],
        "output_count": 1,
        "remove_types": ["Transpose"],
        "remove_nodes": ["tail"],
    },
    "data": {
        "image": {
            "files": "s/*.png",
            "snapshot": None,
            "random": None,
            "stacked": True,
            "member": "x",
            "dtype": "uint8",
            "channels": "bgr",
            "normalized": True,
            "values": "0..1",
            "transforms": ["resize", {"mean": {"means": [1, 2]}}],
            "range": [0, 1.5],
            "allow": ["few"],
            "warn": ["few"],
        }
    },
    "targets": ["imx93", {"rdk_x5": {"calibration": {"method": "max"}}}],
    "inputs": {
        "image": {
            "shape": [1, 3, 8, 8],
            "batch": 4,
            "layout": "NHWC",
            "fed_layout": "NHWC",
            "type": "bgr",
            "fed_type": "nv12",
            "color_range": "video",
            "preprocess": {"type": "nv12", "size": [16, 16], "crop": True},
            "mean": [1.5, 2.0, 3.0],
            "scale": 0.5,
            "offset": 128,
            "value": [16000],
        }
    },
    "evaluation": {
        "dataset": {
            "files": "v/*.png",
            "labels": "labels.csv",
            "label_column": "class_index",
            "label_offset": 1,
            "classes": ["cat", "dog"],
            "transforms": ["resize"],
        },
        "metric": "top5",
        "with": ["lib/*.py"],
        "postprocess": "softmax",
        "ssd": {
            "anchors": "anchors.npy",
            "sizes": [[16.0, 32.0]],
            "strides": [8],
            "variances": [0.1, 0.1],
            "order": "yxhw",
            "activation": "sigmoid",
        },
        "artifacts": ["compiled"],
        "limit": 100,
        "jobs": 2,
    },
    "gates": [{"metric": "top5", "max_drop": 1.5}],
    "report": {"samples": 3},
    "comparison": {"compiled": 4, "samples": 8},
    "security": {"inputs": {"@0": "secure"}, "outputs": {"*": "any"}},
    "calibration": {
        "method": "max_percentile",
        "percentile": 0.9,
        "bins": 1024,
        "momentum": 0.8,
        "recipe": "best",
        "symmetric": True,
        "per_channel": True,
        "modelwise": {
            "methods": ["kl", "max"],
            "percentiles": [0.9],
            "per_channel": [True],
            "asymmetric": [True],
            "similarity": 0.9,
            "metric": "mse",
        },
    },
    "quantization": {
        "types": [{"conv...": "int16"}, {"image": "int8"}],
        "layers": {"head": {"input": "int16", "inputs": ["int8", None], "output": "int8"}},
        "outputs": "int8",
        "cpu": ["tail"],
        "npu": ["soft"],
        "optional": ["head"],
        "scheme": "dynamic_fixed_point",
        "mode": "full",
        "equalize": True,
        "even_depthwise": True,
        "migrate": True,
        "widen": True,
        "widen_answers": True,
        "widen_sensitive": True,
        "most_int16": 0.25,
        "clip_weights": True,
        "round_weights": "adaptive",
        "bias_correction": True,
    },
    "cost": {"ddr": 12.8},
    "compile": {
        "prefix": "mine",
        "compile_mode": "bandwidth",
        "optimize_level": "O1",
        "core_num": 2,
        "max_time_per_fc": 2000,
        "input_source": {"image": "pyramid"},
        "jobs": 4,
        "debug": True,
        "task": "bt-449c",
        "vendor_tool": True,
        "profiling": True,
    },
    "custom_operators": ["ops/*.py", {"files": "more/*.py", "with": ["lib/*.py"]}],
    "variants": {"p9": {"calibration": {"percentile": 0.8}}},
    "matrix": {"calibration.method": ["max", "kl"]},
}


def project(tmp_path: Path, **files: str) -> Path:
    directory = tmp_path / "mobilenet"
    directory.mkdir()
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text)
    return directory


def sections(data: object, comment: str = "") -> Sections:
    text = yaml.safe_dump(data, sort_keys=False)
    text = "".join(f"{line}  # {comment}\n" for line in text.splitlines())
    return sections_of(parse_document(text.encode(), "p.yaml"))


def test_the_smallest_project_has_every_default(tmp_path):
    directory = project(tmp_path, project=SMALL)
    found = read_project(directory)
    assert found.name == "mobilenet"
    assert found.files == (directory / "project.yaml",)
    assert found.sections == Sections(
        ModelSection("m.onnx"),
        ("imx93",),
        {},
        Calibration("kl", 0.99995),
        data={"image": Files("s/*.npy")},
    )


def test_numbers_and_lists_take_the_types_of_their_keys():
    text = SMALL + "inputs: {x: {mean: 1, scale: [1, 2], shape: [1.0, 3], offset: 128.0}}\n"
    x = sections_of(parse_document(text.encode(), "p.yaml")).inputs["x"]
    assert x == Input(mean=1.0, scale=(1.0, 2.0), shape=(1, 3), offset=128)
    assert json.dumps([x.mean, x.scale, x.shape, x.offset]) == "[1.0, [1.0, 2.0], [1, 3], 128]"


def test_a_step_is_its_name_with_every_argument():
    text = SMALL.replace("s/*.npy", "s/*.npy, transforms: [resize, {mean: {means: 1}}]")
    given = sections_of(parse_document(text.encode(), "p.yaml")).data["image"].transforms
    assert given == ({"resize": Resize()}, {"mean": Mean(1.0)})
    assert built(tuple[Transform, ...], plain(given)) == given


def test_a_section_in_its_own_file_means_the_same(tmp_path):
    parts = {name: yaml.safe_dump(value) for name, value in FULL.items()}
    found = read_project(project(tmp_path, project="", **parts))
    assert found.sections == sections(FULL)
    assert [file.name for file in found.files][:3] == ["project.yaml", "model.yaml", "data.yaml"]


def test_a_place_points_into_the_file_of_its_section(tmp_path, monkeypatch):
    directory = project(tmp_path, project=SMALL, calibration="# why\nmethod: max\n")
    monkeypatch.chdir(tmp_path)
    places = read_project(directory).places
    assert places["calibration.method"] == Place("mobilenet/calibration.yaml", 2, 9)
    assert places["targets.0"] == Place("mobilenet/project.yaml", 3, 11)
    assert places["data.image"] == Place("mobilenet/project.yaml", 2, 8)


def test_a_mistake_in_a_section_file_points_there(tmp_path):
    directory = project(tmp_path, project=SMALL, calibration="method: min\n")
    with pytest.raises(ProjectError, match=r"calibration.method` cannot be `min`") as caught:
        read_project(directory)
    assert str(caught.value.where).endswith("mobilenet/calibration.yaml:1:9")


def test_a_section_is_written_once(tmp_path):
    directory = project(tmp_path, project=SMALL, targets="[rdk_x5]")
    with pytest.raises(ProjectError, match=r"`targets` is written twice, here and in \S*targets"):
        read_project(directory)


def test_a_project_needs_a_project_yaml(tmp_path):
    with pytest.raises(ProjectError, match=r"no project.yaml .*; a project is a directory with"):
        read_project(project(tmp_path, calibration="{}"))


def test_yml_is_not_passed_over_in_silence(tmp_path):
    directory = project(tmp_path, project=SMALL)
    (directory / "calibration.yml").write_text("method: max")
    with pytest.raises(ProjectError, match=r"calibration.yml.*; rename it to calibration.yaml"):
        read_project(directory)


def test_a_project_name_is_a_file_name_everywhere(tmp_path):
    (tmp_path / "my net").mkdir()
    with pytest.raises(ProjectError, match="`my net` cannot name a project"):
        read_project(tmp_path / "my net")


def test_the_directory_may_be_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(project(tmp_path, project=SMALL))
    found = read_project(Path())
    assert found.name == "mobilenet"
    assert found.places["model.path"] == Place("project.yaml", 1, 15)


def shuffled(value, order):
    if not isinstance(value, dict):
        return value
    keys = order.sample(list(value), len(value))
    return {key: shuffled(value[key], order) for key in keys}


@cache
def in_order() -> Sections:
    return sections(FULL)


@pytest.mark.slow
@given(st.randoms(use_true_random=False), st.text("abc #:[]", max_size=9))
def test_key_order_and_comments_mean_nothing(order: random.Random, comment: str):
    assert sections(shuffled(FULL, order), comment) == in_order()


def routes(value, route=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from routes(item, (*route, key))
    else:
        yield route


OTHER = {
    "compiled": "all",
    "@0": "any",
    "*": "secure-if-input-secure",
    "samples": 5,
    "compile_mode": "balance",
    "optimize_level": "O2",
    "core_num": 3,
    "max_time_per_fc": 0,
    "image": "resizer",  # under input_source; no other route ends in it
    "debug": False,
    "task": None,
    "vendor_tool": False,
    "profiling": False,
    "label_column": "label",
    "label_offset": 0,
    "anchors": "other.npy",
    "output_count": 2,
    "sizes": [[8.0]],
    "strides": [4],
    "variances": [0.1, 0.2],
    "order": "xywh",
    "activation": "softmax",
    "recipe": "plain",
    "equalize": False,
    "even_depthwise": False,
    "migrate": False,
    "widen": False,
    "widen_answers": False,
    "widen_sensitive": False,
    "clip_weights": False,
    "round_weights": "nearest",
    "bias_correction": False,
    "split": "none",
    "int16": "none",
    "snapshot": "s.safetensors",
    "batch": 1,
    "bins": 512,
    "channels": "gray",
    "crop": False,
    "dtype": "float32",
    "fed_layout": "NCHW",
    "fed_type": "rgb",
    "layout": "NCHW",
    "head": {"output": "int16"},
    "input": "int8",
    "jobs": 3,
    "limit": 99,
    "postprocess": "none",
    "method": "kl",
    "mode": "standard",
    "normalized": False,
    "offset": 0,
    "output": "int16",
    "outputs": "int16",
    "per_channel": False,
    "random": 9,
    "stacked": False,
    "scheme": "asymmetric_affine",
    "symmetric": False,
    "color_range": "full",
    "type": "rgb",
    "values": "0..255",
}


def changed(value, key):
    if isinstance(value, list):
        return value[:-1]
    if value == "mse":
        return "mae"
    if key in OTHER:
        return OTHER[key]
    return value + 0.05 if isinstance(value, float) else value + "x"


@pytest.mark.parametrize("route", [*routes(FULL)], ids=".".join)
def test_a_change_of_any_key_changes_the_sections(route):
    data = deepcopy(FULL)
    inner = data
    for key in route[:-1]:
        inner = inner[key]
    inner[route[-1]] = changed(inner[route[-1]], route[-1])
    assert sections(data) != sections(FULL)


def test_the_full_example_holds_every_key():
    def keys(schema):
        for key, inner in schema.get("properties", {}).items():
            yield key
            yield from keys(inner.get("additionalProperties") or inner)

    written = {key for route in routes(FULL) for key in route}
    written -= {"image", "p9", "head", "calibration.method", "@0", "*"}  # names that a user gives
    assert set(keys(schema_of(Sections))) == written | {"dialect", "config"}


def test_finding_files_loads_no_parser():
    code = "import sys, npumake.project.files; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert not {"yaml", "jsonschema", "numpy", "glob"} & set(loaded.stdout.split())


@given(st.integers(0, 400), st.integers(0, 3), st.text("abe:-[]{},#'\"\n\t 019.~", max_size=3))
def test_any_edit_of_a_project_is_a_project_or_one_mistake_with_a_place(at, gone, new):
    text = yaml.safe_dump(FULL, sort_keys=False)
    edited = text[:at] + new + text[at + gone :]
    try:
        where = project_of(parse_document(edited.encode(), "p.yaml"), "net", Path()).places["model"]
    except ProjectError as mistake:
        where = mistake.where
    assert where is not None
    assert where.path == "p.yaml"


@given(st.floats(1e-6, 1e6), st.sampled_from(["{:f}", "{:e}", "{!r}", "{:.3g}", "{:+E}"]))
def test_a_number_is_read_as_it_is_written(number, style):
    word = style.format(number)
    text = SMALL + f"inputs: {{x: {{mean: {word}, scale: [{word}]}}}}"
    x = sections_of(parse_document(text.encode(), "p.yaml")).inputs["x"]
    assert x.mean == x.scale[0] == float(word)


@pytest.mark.parametrize(
    ("written", "read"), [("off", "off"), ('"off"', "off"), ("all", "all"), ("3", 3)]
)
def test_a_word_or_a_number_of_samples(tmp_path, written, read):
    directory = project(tmp_path, project=SMALL, comparison=f"compiled: {written}\n")
    assert read_project(directory).sections.comparison.compiled == read


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ("none", "`comparison.compiled` cannot be `none`"),
        ("0", "`comparison.compiled` must be at least 1, not 0"),
        ("false", "`comparison.compiled` must be a whole number or a string, not false"),
    ],
)
def test_other_words_are_refused(tmp_path, written, what):
    directory = project(tmp_path, project=SMALL, comparison=f"compiled: {written}\n")
    with pytest.raises(ProjectError) as caught:
        read_project(directory)
    assert caught.value.what == what
