"""Stage: a function whose signature says what it is made from.

Read off the signature, once, by `stage_table`: a parameter named like another stage is an input;
one named like a section of the YAML is that section; `sources` are the files the sections name;
`target` means one result per target, and so for every stage downstream; `said` is the vendor's own
document, of a project that speaks its dialect. A stage is planned where all is there that has no
default.

A mapping of a stage's artifacts joins them: those of every target and variant, by the name of the
build. Such a stage is made once for the whole project, and may ask for the `provenance` of all
that was made before it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, get_origin, get_type_hints

from pipeline.project.sections import Sections

SECTIONS = frozenset(field.name for field in fields(Sections))
GIVEN = frozenset({"provenance", "said", "sources", "target"})


class Artifact(Protocol):
    """What a stage makes: a value that knows its file."""

    suffix: ClassVar[str]

    def save(self, path: Path) -> None: ...

    @classmethod
    def load(cls, path: Path) -> Self: ...


@dataclass(frozen=True)
class Stage:
    name: str
    function: Callable[..., Artifact]
    artifact: type[Artifact]
    inputs: tuple[str, ...]
    sections: tuple[str, ...]
    reads_sources: bool
    asks_target: bool
    optional: tuple[str, ...] = ()  # inputs and sections that may be absent
    joins: bool = False  # its one input is a mapping: of all targets and variants
    asks_provenance: bool = False
    asks_said: bool = False

    @property
    def module(self) -> str:
        return self.function.__module__

    @property
    def summary(self) -> str:
        """The first line of its module's docstring, the name taken off."""
        doc = inspect.getdoc(inspect.getmodule(self.function)) or ""
        return doc.partition("\n")[0].removeprefix(f"{self.name}: ")


def stage_table(*functions: Callable[..., Artifact]) -> Mapping[str, Stage]:
    """The stages by name, in the given order, which must be one they can be made in.

    Raises TypeError for a parameter that is none of these kinds: that is our bug.
    """
    table: dict[str, Stage] = {}
    for function in functions:
        table[function.__name__] = _stage(function, frozenset(table))
    return table


def _stage(function: Callable[..., Artifact], earlier: frozenset[str]) -> Stage:
    parameters = inspect.signature(function).parameters
    names = tuple(parameters)
    unknown = [n for n in names if n not in earlier | SECTIONS | GIVEN]
    if unknown:
        raise TypeError(f"stage {function.__name__}: nobody makes `{unknown[0]}`")
    hints = get_type_hints(function)
    artifact: Any = hints["return"]
    inputs = tuple(name for name in names if name in earlier)
    return Stage(
        function.__name__,
        function,
        artifact,
        inputs=inputs,
        sections=tuple(name for name in names if name in SECTIONS - earlier),
        reads_sources="sources" in names,
        asks_target="target" in names,
        optional=tuple(n for n, given in parameters.items() if given.default is not given.empty),
        joins=any(get_origin(hints[name]) is Mapping for name in inputs),
        asks_provenance="provenance" in names,
        asks_said="said" in names,
    )
