"""Stage: a function whose signature says what it is made from.

Read off the signature: a parameter named like an earlier stage is an input; one named like a
section of the YAML is that section; `sources` are the files the sections name; `target` means one
result per target, and so for every stage downstream; `said` is the vendor's own document, of a
project that speaks its dialect. A stage is planned where all is there that has no default.

A mapping of a stage's artifacts joins them: those of every target and variant, by the name of the
build. Such a stage is made once for the whole project, and may ask for the `provenance` of all
that was made before it.
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
GIVEN = frozenset({"provenance", "said", "sources", "target", "vendor_dialect"})


class Artifact(Protocol):
    """What a stage makes: a value that knows its file."""

    suffix: ClassVar[str]

    def save(self, path: Path) -> None: ...

    @classmethod
    def load(cls, path: Path) -> Self: ...


Function = Callable[..., Artifact]


@dataclass(frozen=True)
class Stage:
    """What the signature says, as plain data: a plan needs no more, and can remember it."""

    name: str
    summary: str
    suffix: str  # of its artifact's file
    inputs: tuple[str, ...]
    sections: tuple[str, ...]
    reads_sources: bool
    asks_target: bool
    optional: tuple[str, ...] = ()  # inputs and sections that may be absent
    joins: bool = False  # its one input is a mapping: of all targets and variants
    asks_provenance: bool = False
    asks_said: bool = False
    asks_dialect: bool = False

    @property
    def module(self) -> str:
        return module_of(self.name)


def module_of(name: str) -> str:
    return f"{__package__}.{name}"


def function_of(name: str) -> Function:
    """The function of a stage; loads its module, and all that this imports."""
    return getattr(import_module(module_of(name)), name)


def stage_of(function: Function, earlier: Collection[str]) -> Stage:
    """What the signature says, where these stages come before.

    Raises TypeError for a parameter that is none of these kinds: that is our bug.
    """
    parameters = inspect.signature(function).parameters
    names = tuple(parameters)
    unknown = [n for n in names if n not in {*earlier} | SECTIONS | GIVEN]
    if unknown:
        raise TypeError(f"stage {function.__name__}: nobody makes `{unknown[0]}`")
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
        asks_said="said" in names,
        asks_dialect="vendor_dialect" in names,
    )


def stage_named(name: str) -> Stage:
    return stage_of(function_of(name), STAGES[: STAGES.index(name)])


def every_stage() -> Mapping[str, Stage]:
    """By name, in the order they can be made in; loads all their modules."""
    return {name: stage_named(name) for name in STAGES}


def artifact_of(function: Function) -> type[Artifact]:
    return get_type_hints(function)["return"]


def input_types(function: Function) -> Mapping[str, type[Artifact]]:
    """What each input is, one of them where it joins many."""
    hints = get_type_hints(function)
    return {name: _one(hint) for name, hint in hints.items() if name in STAGES}


def _one(hint: Any) -> type[Artifact]:
    """T of `T | None` and of `Mapping[str, T]`."""
    members = [member for member in get_args(hint) if member not in (NoneType, str)]
    return members[0] if members else hint


def _summary(function: Function) -> str:
    """The first line of its module's docstring, the name taken off."""
    doc = inspect.getdoc(inspect.getmodule(function)) or ""
    return doc.partition("\n")[0].removeprefix(f"{function.__name__}: ")
