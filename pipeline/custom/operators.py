"""Operators: what a set of Python files implements, by operator type.

{"roi.py": bytes, …} → run each file → the classes and functions the decorators marked
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from types import ModuleType
from typing import Any

from pipeline.custom.blame import blamed
from pipeline.custom.register import (
    IMPLEMENTS,
    SHAPES,
    marks,
    op_implement_register,
    op_shape_infer_register,
)
from pipeline.errors import GraphError, ProjectError, Route
from pipeline.graph import Graph, is_foreign
from pipeline.project.files import SourceFiles

# Where a file written for a vendor's tool imports the decorators from; there only while it loads.
VENDOR_PACKAGES = ("horizon_nn", "hmct")
_LOADING = threading.Lock()  # sys.modules is everybody's


@dataclass(frozen=True)
class Operator:
    """One type: the class that computes it and the function that knows its shapes, and the files
    these stand in."""

    implementation: Callable[..., Any] | None = None
    shapes: Callable[..., Any] | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operators:
    """The operators by type, and the files they come from, by name."""

    by_type: Mapping[str, Operator] = field(default_factory=dict)
    sources: Mapping[str, bytes] = field(default_factory=dict)

    def used_by(self, graph: Graph) -> Operators:
        """Those that `graph` has nodes of, with their files."""
        types = {node.op_type for node in graph.nodes() if is_foreign(node)}
        used = {name: found for name, found in self.by_type.items() if name in types}
        names = {file for found in used.values() for file in found.files}
        return Operators(used, {name: self.sources[name] for name in sorted(names)})


NO_OPERATORS = Operators()


def declared(custom_operators: Sequence[str], sources: SourceFiles) -> Operators:
    """The operators in the files a project declares. Raises ProjectError and StageError."""
    found: dict[str, bytes] = {}
    for number in range(len(custom_operators)):
        route = f"custom_operators.{number}"
        for file in sources[route]:
            if file.name in found:
                what = f"two files of custom operators are called `{file.name}`"
                raise ProjectError(what, Route(route), "rename one of them")
            found[file.name] = file.read()
    return operators_in(found)


def operators_in(sources: Mapping[str, bytes]) -> Operators:
    """Runs each file, and gives what it implements. The caller trusts them.

    Raises StageError where a file fails, ProjectError for a type that two of them implement.
    """
    by_type: dict[str, Operator] = {}
    for name, data in sources.items():
        for thing in namespace(name, data).values():
            for op_type in marks(thing, IMPLEMENTS):
                _refuse_second(by_type, op_type, "implementation", thing, name)
                known = by_type.get(op_type, Operator())
                by_type[op_type] = replace(
                    known, implementation=thing, files=_with(known.files, name)
                )
            for op_type in marks(thing, SHAPES):
                _refuse_second(by_type, op_type, "shapes", thing, name)
                known = by_type.get(op_type, Operator())
                by_type[op_type] = replace(known, shapes=thing, files=_with(known.files, name))
    return Operators(by_type, sources)


def require(graph: Graph, operators: Operators) -> None:
    """Raises one GraphError that lists every operator of a foreign domain that nobody declares."""
    top = set(graph.nodes())
    foreign = [node for node in graph.model.graph.all_nodes() if is_foreign(node)]
    inside = [str(node.name) for node in foreign if node not in top]
    if inside:
        raise GraphError(f"a custom operator inside a branch or a loop: `{inside[0]}`")
    known = operators.by_type
    missing = [n for n in foreign if n.op_type not in known or not known[n.op_type].implementation]
    if missing:
        names = sorted({f"{node.domain}.{node.op_type}" for node in missing})
        raise GraphError(
            f"operators that are not ONNX's and that nobody implements: {', '.join(names)}",
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


def namespace(name: str, data: bytes) -> dict[str, Any]:
    """The names a file defines once it has run. The caller trusts it. Raises StageError."""
    module = ModuleType(f"custom_operators.{PurePosixPath(name).stem}")
    module.__file__ = name
    with blamed(f"`{name}` cannot be loaded", [name]), _importable(module):
        exec(compile(data, name, "exec", dont_inherit=True), vars(module))
    return dict(vars(module))


@contextmanager
def _importable(module: ModuleType) -> Iterator[None]:
    """The module itself and the vendors' names for the decorators can be imported, for now."""
    modules = {module.__name__: module, **_vendor_modules()}
    with _LOADING:
        before = {name: sys.modules[name] for name in modules if name in sys.modules}
        sys.modules.update(modules)
        try:
            yield
        finally:
            for name in modules:
                del sys.modules[name]
            sys.modules.update(before)


def _vendor_modules() -> dict[str, ModuleType]:
    """`<vendor>`, `<vendor>.custom` and `<vendor>.custom.op_registration`, each in its parent."""
    found: dict[str, ModuleType] = {}
    for vendor in VENDOR_PACKAGES:
        top, custom, last = (
            ModuleType(name)
            for name in (vendor, f"{vendor}.custom", f"{vendor}.custom.op_registration")
        )
        decorators = {
            "op_implement_register": op_implement_register,
            "op_shape_infer_register": op_shape_infer_register,
        }
        vars(last).update(decorators)
        vars(custom).update(decorators, op_registration=last)
        vars(top).update(custom=custom)
        found |= {module.__name__: module for module in (top, custom, last)}
    return found
