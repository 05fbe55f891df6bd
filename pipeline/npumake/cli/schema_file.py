"""The schema that editors read: one file for a workspace, with the targets of this installation."""

from __future__ import annotations

import json
import os
from pathlib import Path

from npumake.cache.folders import make_folder
from npumake.cache.publish import replacing
from npumake.make.places import workspace

SCHEMA = "project.schema.json"
FOLDER = "schemas"


def schema_file(directory: Path) -> Path:
    """The schema for the project in `directory`: in `schemas/` of its workspace, or beside it."""
    top = workspace(directory)
    return top / SCHEMA if top == Path(os.path.abspath(directory)) else top / FOLDER / SCHEMA


def relative_path(schema: Path, directory: Path) -> str:
    """The path from a project to its schema, the same on every machine."""
    return Path(os.path.relpath(schema, os.path.abspath(directory))).as_posix()


def write_schema(file: Path) -> None:
    """Raises CacheError where the file cannot be written."""
    from npumake.project.schema import editor_schema
    from npumake.targets.reader import known_targets

    text = json.dumps(editor_schema(known_targets()), indent=2, ensure_ascii=False) + "\n"
    make_folder(file.parent)
    with replacing(file) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
