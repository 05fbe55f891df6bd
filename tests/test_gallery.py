"""The gallery: its page is that of its figures, and the figures are those of its models."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from npumake.project.reader import read_project
from workspaces import REPO, few, remember_code

sys.path.insert(0, str(REPO / "benchmarks"))

import gallery

RESULTS = json.loads(gallery.RESULTS.read_text(encoding="utf-8"))
OWN = [example for example in gallery.EXAMPLES if example.folder.startswith("examples/")]
MAX_MODEL_BYTES, MAX_ALL_BYTES = 300_000, 2_000_000


def test_the_page_is_that_of_the_figures() -> None:
    page = gallery.PAGE.read_text(encoding="utf-8")
    assert page == gallery.page(RESULTS), "run: python benchmarks/gallery.py"


def test_every_example_has_its_row() -> None:
    folders = {file.parent.name for file in (REPO / "examples").glob("*/project.yaml")}
    assert folders == {example.name for example in OWN}
    assert set(RESULTS) == {example.name for example in gallery.EXAMPLES}


@pytest.mark.parametrize("example", OWN, ids=lambda example: example.name)
def test_an_example_is_a_project_with_a_page_a_picture_and_its_script(
    example: gallery.Example,
) -> None:
    assert read_project(example.project).sections.targets
    files = {file.name for file in example.project.iterdir()}
    assert files >= {"README.md", "result.png", "task.py", "dodo.py"}
    assert files >= {"train.py", "model.onnx"} or "fetch.py" in files
    page = (example.project / "README.md").read_text(encoding="utf-8")
    assert "](result.png)" in page


def test_the_models_are_small() -> None:
    sizes = [file.stat().st_size for file in (REPO / "examples").glob("*/model.onnx")]
    assert max(sizes) < MAX_MODEL_BYTES
    assert sum(sizes) < MAX_ALL_BYTES


@pytest.mark.parametrize("example", OWN, ids=lambda example: example.name)
def test_the_test_does_not_hold_what_calibrates(example: gallery.Example) -> None:
    if not example.is_here:
        pytest.skip(f"{example.folder}/fetch.py fetches its model")
    task = example.load_task()
    tested = {task.sample(number)[0].tobytes() for number in range(example.samples)}
    samples = sorted((example.project / "samples").glob("*.npy"))
    assert len(samples) >= 16
    assert not tested & {gallery.np.load(file).tobytes() for file in samples}


@pytest.mark.slow
@pytest.mark.parametrize(
    "example", few(OWN, lambda example: example.name == "keyword-spotting"), ids=lambda e: e.name
)
def test_a_row_is_measured_again(example: gallery.Example, tmp_path: Path) -> None:
    """The same samples: another machine may round a few of them otherwise."""
    ignored = shutil.ignore_patterns("out", "cache", ".doit.db*", "__pycache__")
    folder = tmp_path / "projects" / example.name
    shutil.copytree(example.project, folder, ignore=ignored)
    remember_code(folder)
    figures = gallery.measure(replace(example, folder=str(folder)), example.samples)
    for target, row in figures["targets"].items():
        for name in gallery.ARTIFACTS:
            _, low, high = RESULTS[example.name]["targets"][target][name]
            assert low <= row[name][0] <= high, (target, name)
