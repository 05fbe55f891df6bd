"""Stage: a function whose signature declares its inputs.

A parameter named after an earlier stage is an input; one named after a section of the YAML is that
section. `sources` are the files of the sections. `target` means one result per target, and so for
every stage downstream. `vendor_document` is the vendor's own document, of a project in its dialect.
`chain` has the digests of all models that its inputs were made from, by stage. A stage is planned
where all parameters without default exist.

A mapping of a stage's artifacts joins them: those of every target and variant, by the name of the
build. Such a stage runs once for the whole project and may ask for the `provenance` of all earlier
nodes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, ClassVar, Protocol, Self, get_args, get_origin, get_type_hints

from npumake.project.sections import Sections
from npumake.stages import STAGES

SECTIONS = frozenset(field.name for field in fields(Sections))
SPECIAL_INPUTS = frozenset(
    {"chain", "provenance", "sources", "target", "vendor_dialect", "vendor_document"}
)


class Artifact(Protocol):
    """The result of a stage: a value with `save` and `load`."""

    suffix: ClassVar[str]

    def save(self, path: Path) -> None: ...

    @classmethod
    def load(cls, path: Path) -> Self: ...


Function = Callable[..., Artifact]


@dataclass(frozen=True)
class Stage:
    """A signature as plain data, which a plan can store."""

    name: str
    summary: str
    suffix: str  # of its artifact's file
    inputs: tuple[str, ...]
    sections: tuple[str, ...]
    reads_sources: bool
    asks_target: bool
    optional: tuple[str, ...] = ()  # inputs and sections that may be absent
    joins: bool = False  # its one input is a mapping over all targets and variants
    asks_provenance: bool = False
    asks_vendor_document: bool = False
    asks_dialect: bool = False
    asks_chain: bool = False

    @property
    def module(self) -> str:
        return module_of(self.name)


def module_of(name: str) -> str:
    return f"{__package__}.{name}"


def function_of(name: str) -> Function:
    """The function of a stage; loads its module."""
    return getattr(import_module(module_of(name)), name)


def stage_of(function: Function, earlier: Collection[str]) -> Stage:
    """The declaration of `function`, behind the stages `earlier`.

    Raises TypeError for any other parameter: that is our bug.
    """
    parameters = inspect.signature(function).parameters
    names = tuple(parameters)
    unknown = [n for n in names if n not in {*earlier} | SECTIONS | SPECIAL_INPUTS]
    if unknown:
        raise TypeError(f"stage {function.__name__}: no stage or section is named `{unknown[0]}`")
    hints = get_type_hints(function)
    inputs = tuple(name for name in names if name in earlier)
    return Stage(
        function.__name__,
        _summary(function),
        hints["return"].suffix,
        inputs=inputs,
        sections=tuple(name for name in names if name in SECTIONS.difference(earlier)),
        reads_sources="sources" in names,
        asks_target="target" in names,
        optional=tuple(
            n for n, parameter in parameters.items() if parameter.default is not parameter.empty
        ),
        joins=any(get_origin(hints[name]) is Mapping for name in inputs),
        asks_provenance="provenance" in names,
        asks_vendor_document="vendor_document" in names,
        asks_dialect="vendor_dialect" in names,
        asks_chain="chain" in names,
    )


def stage_named(name: str) -> Stage:
    return stage_of(function_of(name), STAGES[: STAGES.index(name)])


def every_stage() -> Mapping[str, Stage]:
    """All stages by name, in order; loads all their modules."""
    return {name: stage_named(name) for name in STAGES}


def artifact_of(function: Function) -> type[Artifact]:
    return get_type_hints(function)["return"]


def input_types(function: Function) -> Mapping[str, type[Artifact]]:
    """The type of each input, of one member where the stage joins many."""
    hints = get_type_hints(function)
    return {name: _one(hint) for name, hint in hints.items() if name in STAGES}


def _one(hint: Any) -> type[Artifact]:
    """T of `T | None` and of `Mapping[str, T]`."""
    members = [member for member in get_args(hint) if member not in (NoneType, str)]
    return members[0] if members else hint


def _summary(function: Function) -> str:
    """The first line of the module's docstring, without the name."""
    doc = inspect.getdoc(inspect.getmodule(function)) or ""
    return doc.partition("\n")[0].removeprefix(f"{function.__name__}: ")
