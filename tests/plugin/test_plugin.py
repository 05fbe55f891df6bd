"""An installed package adds a chip, a dialect, a frontend and a pass; builds use and key them."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from forks import run_python, user_environment
from npumake.frontends import FRONTENDS
from npumake.graph import Graph
from npumake.make.plugin_code import OWN_SUFFIXES
from workspaces import REPO, lay_out_none

PACKAGE = Path(__file__).parent
CONFIG = "network: net.toy\nscale: 0.5\n"
OURS = """\
model: {path: model.onnx}
inputs: {image: {scale: 0.0625}}
data: {image: {random: 4}}
targets: [toy-npu, rdk-x5]
"""
NETWORK = {"size": 4, "weights": [[1.5], [-0.5], [2.0]]}


def install(site: Path, name: str = "toy-npu") -> None:
    """As pip would: the package, and its metadata beside it."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if not (site / "toy_npu").exists():
        shutil.copytree(PACKAGE / "toy_npu", site / "toy_npu")
    information = site / f"{name.replace('-', '_')}-{project['version']}.dist-info"
    information.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n"
    information.joinpath("METADATA").write_text(metadata)
    groups = project["entry-points"].items()
    text = "\n".join(
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())])
        for group, entries in groups
    )
    information.joinpath("entry_points.txt").write_text(text)


def append(source: Path, line: str) -> None:
    source.write_text(f"{source.read_text()}\n{line}\n")


@dataclass(frozen=True)
class Place:
    """A project in the dialect of a plugin, and a folder where packages are installed."""

    root: Path

    @property
    def site(self) -> Path:
        return self.root / "site"

    @property
    def project(self) -> Path:
        return self.root / "w" / "projects" / "toy"

    def npumake(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_python(
            *("-m", "npumake.cli.main", *arguments),
            folder=self.project,
            environment=user_environment(),
            path=[self.site],
            loaded="libraries",
        )

    def nodes(self) -> dict[str, str]:
        """The status of each node, by name."""
        listed = self.npumake("list", "--json")
        return {row["node"]: row["status"] for row in json.loads(listed.stdout)}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = Place(tmp_path)
    lay_out_none(tmp_path / "w")
    found.project.mkdir()
    found.project.joinpath("project.yaml").write_text("dialect: toyc\nconfig: toy.yaml\n")
    found.project.joinpath("toy.yaml").write_text(CONFIG)
    found.project.joinpath("net.toy").write_text(json.dumps(NETWORK))
    return found


@pytest.mark.slow
def test_a_package_from_outside_adds_all_that_a_build_needs(place: Place):
    install(place.site)
    run = place.npumake("build")
    assert run.returncode == 0, run.stdout + run.stderr
    quantized = Graph.load(place.project / "out" / "quantized.toy-npu.onnx")
    assert len(quantized.nodes("Clip")) == len(NETWORK["weights"])  # its pass
    assert not quantized.nodes("Relu")
    assert (place.project / "out" / "toy.toy-npu.hybrid").is_file()
    assert set(place.nodes().values()) == {"current"}


@pytest.mark.slow
def test_a_pass_that_brings_tensors_without_statistics_is_an_error(place: Place):
    install(place.site)
    append(place.site / "toy_npu" / "passes.py", "PASSES = (relu_as_leaky,)")
    run = place.npumake("build")
    assert run.returncode == 2
    assert "a pass of `toy-npu` adds `preprocess_image`, a tensor without statistics" in run.stdout


@pytest.mark.slow
def test_another_source_of_a_frontend_is_another_key(place: Place):
    install(place.site)
    assert place.npumake("build").returncode == 0
    append(place.site / "toy_npu" / "reader.py", "VERSION = 2")
    assert place.nodes()["toy:original_float"] == "would run"
    assert "plugin toy-npu" in place.npumake("why", "toy:original_float").stdout


@pytest.mark.slow
def test_another_source_of_a_pass_is_another_key_of_its_target_alone(place: Place):
    install(place.site)
    shutil.copy(REPO / "projects" / "digits" / "model.onnx", place.project)
    place.project.joinpath("project.yaml").write_text(OURS)
    assert place.npumake("build").returncode == 0
    append(place.site / "toy_npu" / "passes.py", "VERSION = 2")
    nodes = place.nodes()
    assert nodes["toy:statistics"] == nodes["toy:rdk-x5/compiled"] == "current"
    assert nodes["toy:toy-npu/calibrated"] == "would run"
    assert "plugin toy-npu" in place.npumake("why", "toy:toy-npu/recipe").stdout


@pytest.mark.slow
def test_another_translation_of_a_plugin_is_another_plan(place: Place):
    install(place.site)
    assert place.npumake("build").returncode == 0
    source = place.site / "toy_npu" / "toyc.py"
    text = source.read_text()
    source.write_text(text.replace('= document.data["scale"]', '= document.data["scale"] * 2'))
    assert source.read_text() != text
    found = place.npumake("why", "toy:original_float").stdout
    assert "scale: 0.5 → 1.0" in found


@pytest.mark.slow
def test_without_the_package_its_names_are_unknown(place: Place):
    run = place.npumake("list")
    assert "unknown dialect `toyc`" in run.stdout + run.stderr


def test_a_removed_package_is_missed(place: Place):
    install(place.site)
    assert len(place.nodes()) > 5
    shutil.rmtree(place.site)
    run = place.npumake("list")
    assert "unknown dialect `toyc`" in run.stdout + run.stderr


def test_its_chip_is_listed(place: Place):
    install(place.site)
    assert "toy-npu" in place.npumake("list", "--targets").stdout


def test_two_packages_of_one_name_are_an_error(place: Place):
    install(place.site)
    install(place.site, "toy-npu-fork")
    run = place.npumake("list")
    assert "both add `toyc` to npumake.dialects" in run.stdout + run.stderr


def test_an_entry_point_that_leads_nowhere_is_an_error(place: Place):
    install(place.site)
    (place.site / "toy_npu" / "toyc.py").unlink()
    run = place.npumake("list")
    assert "plugin `toy-npu` does not load" in run.stdout + run.stderr
    assert "Traceback" not in run.stderr


def test_a_chip_without_its_file_is_an_error(place: Place):
    install(place.site)
    (place.site / "toy_npu" / "toy-npu.yaml").unlink()
    run = place.npumake("list")
    assert "holds no file `toy-npu.yaml`" in run.stdout + run.stderr


def test_our_own_suffixes_are_those_of_our_frontends():
    assert set(FRONTENDS) == OWN_SUFFIXES
