"""schemas/*.schema.json are printed from the dataclasses; `NPUMAKE_ACCEPT=1` reprints them."""

import json
import os
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from pipeline.make.node import KeptRecord
from pipeline.project.schema import schema_of
from pipeline.project.sections import Sections
from pipeline.targets.target import Target

FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMAS = {
    "project": schema_of(Sections),
    "record": schema_of(KeptRecord, "npumake record"),
    "target": schema_of(Target, "npumake target"),
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
