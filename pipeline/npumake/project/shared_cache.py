"""The configuration files of the shared cache.

npumake.yaml     in a workspace: the remote of its projects
config.yaml      the user's own: credentials by origin, the signing key
trust.yaml       public keys, beside either of them
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from npumake.project.check import check
from npumake.project.doc import Doc
from npumake.project.document import Document, read_document
from npumake.project.paths import FilePath
from npumake.project.reader import built
from npumake.project.schema import schema_of


@dataclass(frozen=True)
class SharedCache:
    remote: Annotated[
        str | None, Doc("URL of the shared cache: http(s)://, s3://, gs://, az:// or file://.")
    ] = None


@dataclass(frozen=True)
class WorkspaceFile:
    cache: Annotated[SharedCache, Doc("The remote that shares artifacts.")] = field(
        default_factory=SharedCache
    )


@dataclass(frozen=True)
class SecretSource:
    env: Annotated[str | None, Doc("Environment variable with the value.")] = None
    file: Annotated[FilePath | None, Doc("File with the value.")] = None
    command: Annotated[tuple[str, ...], Doc("Program and arguments that print the value.")] = ()


@dataclass(frozen=True)
class Host:
    user: Annotated[str | None, Doc("User for basic authentication.")] = None
    password: Annotated[SecretSource | None, Doc("Password of the user.")] = None
    token: Annotated[SecretSource | None, Doc("Bearer token.")] = None
    certificate: Annotated[FilePath | None, Doc("Client certificate, PEM.")] = None
    certificate_key: Annotated[FilePath | None, Doc("Private key of the client, PEM.")] = None
    authority: Annotated[
        FilePath | None, Doc("Trusted certificate authorities of the server, PEM.")
    ] = None


@dataclass(frozen=True)
class UserCache:
    remote: Annotated[str | None, Doc("Default remote of all workspaces.")] = None
    signing_key: Annotated[SecretSource | None, Doc("Private key that signs uploads.")] = None
    hosts: Annotated[
        Mapping[str, Host],
        Doc("Credentials by origin, such as `https://cache.example.com`; they also allow uploads."),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class UserFile:
    cache: Annotated[UserCache, Doc("The shared cache.")] = field(default_factory=UserCache)


@dataclass(frozen=True)
class TrustFile:
    read: Annotated[
        Mapping[str, str], Doc("Public keys by owner; records signed with them are read.")
    ] = field(default_factory=dict)
    revoked: Annotated[
        tuple[str, ...], Doc("Revoked public keys; records signed with them are refused.")
    ] = ()


def read(file: Path, kind: Any) -> Any:
    """The file as `kind`; the defaults if it is missing. Raises ProjectError."""
    return built(kind, checked_document(file, kind).data) if os.path.lexists(file) else kind()


def checked_document(file: Path, kind: type) -> Document:
    """The document in the file, checked against `kind`. Raises ProjectError."""
    document = read_document(file)
    check(document, schema_of(kind))
    return document
