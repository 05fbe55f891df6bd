"""Reads a project directory into a `Project`: typed sections, and the place of every key.

`project.yaml` holds the sections. A section S may have its own file S.yaml instead, with the same
keys.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from npumake.digest import Json, key_of
from npumake.errors import Place, ProjectError
from npumake.project.check import check, dotted
from npumake.project.document import Document, RoutePlace, path_text, read_document
from npumake.project.expand import NAME, merged, targets, variants
from npumake.project.hints import hints_of
from npumake.project.schema import is_choice, schema_of
from npumake.project.sections import Sections
from npumake.project.unset import naming_unset_variables
from npumake.project.vendor import Dialects, Note, VendorDocument, translated, vendor_of

SCHEMA = schema_of(Sections)
PROJECT = "project.yaml"
PROJECT_FILE_KEYS = ("dialect", "config")  # one word each: they are in project.yaml


@dataclass(frozen=True)
class ProjectReading:
    """The sections for one target's stages; `own` lists the sections in its overlay."""

    sections: Sections
    places: Mapping[str, Place]
    own: tuple[str, ...] = ()


@dataclass(frozen=True)
class Project:
    """The YAML of one directory.

    `places` maps dotted routes ("calibration.method", "targets.0") to their values; routes of
    mappings ("inputs.image") to their keys. A variant is a project of its own, with its name in
    `variant`.
    """

    name: str
    directory: Path
    sections: Sections
    places: Mapping[str, Place]
    files: tuple[Path, ...]
    targets: Mapping[str, ProjectReading]
    variant: str | None = None
    variants: tuple[Project, ...] = ()
    notes: tuple[Note, ...] = ()
    variables: tuple[str, ...] = ()  # of the environment, that the YAML depends on
    vendor_document: VendorDocument | None = None  # in a vendor's own words


def read_project(directory: Path, dialects: Dialects | None = None) -> Project:
    """The project in `directory`, named like it. `dialects` are the supported ones.

    Raises ProjectError for the first error: a name that is not portable, a missing project.yaml, a
    duplicate section, or an error of `parse_document` or `check`.
    """
    name = os.path.basename(os.path.abspath(directory))
    if not NAME.fullmatch(name):
        hint = "use letters, digits, `_`, `.` and `-`"
        raise ProjectError(f"`{name}` cannot name a project", path_text(directory), hint)
    with naming_unset_variables():
        return _named_project(name, directory, dialects)


def _named_project(name: str, directory: Path, dialects: Dialects | None) -> Project:
    top = read_document(_project_file(directory))
    check(top, {"type": "object"})
    vendor = vendor_of(top, directory, dialects or {})
    files = _section_files(directory, vendor.config.files if vendor else ())
    translation = translated(_joined([top, *map(read_document, files)]), vendor)
    project = project_of(translation.document, name, directory)
    files = (directory / PROJECT, *files, *translation.files)
    variants_with_document = [
        replace(variant, vendor_document=translation.vendor_document)
        for variant in project.variants
    ]
    project = replace(
        project, vendor_document=translation.vendor_document, variants=tuple(variants_with_document)
    )
    return replace(project, files=files, notes=translation.notes, variables=translation.variables)


def project_of(document: Document, name: str, directory: Path) -> Project:
    """The project of one document, with variants and overlays of targets.

    Raises its first ProjectError.
    """
    plain = _reading(document)
    by_target = {
        target: plain if overlay is None else _overlaid(document, overlay)
        for target, overlay in targets(document).items()
    }
    nested = tuple(
        replace(project_of(whole, name, directory), variant=variant)
        for variant, whole in variants(document).items()
    )
    return Project(name, directory, plain.sections, plain.places, (), by_target, variants=nested)


def _overlaid(document: Document, overlay: Document) -> ProjectReading:
    return replace(_reading(merged(document, overlay)), own=tuple(overlay.data))


def _reading(document: Document) -> ProjectReading:
    places = {dotted(route): spot.value for route, spot in document.places.items()}
    return ProjectReading(sections_of(document), places)


def sections_of(document: Document) -> Sections:
    """The typed sections of one document. Raises its first ProjectError."""
    check(document, SCHEMA)
    sections: Sections = built(Sections, document.data)
    if sections.comparison.samples is None and (sections.report or sections.gates):
        # Figures that are published or decide must not depend on the choice of samples.
        return replace(sections, comparison=replace(sections.comparison, samples="all"))
    return sections


def _project_file(directory: Path) -> Path:
    file = directory / PROJECT
    if os.path.lexists(file) and not file.is_file():
        raise ProjectError("not a plain file", path_text(file))
    if not file.is_file():
        hint = "a project is a directory with a project.yaml"
        raise ProjectError("no project.yaml", path_text(directory), hint)
    return file


def _section_files(directory: Path, vendors: Sequence[Path]) -> tuple[Path, ...]:
    """The existing files of sections, in order. A vendor's file may have the same name."""
    others = {os.path.realpath(file) for file in vendors}
    files = []
    for name in ("project", *(section.name for section in fields(Sections))):
        for suffix in (".yml", ".yaml"):
            file = directory / f"{name}{suffix}"
            if (
                name in PROJECT_FILE_KEYS
                or not os.path.lexists(file)
                or os.path.realpath(file) in others
            ):
                continue
            if suffix == ".yml":
                raise ProjectError("not read", path_text(file), f"rename it to {name}.yaml")
            if not file.is_file():
                raise ProjectError("not a plain file", path_text(file))
            files += [file] if name != "project" else []
    return tuple(files)


def _joined(documents: list[Document]) -> Document:
    """The first document with the others as sections, each named for its file."""
    project, *sections = documents
    data: dict[str, Json] = dict(project.data)
    places: dict[tuple[str | int, ...], RoutePlace] = dict(project.places)
    for section in sections:
        name = Path(section.path).stem
        if name in data:
            message = f"section `{name}` is written twice, here and in {section.path}"
            raise ProjectError(message, places[name,].key, "keep one of them")
        data[name] = section.data
        places |= {(name, *route): spot for route, spot in section.places.items()}
    return Document(project.path, data, places)


def built(hint: Any, value: Json) -> Any:
    """Converts checked plain data to the type `hint`."""
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        hints = hints_of(hint)
        keys = {key_of(field): field.name for field in fields(hint)}
        return hint(**{keys[key]: built(hints[keys[key]], item) for key, item in value.items()})
    if is_choice(hint):
        hints = hints_of(hint)
        chosen = {value: {}} if isinstance(value, str) else value
        return {name: built(hints[name], item) for name, item in chosen.items()}
    if origin in (Union, UnionType):
        return built(_member(arguments, value), value)
    if origin is tuple:
        return tuple(built(arguments[0], item) for item in value)
    if origin is Mapping:
        return {key: built(arguments[1], item) for key, item in value.items()}
    if origin is Literal:
        return next(choice for choice in arguments if choice == value)
    # YAML writes 1 for 1.0, and a JSON Schema takes 1.0 for 1.
    return hint(value) if hint in (int, float) else value


def _member(members: tuple[Any, ...], value: Json) -> Any:
    """The member of a union that `value` belongs to."""
    if value is None:
        return type(None)
    kind = type(value) if isinstance(value, list | dict) else None
    alike = [m for m in members if m is not type(None) and _kind(m) is kind]
    words = [m for m in alike if get_origin(m) is Literal]
    return next((m for m in words if value in get_args(m)), alike[0])


def _kind(hint: Any) -> type | None:
    """The JSON container of a type: list, dict, or None for a scalar."""
    if is_dataclass(hint):
        return dict
    origin = get_origin(getattr(hint, "__supertype__", hint))
    return {tuple: list, Mapping: dict, dict: dict}.get(origin)
