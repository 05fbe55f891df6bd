"""A project and its hand-over, read as the vendor's file, give the same plan, key by key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from npumake.cli.main import main
from npumake.cli.vendors.project import build
from npumake.debug.compared import Comparison
from npumake.dialects.table import DIALECTS
from npumake.digest import Json
from npumake.project.document import read_document
from npumake.project.scalar import older_meaning
from npumake.quant.search.recipe import Recipe
from vendor_logs import HB_COMPILE, HB_MAPPER, write_samples
from workspaces import few, lay_out

HORIZON = {
    "rdk-x5": ("hb_mapper", "hb_mapper.yaml"),
    "rdk-x3": ("hb_mapper", "hb_mapper.yaml"),
    "nash-e": ("hb_compile", "hb_compile.yaml"),
}
# What a project decides, and the chips whose tool can be told all of it.
BOTH, NASH = ("rdk-x5", "nash-e"), ("nash-e",)
SAID: dict[str, tuple[tuple[str, ...], Json]] = {
    "a method": (tuple(HORIZON), {"calibration": {"method": "kl"}}),
    "a percentile": (BOTH, {"calibration": {"method": "max_percentile", "percentile": 0.999}}),
    "channels": (BOTH, {"calibration": {"method": "kl", "per_channel": True}}),
    "the vendor's search": (BOTH, {"calibration": {"method": "modelwise"}}),
    "a search of our own lists": (
        NASH,
        {"calibration": {"method": "modelwise", "modelwise": {
            "methods": ["kl"], "per_channel": [False], "asymmetric": [True, False],
            "similarity": 2.0, "metric": "mse"}}},
    ),
    "zero points": (NASH, {"calibration": {"method": "max", "symmetric": False}}),
    "bins": (NASH, {"calibration": {"method": "kl", "bins": 512}}),
    "biases": (NASH, {"quantization": {"bias_correction": True}}),
    "patterns for the CPU": (tuple(HORIZON), {"quantization": {"cpu": ["down_conv...", "pool"]}}),
    "an operator": (BOTH, {"quantization": {"types": {"Add(*)": "int16"}}}),
    "everything": (BOTH, {"quantization": {"types": [{"*": "int16"}, {"down_conv": "int8"}]}}),
    "places": (
        BOTH,
        {"quantization": {"layers": {"block1_add": {"inputs": [None, "int16"], "output": "int8"},
                                     "block2_add": {"input": "int16"}}}},
    ),
    "what lies between": (
        BOTH, {"quantization": {"types": {"block1_depthwise -> block1_add": "int16"}}},
    ),
    "outputs": (BOTH, {"quantization": {"outputs": "int16"}}),
    "float nodes": (BOTH, {"quantization": {"types": {"block2_add": "float32"}}}),
    "half floats": (NASH, {"quantization": {"types": {"block2_add": "float16"}}}),
    "the last layers": (BOTH, {"quantization": {"widen_answers": True}}),
    "what is sensitive": (BOTH, {"quantization": {"widen_sensitive": True}}),
}  # fmt: skip
EVERY = [(chip, name) for name, (chips, _) in SAID.items() for chip in chips]
SAMPLED = (
    ("rdk-x3", "patterns for the CPU"),
    ("rdk-x5", "places"),
    ("nash-e", "a search of our own lists"),
    ("nash-e", "half floats"),
    ("rdk-x5", "the last layers"),
)
CASES = few(EVERY, lambda case: case in SAMPLED)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, tmp_path_factory, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NPUMAKE_CACHE", str(tmp_path_factory.getbasetemp() / "handover_plan"))


def project(root: Path, chip: str, said: Json) -> Path:
    """The digits project for one chip, with these sections."""
    folder = lay_out(root).project
    file = folder / "project.yaml"
    document: Any = yaml.safe_load(file.read_text())
    for section in said:
        document[section] = said[section]
    document["targets"] = [chip]
    file.write_text(yaml.safe_dump(document))
    return folder


def handed(folder: Path, chip: str, out: Path) -> list[str]:
    """What the hand-over says that the tool is not told."""
    assert main(["handover", str(folder), "--target", chip, "--out", str(out)]) == 0
    listed: list[str] = json.loads((out / "handover.json").read_text())["not_said"]
    return listed


def plan(folder: Path) -> dict[str, Any]:
    """Of each node its row, of the calibration what was found."""
    made = build(folder, lambda node: node.stage in ("comparison", "recipe"))
    files = {node.stage: made.artifact(node) for node in made.plan.nodes if node.target}
    comparison, recipe = Comparison.load(files["comparison"]), Recipe.load(files["recipe"])
    rows = {
        f"node {row.node}": (row.on, row.subgraph, row.type, row.dtype, row.threshold)
        for row in comparison.rows
    }
    outputs = {f"output {one.name}": one.cosine for one in comparison.outputs}
    found = {
        "method": recipe.method,
        "percentile": recipe.percentile,
        "symmetric": recipe.symmetric,
        "per_channel": "per_channel" in recipe.switches,
        "bias_correction": "bias_correction" in recipe.switches,
        "ranges": dict(recipe.ranges),
    }
    return {**rows, **outputs, **found}


def speaking(out: Path, chip: str) -> Path:
    dialect, config = HORIZON[chip]
    (out / "project.yaml").write_text(yaml.safe_dump({"dialect": dialect, "config": config}))
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("chip", "name"), CASES)
def test_a_project_and_its_hand_over_are_one_plan(tmp_path: Path, chip: str, name: str):
    folder = project(tmp_path / "w", chip, SAID[name][1])
    assert handed(folder, chip, tmp_path / "handed") == []
    expected, found = plan(folder), plan(speaking(tmp_path / "handed", chip))
    assert {key: found.get(key) for key in expected} == expected
    assert found.keys() == expected.keys()


FOUND = {
    "default": {"calibration": {"method": "default"}},
    "best": {"calibration": {"recipe": "best"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("chip", BOTH)
@pytest.mark.parametrize("name", FOUND)
def test_what_a_search_finds_is_carried_or_listed(tmp_path: Path, chip: str, name: str):
    folder = project(tmp_path / "w", chip, FOUND[name])
    listed = handed(folder, chip, tmp_path / "handed")
    made = build(folder, lambda node: node.stage == "recipe")
    (node,) = [node for node in made.plan.nodes if node.stage == "recipe"]
    recipe = Recipe.load(made.artifact(node))
    carried = {"per_channel", "widen", "widen_answers", "widen_sensitive"}
    carried |= {"bias_correction"} if chip == "nash-e" else set()
    named = [what for what in listed if "search has found" in what]
    assert {what.partition(":")[0].removeprefix("quantization.") for what in named} == {
        switch for switch in recipe.switches if switch not in carried
    }
    is_sayable = recipe.method in ("kl", "max", "max_percentile")
    assert any(what.startswith("calibration.method") for what in listed) == (not is_sayable)
    if is_sayable and not named:
        expected, found = plan(folder), plan(speaking(tmp_path / "handed", chip))
        assert {key: found[key] for key in expected} == expected


YAML = {"rdk-x5": HB_MAPPER, "nash-e": HB_COMPILE}
CHANGES = {
    "as it is": ("", ""),
    "the search": ("max", "default"),
    "nodes": (
        "input_parameters:",
        "  node_info: {block1_add: {ON: CPU}, pool: {OutputType: int16}}\ninput_parameters:",
    ),
    "output": (
        "calibration_parameters:",
        "calibration_parameters:\n  optimization: set_model_output_int8",
    ),
}


def vendors_file(folder: Path, chip: str, name: str) -> Path:
    shutil.copy(lay_out(folder / "w").project / "model.onnx", folder / "digits.onnx")
    old, new = CHANGES[name]
    text = YAML[chip].replace(old, new) if old else YAML[chip]
    (folder / "c.yaml").write_text(text)
    write_samples(folder, 1.0 if chip == "rdk-x5" else 0.0625, "<f4")
    dialect = HORIZON[chip][0]
    (folder / "project.yaml").write_text(yaml.safe_dump({"dialect": dialect, "config": "c.yaml"}))
    return folder


def native(file: Path, dialect: str) -> Json:
    return DIALECTS[dialect]().translate(read_document(file, older_meaning), "", {}).data


@pytest.mark.slow
@pytest.mark.parametrize("chip", YAML)
@pytest.mark.parametrize("name", CHANGES)
def test_a_vendor_s_file_and_the_handed_over_one_are_one_plan(tmp_path: Path, chip: str, name: str):
    (tmp_path / "mine").mkdir()
    folder = vendors_file(tmp_path / "mine", chip, name)
    dialect, config = HORIZON[chip]
    assert handed(folder, chip, tmp_path / "handed") == []
    ours = native(folder / "c.yaml", dialect)
    theirs = native(tmp_path / "handed" / config, dialect)
    files = {"path", "prefix", "files", "dtype"}
    for section in sorted({*ours, *theirs}):
        assert without(theirs[section], files) == without(ours[section], files), section


def without(value: Json, names: set[str]) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: without(each, names) for key, each in value.items() if key not in names}


BESIDE = {
    "calibration: {recipe: best}": "calibration.recipe",
    "quantization: {cpu: [pool]}": "quantization.cpu",
    "quantization: {round_weights: adaptive}": "quantization.round_weights",
    "compile: {optimize_level: O1}": "compile.optimize_level",
}


@pytest.mark.slow
@pytest.mark.parametrize("said", BESIDE)
def test_what_stands_beside_a_vendor_s_file_is_listed(tmp_path: Path, said: str):
    (tmp_path / "mine").mkdir()
    folder = vendors_file(tmp_path / "mine", "rdk-x5", "as it is")
    with (folder / "project.yaml").open("a") as stream:
        stream.write(said + "\n")
    listed = handed(folder, "rdk-x5", tmp_path / "handed")
    assert any(what.startswith(BESIDE[said]) for what in listed)
