"""schemas/*.schema.json are printed from the dataclasses; `NPUMAKE_ACCEPT=1` reprints them."""

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from npumake.make.node import KeptRecord
from npumake.project.document import read_document
from npumake.project.schema import editor_schema, schema_of
from npumake.project.shared_cache import TrustFile, UserFile, WorkspaceFile
from npumake.targets.reader import target_names
from npumake.targets.target import Target

FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMAS = {
    "project": editor_schema(target_names()),
    "record": schema_of(KeptRecord, "npumake record"),
    "target": schema_of(Target, "npumake target"),
    "trust": schema_of(TrustFile, "npumake trust.yaml"),
    "user": schema_of(UserFile, "npumake config.yaml"),
    "workspace": schema_of(WorkspaceFile, "npumake.yaml"),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_file_is_fresh(name):
    file = FOLDER / f"{name}.schema.json"
    text = json.dumps(SCHEMAS[name], indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("NPUMAKE_ACCEPT") == "1":
        file.write_text(text, encoding="utf-8")
    printed = file.read_text(encoding="utf-8") if file.is_file() else ""
    assert printed == text, f"{file.name} is stale: run this test with NPUMAKE_ACCEPT=1, review it"


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_is_a_schema(name):
    assert Draft202012Validator.check_schema(SCHEMAS[name]) is None


def test_every_file_in_the_folder_is_printed_here():
    assert sorted(file.name for file in FOLDER.iterdir()) == [
        f"{name}.schema.json" for name in sorted(SCHEMAS)
    ]


EXAMPLES = sorted(FOLDER.parent.glob("projects/*/project.yaml"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_an_example_names_its_schema_and_fits_it(file):
    first = file.read_text(encoding="utf-8").splitlines()[0]
    prefix = "# yaml-language-server: $schema="
    assert first.startswith(prefix)
    schema = json.loads((file.parent / first.removeprefix(prefix)).read_bytes())
    assert list(Draft202012Validator(schema).iter_errors(read_document(file).data)) == []


def test_the_schema_speaks_of_variants_matrix_and_target_overlays():
    overlay = {"calibration": {"method": "kl"}, "inputs": {"x": {"mean": 1}}}
    good = {
        "model": {"path": "m"},
        "data": {"x": {"files": "s"}},
        "targets": ["ara240", {"rdk-x5": overlay}],
        "variants": {"v": overlay | {"targets": [{"rdk-x5": overlay}]}},
        "matrix": {"calibration.percentile": [0.9, 0.99]},
    }
    validator = Draft202012Validator(SCHEMAS["project"])
    assert list(validator.iter_errors(good)) == []
    for wrong in (
        {"variants": {"v": {"x": 1}}},
        {"targets": [{"ara240": {}, "rdk-x5": {}}]},
        {"matrix": 1},
    ):
        assert len(list(validator.iter_errors(good | wrong))) == 1


def test_an_editor_asks_for_a_model_unless_a_vendors_file_names_it():
    validator = Draft202012Validator(SCHEMAS["project"])
    assert validator.is_valid({"model": {"path": "m"}, "targets": ["ara240"]})
    assert validator.is_valid({"dialect": "hb_mapper", "config": "resnet50.yaml"})
    assert not validator.is_valid({"model": {"path": "m"}})
    assert not validator.is_valid({"dialect": "hb_mapper"})
