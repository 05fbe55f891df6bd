"""npumake new: what it writes reads back, and builds as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import jsonschema
import numpy as np
import onnx
import pytest

from npumake.cli.main import main
from npumake.frontends import FRONTENDS
from npumake.graph import parse_text
from npumake.project.document import read_document
from npumake.project.files import source_files, sources
from npumake.project.reader import read_project
from npumake.project.schema import editor_schema
from npumake.targets.reader import known_targets
from workspaces import REPO, Workspace, remember_code, shared_data

DIGITS = REPO / "projects" / "digits" / "model.onnx"
SMALL = None if os.environ.get("NPUMAKE_EVERY") else 200_000  # bytes; CI builds these
REAL = sorted(
    file
    for end in FRONTENDS
    for file in (shared_data() / "models").rglob(f"*{end}")
    if SMALL is None or file.stat().st_size < SMALL
)
CONVERTER = bool(find_spec("tf2onnx") and find_spec("tensorflow"))


def new(directory: Path, model: Path, *targets: str) -> int:
    named = [word for target in targets for word in ("--target", target)]
    return main(["new", str(directory), "--model", str(model), *named])


def model_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(parse_text(text).to_bytes())
    return path


def build(directory: Path, module: str = "npumake.cli.main", *arguments: str) -> str:
    remember_code(directory)
    run = subprocess.run(
        [sys.executable, "-m", module, *(arguments or ["build"])],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.slow
def test_a_new_project_builds_as_it_is(tmp_path: Path) -> None:
    assert new(tmp_path / "net", DIGITS, "ara240", "rdk-x3", "ara240") == 0
    assert "16 made" in build(tmp_path / "net")
    assert "16 current" in build(tmp_path / "net", "doit", "run")
    assert (tmp_path / "net" / "out" / "net.ara240.hybrid").is_file()


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="shared/data/models is not here")
@pytest.mark.parametrize("model", REAL, ids=lambda file: file.stem)
def test_a_project_around_a_real_model_reads_back_and_builds(tmp_path: Path, model: Path) -> None:
    if model.suffix == ".pb" and not CONVERTER:
        pytest.skip("npumake[tensorflow] is not installed")
    assert new(tmp_path / "net", model) == 0
    project = read_project(tmp_path / "net")
    for source in sources(project.sections):
        found = len(source_files(project.directory, source))
        assert found == (16 if source.keys[0] == "data" else 1)
    assert "10 made" in build(tmp_path / "net")


def test_it_says_what_the_model_says(tmp_path: Path) -> None:
    text = "agraph (float[N,H,W,3] image, float[N,2] state) => (float[N,2] y)"
    model = model_of(tmp_path, text + "{ m = ReduceMean<keepdims=0>(image) y = Add(state, m) }")
    assert new(tmp_path / "net", model, "ara240") == 0
    sections = read_project(tmp_path / "net").sections
    assert sections.inputs["image"].shape == (1, 224, 224, 3)
    assert sections.inputs["image"].layout == "NHWC"
    assert sections.inputs["state"].shape == (1, 2)
    assert sections.targets == ("ara240",)
    assert sections.calibration.method == "default"
    written = (tmp_path / "net" / "project.yaml").read_text()
    assert "opset 17" in written
    assert "the model leaves [N, H, W, 3] open" in written
    assert "THE SAMPLES ARE RANDOM NUMBERS" in written
    assert (tmp_path / "net" / "m.onnx").read_bytes() == model.read_bytes()


@pytest.mark.slow
def test_weights_beside_the_model_come_along(tmp_path: Path) -> None:
    import onnx

    text = "agraph (float[1,256] x) => (float[1,256] y) { y = Add(x, w) }"
    given = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    values = np.arange(256, dtype=np.float32).reshape(1, 256)
    given.graph.initializer.append(onnx.numpy_helper.from_array(values, "w"))
    onnx.save(given, tmp_path / "m.onnx", save_as_external_data=True, location="m.onnx.data")
    assert new(tmp_path / "net", tmp_path / "m.onnx") == 0
    (tmp_path / "m.onnx.data").unlink()
    assert "weights: weights/**" in (tmp_path / "net" / "project.yaml").read_text()
    assert "10 made" in build(tmp_path / "net")
    held = tmp_path / "net" / "weights" / "m.onnx.data"
    held.write_bytes((values + 1).tobytes())  # the bytes are in the key
    assert "10 made" in build(tmp_path / "net")


@pytest.mark.slow
def test_an_open_size_is_one_with_which_the_model_runs(tmp_path: Path) -> None:
    text = "agraph (float[N,3,S,S] x) => (float[1,3,32,32] y) <int64[4] s = {1, 3, 32, 32}>"
    text += "{ y = Reshape(x, s) }"
    assert new(tmp_path / "no", model_of(tmp_path, text.replace("32", "5"))) == 3
    assert not (tmp_path / "no").exists()
    assert new(tmp_path / "net", model_of(tmp_path, text)) == 0
    assert read_project(tmp_path / "net").sections.inputs["x"].shape == (1, 3, 32, 32)


def test_the_open_batch_of_a_state_is_one(tmp_path: Path) -> None:
    """A picture's edges are open beside it: they are not one."""
    text = "agraph (float[N,4,S,S] x, float[2,M,8] h) => (float[1,4,32,32] z, float[2,1,8] g)"
    text += "<int64[4] s = {1, 4, 32, 32}, int64[3] t = {2, 1, 8}>"
    text += "{ z = Reshape(x, s) g = Reshape(h, t) }"
    assert new(tmp_path / "net", model_of(tmp_path, text)) == 0
    inputs = read_project(tmp_path / "net").sections.inputs
    assert [given.shape for given in inputs.values()] == [(1, 4, 32, 32), (2, 1, 8)]


@pytest.mark.parametrize(
    "name", ["input.1", "yes", "0", "a: b", "x/y:0", '"', "#", "é", "- x", "~"]
)
def test_any_name_of_an_input_reads_back(tmp_path: Path, name: str) -> None:
    graph = parse_text("agraph (float[1,3] x, float[1,3] z) => (float[1,3] y) { y = Add(x, z) }")
    graph.inputs[0].name = name
    (tmp_path / "my model (1).onnx").write_bytes(graph.to_bytes())
    assert new(tmp_path / "net", tmp_path / "my model (1).onnx") == 0
    project = read_project(tmp_path / "net")
    assert set(project.sections.inputs) == {name, "z"}
    assert [len(source_files(project.directory, s)) for s in sources(project.sections)] == [
        1,
        16,
        16,
    ]


def test_the_same_model_makes_the_same_project(tmp_path: Path) -> None:
    for name in ("one/net", "two/net"):
        assert new(tmp_path / name, DIGITS) == 0
    files = [path for path in sorted((tmp_path / "one").rglob("*")) if path.is_file()]
    assert len(files) == 16 + 4
    for path in files:
        twin = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.read_bytes() == twin.read_bytes()
    samples = {np.load(path).tobytes() for path in files if path.suffix == ".npy"}
    assert len(samples) == 16


@pytest.mark.slow
def test_the_grid_of_a_quantized_input_is_written_and_its_random_samples_lie_on_it(
    tmp_path: Path,
) -> None:
    text = """agraph (float[1,16,16,3] x) => (float[1,16,16,3] y)
        <float s = {0.0078125}, int8 z = {-1}> {
        q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)
        r = Relu(d)  q_r = QuantizeLinear(r, s, z)  y = DequantizeLinear(q_r, s, z) }"""
    assert new(tmp_path / "net", model_of(tmp_path, text), "onnx") == 0
    written = (tmp_path / "net" / "project.yaml").read_text()
    assert "int8, scale 0.0078125, zero point -1" in written
    keys = ("offset: 128", "mean: 127", "scale: 0.0078125")
    assert all(f"    # {key}" in written for key in keys)
    assert "own grid reads" not in build(tmp_path / "net")
    for file in (tmp_path / "net" / "samples").iterdir():  # as pixels of a model fed -1..1
        np.save(file, 127.5 + 127.5 * np.load(file))
    assert "the model's own grid reads -0.9922..1" in build(tmp_path / "net")
    uncommented = written
    for key in keys:
        uncommented = uncommented.replace(f"# {key}", key)
    (tmp_path / "net" / "project.yaml").write_text(uncommented)
    assert "own grid reads" not in build(tmp_path / "net")


@pytest.mark.slow
def test_projects_of_a_workspace_share_a_schema_and_others_have_their_own(
    fresh: Workspace, tmp_path: Path
) -> None:
    shared = fresh.root / "schemas" / "project.schema.json"
    places = {fresh.project.parent / "one": shared, fresh.project.parent / "two": shared}
    alone = tmp_path / "alone"
    for project in (*places, alone):
        assert new(project, DIGITS) == 0
        first = (project / "project.yaml").read_text().splitlines()[0]
        schema = project / first.partition("$schema=")[2]
        expected = places.get(project, alone / "project.schema.json")
        assert schema.resolve() == expected.resolve()
        jsonschema.validate(
            read_document(project / "project.yaml").data, json.loads(schema.read_bytes())
        )


def test_a_schema_that_is_there_is_kept_until_it_is_asked_for(fresh: Workspace) -> None:
    schema = fresh.root / "schemas" / "project.schema.json"
    schema.parent.mkdir()
    schema.write_text("{}")
    assert new(fresh.project.parent / "near", DIGITS) == 0
    assert schema.read_text() == "{}"
    fresh.npumake("validate", "--schema")
    assert json.loads(schema.read_text()) == editor_schema(known_targets())


def test_the_schema_knows_every_target_and_no_other(fresh: Workspace) -> None:
    schema = editor_schema(known_targets())
    validator = jsonschema.validators.validator_for(schema)(schema)
    validator.check_schema(schema)
    document = read_document(fresh.project / "project.yaml").data
    for target in known_targets():
        validator.validate({**document, "targets": [target, {target: {}}]})
    for wrong in ("rdk-x6", {"rdk-x6": {}}, {}, 1):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({**document, "targets": [wrong]})


@pytest.mark.parametrize(
    ("directory", "model", "target", "code", "what"),
    [
        ("full", DIGITS, "rdk-x5", 2, "there is something already"),
        ("my net", DIGITS, "rdk-x5", 2, "`my net` cannot name a project"),
        ("net", DIGITS, "rdk-x6", 2, "did you mean `rdk-x5`?"),
        ("net", Path("none.onnx"), "rdk-x5", 2, "cannot read the model: No such file"),
        ("net", Path(__file__), "rdk-x5", 3, "no frontend reads a `.py` file"),
        ("file/net", DIGITS, "rdk-x5", 5, "cannot write the project: Not a directory"),
    ],
)
def test_it_refuses_and_writes_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    directory: str,
    model: Path,
    target: str,
    code: int,
    what: str,
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    assert new(tmp_path / directory, model, target) == code
    assert what in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "full", "notes.txt"]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ("string[3]", "input `x` holds strings, not numbers"),
        ("float[1,0,4]", "input `x` has a size of 0"),
    ],
)
def test_what_holds_no_number_is_fed_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str, what: str
) -> None:
    """A file of objects is one that no build would read."""
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({given} x) => ({given} y)'
    model = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(f"{text} {{ y = Identity(x) }}"), model)
    assert new(tmp_path / "net", model, "rdk-x5") == 3
    assert what in capsys.readouterr().err
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize("size", [-1, -4])
def test_a_size_of_minus_one_is_open_any_other_below_zero_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,3] x) => (float[N,3] y)'
    model = onnx.parser.parse_model(f"{text} {{ y = Relu(x) }}")
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = size
    onnx.save(model, tmp_path / "m.onnx")
    code = new(tmp_path / "net", tmp_path / "m.onnx", "rdk-x5")
    if size == -1:
        assert code == 0
        assert "    shape: [1, 3]\n" in (tmp_path / "net" / "project.yaml").read_text()
    else:
        assert code == 3
        assert "input `x` has a size of -4" in capsys.readouterr().err
