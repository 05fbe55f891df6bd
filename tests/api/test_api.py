"""The Python API: a notebook gets what the command line makes."""

from __future__ import annotations

import ast
import doctest
from importlib import import_module
from inspect import isclass
from pathlib import Path

import numpy as np
import onnx
import pytest

import npumake
from npumake.api.feeds import feeds_of
from npumake.api.table import Table
from npumake.engine.port import Port
from npumake.errors import GraphError, ProjectError
from npumake.graph import parse_text
from workspaces import Workspace, copied

IMAGE = Port("image", [1, 1, 8, 8], "tensor(float)")
OTHER = Port("other", [2], "tensor(float)")
PIXELS = np.random.default_rng(0).uniform(0, 1, (8, 1, 1, 8, 8)).astype(np.float32)
FUNCTIONS = [name for name in npumake.PUBLIC if not isclass(getattr(npumake, name))]


@pytest.fixture
def root(built_once: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace where digits is built, as the current folder."""
    workspace = copied(built_once, tmp_path / "w")
    monkeypatch.chdir(workspace.root)
    return workspace


def digits_samples(root: Workspace) -> list[np.ndarray]:
    files = sorted((root.project / "samples").glob("*.npy"))
    return [np.load(file) for file in files]


def test_every_public_name_is_there() -> None:
    assert set(npumake.PUBLIC) <= set(dir(npumake))
    assert all(getattr(npumake, name).__doc__ for name in npumake.PUBLIC)
    with pytest.raises(AttributeError, match="builds"):
        npumake.builds  # noqa: B018


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse(Path(str(npumake.__file__)).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == npumake.PUBLIC


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FUNCTIONS, "Table"])
def test_every_public_function_is_shown_by_an_example(name: str, root: Workspace) -> None:
    module = import_module(npumake.PUBLIC[name])
    finder = doctest.DocTestFinder(recurse=False)
    (test,) = finder.find(getattr(module, name), name, module=module, globs={**vars(module)})
    assert test.examples
    result = doctest.DocTestRunner().run(test)
    assert result.failed == 0


@pytest.mark.slow
def test_a_build_makes_what_the_command_makes(root: Workspace) -> None:
    expected = root.digests()
    result = npumake.build(root.project)
    assert {node.how for node in result.nodes} == {"current"}
    (root.project / "project.yaml").write_text(
        (root.project / "project.yaml").read_text().replace("method: max ", "method: kl ")
    )
    npumake.build(root.project)
    changed = root.digests()
    assert changed["digits.rdk-x5.hybrid"] != expected["digits.rdk-x5.hybrid"]
    assert "current" in root.npumake("why").stdout
    assert root.npumake("build", "--json").returncode == 0
    assert root.digests() == changed


def test_a_build_of_one_target_makes_no_other(root: Workspace) -> None:
    for file in (root.project / "out").rglob("*ara240*"):
        file.unlink()
    names: list[str] = []
    result = npumake.build(root.project, ["rdk-x5"], progress=lambda node: names.append(node.name))
    assert names == [node.name for node in result.nodes]
    assert list(result.targets) == ["rdk-x5"]
    assert not list((root.project / "out").glob("*ara240*"))


def test_a_link_at_out_is_refused_as_it_is_for_a_command(root: Workspace, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root.project / "out").rename(tmp_path / "before")
    (root.project / "out").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ProjectError, match="a link, through which artifacts"):
        npumake.build(root.project)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.slow
def test_what_a_build_notes_is_in_the_result(root: Workspace) -> None:
    project = root.project / "project.yaml"
    project.write_text(
        project.read_text().replace("samples/*.npy", "samples/000*.npy\n    warn: [few]")
    )
    for number in range(5, 10):
        (root.project / "samples" / f"{number:04}.npy").unlink()
    (note,) = npumake.build(root.project).notes
    assert note.startswith("5 samples, at least 8 are needed")


@pytest.mark.slow
def test_variants_stand_beside_their_target(root: Workspace) -> None:
    with (root.project / "project.yaml").open("a") as file:
        file.write("\nvariants:\n  kl: {calibration: {method: kl}}\n")
    result = npumake.build(root.project, ["ara240"])
    assert set(result.targets) == {"ara240", "ara240@kl"}
    assert result["ara240"].compiled != result["ara240@kl"].compiled
    assert result.outputs.column("target") == ("ara240", "ara240@kl")


def test_tables_are_those_of_the_comparison(root: Workspace) -> None:
    target = npumake.build(root.project)["rdk-x5"]
    assert len(target.nodes) == len(target.comparison.rows)
    row = target.outputs["logits"]
    assert row["cosine"] == target.comparison.outputs[0].cosine
    assert target.check is not None
    assert row["compiled cosine"] == target.check.outputs[0].cosine
    assert target.scores is None


def test_scores_are_those_of_the_evaluation(scored_once: Workspace, tmp_path: Path) -> None:
    root = copied(scored_once, tmp_path / "w")
    scores = npumake.build(root.project)["rdk-x5"].scores
    assert scores is not None
    assert scores.column("artifact") == ("float", "calibrated", "quantized", "compiled")
    assert all(isinstance(value, float) for value in scores.column("top1"))


def test_a_table_goes_to_pandas_and_to_a_notebook() -> None:
    pandas = pytest.importorskip("pandas")
    table = Table("a < b", ("name", "value"), (("<x>", 1.5), ("y", None)))
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["name"]) == ["<x>", "y"]
    assert "&lt;x&gt;" in table._repr_html_()
    assert "<x>" not in table._repr_html_()


@pytest.mark.slow
def test_quantize_computes_what_a_project_does(root: Workspace) -> None:
    """The project of digits without its preprocessing node, written by hand."""
    samples = [(array + 128) * 0.0625 for array in digits_samples(root)]
    model = npumake.quantize("projects/digits/model.onnx", samples, target="ara240", method="max")
    folder = root.root / "projects" / "byhand"
    (folder / "samples").mkdir(parents=True)
    for number, array in enumerate(samples):
        np.save(folder / "samples" / f"{number:04}.npy", array)
    (folder / "model.onnx").write_bytes((root.project / "model.onnx").read_bytes())
    (folder / "project.yaml").write_text(
        "model: {path: model.onnx}\ndata: {image: {files: samples/*.npy}}\n"
        "inputs: {image: {shape: [1, 1, 8, 8]}}\n"
        "calibration: {method: max}\ntargets: [ara240]\n"
    )
    result = npumake.build(folder)["ara240"]
    assert model.stages["quantized"] == result.artifacts["quantized"].read_bytes()
    assert model.outputs.rows == result.outputs.rows


@pytest.mark.slow
@pytest.mark.parametrize("form", ["path", "bytes", "proto"])
def test_quantize_takes_a_model_in_every_form(form: str, root: Workspace) -> None:
    path = root.project / "model.onnx"
    models = {"path": path, "bytes": path.read_bytes(), "proto": onnx.load(path)}
    model = npumake.quantize(models[form], list(PIXELS), target="rdk-x5", method="max")
    (scores,) = model.session().run(None, {"image": PIXELS[0]})
    assert scores.shape == (1, 10)


@pytest.mark.slow
def test_a_quantized_model_is_saved_as_what_it_is(root: Workspace, tmp_path: Path) -> None:
    model = npumake.quantize("projects/digits/model.onnx", PIXELS)
    saved = model.save(tmp_path / "digits.hybrid")
    assert npumake.Session(saved).output_names == ("logits",)
    qdq = onnx.load(model.save(tmp_path / "digits.onnx"))
    assert "QuantizeLinear" in {node.op_type for node in qdq.graph.node}
    with pytest.raises(ProjectError, match=r"cannot be saved as `\.bin`"):
        model.save(tmp_path / "digits.bin")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "rdk-x9"}, "rdk-x9"),
        ({"method": "best"}, "best"),
        ({"sections": {"quantisation": {}}}, "quantisation"),
    ],
)
def test_a_wrong_argument_is_one_error_without_a_place(
    arguments: dict[str, object], message: str, root: Workspace
) -> None:
    with pytest.raises(npumake.PipelineError, match=message) as error:
        npumake.quantize("projects/digits/model.onnx", PIXELS, **arguments)  # type: ignore[arg-type]
    assert error.value.where is None


@pytest.mark.slow
def test_sections_merge_as_in_yaml(root: Workspace) -> None:
    blank = np.ones((2, 1, 1, 8, 8), np.float32)
    with pytest.raises(ProjectError, match="one value all over"):
        npumake.quantize("projects/digits/model.onnx", blank)
    allowed = {"data": {"image": {"allow": ["blank", "duplicate", "few"]}}}
    npumake.quantize("projects/digits/model.onnx", blank, method="max", sections=allowed)


def test_an_unknown_target_of_a_build_is_an_error(root: Workspace) -> None:
    with pytest.raises(ProjectError, match="did you mean `rdk-x5`"):
        npumake.build(root.project, ["rdk-x6"])
    with pytest.raises(ProjectError, match="no project here"):
        npumake.build(root.root / "nowhere")


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros((3, 1, 8, 8)),
        np.zeros((3, 1, 1, 8, 8)),
        [np.zeros((1, 8, 8))] * 3,
        {"image": np.zeros((3, 1, 1, 8, 8))},
        ({"image": np.zeros((1, 1, 8, 8))} for _ in range(3)),
    ],
)
def test_samples_are_taken_in_every_form(samples: object) -> None:
    feeds = feeds_of(samples, [IMAGE])  # type: ignore[arg-type]
    assert [feed["image"].shape for feed in feeds] == [(1, 1, 8, 8)] * 3


@pytest.mark.parametrize(
    ("samples", "inputs", "message"),
    [
        ([np.zeros((1, 1, 8, 9))], [IMAGE], r"sample 0 of `image` is \[1, 1, 8, 9\]"),
        ([{"images": np.zeros(1)}], [IMAGE], "sample 0 holds images"),
        ([np.zeros((1, 1, 8, 8))], [IMAGE, OTHER], "one array, for 2 inputs"),
        (
            {"image": np.zeros((3, 1, 1, 8, 8)), "other": np.zeros((2, 2))},
            [IMAGE, OTHER],
            "different numbers of samples",
        ),
    ],
)
def test_samples_that_do_not_fit_are_an_error(
    samples: object, inputs: list[Port], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        feeds_of(samples, inputs)  # type: ignore[arg-type]


def test_compare_measures_what_differs(root: Workspace) -> None:
    model = onnx.load(root.project / "model.onnx")
    (bias,) = (w for w in model.graph.initializer if w.dims == [10])
    moved = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(bias) + 1, bias.name)
    bias.CopyFrom(moved)
    onnx.save(model, root.root / "moved.onnx")
    samples = [np.ones((1, 1, 8, 8), np.float32)]
    row = npumake.compare("projects/digits/model.onnx", "moved.onnx", samples)["logits"]
    assert row["chebyshev"] == pytest.approx(1, abs=1e-5)
    with pytest.raises(GraphError, match="no samples"):
        npumake.compare("projects/digits/model.onnx", "moved.onnx", [])


@pytest.mark.slow
def test_a_frozen_input_takes_no_samples() -> None:
    text = """agraph (float[1,4] x, int64 rate) => (float[1,4] y) {
        r = Cast<to=1>(rate)  s = Mul(x, r)  y = Relu(s) }"""
    x = np.random.default_rng(0).normal(size=(8, 1, 4)).astype(np.float32)
    quantized = npumake.quantize(
        parse_text(text).to_bytes(), x, method="max", sections={"inputs": {"rate": {"value": 3}}}
    )
    assert [port.name for port in quantized.session().get_inputs()] == ["x"]
    (y,) = quantized.session().run(None, {"x": x[0]})
    np.testing.assert_allclose(y, np.maximum(3 * x[0], 0), atol=0.1)
