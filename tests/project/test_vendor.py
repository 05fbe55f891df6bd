"""A project may speak a dialect; what stands beside it wins, errors lie in the vendor's file."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from npumake.digest import Json
from npumake.errors import ProjectError
from npumake.project.document import Document, read_document
from npumake.project.reader import read_project
from npumake.project.sections import Sections
from npumake.project.vendor import Config, Dialect, Note


def renamed(document: Document, base: str, _beside: Json) -> Document:
    """A vendor whose keys are ours but for one, and whose model lies beside its file."""
    data, places = dict(document.data), dict(document.places)
    data["model"] = {"path": f"{base}/{data.pop('network')}"}
    places["model",] = places["model", "path"] = places["network",]
    return Document(document.path, data, places)


def told(document: Document) -> tuple[Note, ...]:
    return (Note("nothing", document.places["network",].value),)


DIALECTS = {"tool": lambda: Dialect(renamed, told)}
CONFIG = "network: m.onnx\ndata: {image: {files: s/*.npy}}\ntargets: [rdk-x5]\n"


def project(tmp_path: Path, text: str, config: str = CONFIG) -> Path:
    directory = tmp_path / "resnet"
    (directory / "vendor").mkdir(parents=True)
    (directory / "project.yaml").write_text(text)
    (directory / "vendor" / "c.yaml").write_text(config)
    return directory


SPOKEN = "dialect: tool\nconfig: vendor/c.yaml\n"


def test_the_vendor_s_file_is_the_project(tmp_path: Path):
    found = read_project(project(tmp_path, SPOKEN), DIALECTS)
    assert found.sections.model.path == "vendor/m.onnx"
    assert found.places["model.path"].path.endswith("vendor/c.yaml")
    assert [file.name for file in found.files] == ["project.yaml", "c.yaml"]
    assert [note.where.line for note in found.notes] == [1]


def test_what_stands_beside_the_dialect_wins_key_by_key(tmp_path: Path):
    beside = "targets: [ara240]\ncompile: {prefix: other}\ncalibration: {method: max}\n"
    found = read_project(project(tmp_path, SPOKEN + beside), DIALECTS)
    assert found.sections.targets == ("ara240",)
    assert (found.sections.compile.prefix, found.sections.calibration.method) == ("other", "max")
    assert found.sections.model.path == "vendor/m.onnx"
    assert found.places["targets.0"].path.endswith("project.yaml")


def test_a_section_file_stands_beside_it_too(tmp_path: Path):
    directory = project(tmp_path, SPOKEN)
    (directory / "calibration.yaml").write_text("method: max\n")
    assert read_project(directory, DIALECTS).sections.calibration.method == "max"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dialect: tool\n", "`config` must name one, beside `dialect`"),
        ("config: vendor/c.yaml\n", "`dialect` must name one, beside `config`"),
        ("dialect: [tool]\nconfig: vendor/c.yaml\n", "`dialect` must name one"),
        ("dialect: tol\nconfig: vendor/c.yaml\n", "unknown dialect `tol`"),
        ("dialect: tool\nconfig: vendor/d.yaml\n", "no file `vendor/d.yaml`"),
    ],
)
def test_the_two_keys_belong_together(tmp_path: Path, text: str, expected: str):
    with pytest.raises(ProjectError, match=expected):
        read_project(project(tmp_path, text), DIALECTS)


def test_a_mistake_in_the_translated_project_is_shown_in_the_vendor_s_file(tmp_path: Path):
    wrong = CONFIG.replace("[rdk-x5]", "rdk-x5")
    with pytest.raises(ProjectError) as caught:
        read_project(project(tmp_path, SPOKEN, wrong), DIALECTS)
    assert str(caught.value.where).endswith("vendor/c.yaml:3:10")


def test_a_vendor_s_words_are_those_of_older_yaml(tmp_path: Path):
    config = "network: m.onnx\nflag: True\nother: off\ndata: {}\ntargets: [rdk-x5]\n"
    seen: list[object] = []

    def keeping(document: Document, base: str, beside: Json) -> Document:
        seen.extend([document.data.pop("flag"), document.data.pop("other")])
        return renamed(document, base, beside)

    read_project(project(tmp_path, SPOKEN, config), {"tool": lambda: Dialect(keeping, told)})
    assert seen == [True, False]


def test_a_project_that_speaks_a_dialect_has_variants_of_what_it_says(tmp_path: Path):
    beside = "matrix:\n  calibration.method: [max, kl]\n"
    found = read_project(project(tmp_path, SPOKEN + beside), DIALECTS)
    assert [(v.variant, v.sections.model.path) for v in found.variants] == [
        ("max", "vendor/m.onnx"),
        ("kl", "vendor/m.onnx"),
    ]


@pytest.mark.parametrize(
    "overlay",
    [
        "matrix: {config: [vendor/c.yaml]}\n",
        "variants: {other: {config: vendor/c.yaml}}\n",
        "targets: [{rdk-x5: {dialect: tool}}]\n",
    ],
)
def test_an_overlay_speaks_no_dialect(tmp_path: Path, overlay: str):
    with pytest.raises(ProjectError, match=r"unknown key `(config|dialect)`|`config` cannot vary"):
        read_project(project(tmp_path, SPOKEN + overlay), DIALECTS)


SECTIONS = [field.name for field in fields(Sections)]


@pytest.mark.parametrize("suffix", [".yaml", ".yml"])
@pytest.mark.parametrize("name", SECTIONS)
def test_a_vendor_s_file_may_be_called_like_a_section(tmp_path: Path, name: str, suffix: str):
    directory = project(tmp_path, f"dialect: tool\nconfig: {name}{suffix}\n")
    (directory / f"{name}{suffix}").write_text(CONFIG)
    found = read_project(directory, DIALECTS)
    assert found.sections.targets == ("rdk-x5",)
    assert [file.name for file in found.files] == ["project.yaml", f"{name}{suffix}"]
    (directory / f"{name}{suffix}").rename(directory / "vendor" / "c.yaml")
    (directory / f"{name}{suffix}").symlink_to("vendor/c.yaml")
    assert read_project(directory, DIALECTS).sections.targets == ("rdk-x5",)


@pytest.mark.parametrize("name", ["config.yaml", "dialect.yaml", "config.yml"])
def test_a_key_of_one_word_has_no_file_of_its_own(tmp_path: Path, name: str):
    directory = project(tmp_path, SPOKEN)
    (directory / name).write_text("of: another tool")
    assert read_project(directory, DIALECTS).sections.targets == ("rdk-x5",)


def test_what_the_vendor_s_file_names_besides_is_no_section_either(tmp_path: Path):
    directory = project(tmp_path, "dialect: tool\nconfig: config.yaml\n")
    for name in ("config.yaml", "data.yaml"):
        (directory / name).write_text(CONFIG)

    def both(file: Path) -> Config:
        return Config(read_document(file), (file, file.with_name("data.yaml")))

    found = read_project(directory, {"tool": lambda: Dialect(renamed, told, both)})
    assert sorted(file.name for file in found.files) == ["config.yaml", "data.yaml", "project.yaml"]
