"""npumake validate: check the YAML of projects and the files it names, without building

It reads each project against its schema, plans its stages, looks for every file that its keys name
and reads its lock file. It prints every project's first error.

example:
  npumake validate                # every project here; the hook of .pre-commit-hooks.yaml
  npumake validate projects/digits --json
  npumake validate --schema       # for editors, after a plugin was installed

exit codes: 0 all are valid, otherwise that of the first error: 2 the project, 7 its lock file
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from npumake import digest
from npumake.cli.projects import builds, no_project, places, project_directories
from npumake.cli.schema_file import schema_file, write_schema
from npumake.cli.show import error_document, print_error
from npumake.errors import PipelineError, ProjectError, did_you_mean
from npumake.make.build import Build
from npumake.make.lock import read_lock
from npumake.make.missing import no_file
from npumake.make.node import Node
from npumake.project.files import source_files


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "projects", nargs="*", metavar="PROJECT", help="or its folder; all when none is named"
    )
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument(
        "--schema",
        action="store_true",
        help="write the schema that editors read, with all targets and those of plugins",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.schema:
        return _write_schemas(arguments.projects)
    errors = dict(_checked(arguments.projects))
    if arguments.json:
        print(digest.text([_document(name, error) for name, error in errors.items()], indent=1))
    else:
        for name, error in errors.items():
            if error is None:
                print(f"valid     {name}")
            else:
                print_error(error)
    return next((error.exit_code for error in errors.values() if error), 0)


def _write_schemas(names: list[str]) -> int:
    """One file for a workspace; beside a project that is in none."""
    folders = [folder for at in places(names) for folder in project_directories(at)]
    if not folders:
        raise no_project(Path.cwd())
    for file in dict.fromkeys(map(schema_file, folders)):
        write_schema(file)
        print(f"{os.path.relpath(file)}: the schema of project.yaml, with all targets")
    return 0


def _checked(names: list[str]) -> Iterator[tuple[str, PipelineError | None]]:
    """The error of each project, None of a valid one. Raises ProjectError for an unknown name."""
    for directory, called in places(names).items():
        by_name = dict(builds(directory))
        if not by_name:
            raise no_project(directory)
        for name in called or by_name:
            if name not in by_name:
                raise ProjectError(f"no project `{name}`", hint=did_you_mean(name, by_name))
            yield name, _error(by_name[name])


def _error(build: Build | PipelineError) -> PipelineError | None:
    """The first error: of the YAML, of a file that it names, of the lock file."""
    if isinstance(build, PipelineError):
        return build
    try:
        for node in build.plan.nodes:
            _require_files(build, node)
        read_lock(build.directory)
    except PipelineError as error:
        return error
    return None


def _require_files(build: Build, node: Node) -> None:
    """Raises ProjectError for a key that names no file; the files are not read."""
    try:
        for source in node.sources:
            if not source_files(build.directory, source):
                raise no_file(build.directory, source, build.vendor_dialect)
    except PipelineError as error:
        raise build.with_place(node, error) from None


def _document(name: str, error: PipelineError | None) -> digest.Json:
    document: dict[str, digest.Json] = {"project": name, "valid": error is None}
    if error is not None:
        document["error"] = error_document(error)
    return document
