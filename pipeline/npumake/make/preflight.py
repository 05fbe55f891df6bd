"""Checks, before the first stage of a build runs, that all required files and compilers exist.

One error names all missing compilers, so that one command installs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from npumake.compilers.required import missing_compiler
from npumake.errors import PipelineError, Route, StageError
from npumake.make.build import Build
from npumake.make.missing import no_file
from npumake.make.node import Node
from npumake.project.files import source_files


def refuse_missing(build: Build, node: Node) -> None:
    """Raises the error for files and compilers that the build of `node` lacks. Looks once per
    process and project."""
    checked = build.memory.checked
    if build.directory not in checked:
        checked[build.directory] = _missing(build)
    error = checked[build.directory]
    if error is not None:
        raise error


def _missing(build: Build) -> PipelineError | None:
    chosen = build.memory.selected
    nodes = [n for n in build.plan.nodes if chosen is None or n.name in chosen]
    for node in nodes:
        for source in node.sources:
            if not source_files(build.directory, source):
                error = no_file(build.directory, source, build.vendor_dialect)
                return build.with_place(node, error)
    compiled = [node for node in nodes if node.stage == "compiled"]
    missing = dict(_without_compiler(build, compiled))
    others = [str(node.target) for node in compiled if str(node.target) not in missing]
    return _joined(build, missing, others) if missing else None


def _without_compiler(build: Build, compiled: list[Node]) -> Iterator[tuple[str, PipelineError]]:
    for node in compiled:
        document, uses_tool = node.target_document, "handover" in node.inputs
        if uses_tool and document["tool"] is None:  # refused by the stage, at its key
            continue
        command = document["tool"]["command"] if uses_tool else None
        error = missing_compiler(document["backend"], command)
        if error is not None:
            error.where = Route("compile.vendor_tool") if uses_tool else None
            yield str(node.target), build.with_place(node, error)


def _joined(build: Build, missing: Mapping[str, PipelineError], others: list[str]) -> PipelineError:
    """One error of all targets without a compiler, with a line that builds the others."""
    named: dict[str, tuple[PipelineError, list[str]]] = {}
    for target, error in missing.items():
        named.setdefault(error.what, (error, []))[1].append(target)
    whats = [f"{', '.join(targets)}: {message}" for message, (_, targets) in named.items()]
    hints = [error.hint for error, _ in named.values()]
    if others:
        patterns = " ".join(f"'{build.plan.project}:{target}/*'" for target in others)
        hints.append(f"or build the other targets: npumake build {patterns}")
    first = next(iter(missing.values()))
    return StageError("; ".join(whats), first.where, "; ".join(hints))
