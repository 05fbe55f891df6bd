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
from typing import TypedDict

from npumake.digest import Json
from npumake.errors import Place, ProjectError, did_you_mean
from npumake.project.document import Document, read_document
from npumake.project.expand import merged, without
from npumake.project.scalar import older_meaning


@dataclass(frozen=True)
class Note:
    """What a translation leaves out or stands in for; told once, it stops nobody."""

    what: str
    where: Place


@dataclass(frozen=True)
class Config:
    """A vendor's file as read: its document, and everything its text depends on."""

    document: Document
    files: tuple[Path, ...]
    variables: tuple[str, ...] = ()  # of the environment


def plain_config(file: Path) -> Config:
    """A YAML file that speaks of nothing else. Raises ProjectError."""
    return Config(read_document(file, older_meaning), (file,))


def lenient_config(file: Path) -> Config:
    """As `plain_config`, for a tool whose reader takes the last of several equal keys."""
    return Config(read_document(file, older_meaning, again=True), (file,))


@dataclass(frozen=True)
class Dialect:
    """`translate` gets the vendor's document, the folder its relative paths start from, as the
    project sees it ("" for the project's own), and what the project says beside it: a tool may
    be given its model on the command line. All three raise ProjectError."""

    translate: Callable[[Document, str, Json], Document]
    notes: Callable[[Document], tuple[Note, ...]]
    read: Callable[[Path], Config] = plain_config


Dialects = Mapping[str, Callable[[], Dialect]]  # each is loaded when it is spoken


class VendorDocument(TypedDict):
    """A vendor's own document, and the dialect it is in."""

    dialect: str
    document: Json


@dataclass(frozen=True)
class Translation:
    """A native document, what its translation left out, and what else it was made from."""

    document: Document
    notes: tuple[Note, ...] = ()
    files: tuple[Path, ...] = ()
    variables: tuple[str, ...] = ()
    vendor_document: VendorDocument | None = None


@dataclass(frozen=True)
class VendorSection:
    """What `dialect` and `config` name. Paths in the file start at `base`, below the project."""

    name: str
    dialect: Dialect
    base: str
    config: Config


def vendor_of(document: Document, directory: Path, dialects: Dialects) -> VendorSection | None:
    """Of the project.yaml in `directory`; None without `dialect`.

    Raises ProjectError for an unknown dialect, one of the two keys without the other, and what
    reading the vendor's file raises.
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
    """The native document of a project; one without a vendor's file is that already.

    Raises what translating the vendor's file raises.
    """
    if vendor is None:
        return Translation(document)
    read, dialect = vendor.config, vendor.dialect
    rest = without(document, ("dialect", "config"))
    native = dialect.translate(read.document, vendor.base, rest.data)
    notes = (*repeat_notes(read.document), *dialect.notes(read.document))
    vendor_document = VendorDocument(dialect=vendor.name, document=read.document.data)
    return Translation(merged(native, rest), notes, read.files, read.variables, vendor_document)


def repeat_notes(document: Document) -> tuple[Note, ...]:
    """A note for every key that is written more than once."""
    what = "`{}` is written twice: the last one counts"
    return tuple(Note(what.format(name), place) for name, place in document.repeated)


def _named(document: Document, key: str) -> str:
    value = document.data.get(key)
    if not isinstance(value, str) or not value:
        other = {"dialect": "config", "config": "dialect"}[key]
        hint = "`dialect` names a vendor's tool, `config` its YAML file"
        place = document.places[(key,) if key in document.data else (other,)].key
        raise ProjectError(f"`{key}` must name one, beside `{other}`", place, hint)
    return value
