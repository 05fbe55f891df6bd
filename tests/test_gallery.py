"""The gallery: its page is that of its figures, and the figures are those of its models."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from npumake.project.reader import read_project
from workspaces import REPO, few

sys.path.insert(0, str(REPO / "benchmarks"))

import gallery
import gallery_artifacts
from gallery_page import section

RESULTS = json.loads(gallery.RESULTS.read_text(encoding="utf-8"))
OWN = [example for example in gallery.EXAMPLES if example.folder.startswith("examples/")]
MAX_MODEL_BYTES, MAX_ALL_BYTES = 300_000, 2_000_000


def test_the_page_is_that_of_the_figures() -> None:
    text = gallery.PAGE.read_text(encoding="utf-8")
    assert text == gallery.whole_page(), "run: python benchmarks/gallery.py"


def test_every_example_has_its_row() -> None:
    folders = {file.parent.name for file in (REPO / "examples").glob("*/project.yaml")}
    assert folders == {example.name for example in OWN}
    assert set(RESULTS) == {example.name for example in gallery.EXAMPLES}


@pytest.mark.parametrize("example", gallery.EXAMPLES, ids=lambda example: example.name)
def test_a_row_has_every_chip_and_every_artifact(example: gallery.Example) -> None:
    targets = RESULTS[example.name]["targets"]
    assert tuple(targets) == gallery_artifacts.TARGETS
    has_best = "best" in {v.variant for v in read_project(example.project).variants}
    for target, row in targets.items():
        best = has_best and target in gallery_artifacts.BEST_TARGETS
        assert [name in row for name in gallery_artifacts.ARTIFACTS] == [True, True, True, best]
        assert all(low <= figure <= high for figure, low, high in row.values())
    assert all(target in section(example, RESULTS[example.name]) for target in targets)


def model_of(example: gallery.Example) -> Path:
    return example.project / read_project(example.project).sections.model.path


@pytest.mark.parametrize("example", OWN, ids=lambda example: example.name)
def test_an_example_is_a_project_with_a_page_a_picture_and_its_script(
    example: gallery.Example,
) -> None:
    assert read_project(example.project).sections.targets
    files = {file.name for file in example.project.iterdir()}
    assert files >= {"README.md", "result.png", "task.py", "dodo.py"}
    beside = {file.name for file in model_of(example).resolve().parent.iterdir()}
    assert {"train.py", "model.onnx"} <= beside or "fetch.py" in files
    page = (example.project / "README.md").read_text(encoding="utf-8")
    assert "](result.png)" in page


def test_the_models_are_small() -> None:
    sizes = [file.stat().st_size for file in (REPO / "examples").glob("*/model.onnx")]
    assert max(sizes) < MAX_MODEL_BYTES
    assert sum(sizes) < MAX_ALL_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("example", OWN, ids=lambda example: example.name)
def test_the_test_does_not_hold_what_calibrates(example: gallery.Example) -> None:
    if not example.is_here:
        pytest.skip(f"{example.folder}/fetch.py fetches its model")
    task = example.load_task()
    tested = {task.sample(number)[0].tobytes() for number in range(example.samples)}
    (source,) = read_project(example.project).sections.data.values()
    samples = sorted(example.project.glob(str(source.files)))
    assert len(samples) >= 16
    assert not tested & {pixels(file) for file in samples}


def pixels(file: Path) -> bytes:
    if file.suffix == ".npy":
        return bytes(np.load(file).tobytes())
    return np.asarray(Image.open(file)).transpose(2, 0, 1).tobytes()


def test_a_bootstrap_of_equal_scores_has_no_width() -> None:
    figures = gallery.bootstrap({"float": [2.0] * 9, "compiled": [1.5] * 9}, gallery.mean)
    assert figures["drop, compiled"] == [0.5, 0.5, 0.5]


def test_a_drop_is_measured_on_the_same_resamples() -> None:
    scores = np.random.RandomState(1).uniform(0, 100, 50)
    figures = gallery.bootstrap({"float": scores, "compiled": scores - 1}, gallery.mean)
    assert figures["drop, compiled"] == [1.0, 1.0, 1.0]
    assert figures["float"][1] < figures["float"][0] < figures["float"][2]


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", few(OWN, lambda example: example.name == "keyword-spotting"), ids=lambda e: e.name
)
def test_a_row_is_measured_again(example: gallery.Example, tmp_path: Path) -> None:
    """The same samples: another machine may round a few of them otherwise."""
    targets = gallery_artifacts.targets_that_run()
    built = gallery_artifacts.build(example.project, tmp_path, targets)
    figures = gallery.measure(example, example.samples, built, targets)
    for target, row in figures["targets"].items():
        for name in row:
            _, low, high = RESULTS[example.name]["targets"][target][name]
            assert low - 0.5 <= row[name][0] <= high + 0.5
