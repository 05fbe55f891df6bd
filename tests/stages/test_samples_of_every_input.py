"""What the model is fed: `*` for every input, normalized values taken back, noise unlooked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from npumake import digest
from npumake.borders.inputs import model_inputs
from npumake.data.samples import Samples
from npumake.errors import ProjectError
from npumake.graph import Graph, parse_text
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import Files, Input, ModelSection
from npumake.stages.original_float import original_float
from npumake.stages.samples import samples
from workspaces import REPO

GIVEN = Input(layout="NCHW", type="gray", mean=3.3, scale=0.017)
PIXELS = [np.load(file) for file in sorted((REPO / "projects/digits/samples").iterdir())]


def source(file: Path) -> SourceFile:
    return SourceFile(file.name, str(file), digest.of_file(file))


@pytest.fixture
def graph() -> Graph:
    file = source(REPO / "projects" / "digits" / "model.onnx")
    return original_float(ModelSection("model.onnx"), {"*": GIVEN}, {"model.path": (file,)})


def written(folder: Path, arrays: list[np.ndarray], key: str) -> SourceFiles:
    for index, array in enumerate(arrays):
        np.save(folder / f"{index:02}.npy", array)
    return {f"data.{key}.files": tuple(source(file) for file in sorted(folder.iterdir()))}


def fed(graph: Graph, folder: Path, arrays: list[np.ndarray], data: Mapping[str, Files]) -> Samples:
    return samples(graph, {"*": GIVEN}, data, written(folder, arrays, next(iter(data))))


def test_every_input_is_fed_as_one_named(graph: Graph, tmp_path: Path):
    found = fed(graph, tmp_path, PIXELS, {"*": Files("s")})
    assert len(found) == len(PIXELS)
    for feed, pixels in zip(found, PIXELS, strict=True):
        np.testing.assert_array_equal(feed["image"].reshape(-1), pixels.reshape(-1) - 128.0)


def test_normalized_pixels_are_fed_as_the_pixels_they_were(graph: Graph, tmp_path: Path):
    normalized = [((pixels - 3.3) * 0.017).astype(np.float32) for pixels in PIXELS]
    found = fed(graph, tmp_path, normalized, {"image": Files("s", normalized=True)})
    for feed, pixels in zip(found, PIXELS, strict=True):
        expected = pixels.reshape(-1) - 128.0
        np.testing.assert_allclose(feed["image"].reshape(-1), expected, atol=1e-4)


def test_values_that_were_not_normalized_are_out_of_range(graph: Graph, tmp_path: Path):
    floats = [pixels.astype(np.float32) for pixels in PIXELS]
    with pytest.raises(ProjectError, match=r"values outside .*0\.\.255"):
        fed(graph, tmp_path, floats, {"*": Files("s", normalized=True)})


def test_a_single_sample_of_noise_is_not_too_few(graph: Graph):
    assert len(samples(graph, {"*": GIVEN}, {"*": Files(random=1)}, {})) == 1


def test_noise_is_not_normalized(graph: Graph):
    with pytest.raises(ProjectError, match="noise is fed as it is") as caught:
        samples(graph, {}, {"*": Files(random=1, normalized=True)}, {})
    assert str(caught.value.where) == "data.*.normalized"


def test_an_input_nobody_knows_is_named(graph: Graph):
    with pytest.raises(ProjectError, match="no input `imag`"):
        samples(graph, {}, {"*": Files(random=1), "imag": Files(random=1)}, {})


def test_an_input_is_called_by_its_number_in_the_model_whatever_it_is_fed_as(tmp_path: Path):
    text = "a (float[1,2,4,4] z, float[1,3,4,4] y, float[1,1,4,4] x) => (float[1,6,4,4] s)"
    whole = parse_text(f"{text} {{ s = Concat<axis = 1>(z, y, x) }}")
    said = {"@1": Input(type="rgb", fed_type="nv12"), "@2": Input(mean=7.0), "*": Input(mean=5.0)}
    (tmp_path / "m.onnx").write_bytes(whole.to_bytes())
    made = {"model.path": (source(tmp_path / "m.onnx"),)}
    graph = original_float(ModelSection("m.onnx"), said, made)
    found = model_inputs(graph, said)
    assert list(found) == ["z", "y", "x"]
    assert [found[name].section for name in found] == [said["*"], said["@1"], said["@2"]]
    with pytest.raises(ProjectError, match="no input `@3`"):
        original_float(ModelSection("m.onnx"), {"@3": Input()}, made)
