"""`npumake new --config`: a vendor's YAML as a project, in the folder where it is kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cache.folders import cure_of
from npumake.cli.schema_file import relative_path, schema_file, write_schema
from npumake.cli.vendors.project import relative_path as path_from
from npumake.errors import CacheError, PipelineError, ProjectError, did_you_mean

if TYPE_CHECKING:
    from npumake.project.reader import Project

GROUP = "model_parameters"  # in every YAML of the two tools
HINT = "a file of another tool: write `dialect:`, `config:` and `model:` (docs/vendors.md)"
MAX_BYTES = 1 << 16  # of a file that is looked through
PROJECT = "project.yaml"
IGNORED = ("out/", "cache/", ".doit.db*")
TEXT = """\
# yaml-language-server: $schema={schema}
# {tool}'s YAML as it is. Keys beside these two override it.
dialect: {tool}
config: {config}
"""


def write_vendor_project(directory: Path, config: Path) -> list[str]:
    """Writes the project and reads it; returns lines for a person. A folder with other files is
    fine. Raises PipelineError, and then leaves no project."""
    from npumake.cli.template import DODO

    if (directory / PROJECT).exists():
        raise ProjectError("there is a project already", str(directory / PROJECT), "edit it")
    tool, schema = _tool(config), schema_file(directory)
    fields = {"tool": tool, "config": path_from(directory, config)}
    text = TEXT.format(schema=relative_path(schema, directory), **fields)
    files = {".gitignore": "".join(f"{name}\n" for name in IGNORED), "dodo.py": DODO}
    absent = {name: content for name, content in files.items() if not (directory / name).exists()}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / PROJECT).write_text(text, encoding="utf-8")
        project = _read(directory)
        for name, content in absent.items():
            (directory / name).write_text(content, encoding="utf-8")
    except OSError as error:
        message = f"cannot write the project: {error.strerror}"
        raise CacheError(message, str(directory), cure_of(directory, error.errno)) from None
    if not schema.is_file():
        write_schema(schema)
    lines = [f"{directory}: {config.name} of {tool}, for {', '.join(project.targets)}"]
    lines += [f"  note: {note.what} ({note.where})" for note in project.notes]
    return [*lines, f"  wrote {', '.join([PROJECT, *absent])}"]


def _read(directory: Path) -> Project:
    """The new project, which is removed again if it cannot be read. Raises ProjectError."""
    from npumake.dialects.table import ALL_DIALECTS
    from npumake.project.reader import read_project

    try:
        return read_project(directory, ALL_DIALECTS)
    except PipelineError:
        (directory / PROJECT).unlink()
        raise


def _tool(config: Path) -> str:
    """hb_mapper or hb_compile, by the march. Raises ProjectError for another file."""
    from npumake.dialects.drobotics.keys import MARCHES
    from npumake.dialects.horizon.keys import MARCHES as NASH
    from npumake.project.vendor import lenient_config

    document = lenient_config(config).document
    group = document.data.get(GROUP) if isinstance(document.data, dict) else None
    if not isinstance(group, dict):
        raise ProjectError(f"no `{GROUP}` of hb_mapper or hb_compile", str(config), HINT)
    if group.get("march") is None:
        hint = f"write  march: bayes-e  or another under `{GROUP}:`, which tells the tool and chip"
        raise ProjectError(f"no `march` in `{GROUP}`", str(config), hint)
    march = str(group["march"])
    tools = {**dict.fromkeys(MARCHES, "hb_mapper"), **dict.fromkeys(NASH, "hb_compile")}
    if march not in tools:
        hint = did_you_mean(march, tools)
        raise ProjectError(f"unknown march `{march}` in `{GROUP}`", str(config), hint)
    return tools[march]


def vendor_files(directory: Path) -> list[Path]:
    """The YAML files of hb_mapper and hb_compile in a folder, by their first key."""
    files = (file for suffix in (".yaml", ".yml") for file in directory.glob(f"*{suffix}"))
    return sorted(file for file in files if file.is_file() and _is_vendors(file))


def _is_vendors(file: Path) -> bool:
    with file.open("rb") as lines:
        return any(line.startswith(f"{GROUP}:".encode()) for line in lines.readlines(MAX_BYTES))
