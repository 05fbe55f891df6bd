"""schemas/project.schema.json is printed from the dataclasses; `NPUMAKE_ACCEPT=1` reprints it."""

import json
import os
from pathlib import Path

from pipeline.project.schema import schema_of
from pipeline.project.sections import Sections

FILE = Path(__file__).parents[2] / "schemas" / "project.schema.json"


def test_the_schema_file_is_fresh():
    text = json.dumps(schema_of(Sections), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("NPUMAKE_ACCEPT") == "1":
        FILE.write_text(text, encoding="utf-8")
    printed = FILE.read_text(encoding="utf-8") if FILE.is_file() else ""
    assert printed == text, f"{FILE.name} is stale: run this test with NPUMAKE_ACCEPT=1, review it"
