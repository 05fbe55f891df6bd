"""The hint that shows how to declare an imported file in the project's YAML."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from npumake.custom.imports import Import

PROJECT = "project.yaml"
OPERATORS = "custom_operators: [{{files: {importer}, with: [{files}]}}]"
METRIC = "evaluation: {{metric: '{importer}:…', with: [{files}]}}"
ALLOWED = "Python of a project imports the standard library, NumPy and files declared under `with:`"
BESIDE = "name that file beside it; else only the standard library and NumPy are imported"


def declaration(form: str, paths: Mapping[str, str], name: str, statement: Import) -> str:
    """The YAML that declares an import of the file `name`; `paths` maps names to paths."""
    if name not in paths:
        return BESIDE
    file = Path(os.path.abspath(paths[name]))
    project = next((up for up in file.parents if (up / PROJECT).is_file()), file.parent)
    files = [os.path.relpath(path, project) for path in _meant(file, project, statement)]
    importer = os.path.relpath(file, project)
    return f"write  {form.format(importer=importer, files=', '.join(files))}" if files else ALLOWED


def _meant(file: Path, project: Path, statement: Import) -> list[Path]:
    """The files that the import could mean: beside the importing file or at the project's top."""
    folders = [file.parents[statement.level - 1]] if statement.level else [file.parent, project]
    for folder in folders:
        path = folder.joinpath(*statement.module.split(".")) if statement.module else folder
        inside = [source for name in statement.names for source in _files(path / name)]
        if files := [*_files(path), *inside]:
            return files
    return []


def _files(path: Path) -> Iterator[Path]:
    for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if file.is_file():
            yield file
            return
