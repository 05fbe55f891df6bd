"""Reads SyNAP's metafile, replaces its variables, and reads the files that it names.

    ${ENV:name}    anywhere, replaced before parsing; empty for an undefined variable
    ${FILE:name}   in a format: the text of a file in the metafile's folder or below
    ${ANCHORS}     in a format: replaced later, when the model is known

Source: the SyNAP guide, "Conversion Metafile".
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from npumake.dialects.synaptics.keys import SECRETS, MetafileSecurity
from npumake.digest import Json
from npumake.errors import Place, ProjectError
from npumake.project.check import check
from npumake.project.document import (
    Document,
    Route,
    parse_document,
    path_text,
    read_document,
    read_source,
)
from npumake.project.events import MAX_FILE_BYTES
from npumake.project.scalar import older_meaning
from npumake.project.schema import schema_of
from npumake.project.unset import unset_variables
from npumake.project.vendor import Config, Note

_VARIABLE = re.compile(rb"\$\{ENV:([^}\s]*)\}")
_FILE = re.compile(r"\$\{FILE:([^}]*)\}")


def read_metafile(file: Path) -> Config:
    """The metafile and the files it depends on. Raises ProjectError for invalid YAML, for a file of
    a format that is unreadable or outside the folder, and for an invalid security file."""
    source = read_source(file)
    names = {name.decode("utf-8", "replace") for name in _VARIABLE.findall(source)}
    document = parse_document(_with_values(source, path_text(file)), path_text(file), older_meaning)
    formats, files = _with_files(document, file.parent)
    secret = _security_file(formats.data, file.parent)
    text = source.decode("utf-8", "replace")
    return Config(formats, (file, *files, *secret), tuple(sorted(names)), _unset(text, file))


def _unset(text: str, file: Path) -> tuple[Note, ...]:
    """A note for each variable that is not set."""
    message = "the environment variable `{}` is not set: nothing stands in its place"
    return tuple(
        Note(message.format(name), Place(path_text(file), line, column))
        for name, line, column in unset_variables(text)
        if name not in os.environ  # an empty one is meant to be
    )


def _with_values(source: bytes, path: str) -> bytes:
    values = [os.environ.get(name.decode("utf-8", "replace"), "").encode("utf-8", "replace")
              for name in _VARIABLE.findall(source)]  # fmt: skip
    if sum(map(len, values)) > MAX_FILE_BYTES:
        raise ProjectError(
            "with environment variables replaced, the file is too large", Place(path)
        )
    replacements = iter(values)
    return _VARIABLE.sub(lambda _: next(replacements), source)


def _with_files(document: Document, folder: Path) -> tuple[Document, tuple[Path, ...]]:
    """The document with ${FILE:name} replaced in all formats, and the files read."""
    files: list[Path] = []

    def expanded(data: Json, route: Route) -> Json:
        if isinstance(data, dict):
            return {key: expanded(item, (*route, key)) for key, item in data.items()}
        if isinstance(data, list):
            return [expanded(item, (*route, index)) for index, item in enumerate(data)]
        if not isinstance(data, str) or not str(route[-1] if route else "").endswith("format"):
            return data
        place = document.places[route].value

        def text(match: re.Match[str]) -> str:
            files.append(_beside(folder, match[1], place))
            return _text(files[-1], place)

        return _FILE.sub(text, data)

    return replace(document, data=expanded(document.data, ())), tuple(dict.fromkeys(files))


def _beside(folder: Path, name: str, place: Place) -> Path:
    file = folder / name
    if not file.resolve().is_relative_to(folder.resolve()):
        raise ProjectError(f"`{name}` is outside the metafile's folder", place, "copy it there")
    return file


def _text(file: Path, place: Place) -> str:
    try:
        with file.open("rb") as stream:
            source = stream.read(MAX_FILE_BYTES + 1)
        text = source.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ProjectError(f"cannot read `{file.name}`: {error}", place) from None
    if len(source) > MAX_FILE_BYTES:
        raise ProjectError(f"`{file.name}` is larger than {MAX_FILE_BYTES // 1024} KiB", place)
    return text


def _security_file(data: Json, folder: Path) -> tuple[Path, ...]:
    """The checked `security.file`, if it exists. A build works without it, since it needs no
    keys."""
    section = data.get("security") if isinstance(data, dict) else None
    name = section.get("file") if isinstance(section, dict) else None
    if not isinstance(name, str) or not (folder / name).is_file():
        return ()
    secrets(folder / name)
    return (folder / name,)


def secrets(file: Path) -> dict[str, Path]:
    """The paths of keys and certificates in a security file, by key. Relative paths start at its
    folder. Raises ProjectError."""
    document = read_document(file, older_meaning)
    schema = schema_of(MetafileSecurity)
    keys = {key: schema["properties"][key] for key in SECRETS}
    check(document, {**schema, "properties": keys, "required": list(SECRETS)})
    return {key: file.parent / document.data[key] for key in SECRETS}
