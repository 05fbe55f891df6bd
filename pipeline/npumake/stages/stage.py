"""Stage: a function whose signature declares its inputs.

A parameter named after an earlier stage is an input; one named after a section of the YAML is that
section; one named in COMPUTED is computed from others (npumake.stages.parameters). `sources` are
the files of the sections. `target` means one result per target, and so for every stage downstream.
`vendor_document` is the vendor's own document, of a project in its dialect. `chain` has the digests
of all models that its inputs were built from, by stage. A stage is planned if all parameters
without default exist.

A mapping of a stage's artifacts joins them: those of every target and variant, by the name of the
build. Such a stage runs once for the whole project and may have the parameters `provenance`, of all
earlier nodes, and `refused`: by the name of a build without artifact, the message and the hint of
its error.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar, Protocol, Self, get_origin, get_type_hints

from npumake.project.sections import Sections
from npumake.stages import STAGES
from npumake.stages.parameters import function_of, inputs_of, modules_of

SECTIONS = frozenset(field.name for field in fields(Sections))
SPECIAL_INPUTS = frozenset(
    {
        "artifact_name",
        "chain",
        "provenance",
        "refused",
        "sources",
        "target",
        "vendor_dialect",
        "vendor_document",
    }
)


class Artifact(Protocol):
    """The result of a stage: a value with `save` and `load`."""

    suffix: ClassVar[str]

    def save(self, path: Path) -> None: ...

    @classmethod
    def load(cls, path: Path) -> Self: ...


@dataclass(frozen=True)
class Stage:
    """A signature as plain data, which a plan can store."""

    name: str
    modules: tuple[str, ...]  # its own, and those of its computed inputs
    summary: str
    suffix: str  # of its artifact's file
    inputs: tuple[str, ...]
    sections: tuple[str, ...]
    special: tuple[str, ...]  # of SPECIAL_INPUTS
    optional: tuple[str, ...] = ()  # inputs and sections that may be absent
    joins: bool = False  # its one input is a mapping over all targets and variants


def stage_named(name: str, earlier: Collection[str] | None = None) -> Stage:
    """The declaration of a stage, behind the stages `earlier`: those before it in STAGES.

    Raises TypeError for any other parameter: that is our bug.
    """
    earlier = STAGES[: STAGES.index(name)] if earlier is None else earlier
    parameters = inputs_of(name)
    unknown = [n for n in parameters if n not in {*earlier} | SECTIONS | SPECIAL_INPUTS]
    if unknown:
        raise TypeError(f"stage {name}: no stage or section is named `{unknown[0]}`")
    inputs = tuple(n for n in parameters if n in earlier)
    return Stage(
        name,
        modules_of(name),
        _summary(name),
        artifact_of(name).suffix,
        inputs,
        sections=tuple(n for n in parameters if n in SECTIONS.difference(earlier)),
        special=tuple(n for n in parameters if n in SPECIAL_INPUTS),
        optional=tuple(n for n, parameter in parameters.items() if parameter.is_optional),
        joins=any(get_origin(parameters[n].hint) is Mapping for n in inputs),
    )


def every_stage() -> Mapping[str, Stage]:
    """All stages by name, in order; loads all their modules."""
    return {name: stage_named(name) for name in STAGES}


def artifact_of(name: str) -> type[Artifact]:
    return get_type_hints(function_of(name))["return"]


def _summary(name: str) -> str:
    """The first line of the module's docstring, without the name."""
    doc = inspect.getdoc(inspect.getmodule(function_of(name))) or ""
    return doc.partition("\n")[0].partition(": ")[2]
