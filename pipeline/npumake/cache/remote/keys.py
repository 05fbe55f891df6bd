"""The key that signs this machine's uploads.

It comes from a file, an environment variable or a command of the user; a project's files cannot
name one. Its form is PEM (PKCS #8), or the 32 bytes in base64.
"""

from __future__ import annotations

import base64
import binascii
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from npumake.cache.folders import cure_of, make_folder
from npumake.cache.remote.envelope import Envelope, payload
from npumake.cache.store import Record
from npumake.errors import ProjectError

COMMAND_TIMEOUT_S = 60  # a person may have to unlock a token
PRIVATE_MODE = 0o600


@dataclass(frozen=True)
class Secret:
    """A text that is read when needed; exactly one of the fields is set."""

    env: str | None = None
    file: Path | None = None
    command: tuple[str, ...] = ()

    def read(self, called: str) -> str:
        """The text. Raises ProjectError if there is none."""
        if self.env is not None:
            text = os.environ.get(self.env, "")
            if not text:
                raise ProjectError(f"{called}: the variable {self.env} is not set, or empty")
            return text.strip()
        if self.file is not None:
            try:
                return self.file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "it is not text"
                raise ProjectError(f"{called}: cannot read {self.file}: {reason.lower()}") from None
        return _printed(self.command, called)


def _printed(command: Sequence[str], called: str) -> str:
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise ProjectError(f"{called}: `{command[0]}` did not run: {error}") from None
    if run.returncode:
        last_line = run.stderr.strip().rpartition("\n")[2][:200]
        raise ProjectError(f"{called}: `{command[0]}` ended with {run.returncode}", hint=last_line)
    return run.stdout.strip()


@dataclass(frozen=True)
class SigningKey:
    """An Ed25519 private key, read from `source` when needed."""

    source: Secret
    called: str = field(default="the signing key", compare=False)

    @cached_property
    def _private(self) -> Any:
        return _private(self.source.read(self.called), self.called)

    @property
    def public(self) -> bytes:
        """The raw public key, 32 bytes. Raises ProjectError."""
        return bytes(self._private.public_key().public_bytes_raw())

    def sign(self, key: str, record: Record) -> Envelope:
        """The record in a signed envelope. Raises ProjectError."""
        return Envelope(key, record, self.public, self.signature(payload(key, record)))

    def signature(self, content: bytes) -> bytes:
        """The signature of `content`, which begins with its purpose. Raises ProjectError."""
        return bytes(self._private.sign(content))


def _private(text: str, called: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415  # slow
        Ed25519PrivateKey,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        load_pem_private_key,
    )

    hint = "npumake cache keygen writes one"
    try:
        if not text.startswith("-----BEGIN"):
            return Ed25519PrivateKey.from_private_bytes(base64.b64decode(text, validate=True))
        private = load_pem_private_key(text.encode(), None)
    except (ValueError, TypeError, binascii.Error):
        raise ProjectError(f"{called} is not an unencrypted private key", hint=hint) from None
    if not isinstance(private, Ed25519PrivateKey):
        raise ProjectError(f"{called} is not an Ed25519 key", hint=hint)
    return private


def generate(file: Path) -> bytes:
    """Writes a new private key to `file`, readable only by its owner; returns the raw public key.

    Raises ProjectError if the file exists or cannot be written, CacheError without its folder.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
        Ed25519PrivateKey,
    )
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    private = Ed25519PrivateKey.generate()
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    make_folder(file.parent)
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
    except FileExistsError:
        hint = "remove it, or name another file with --output"
        raise ProjectError("the key file exists already", str(file), hint) from None
    except OSError as error:
        hint = cure_of(file.parent, error.errno, file)
        raise ProjectError(f"cannot write the key: {error.strerror}", str(file), hint) from None
    with os.fdopen(number, "wb") as stream:
        stream.write(text)
    return private.public_key().public_bytes_raw()
