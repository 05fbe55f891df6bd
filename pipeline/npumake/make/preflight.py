"""Before the first stage of a build runs: are all files and compilers there that it will need?

A missing file is an error of the whole project. A missing compiler is one of its target: the other
targets are built, and its own stages do not start.
"""

from __future__ import annotations

from collections.abc import Iterator

from npumake.compilers.required import missing_compiler
from npumake.errors import PipelineError, Route
from npumake.make.build import Build
from npumake.make.memory import Missing
from npumake.make.missing import no_file
from npumake.make.node import Node
from npumake.progress import tell
from npumake.project.files import source_files

ALL = ""  # in the place of a target


def refuse_missing(build: Build, node: Node) -> None:
    """Raises the error for what the build of `node` lacks. Looks once per process and project."""
    checked = build.memory.checked
    if build.directory not in checked:
        checked[build.directory] = _missing(build)
    missing = checked[build.directory]
    error = missing.get(ALL) or missing.get(node.target or ALL)
    if error is not None:
        raise error


def _missing(build: Build) -> Missing:
    """By target; under ALL what keeps every target from being built."""
    chosen = build.memory.selected
    nodes = [n for n in build.plan.nodes if chosen is None or n.name in chosen]
    for node in nodes:
        for source in node.sources:
            if not source_files(build.directory, source):
                error: PipelineError = no_file(build.directory, source, build.vendor_dialect)
                return {ALL: build.with_place(node, error)}
    compiled = {str(node.target): node for node in nodes if node.stage == "compiled"}
    missing = dict(_without_compiler(build, compiled))
    if missing and len(missing) == len(compiled):
        return {ALL: next(iter(missing.values()))}
    for target, error in missing.items():
        tell(f"{target} is not built: {error.what}; {error.hint}")
    return missing


def _without_compiler(
    build: Build, compiled: dict[str, Node]
) -> Iterator[tuple[str, PipelineError]]:
    for target, node in compiled.items():
        document, uses_tool = node.target_document, "handover" in node.inputs
        command = document["tool"]["command"] if uses_tool else None
        error = missing_compiler(document["backend"], command)
        if error is not None:
            error.where = Route("compile.vendor_tool") if uses_tool else None
            yield target, build.with_place(node, error)
