"""npumake new --images: what it proposes is right and builds; what is not sure is said."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from npumake.cli.main import main
from npumake.graph import parse_text
from npumake.project.files import source_files, sources
from npumake.project.reader import read_project
from workspaces import REPO, remember_code, shared_data

SHAPES = REPO / "projects" / "shapes-detector"
NAMES = {0: "red", 1: "green", 2: "blue"}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Ten pictures, each mostly red, green or blue."""
    folder = tmp_path / "pictures"
    folder.mkdir()
    random = np.random.default_rng(0)
    for index in range(10):
        pixels = random.integers(0, 60, (20, 24, 3)).astype(np.uint8)
        pixels[..., index % 3] += 150
        Image.fromarray(pixels).save(folder / f"{index}.png")
    return folder


def model(file: Path, notes: dict[str, str]) -> Path:
    weights = numpy_helper.from_array(np.eye(3, dtype=np.float32)[:, :, None, None], "w")
    gain = numpy_helper.from_array(np.float32(12), "k")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv"),
        helper.make_node("GlobalAveragePool", ["c"], ["m"], "pool"),
        helper.make_node("Flatten", ["m"], ["f"], "flatten"),
        helper.make_node("Mul", ["f", "k"], ["s"], "gain"),
        helper.make_node("Softmax", ["s"], ["y"], "softmax"),
    ]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 3, 16, 16]), ("y", [1, 3]))
    ]
    graph = helper.make_graph(nodes, "colours", values[:1], values[1:], [weights, gain])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(proto, notes)
    onnx.save(proto, file)
    return file


ULTRALYTICS = {"names": str(NAMES), "stride": "1", "task": "classify", "imgsz": "[16, 16]"}


def build(project: Path) -> None:
    remember_code(project)
    words = [sys.executable, "-m", "npumake.cli.main", "build"]
    run = subprocess.run(words, cwd=project, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def new(*words: object) -> int:
    return main(["new", *map(str, words)])


@pytest.mark.slow
def test_a_classifier_is_written_built_and_names_its_classes(
    tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first of the four ways in: model, pictures, build, run."""
    file = model(tmp_path / "m.onnx", ULTRALYTICS)
    labels = tmp_path / "labels.csv"
    rows = [f"{index}.png,{index % 3}" for index in range(10)]
    labels.write_text("\n".join(["file,label", *rows]))
    project = tmp_path / "net"
    assert new(project, "--model", file, "--images", pictures, "--labels", labels) == 0
    sections = read_project(project).sections
    fed = sections.inputs["x"]
    assert (fed.type, fed.layout, fed.mean, fed.scale) == ("rgb", "NCHW", 0, 0.00392157)
    for source in sources(sections):
        assert source_files(project, source)
    assert json.loads((project / "edgefirst.json").read_text())["dataset"]["classes"] == [
        *NAMES.values()
    ]
    build(project)
    capsys.readouterr()
    bundle = project / "out" / "net.rdk-x5.hybrid"
    assert main(["run", str(bundle), "-i", str(pictures / "1.png"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["label"] == "green"
    scores = json.loads((project / "out" / "evaluation.rdk-x5.json").read_text())
    assert "100.0" in str(scores)


@pytest.mark.slow
def test_the_proposed_project_is_the_hand_written_one(tmp_path: Path, pictures: Path) -> None:
    """Samples and statistics are the same files: so is every artifact behind them."""
    file = model(tmp_path / "m.onnx", ULTRALYTICS)
    assert new(tmp_path / "net", "--model", file, "--images", pictures) == 0
    own = tmp_path / "own"
    own.mkdir()
    shutil.copy(file, own)
    (own / "project.yaml").write_text(
        "model: {path: m.onnx}\n"
        "inputs: {x: {type: rgb, mean: 0, scale: 0.00392157}}\n"
        "data: {x: {files: '../pictures/*.png', transforms: [{short_side_resize: {short_size: 16}},"
        " center_crop]}}\n"
        "calibration: {method: max}\n"
        "targets: [rdk-x5]\n"
    )
    for project in (tmp_path / "net", own):
        build(project)
    one, two = ((each / "out" / "samples.npz").read_bytes() for each in (tmp_path / "net", own))
    assert one == two
    one, two = (
        json.loads((each / "out" / "comparison.rdk-x5.json").read_text())["outputs"]
        for each in (tmp_path / "net", own)
    )
    assert one == two


@pytest.mark.parametrize(("copies", "method"), [(1, "max"), (2, "default")])
def test_the_methods_are_searched_where_the_pictures_suffice(
    tmp_path: Path, pictures: Path, copies: int, method: str
) -> None:
    """One method alone may lose what a model finds; kl on few pictures does."""
    for each in list(pictures.iterdir()) * (copies - 1):
        shutil.copy(each, each.with_stem(f"{each.stem}-{copies}"))
    file = model(tmp_path / "m.onnx", ULTRALYTICS)
    assert new(tmp_path / "net", "--model", file, "--images", pictures) == 0
    assert read_project(tmp_path / "net").sections.calibration.method == method


RESIZED = {  # input beside the picture: its type and shape, and the constant that is proposed
    "im_shape": ("float[N,2]", (20, 24)),
    "scale_factor": ("float[N,2]", (1, 1)),
    "orig_target_sizes": ("int64[N,2]", (24, 20)),
    "image_shape": ("float[N,2]", (20, 24)),
    "im_info": ("float[N,3]", (20, 24, 1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESIZED)
def test_an_input_that_says_how_a_picture_was_resized_is_frozen(
    tmp_path: Path, pictures: Path, name: str
) -> None:
    """Random numbers in its place would calibrate boxes that no picture has."""
    kind, value = RESIZED[name]
    text = f"""agraph (float[N,3,20,24] x, {kind} {name}) => (float[N,?] y) <float w = {{0.1}}> {{
        m = ReduceMean<axes=[1,2,3], keepdims=0>(x)  s = Mul(m, w)  r = Relu(s)
        f = Cast<to=1>({name})  y = Mul(f, r) }}"""
    (tmp_path / "m.onnx").write_bytes(parse_text(text).to_bytes())
    project = tmp_path / "net"
    assert new(project, "--model", tmp_path / "m.onnx", "--images", pictures) == 0
    sections = read_project(project).sections
    assert sections.inputs[name].value == value
    assert [*sections.data] == ["x"]
    build(project)
    graph = onnx.load(project / "out" / "optimized_float.onnx").graph
    assert [each.name for each in graph.input] == ["x"]


def test_a_detector_with_its_own_metadata_is_fed_as_that_says(tmp_path: Path) -> None:
    project = tmp_path / "net"
    assert new(project, "--model", SHAPES / "model.onnx", "--images", SHAPES / "samples") == 0
    sections = read_project(project).sections
    fed = sections.inputs["images"]
    assert (fed.type, fed.scale) == ("rgb", 0.00392157)
    assert sections.calibration.method == "default"
    assert not (project / "edgefirst.json").exists()


def test_nv12_is_an_option_and_needs_even_sides(tmp_path: Path, pictures: Path) -> None:
    file = model(tmp_path / "m.onnx", ULTRALYTICS)
    words = ("--model", file, "--images", pictures, "--fed-type", "nv12")
    assert new(tmp_path / "net", *words) == 0
    assert read_project(tmp_path / "net").sections.inputs["x"].fed_type == "nv12"


def test_what_was_not_measured_is_not_sure(
    tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A classifier of three classes is never sharp: its file says nothing else."""
    file = model(tmp_path / "m.onnx", {})
    assert new(tmp_path / "net", "--model", file, "--images", pictures) == 0
    assert "NOT SURE: mean and scale" in capsys.readouterr().out
    assert "# NOT SURE: mean and scale" in (tmp_path / "net" / "project.yaml").read_text()


@pytest.mark.parametrize("name", ["a.webp", "b.TIFF", "c.heic"])
def test_pictures_of_a_format_that_is_not_read_are_told(
    tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (pictures / name).write_bytes(b"")
    file = model(tmp_path / "m.onnx", {})
    words = f"1 of a format that is not read ({Path(name).suffix.lower()})"
    assert new(tmp_path / "net", "--model", file, "--images", pictures) == 0
    assert words in capsys.readouterr().out
    for picture in pictures.glob("*.png"):
        picture.unlink()
    assert new(tmp_path / "other", "--model", file, "--images", pictures) == 2
    assert f"the folder holds no picture that is read, {words}" in capsys.readouterr().err


@dataclass(frozen=True)
class Refusal:
    words: tuple[str, ...]
    what: str


@pytest.mark.parametrize(
    "refusal",
    [
        Refusal(("--images", "none"), "no such folder"),
        Refusal(("--images", "empty"), "the folder holds no picture"),
        Refusal(("--labels", "labels.txt"), "`--labels` is for a project with pictures"),
        Refusal(("--images", "pictures", "--labels", "none.txt"), "no such file"),
        Refusal(("--images", "pictures", "--labels", "bad.csv"), "no columns `file` and `label`"),
        Refusal(("--images", "pictures", "--labels", "boxes.json"), "boxes for a model"),
    ],
    ids=lambda refusal: " ".join(refusal.words),
)
def test_a_mistake_is_one_error_and_no_project(
    tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str], refusal: Refusal
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.csv").write_text("a,b\n")
    (tmp_path / "boxes.json").write_text('{"annotations": [], "categories": []}')
    file = model(tmp_path / "m.onnx", ULTRALYTICS)
    words = [word if word[:2] == "--" else str(tmp_path / word) for word in refusal.words]
    assert new(tmp_path / "net", "--model", file, *words) == 2
    assert refusal.what in capsys.readouterr().err
    assert not (tmp_path / "net").exists()


def test_a_model_without_a_picture_is_refused(
    tmp_path: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = parse_text("agraph (float[1,640] x) => (float[1,640] y) { y = Relu(x) }")
    (tmp_path / "m.onnx").write_bytes(graph.to_bytes())
    assert new(tmp_path / "net", "--model", tmp_path / "m.onnx", "--images", pictures) == 2
    assert "the model takes no picture" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not shared_data().is_dir(), reason="shared/data is not here")
def test_a_tflite_goes_to_hb_mapper_with_the_same_cosine(tmp_path: Path) -> None:
    """The ONNX of the hand-over, built by the vendor's YAML, is as close as the project."""
    file = shared_data() / "models" / "classification" / "cifar10_resnet8_float.tflite"
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for each in sorted((shared_data() / "images" / "imagenet500").glob("*.jpg"))[:16]:
        shutil.copy(each, pictures)
    project, handed = tmp_path / "net", tmp_path / "handed"
    assert new(project, "--model", file, "--images", pictures) == 0
    # hb_mapper can express a method, not the corrections of default.
    yaml = project / "project.yaml"
    yaml.write_text(yaml.read_text().replace("method: default", "method: kl"))
    build(project)
    words = ["handover", str(project), "--target", "rdk-x5", "--out", str(handed)]
    assert main(words) == 0
    proto = onnx.load(handed / "model.onnx")
    assert [each.version for each in proto.opset_import] == [11]
    (handed / "project.yaml").write_text("dialect: hb_mapper\nconfig: hb_mapper.yaml\n")
    build(handed)
    one, two = (
        json.loads((each / "out" / "comparison.rdk-x5.json").read_text())["outputs"][0]["cosine"]
        for each in (project, handed)
    )
    assert one == two
