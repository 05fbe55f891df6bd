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
    cache: Annotated[SharedCache, Doc("Where artifacts are shared.")] = field(
        default_factory=SharedCache
    )


@dataclass(frozen=True)
class SecretSource:
    env: Annotated[str | None, Doc("An environment variable that holds it.")] = None
    file: Annotated[FilePath | None, Doc("A file that holds it.")] = None
    command: Annotated[tuple[str, ...], Doc("A program, with its arguments, that prints it.")] = ()


@dataclass(frozen=True)
class Host:
    user: Annotated[str | None, Doc("For basic authentication.")] = None
    password: Annotated[SecretSource | None, Doc("Of that user.")] = None
    token: Annotated[SecretSource | None, Doc("A bearer token.")] = None
    certificate: Annotated[FilePath | None, Doc("The client's certificate, PEM.")] = None
    certificate_key: Annotated[FilePath | None, Doc("Its private key, PEM.")] = None
    authority: Annotated[
        FilePath | None, Doc("Certificates of who may vouch for the server, PEM.")
    ] = None


@dataclass(frozen=True)
class UserCache:
    remote: Annotated[str | None, Doc("The remote of workspaces that name none.")] = None
    signing_key: Annotated[SecretSource | None, Doc("The private key that signs uploads.")] = None
    hosts: Annotated[
        Mapping[str, Host],
        Doc("By origin, `https://cache.example.com`: what is sent there, and that we may upload."),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class UserFile:
    cache: Annotated[UserCache, Doc("The shared cache.")] = field(default_factory=UserCache)


@dataclass(frozen=True)
class TrustFile:
    read: Annotated[
        Mapping[str, str], Doc("Public keys by the name of their owner: their records are read.")
    ] = field(default_factory=dict)
    revoked: Annotated[
        tuple[str, ...], Doc("Public keys whose records are read no longer, whoever names them.")
    ] = ()


def read(file: Path, kind: Any) -> Any:
    """The file as `kind`; the defaults if it is missing. Raises ProjectError."""
    return built(kind, checked_document(file, kind).data) if os.path.lexists(file) else kind()


def checked_document(file: Path, kind: type) -> Document:
    """The document in the file, checked against `kind`. Raises ProjectError."""
    document = read_document(file)
    check(document, schema_of(kind))
    return document
