"""npumake report: the report pages of projects, or one page that compares the whole workspace

A project has a page of its own, out/report.html, if its project.yaml has a `report:` section.

example:
  npumake report digits                        # where its page is, and whether it is current
  npumake report --workspace                   # out/report/index.html
  npumake report --workspace --output public   # static files, for the pages of a CI
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from npumake.cache.folders import cure_of
from npumake.cache.publish import replacing
from npumake.cli.projects import builds, no_project, project_directories, typed
from npumake.cli.screen import SCREEN
from npumake.cli.selection import chosen
from npumake.errors import PipelineError, ProjectError
from npumake.make.build import Build
from npumake.make.memory import workspace
from npumake.progress import hearing

if TYPE_CHECKING:
    from npumake.make.node import Node

OUTPUT = Path("out") / "report"
PAGE = "report"  # the stage


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "projects", nargs="*", metavar="PROJECT", help="or its folder; all when none is named"
    )
    parser.add_argument(
        "--workspace",
        action="store_true",
        help="one page that compares projects, targets and variants over time",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="DIR",
        help=f"copy the pages there; of a workspace, {OUTPUT.as_posix()} by default",
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.workspace:
        return _report_workspace(arguments.projects, arguments.output)
    chosen_builds = [entry.build for entry in chosen(arguments.projects)]
    pages = [(build, node) for build in chosen_builds if (node := _page_node(build)) is not None]
    if not pages:
        raise _no_page(chosen_builds)
    for build, node in pages:
        _tell(build, node)
    if arguments.output is not None:
        copied = copy_pages((build for build, _ in pages), arguments.output)
        SCREEN.line(f"{len(copied)} copied to {arguments.output}")
    return 0


def _no_page(builds_without: Iterable[Build]) -> ProjectError:
    names = ", ".join(build.plan.project for build in builds_without)
    hint = "add `report: {samples: 4}` to project.yaml, or compare all builds by --workspace"
    return ProjectError(f"no page of {names}: there is no `report:` section", hint=hint)


def _page_node(build: Build) -> Node | None:
    return next((node for node in build.plan.nodes if node.stage == PAGE), None)


def _tell(build: Build, node: Node) -> None:
    status = build.states()[node.name].status
    file = os.path.relpath(build.artifact(node))
    name = typed(build.directory, build.plan.project)
    rest = "" if status == "current" else f"; npumake build {name} makes it"
    SCREEN.line(f"{file}: {status}{rest}")


def _report_workspace(names: list[str], output: Path | None) -> int:
    from npumake.cli.workspace_report import workspace_rows
    from npumake.report.workspace import WorkspaceFigures, workspace_page

    if names:
        raise ProjectError("--workspace compares all projects", hint="name none")
    top = workspace(Path.cwd())
    if not project_directories(top):
        raise no_project(top)
    by_name = dict(builds(top))
    usable = [build for build in by_name.values() if isinstance(build, Build)]
    with hearing(SCREEN.line):
        rows = tuple(workspace_rows(usable, top))
    to = output or top / OUTPUT
    pages = copy_pages(usable, to)
    errors = {name: e.what for name, e in by_name.items() if isinstance(e, PipelineError)}
    page = workspace_page(WorkspaceFigures(top.name, rows, pages, errors))
    index = _folder(to) / "index.html"
    with replacing(index) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
    for build in usable:
        build.memory.save()
    earlier = sum(len(row.past) - row.is_built for row in rows)
    SCREEN.line(f"{os.path.relpath(index)}: {len(rows)} builds, {earlier} earlier ones")
    return 0


def copy_pages(usable: Iterable[Build], to: Path) -> Mapping[str, str]:
    """Copies the page of each project that has one; their names in `to`. Raises ProjectError."""
    pages = {}
    for build in usable:
        node = _page_node(build)
        if node is None or not build.artifact(node).is_file():
            continue
        name = f"projects/{build.plan.project}.html"
        with replacing(_folder(to / "projects") / Path(name).name) as temporary:
            shutil.copyfile(build.artifact(node), temporary)
        pages[build.plan.project] = name
    return pages


def _folder(path: Path) -> Path:
    """Makes a folder. Raises ProjectError where something else stands in its way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"this folder cannot be made: {error.strerror}"
        hint = f"{cure_of(path, error.errno)}; or name another by --output"
        raise ProjectError(message, str(path), hint) from error
    return path
