"""Projects in a vendor's dialect: `dialect: hb_mapper`, `config: resnet50_config.yaml`.

    native document = translate(vendor's document) ⊕ the rest of project.yaml

The translated document keeps the places of the vendor's file, so that errors point into it. Other
keys of project.yaml override the vendor's file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypedDict

from npumake.digest import Json
from npumake.errors import Place, ProjectError, did_you_mean
from npumake.project.document import Document, read_document
from npumake.project.expand import merged, without
from npumake.project.scalar import older_meaning


@dataclass(frozen=True)
class Note:
    """A key that the translation ignores or replaces; printed once, not an error."""

    what: str
    where: Place


@dataclass(frozen=True)
class Config:
    """A vendor's file: its document, and the files and variables it depends on."""

    document: Document
    files: tuple[Path, ...]
    variables: tuple[str, ...] = ()  # of the environment
    notes: tuple[Note, ...] = ()


def plain_config(file: Path) -> Config:
    """A YAML file without references to other files. Raises ProjectError."""
    return Config(read_document(file, older_meaning), (file,))


def lenient_config(file: Path) -> Config:
    """As `plain_config`, for a tool that takes the last of several equal keys."""
    return Config(read_document(file, older_meaning, again=True), (file,))


@dataclass(frozen=True)
class Dialect:
    """The functions of one dialect; all raise ProjectError.

    `translate` gets the vendor's document, the base folder of its relative paths within the project
    ("" for the project itself), and the rest of project.yaml, which may override keys."""

    translate: Callable[[Document, str, Json], Document]
    notes: Callable[[Document], tuple[Note, ...]]
    read: Callable[[Path], Config] = plain_config


Dialects = Mapping[str, Callable[[], Dialect]]  # loaded on first use


class VendorDocument(TypedDict):
    """A vendor's own document and its dialect."""

    dialect: str
    document: Json


@dataclass(frozen=True)
class Translation:
    """A native document, notes on its translation, and the files and variables it depends on."""

    document: Document
    notes: tuple[Note, ...] = ()
    files: tuple[Path, ...] = ()
    variables: tuple[str, ...] = ()
    vendor_document: VendorDocument | None = None


@dataclass(frozen=True)
class VendorSection:
    """The dialect and its file. Paths in the file start at `base`, below the project."""

    name: str
    dialect: Dialect
    base: str
    config: Config


def vendor_of(document: Document, directory: Path, dialects: Dialects) -> VendorSection | None:
    """The keys `dialect` and `config` of project.yaml; None without them.

    Raises ProjectError for an unknown dialect, for one key without the other, and as the reader of
    the vendor's file does.
    """
    if "dialect" not in document.data and "config" not in document.data:
        return None
    name, config = _named(document, "dialect"), _named(document, "config")
    if name not in dialects:
        place = document.places["dialect",].value
        raise ProjectError(f"unknown dialect `{name}`", place, did_you_mean(name, dialects))
    file = Path(os.path.normpath(directory / config))
    if not file.is_file():
        place = document.places["config",].value
        raise ProjectError(f"no file `{config}`", place, "paths start at the project's directory")
    dialect = dialects[name]()
    folder = PurePath(config).parent.as_posix()
    return VendorSection(name, dialect, "" if folder == "." else folder, dialect.read(file))


def translated(document: Document, vendor: VendorSection | None) -> Translation:
    """The native document of a project; without a vendor's file, the document itself.

    Raises ProjectError as the translation does.
    """
    if vendor is None:
        return Translation(document)
    read, dialect = vendor.config, vendor.dialect
    rest = without(document, ("dialect", "config"))
    native = dialect.translate(read.document, vendor.base, rest.data)
    notes = (*read.notes, *repeat_notes(read.document), *dialect.notes(read.document))
    vendor_document = VendorDocument(dialect=vendor.name, document=read.document.data)
    return Translation(merged(native, rest), notes, read.files, read.variables, vendor_document)


def repeat_notes(document: Document) -> tuple[Note, ...]:
    """A note for every duplicate key."""
    message = "`{}` is written twice: the last one counts"
    return tuple(Note(message.format(name), place) for name, place in document.repeated)


def _named(document: Document, key: str) -> str:
    value = document.data.get(key)
    if not isinstance(value, str) or not value:
        other = {"dialect": "config", "config": "dialect"}[key]
        hint = "`dialect` names a vendor's tool, `config` its YAML file"
        place = document.places[(key,) if key in document.data else (other,)].key
        raise ProjectError(f"`{key}` must name one, beside `{other}`", place, hint)
    return value
