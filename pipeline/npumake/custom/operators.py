"""Operators: the custom operators in a set of Python files, by type.

{"roi.py": bytes, …} → run each file → the classes and functions that the decorators marked
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from npumake.custom.closed import Closed, Declare, refuse_undeclared
from npumake.custom.declaring import OPERATORS, declaration
from npumake.custom.imports import closure
from npumake.custom.register import IMPLEMENTS, SHAPES, marks
from npumake.errors import GraphError, ProjectError, Route
from npumake.graph import Graph, is_foreign
from npumake.project.files import SourceFile, SourceFiles
from npumake.project.sections import CodeFiles

SECTION = "custom_operators"
UNDECLARED: Declare = partial(declaration, OPERATORS, {})  # for files outside of a project


@dataclass(frozen=True)
class Operator:
    """One operator type: its class, its shape function, their files and what these import."""

    implementation: Callable[..., Any] | None = None
    shapes: Callable[..., Any] | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operators:
    """The operators by type, and their files by name."""

    by_type: Mapping[str, Operator] = field(default_factory=dict)
    sources: Mapping[str, bytes] = field(default_factory=dict)

    def used_by(self, graph: Graph) -> Operators:
        """The operators that `graph` uses, with their files."""
        types = {node.op_type for node in graph.nodes() if is_foreign(node)}
        used = {name: operator for name, operator in self.by_type.items() if name in types}
        names = {file for operator in used.values() for file in operator.files}
        return Operators(used, {name: self.sources[name] for name in sorted(names)})


NO_OPERATORS = Operators()


def declared(custom_operators: Sequence[CodeFiles], sources: SourceFiles) -> Operators:
    """The operators in a project's declared files. Raises ProjectError and StageError.

    The parameters are inputs of stages, by name.
    """
    by_path: dict[str, SourceFile] = {}  # by path: `with` names a file that is under both keys
    for number in range(len(custom_operators)):
        for route, files in under(sources, f"{SECTION}.{number}").items():
            for file in files:
                names = [operator.name for path, operator in by_path.items() if path != file.path]
                if file.name in names:
                    message = f"two files of custom operators are called `{file.name}`"
                    raise ProjectError(message, Route(route), "rename one of them")
                by_path[file.path] = file
    paths = {file.name: file.path for file in by_path.values()}
    read = {file.name: file.read() for file in by_path.values()}
    return operators_in(read, partial(declaration, OPERATORS, paths))


def under(sources: SourceFiles, route: str) -> SourceFiles:
    """The files of a key and of those below it."""
    return {key: sources[key] for key in sources if key == route or key.startswith(f"{route}.")}


def operators_in(sources: Mapping[str, bytes], declare: Declare = UNDECLARED) -> Operators:
    """Runs each file, which the caller must trust, and collects its operators.

    Raises StageError if a file fails. Raises ProjectError for a type with two implementations and
    for an undeclared import; `declare` writes its hint.
    """
    refuse_undeclared(sources, declare)
    closed = Closed(sources)
    by_type: dict[str, Operator] = {}
    for name in sources:
        for thing in closed.names(name).values():
            for op_type in marks(thing, IMPLEMENTS):
                _refuse_second(by_type, op_type, "implementation", thing, name)
                previous = by_type.get(op_type, Operator())
                by_type[op_type] = replace(
                    previous, implementation=thing, files=_with(previous.files, name)
                )
            for op_type in marks(thing, SHAPES):
                _refuse_second(by_type, op_type, "shapes", thing, name)
                previous = by_type.get(op_type, Operator())
                by_type[op_type] = replace(
                    previous, shapes=thing, files=_with(previous.files, name)
                )
    whole = {
        op_type: replace(operator, files=_all(operator, sources))
        for op_type, operator in by_type.items()
    }
    return Operators(whole, sources)


def _all(operator: Operator, sources: Mapping[str, bytes]) -> tuple[str, ...]:
    """Its own files, then those that they import."""
    imported = closure(operator.files, sources) - {*operator.files}
    return (*operator.files, *sorted(imported))


def require(graph: Graph, operators: Operators) -> None:
    """Raises one GraphError that lists all custom operators without an implementation."""
    top = set(graph.nodes())
    foreign = [node for node in graph.model.graph.all_nodes() if is_foreign(node)]
    inside = [str(node.name) for node in foreign if node not in top]
    if inside:
        raise GraphError(f"a custom operator inside a branch or a loop: `{inside[0]}`")
    by_type = operators.by_type
    missing = [
        n for n in foreign if n.op_type not in by_type or not by_type[n.op_type].implementation
    ]
    if missing:
        names = sorted({f"{node.domain}.{node.op_type}" for node in missing})
        raise GraphError(
            f"operators outside ONNX without an implementation: {', '.join(names)}",
            f"node {missing[0].name}",
            "declare the Python that does:  custom_operators: [ops/*.py]",
        )


def _with(files: tuple[str, ...], name: str) -> tuple[str, ...]:
    return files if name in files else (*files, name)


def _refuse_second(
    by_type: Mapping[str, Operator], op_type: str, role: str, thing: object, name: str
) -> None:
    other = getattr(by_type.get(op_type), role, None)
    if other is not None and other is not thing:
        first = ", ".join(by_type[op_type].files)
        raise ProjectError(f"operator `{op_type}` is implemented twice, in {first} and {name}")
