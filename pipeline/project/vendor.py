"""A project that speaks a vendor's dialect: `dialect: hb_mapper`, `config: resnet50_config.yaml`.

    native document = translate(vendor's document) ⊕ the rest of project.yaml

The translated document keeps the places of the vendor's file, so a mistake in it is shown there.
What stands beside the two keys is the project's own and replaces what the vendor's file says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from pipeline.errors import Place, ProjectError, did_you_mean
from pipeline.project.document import Document, read_document
from pipeline.project.expand import merged, without
from pipeline.project.scalar import older_meaning


@dataclass(frozen=True)
class Note:
    """What a translation leaves out or stands in for; told once, it stops nobody."""

    what: str
    where: Place


@dataclass(frozen=True)
class Dialect:
    """`translate` gets the vendor's document and the folder its relative paths start from, as
    the project sees it ("" for the project's own); it raises ProjectError."""

    translate: Callable[[Document, str], Document]
    notes: Callable[[Document], tuple[Note, ...]]


@dataclass(frozen=True)
class Spoken:
    """A native document, what its translation left out, and the vendor's file if any."""

    document: Document
    notes: tuple[Note, ...] = ()
    files: tuple[Path, ...] = ()


def spoken(document: Document, directory: Path, dialects: Mapping[str, Dialect]) -> Spoken:
    """The native document of a project in `directory`; one without `dialect` is that already.

    Raises ProjectError for an unknown dialect, one of the two keys without the other, and what
    reading and translating the vendor's file raise.
    """
    if "dialect" not in document.data and "config" not in document.data:
        return Spoken(document)
    name, config = _named(document, "dialect"), _named(document, "config")
    if name not in dialects:
        place = document.places["dialect",].value
        raise ProjectError(f"unknown dialect `{name}`", place, did_you_mean(name, dialects))
    file = Path(os.path.normpath(directory / config))
    if not file.is_file():
        place = document.places["config",].value
        raise ProjectError(f"no file `{config}`", place, "paths start at the project's directory")
    vendor = read_document(file, older_meaning)
    folder = PurePath(config).parent.as_posix()
    native = dialects[name].translate(vendor, "" if folder == "." else folder)
    rest = without(document, ("dialect", "config"))
    return Spoken(merged(native, rest), dialects[name].notes(vendor), (file,))


def _named(document: Document, key: str) -> str:
    value = document.data.get(key)
    if not isinstance(value, str) or not value:
        other = {"dialect": "config", "config": "dialect"}[key]
        hint = "`dialect` names a vendor's tool, `config` its YAML file"
        place = document.places[(key,) if key in document.data else (other,)].key
        raise ProjectError(f"`{key}` must name one, beside `{other}`", place, hint)
    return value
